/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-terminal.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ENTER "\033[?1049h\033[?25l\033[2J" /* the other screen, no cursor, clean */
#define LEAVE "\033[0m\033[?25h\033[?1049l"

#define WIDTH_DEFAULT  80
#define HEIGHT_DEFAULT 24

/**
 * headway_cli_terminal_is_usable:
 * @in_fd: where keys come from
 * @out_fd: where the screen is
 *
 * Returns: whether both are a terminal that can place text
 */
gboolean
headway_cli_terminal_is_usable (int in_fd,
                                int out_fd)
{
  const char *kind = g_getenv ("TERM");

  return isatty (in_fd) && isatty (out_fd) && kind != NULL && *kind != '\0' && !g_str_equal (kind, "dumb");
}

static void
write_all (int fd,
           const char *text)
{
  gsize length = strlen (text);

  while (length > 0)
    {
      ssize_t written = write (fd, text, length);

      if (written < 0 && errno != EINTR)
        return;
      if (written > 0)
        {
          text += written;
          length -= (gsize) written;
        }
    }
}

/**
 * headway_cli_terminal_open:
 * @self: a terminal that is not open
 * @in_fd: where keys come from
 * @out_fd: where the screen is
 *
 * Takes the screen, and has each key come at once and unseen. Ctrl-C is a signal as before.
 *
 * Returns: FALSE if it is no terminal
 */
gboolean
headway_cli_terminal_open (HeadwayCliTerminal *self,
                           int in_fd,
                           int out_fd)
{
  struct termios raw;

  if (tcgetattr (in_fd, &self->before) != 0)
    return FALSE;
  raw = self->before;
  raw.c_lflag &= ~(tcflag_t) (ICANON | ECHO);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  raw.c_cc[VSUSP] = _POSIX_VDISABLE; /* stopped, it could not give the screen back */
  if (tcsetattr (in_fd, TCSANOW, &raw) != 0)
    return FALSE;
  self->in_fd = in_fd;
  self->out_fd = out_fd;
  self->is_open = TRUE;
  write_all (out_fd, ENTER);
  return TRUE;
}

/**
 * headway_cli_terminal_close:
 * @self: a terminal, open or not
 *
 * Leaves it as it was found.
 */
void
headway_cli_terminal_close (HeadwayCliTerminal *self)
{
  if (!self->is_open)
    return;
  self->is_open = FALSE;
  write_all (self->out_fd, LEAVE);
  tcsetattr (self->in_fd, TCSANOW, &self->before);
}

/**
 * headway_cli_terminal_get_size:
 * @fd: a descriptor
 * @width: (out): columns, 80 if it is no terminal
 * @height: (out): lines, 24 if it is no terminal
 *
 * Asks how large the screen is now.
 */
void
headway_cli_terminal_get_size (int fd,
                               guint *width,
                               guint *height)
{
  struct winsize size = { 0 };

  if (ioctl (fd, TIOCGWINSZ, &size) != 0)
    memset (&size, 0, sizeof size);
  *width = size.ws_col > 0 ? size.ws_col : WIDTH_DEFAULT;
  *height = size.ws_row > 0 ? size.ws_row : HEIGHT_DEFAULT;
}
