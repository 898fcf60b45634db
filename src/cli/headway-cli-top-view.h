/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "cli/headway-cli-sample.h"

G_BEGIN_DECLS

GPtrArray *headway_cli_top_view_create_lines (const HeadwayCliSample *sample,
                                              guint width,
                                              guint height,
                                              gboolean colour);

G_END_DECLS
