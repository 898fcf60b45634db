/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Standard output without ever blocking the main loop, so that signals and timers are heeded
 * while whoever reads our pipe takes a break.
 *
 * The descriptor is not made non-blocking: that would change it for everybody who shares it,
 * the shell among them. Instead it is polled, and no more is written at once than a pipe or a
 * terminal that polls as writable is sure to take. Regular files are always ready.
 */
#include "config.h"

#include "cli/headway-cli-output.h"

#include <errno.h>
#include <glib-unix.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct _HeadwayCliOutput
{
  int fd; /* borrowed */
  mode_t kind;
  GString *buffer; /* owned */
  gsize offset;    /* bytes of buffer that are written */
  HeadwayCliOutputFunc func;
  gpointer user_data; /* borrowed, outlives self */
  guint source;
  HeadwayCliOutputFunc gone_func;
  gpointer gone_data; /* borrowed, outlives self */
  guint gone_source;
};

/**
 * headway_cli_output_new:
 * @fd: a descriptor that outlives the output
 *
 * Returns: (transfer full): an output with nothing in its buffer
 */
HeadwayCliOutput *
headway_cli_output_new (int fd)
{
  HeadwayCliOutput *self = g_new0 (HeadwayCliOutput, 1);
  struct stat status;

  self->fd = fd;
  self->buffer = g_string_new (NULL);
  if (fstat (fd, &status) == 0)
    self->kind = status.st_mode & S_IFMT;
  return self;
}

/**
 * headway_cli_output_free:
 * @self: an output
 *
 * Frees it; what was not written is lost.
 */
void
headway_cli_output_free (HeadwayCliOutput *self)
{
  g_clear_handle_id (&self->source, g_source_remove);
  g_clear_handle_id (&self->gone_source, g_source_remove);
  g_string_free (self->buffer, TRUE);
  g_free (self);
}

/**
 * headway_cli_output_get_buffer:
 * @self: an output
 *
 * Returns: (transfer none): where to append what shall be written; not between a flush and
 *   its answer
 */
GString *
headway_cli_output_get_buffer (HeadwayCliOutput *self)
{
  return self->buffer;
}

/* Returns 0 when all is written, EAGAIN when it must wait, else what went wrong. */
static int
write_some (HeadwayCliOutput *self)
{
  const gsize step = self->kind == S_IFREG ? G_MAXSSIZE : PIPE_BUF;

  while (self->offset < self->buffer->len)
    {
      struct pollfd ready = { .fd = self->fd, .events = POLLOUT };
      const char *next = self->buffer->str + self->offset;
      gsize size = MIN (step, self->buffer->len - self->offset);
      ssize_t written;

      if (self->kind != S_IFREG && poll (&ready, 1, 0) == 0)
        return EAGAIN;
      if (self->kind == S_IFSOCK)
        written = send (self->fd, next, size, MSG_DONTWAIT | MSG_NOSIGNAL);
      else
        written = write (self->fd, next, size);
      if (written < 0 && errno != EINTR)
        return errno;
      if (written > 0)
        self->offset += (gsize) written;
    }
  g_string_truncate (self->buffer, 0);
  self->offset = 0;
  return 0;
}

static void
answer (HeadwayCliOutput *self,
        int error_number)
{
  HeadwayCliOutputFunc func = g_steal_pointer (&self->func);

  func (error_number, self->user_data);
}

static gboolean
on_writable (int fd,
             GIOCondition condition,
             gpointer user_data)
{
  HeadwayCliOutput *self = user_data;
  int error_number = write_some (self);

  if (error_number == EAGAIN)
    return G_SOURCE_CONTINUE;
  self->source = 0;
  answer (self, error_number);
  return G_SOURCE_REMOVE;
}

/**
 * headway_cli_output_flush:
 * @self: an output that is not being flushed
 * @func: called once, maybe from within this call; not after headway_cli_output_free()
 * @user_data: passed to it
 *
 * Writes the buffer as fast as the other side takes it.
 */
void
headway_cli_output_flush (HeadwayCliOutput *self,
                          HeadwayCliOutputFunc func,
                          gpointer user_data)
{
  int error_number;

  g_return_if_fail (self->func == NULL);

  self->func = func;
  self->user_data = user_data;
  error_number = write_some (self);
  if (error_number == EAGAIN)
    self->source = g_unix_fd_add (self->fd, G_IO_OUT | G_IO_ERR | G_IO_HUP, on_writable, self);
  else
    answer (self, error_number);
}

static gboolean
on_reader_gone (int fd,
                GIOCondition condition,
                gpointer user_data)
{
  HeadwayCliOutput *self = user_data;

  self->gone_source = 0;
  self->gone_func (EPIPE, self->gone_data);
  return G_SOURCE_REMOVE;
}

/**
 * headway_cli_output_watch_reader:
 * @self: an output
 * @func: called with EPIPE once nobody reads the pipe any more
 * @user_data: passed to it
 *
 * Notices a reader that leaves although there is nothing to write.
 */
void
headway_cli_output_watch_reader (HeadwayCliOutput *self,
                                 HeadwayCliOutputFunc func,
                                 gpointer user_data)
{
  if (self->kind != S_IFIFO && self->kind != S_IFSOCK)
    return;
  self->gone_func = func;
  self->gone_data = user_data;
  self->gone_source = g_unix_fd_add (self->fd, G_IO_ERR, on_reader_gone, self);
}
