/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The socket of OpenPublisher, which ends at the first line that is refused. It may be opened again after a break. Answers are read whenever
 * they come, also behind a failed write: what the daemon has answered before it went is published.
 */
#include "config.h"

#include "cli/headway-cli-line-link.h"

#include "cli/headway-cli-connection.h"
#include "cli/headway-cli-error.h"
#include "cli/headway-cli-line-cutter.h"

#include <errno.h>
#include <gio/gunixfdlist.h>
#include <glib-unix.h>
#include <glib/gi18n.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE_BYTES (64 * 1024)

struct _HeadwayCliLineLink
{
  GDBusConnection *connection; /* owned */
  char *bus_name;              /* owned */
  char *bus_path;              /* owned */
  HeadwayCliLineLinkEvents events;
  gpointer user_data;           /* borrowed, outlives self */
  GCancellable *cancellable;    /* owned: an opening under way */
  HeadwayCliLineCutter *cutter; /* owned, nullable */
  char *piece;                  /* owned, PIECE_BYTES */
  guint64 last_id;
  int fd; /* owned, -1: closed */
  guint delay_source;
  guint read_source;
  guint write_source;
};

/**
 * headway_cli_line_link_new:
 * @connection: the message bus
 * @bus_name: name of the bus to publish to
 * @events: whom to tell
 * @user_data: passed to them
 *
 * Returns: (transfer full): a link that is closed
 */
HeadwayCliLineLink *
headway_cli_line_link_new (GDBusConnection *connection,
                           const char *bus_name,
                           const HeadwayCliLineLinkEvents *events,
                           gpointer user_data)
{
  HeadwayCliLineLink *self = g_new0 (HeadwayCliLineLink, 1);

  self->connection = g_object_ref (connection);
  self->bus_name = g_strdup (bus_name);
  self->bus_path = headway_cli_connection_get_bus_path (bus_name);
  self->events = *events;
  self->user_data = user_data;
  self->cancellable = g_cancellable_new ();
  self->piece = g_malloc (PIECE_BYTES);
  self->fd = -1;
  return self;
}

/**
 * headway_cli_line_link_close:
 * @self: a link
 *
 * Closes it, or gives up to open it. Nothing is told any more.
 */
void
headway_cli_line_link_close (HeadwayCliLineLink *self)
{
  g_cancellable_cancel (self->cancellable);
  g_clear_object (&self->cancellable);
  self->cancellable = g_cancellable_new ();
  g_clear_handle_id (&self->delay_source, g_source_remove);
  g_clear_handle_id (&self->read_source, g_source_remove);
  g_clear_handle_id (&self->write_source, g_source_remove);
  if (self->fd >= 0)
    close (self->fd);
  self->fd = -1;
}

/**
 * headway_cli_line_link_free:
 * @self: a link
 *
 * Frees it.
 */
void
headway_cli_line_link_free (HeadwayCliLineLink *self)
{
  headway_cli_line_link_close (self);
  g_clear_pointer (&self->cutter, headway_cli_line_cutter_free);
  g_clear_object (&self->cancellable);
  g_clear_object (&self->connection);
  g_free (self->bus_name);
  g_free (self->bus_path);
  g_free (self->piece);
  g_free (self);
}

/**
 * headway_cli_line_link_is_open:
 * @self: a link
 *
 * Returns: whether lines can be sent
 */
gboolean
headway_cli_line_link_is_open (HeadwayCliLineLink *self)
{
  return self->fd >= 0;
}

static gboolean
on_answer (const char *line,
           gsize length,
           gpointer user_data)
{
  HeadwayCliLineLink *self = user_data;

  return self->events.answered (line, length, self->user_data);
}

static gboolean
on_readable (int fd,
             GIOCondition condition,
             gpointer user_data)
{
  HeadwayCliLineLink *self = user_data;
  ssize_t size = recv (fd, self->piece, PIECE_BYTES, MSG_DONTWAIT);

  if (size < 0 && (errno == EAGAIN || errno == EINTR))
    return G_SOURCE_CONTINUE;
  if (size > 0 && headway_cli_line_cutter_feed (self->cutter, self->piece, (gsize) size))
    {
      self->events.proceed (self->user_data);
      return G_SOURCE_CONTINUE;
    }
  self->read_source = 0;
  headway_cli_line_link_close (self);
  self->events.lost (self->user_data);
  return G_SOURCE_REMOVE;
}

static void
refuse (HeadwayCliLineLink *self,
        const GError *error)
{
  g_autoptr (GError) converted = headway_cli_error_from_dbus (error, self->bus_name);

  self->events.refused (converted, self->user_data);
}

