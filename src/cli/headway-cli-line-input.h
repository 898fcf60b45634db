/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "cli/headway-cli-line-cutter.h"

#include <gio/gio.h>

G_BEGIN_DECLS

typedef struct _HeadwayCliLineInput HeadwayCliLineInput;

/* Called when a piece of the input was handed over, or its end is reached. */
typedef void (*HeadwayCliLineInputFunc) (gpointer user_data);

HeadwayCliLineInput *headway_cli_line_input_new (int fd,
                                                 HeadwayCliLineFunc line_func,
                                                 HeadwayCliLineInputFunc func,
                                                 gpointer user_data);
void headway_cli_line_input_free (HeadwayCliLineInput *self);
void headway_cli_line_input_read (HeadwayCliLineInput *self);
void headway_cli_line_input_stop (HeadwayCliLineInput *self);
gboolean headway_cli_line_input_is_over (HeadwayCliLineInput *self);
guint64 headway_cli_line_input_get_n_lines (HeadwayCliLineInput *self);
const GError *headway_cli_line_input_get_error (HeadwayCliLineInput *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayCliLineInput, headway_cli_line_input_free)

G_END_DECLS
