/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>
#include <termios.h>

G_BEGIN_DECLS

/**
 * HeadwayCliTerminal:
 *
 * A terminal whose screen is ours for a while.
 */
typedef struct
{
  int in_fd;  /* borrowed */
  int out_fd; /* borrowed */
  struct termios before;
  gboolean is_open;
} HeadwayCliTerminal;

gboolean headway_cli_terminal_is_usable (int in_fd,
                                         int out_fd);
gboolean headway_cli_terminal_open (HeadwayCliTerminal *self,
                                    int in_fd,
                                    int out_fd);
void headway_cli_terminal_close (HeadwayCliTerminal *self);
void headway_cli_terminal_get_size (int fd,
                                    guint *width,
                                    guint *height);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (HeadwayCliTerminal, headway_cli_terminal_close)

G_END_DECLS
