/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

void headway_cli_text_append_neutralised (GString *line,
                                          const char *text,
                                          gssize length);
char *headway_cli_text_neutralise (const char *text,
                                   gssize length);

G_END_DECLS
