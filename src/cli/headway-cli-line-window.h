/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct _HeadwayCliLineWindow HeadwayCliLineWindow;

HeadwayCliLineWindow *headway_cli_line_window_new (void);
void headway_cli_line_window_free (HeadwayCliLineWindow *self);
GString *headway_cli_line_window_begin (HeadwayCliLineWindow *self);
void headway_cli_line_window_end (HeadwayCliLineWindow *self,
                                  guint64 number);
gboolean headway_cli_line_window_has_room (HeadwayCliLineWindow *self);
guint headway_cli_line_window_get_n_lines (HeadwayCliLineWindow *self);
guint64 headway_cli_line_window_get_number (HeadwayCliLineWindow *self);
const char *headway_cli_line_window_get_unsent (HeadwayCliLineWindow *self,
                                                gsize *length);
void headway_cli_line_window_add_sent (HeadwayCliLineWindow *self,
                                       gsize length);
gboolean headway_cli_line_window_is_begun (HeadwayCliLineWindow *self);
guint headway_cli_line_window_get_n_sent (HeadwayCliLineWindow *self);
gboolean headway_cli_line_window_pop (HeadwayCliLineWindow *self);
void headway_cli_line_window_rewind (HeadwayCliLineWindow *self);
void headway_cli_line_window_drop_unsent (HeadwayCliLineWindow *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayCliLineWindow, headway_cli_line_window_free)

G_END_DECLS
