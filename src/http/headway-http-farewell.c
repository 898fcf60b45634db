/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-farewell.h"

#include <errno.h>
#include <glib-unix.h>
#include <sys/socket.h>
#include <unistd.h>

/* How long a peer may take to take the answer, and then to stop sending. */
#define LINGER_S 2

/* What is dropped in one turn of the main loop. */
#define TURN_BYTES (64 * 1024)

typedef struct
{
  int fd;          /* owned */
  GString *answer; /* owned */
  gsize written;
  guint watch_id;
  guint timeout_id;
  GDestroyNotify released;
  gpointer released_data;
} Farewell;

static void
farewell_free (Farewell *self)
{
  g_clear_handle_id (&self->watch_id, g_source_remove);
  g_clear_handle_id (&self->timeout_id, g_source_remove);
  close (self->fd);
  g_string_free (self->answer, TRUE);
  self->released (self->released_data);
  g_free (self);
}

static gboolean
is_temporary (int code)
{
  return code == EAGAIN || code == EWOULDBLOCK || code == EINTR;
}

/* FALSE: there is nothing more to read, ever. */
static gboolean
drop_input (Farewell *self)
{
  char scratch[8192];
  gsize dropped = 0;

  while (dropped < TURN_BYTES)
    {
      gssize n = recv (self->fd, scratch, sizeof scratch, MSG_DONTWAIT);

      if (n == 0 || (n < 0 && !is_temporary (errno)))
        return FALSE;
      if (n < 0)
        return TRUE;
      dropped += (gsize) n;
    }
  return TRUE;
}

static gboolean farewell_watch (int fd, GIOCondition condition, gpointer user_data);

static void
watch (Farewell *self, GIOCondition condition)
{
  g_clear_handle_id (&self->watch_id, g_source_remove);
  self->watch_id = g_unix_fd_add (self->fd, condition, farewell_watch, self);
}

/* FALSE: the peer is gone. */
static gboolean
write_answer (Farewell *self)
{
  gssize n = send (self->fd, self->answer->str + self->written, self->answer->len - self->written,
                   MSG_DONTWAIT | MSG_NOSIGNAL);

  if (n < 0)
    return is_temporary (errno);

  self->written += (gsize) n;
  if (self->written < self->answer->len)
    return TRUE;
  return shutdown (self->fd, SHUT_WR) == 0;
}

static gboolean
farewell_watch (int fd, GIOCondition condition, gpointer user_data)
{
  Farewell *self = user_data;
  gboolean was_writing = self->written < self->answer->len;

  if ((was_writing && !write_answer (self)) || !drop_input (self))
    {
      self->watch_id = 0;
      farewell_free (self);
      return G_SOURCE_REMOVE;
    }
  if (was_writing && self->written == self->answer->len)
    {
      self->watch_id = 0;
      watch (self, G_IO_IN);
      return G_SOURCE_REMOVE;
    }
  return G_SOURCE_CONTINUE;
}

static gboolean
farewell_timeout (gpointer user_data)
{
  Farewell *self = user_data;

  self->timeout_id = 0;
  farewell_free (self);
  return G_SOURCE_REMOVE;
}

void
headway_http_farewell (int fd, GString *answer, GDestroyNotify released, gpointer released_data)
{
  Farewell *self = g_new0 (Farewell, 1);

  self->fd = fd;
  self->answer = answer;
  self->released = released;
  self->released_data = released_data;
  self->timeout_id = g_timeout_add_seconds (LINGER_S, farewell_timeout, self);
  if (write_answer (self))
    watch (self, self->written < answer->len ? G_IO_IN | G_IO_OUT : G_IO_IN);
  else
    watch (self, G_IO_IN | G_IO_OUT);
}
