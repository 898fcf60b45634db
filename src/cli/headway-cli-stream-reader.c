/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The socket is read to its end even when the daemon is gone: what it wrote before may be nowhere
 * else any more. A line that has not ended by then was never sent whole, and comes again.
 */
#include "config.h"

#include "cli/headway-cli-stream-reader.h"

#include "cli/headway-cli-envelope.h"
#include "cli/headway-cli-error.h"
#include "cli/headway-cli-line-cutter.h"

#include <errno.h>
#include <gio/gunixfdlist.h>
#include <glib-unix.h>
#include <glib/gi18n.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE_BYTES (64 * 1024)

typedef struct
{
  HeadwayCliSubscriber *subscriber; /* borrowed, outlives self */
  HeadwayCliLineCutter *cutter;     /* owned */
  char *piece;                      /* owned, PIECE_BYTES */
  int fd;                           /* owned, -1: not open yet */
  guint source;
} HeadwayCliStreamReader;

static gboolean
on_line (const char *line,
         gsize length,
         gpointer user_data)
{
  HeadwayCliStreamReader *self = user_data;
  g_auto (HeadwayCliEnvelope) envelope = { 0 };

  if (!g_utf8_validate_len (line, length, NULL))
    {
      headway_cli_say (_ ("a frame that is no UTF-8 was skipped"));
      return TRUE;
    }
  headway_cli_envelope_init (&envelope, (HeadwayCliSlice){ line, length });
  headway_cli_reader_take (headway_cli_subscriber_get_reader (self->subscriber), &envelope.event);
  return TRUE;
}

static void
take_piece (HeadwayCliStreamReader *self,
            gsize length)
{
  g_autoptr (GError) error = NULL;

  if (headway_cli_line_cutter_feed (self->cutter, self->piece, length))
    {
      headway_cli_subscriber_flush (self->subscriber);
      return;
    }
  error = g_error_new (HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_FAILED, _ ("a frame of the stream is longer than %d bytes"), HEADWAY_CLI_LINE_MAX);
  headway_cli_reader_fail (headway_cli_subscriber_get_reader (self->subscriber), error);
}

static gboolean
on_readable (int fd,
             GIOCondition condition,
             gpointer user_data)
{
  HeadwayCliStreamReader *self = user_data;
  ssize_t size = recv (fd, self->piece, PIECE_BYTES, MSG_DONTWAIT);

  if (size < 0 && (errno == EAGAIN || errno == EINTR))
    return G_SOURCE_CONTINUE;
  self->source = 0;
  if (size > 0)
    take_piece (self, (gsize) size);
  else
    headway_cli_subscriber_end (self->subscriber, NULL);
  return G_SOURCE_REMOVE;
}

static void
stream_reader_proceed (gpointer user_data)
{
  HeadwayCliStreamReader *self = user_data;

  self->source = g_unix_fd_add (self->fd, G_IO_IN | G_IO_HUP | G_IO_ERR, on_readable, self);
}

static void
on_opened (GObject *source,
           GAsyncResult *result,
           gpointer user_data)
{
  HeadwayCliStreamReader *self = user_data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GVariant) reply = NULL;
  g_autoptr (GUnixFDList) descriptors = NULL;
  gint32 handle;

  if (!headway_cli_subscriber_finish (source, result, &reply, &descriptors, &error))
    return;
  if (reply == NULL)
    {
      headway_cli_subscriber_call_failed (self->subscriber, error);
      return;
    }
  g_variant_get (reply, "(h)", &handle);
  self->fd = descriptors != NULL ? g_unix_fd_list_get (descriptors, handle, &error) : -1;
  if (self->fd >= 0)
    {
      stream_reader_proceed (self);
      return;
    }
  g_clear_error (&error);
  error = g_error_new_literal (HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_FAILED, _ ("the message bus passes no descriptors; try --via=receive"));
  headway_cli_reader_fail (headway_cli_subscriber_get_reader (self->subscriber), error);
}

static gpointer
stream_reader_open (HeadwayCliSubscriber *subscriber)
{
  HeadwayCliStreamReader *self = g_new0 (HeadwayCliStreamReader, 1);

  self->subscriber = subscriber;
  self->cutter = headway_cli_line_cutter_new (on_line, self);
  self->piece = g_malloc (PIECE_BYTES);
  self->fd = -1;
  headway_cli_subscriber_call (subscriber, "OpenStream", g_variant_new ("(sa{sv})", "ndjson", NULL), "(h)", on_opened, self);
  return self;
}

static void
stream_reader_close (gpointer user_data)
{
  HeadwayCliStreamReader *self = user_data;

  g_clear_handle_id (&self->source, g_source_remove);
  if (self->fd >= 0)
    close (self->fd);
  g_clear_pointer (&self->cutter, headway_cli_line_cutter_free);
  g_free (self->piece);
  g_free (self);
}

const HeadwayCliWay headway_cli_stream_reader_way = {
  .open = stream_reader_open,
  .proceed = stream_reader_proceed,
  .close = stream_reader_close,
};