static void
on_opened (GObject *source,
           GAsyncResult *result,
           gpointer user_data)
{
  HeadwayCliLineLink *self = user_data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GUnixFDList) descriptors = NULL;
  g_autoptr (GVariant) reply = NULL;
  gint32 handle;

  reply = g_dbus_connection_call_with_unix_fd_list_finish (G_DBUS_CONNECTION (source), &descriptors, result, &error);
  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    return;
  if (reply != NULL)
    {
      g_variant_get (reply, "(h)", &handle);
      if (descriptors == NULL)
        error = g_error_new_literal (HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_FAILED, _ ("the message bus passes no descriptors"));
      else
        self->fd = g_unix_fd_list_get (descriptors, handle, &error);
    }
  if (error != NULL)
    {
      refuse (self, error);
      return;
    }
  g_clear_pointer (&self->cutter, headway_cli_line_cutter_free);
  self->cutter = headway_cli_line_cutter_new (on_answer, self);
  self->read_source = g_unix_fd_add (self->fd, G_IO_IN | G_IO_HUP | G_IO_ERR, on_readable, self);
  self->events.opened (self->last_id, self->user_data);
}

static void
on_last_id_told (GObject *source,
                 GAsyncResult *result,
                 gpointer user_data)
{
  HeadwayCliLineLink *self = user_data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GVariant) reply = g_dbus_connection_call_finish (G_DBUS_CONNECTION (source), result, &error);
  g_autoptr (GVariant) value = NULL;

  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    return;
  if (reply == NULL)
    {
      refuse (self, error);
      return;
    }
  g_variant_get (reply, "(v)", &value);
  self->last_id = g_variant_is_of_type (value, G_VARIANT_TYPE_UINT64) ? g_variant_get_uint64 (value) : 0;
  g_dbus_connection_call_with_unix_fd_list (self->connection, HEADWAY_CLI_DBUS_NAME, self->bus_path, HEADWAY_CLI_BUS_INTERFACE, "OpenPublisher",
                                            g_variant_new_parsed ("('ndjson', {'on-error': <'stop'>})"), G_VARIANT_TYPE ("(h)"),
                                            G_DBUS_CALL_FLAGS_NO_AUTO_START, HEADWAY_CLI_CALL_TIMEOUT_MS, NULL, self->cancellable, on_opened, self);
}

static gboolean
on_delay_over (gpointer user_data)
{
  HeadwayCliLineLink *self = user_data;

  self->delay_source = 0;
  g_dbus_connection_call (self->connection, HEADWAY_CLI_DBUS_NAME, self->bus_path, HEADWAY_CLI_PROPERTIES_INTERFACE, "Get",
                          g_variant_new ("(ss)", HEADWAY_CLI_BUS_INTERFACE, "LastEventId"), G_VARIANT_TYPE ("(v)"),
                          G_DBUS_CALL_FLAGS_NO_AUTO_START, HEADWAY_CLI_CALL_TIMEOUT_MS, self->cancellable, on_last_id_told, self);
  return G_SOURCE_REMOVE;
}

/**
 * headway_cli_line_link_open:
 * @self: a link that is closed
 * @delay_ms: how long to wait before
 *
 * Opens it. The daemon is not started for it: whoever stops it shall succeed. `opened` or
 * `refused` will tell.
 */
void
headway_cli_line_link_open (HeadwayCliLineLink *self,
                            guint delay_ms)
{
  g_return_if_fail (self->fd < 0 && self->delay_source == 0);

  self->delay_source = g_timeout_add (delay_ms, on_delay_over, self);
}

static gboolean
on_writable (int fd,
             GIOCondition condition,
             gpointer user_data)
{
  HeadwayCliLineLink *self = user_data;

  self->write_source = 0;
  self->events.proceed (self->user_data);
  return G_SOURCE_REMOVE;
}

/**
 * headway_cli_line_link_send:
 * @self: a link that is open
 * @bytes: (array length=length): what to send
 * @length: how many
 *
 * Sends what the socket takes; if that is not all, `proceed` tells when it takes more. What comes
 * behind a break is not sent: `lost` tells.
 *
 * Returns: how many bytes were sent
 */
gsize
headway_cli_line_link_send (HeadwayCliLineLink *self,
                            const char *bytes,
                            gsize length)
{
  ssize_t sent = length > 0 ? send (self->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;

  if (sent < 0 && errno != EAGAIN && errno != EINTR)
    return 0;
  if (sent < (ssize_t) length && self->write_source == 0)
    self->write_source = g_unix_fd_add (self->fd, G_IO_OUT, on_writable, self);
  return sent > 0 ? (gsize) sent : 0;
}
