/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-metrics.h"

G_BEGIN_DECLS

#define HEADWAY_METRICS_TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Appends all of @metrics to @text in the text format of Prometheus, version 0.0.4: `GET /metrics`
 * (http-api.md). */
void headway_metrics_append_text (const HeadwayMetrics *metrics, GString *text);

G_END_DECLS
