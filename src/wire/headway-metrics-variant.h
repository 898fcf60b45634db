/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-metrics.h"

G_BEGIN_DECLS

/* Returns: (transfer floating): `a(sa{ss}d)`, what ListMetrics() answers: name, labels and value of each
 * series, in the order of headway_metrics_append_text(). */
GVariant *headway_metrics_to_variant (const HeadwayMetrics *metrics);

G_END_DECLS
