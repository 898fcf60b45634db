/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

#define HEADWAY_CLI_METRICS_TYPE "a(sa{ss}d)"

void headway_cli_metrics_append_text (GString *text,
                                      GVariant *metrics);

G_END_DECLS
