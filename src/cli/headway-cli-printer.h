/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "cli/headway-cli-event.h"

G_BEGIN_DECLS

void headway_cli_printer_append_json (GString *out,
                                      const HeadwayCliEvent *event);
void headway_cli_printer_append_readable (GString *out,
                                          const HeadwayCliEvent *event,
                                          gboolean colour);
char *headway_cli_printer_describe_notice (const HeadwayCliEvent *event);

G_END_DECLS
