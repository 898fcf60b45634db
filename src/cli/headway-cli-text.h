/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

void headway_cli_text_append_neutralised (GString *line,
                                          const char *text,
                                          gssize length);
char *headway_cli_text_neutralise (const char *text,
                                   gssize length);

/* @number in decimal, for a message: xgettext cannot read the macros of GLib's formats. It lives
 * as long as the block it stands in. */
#define HEADWAY_CLI_NUMBER(number) headway_cli_text_print_number ((number), (char[HEADWAY_CLI_NUMBER_SIZE]){ 0 })
#define HEADWAY_CLI_NUMBER_SIZE    21

const char *headway_cli_text_print_number (guint64 number,
                                           char *buffer);

G_END_DECLS
