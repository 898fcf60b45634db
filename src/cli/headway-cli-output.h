/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

typedef struct _HeadwayCliOutput HeadwayCliOutput;

/* Called when all was written, or with the errno that prevents it. */
typedef void (*HeadwayCliOutputFunc) (int error_number,
                                      gpointer user_data);

HeadwayCliOutput *headway_cli_output_new (int fd);
void headway_cli_output_free (HeadwayCliOutput *self);
GString *headway_cli_output_get_buffer (HeadwayCliOutput *self);
void headway_cli_output_flush (HeadwayCliOutput *self,
                               HeadwayCliOutputFunc func,
                               gpointer user_data);
void headway_cli_output_watch_reader (HeadwayCliOutput *self,
                                      HeadwayCliOutputFunc func,
                                      gpointer user_data);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayCliOutput, headway_cli_output_free)

G_END_DECLS
