/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Longest line that is believed: above the ceiling of an event, whatever surrounds it. */
#define HEADWAY_CLI_LINE_MAX (16 * 1024 * 1024)

/* Called for each line, without its LF. @line lives during the call. Returns FALSE if no further
 * line is wanted. */
typedef gboolean (*HeadwayCliLineFunc) (const char *line,
                                        gsize length,
                                        gpointer user_data);

typedef struct _HeadwayCliLineCutter HeadwayCliLineCutter;

HeadwayCliLineCutter *headway_cli_line_cutter_new (HeadwayCliLineFunc func,
                                                   gpointer user_data);
void headway_cli_line_cutter_free (HeadwayCliLineCutter *self);
gboolean headway_cli_line_cutter_feed (HeadwayCliLineCutter *self,
                                       const char *bytes,
                                       gsize length);
void headway_cli_line_cutter_finish (HeadwayCliLineCutter *self);
gboolean headway_cli_line_is_blank (const char *line,
                                    gsize length);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayCliLineCutter, headway_cli_line_cutter_free)

G_END_DECLS
