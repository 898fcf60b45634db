/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads a bus over D-Bus: Subscribe, then one of the ways to read a subscription, which see
 * HeadwayCliWay. All calls go to the unique name of the daemon that was there at first, so that
 * none of them meets its successor. A daemon that goes may leave events on their way to us: so it
 * is the way that ends, once it has them all, and only then a new subscription opens behind the
 * reader's cursor. The daemon is started at first, if the message bus can, but not again: whoever
 * stops it shall succeed.
 */
#include "config.h"

#include "cli/headway-cli-subscriber.h"

#include "cli/headway-cli-connection.h"
#include "cli/headway-cli-error.h"
#include "cli/headway-cli-receiver.h"
#include "cli/headway-cli-signal-reader.h"
#include "cli/headway-cli-stream-reader.h"

#include <gio/gunixfdlist.h>
#include <glib/gi18n.h>

#define DELAY_MAX_MS 3000

struct _HeadwayCliSubscriber
{
  GDBusConnection *connection;         /* owned */
  const HeadwayCliSubOptions *options; /* borrowed, outlives self */
  HeadwayCliReader *reader;            /* borrowed, outlives self */
  const HeadwayCliWay *way;            /* static */
  char *owner;                         /* owned, nullable: unique name of the daemon that is there */
  char *daemon;                        /* owned, nullable: of the one that is read from */
  char *subscription;                  /* owned, nullable: object path */
  GCancellable *cancellable;           /* owned, nullable: calls to that one */
  gpointer reading;                    /* owned, freed by the way; NULL: nothing is read */
  guint watch;
  guint retry_source;
};

static void subscribe (HeadwayCliSubscriber *self);

static const HeadwayCliWay *
find_way (const HeadwayCliSubOptions *options)
{
  if (g_strcmp0 (options->via, "receive") == 0)
    return &headway_cli_receiver_way;
  if (g_strcmp0 (options->via, "signals") == 0)
    return &headway_cli_signal_reader_way;
  return &headway_cli_stream_reader_way;
}

/**
 * headway_cli_subscriber_get_reader:
 * @self: a subscriber
 *
 * Returns: (transfer none): whom to give the events to
 */
HeadwayCliReader *
headway_cli_subscriber_get_reader (HeadwayCliSubscriber *self)
{
  return self->reader;
}

/**
 * headway_cli_subscriber_get_connection:
 * @self: a subscriber
 *
 * Returns: (transfer none): the message bus
 */
GDBusConnection *
headway_cli_subscriber_get_connection (HeadwayCliSubscriber *self)
{
  return self->connection;
}

/**
 * headway_cli_subscriber_get_daemon:
 * @self: a subscriber whose way is open
 *
 * Returns: (transfer none): unique name of the daemon that is read from
 */
const char *
headway_cli_subscriber_get_daemon (HeadwayCliSubscriber *self)
{
  return self->daemon;
}

/**
 * headway_cli_subscriber_get_path:
 * @self: a subscriber whose way is open
 *
 * Returns: (transfer none): object path of its subscription
 */
const char *
headway_cli_subscriber_get_path (HeadwayCliSubscriber *self)
{
  return self->subscription;
}

/**
 * headway_cli_subscriber_take_variant:
 * @self: a subscriber
 * @variant: an event as it is on the message bus, (tsssxsa{sv})
 *
 * Hands it to the reader.
 */
void
headway_cli_subscriber_take_variant (HeadwayCliSubscriber *self,
                                     GVariant *variant)
{
  g_autoptr (GVariant) extra = NULL;
  HeadwayCliEvent event = { 0 };

  g_variant_get (variant, "(t&s&s&sx&s@a{sv})", &event.id, &event.topic, &event.type, &event.principal, &event.timestamp_us, &event.data, &extra);
  event.has_seq = g_strcmp0 (self->options->mode, "routed") == 0;
  event.resume_id = event.has_seq ? 0 : event.id;
  g_variant_lookup (extra, "client", "&s", &event.client);
  g_variant_lookup (extra, "meta", "&s", &event.meta);
  g_variant_lookup (extra, "resume-id", "t", &event.resume_id);
  headway_cli_reader_take (self->reader, &event);
}

static void
call (HeadwayCliSubscriber *self,
      const char *path,
      const char *interface,
      const char *method,
      GVariant *parameters,
      const char *reply_type,
      GAsyncReadyCallback callback,
      gpointer user_data)
{
  g_dbus_connection_call_with_unix_fd_list (self->connection, self->daemon, path, interface, method, parameters, G_VARIANT_TYPE (reply_type),
                                            G_DBUS_CALL_FLAGS_NO_AUTO_START, HEADWAY_CLI_CALL_TIMEOUT_MS, NULL, self->cancellable, callback, user_data);
}

/**
 * headway_cli_subscriber_call:
 * @self: a subscriber whose way is open
 * @method: a method of its subscription
 * @parameters: (nullable) (transfer floating): its arguments
 * @reply_type: type of the answer
 * @callback: calls headway_cli_subscriber_finish()
 * @user_data: passed to it
 *
 * Calls the subscription.
 */
void
headway_cli_subscriber_call (HeadwayCliSubscriber *self,
                             const char *method,
                             GVariant *parameters,
                             const char *reply_type,
                             GAsyncReadyCallback callback,
                             gpointer user_data)
{
  call (self, self->subscription, HEADWAY_CLI_SUBSCRIPTION_INTERFACE, method, parameters, reply_type, callback, user_data);
}

/**
 * headway_cli_subscriber_finish:
 * @source: as the callback was given it
 * @result: likewise
 * @reply: (out) (transfer full) (nullable): the answer, NULL if there is none
 * @descriptors: (out) (optional) (transfer full) (nullable): what came with it
 * @error: return location for why there is none
 *
 * Returns: FALSE if the call was given up: then all else may be gone
 */
gboolean
headway_cli_subscriber_finish (GObject *source,
                               GAsyncResult *result,
                               GVariant **reply,
                               GUnixFDList **descriptors,
                               GError **error)
{
  g_autoptr (GError) local_error = NULL;

  *reply = g_dbus_connection_call_with_unix_fd_list_finish (G_DBUS_CONNECTION (source), descriptors, result, &local_error);
  if (g_error_matches (local_error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    return FALSE;
  if (local_error != NULL)
    g_propagate_error (error, g_steal_pointer (&local_error));
  return TRUE;
}

static void
on_flushed (gpointer user_data)
{
  HeadwayCliSubscriber *self = user_data;

  self->way->proceed (self->reading);
}

/**
 * headway_cli_subscriber_flush:
 * @self: a subscriber
 *
 * Writes what the reader took; then the way proceeds.
 */
void
headway_cli_subscriber_flush (HeadwayCliSubscriber *self)
{
  headway_cli_reader_flush (self->reader, on_flushed, self);
}

static gboolean
on_retry (gpointer user_data)
{
  HeadwayCliSubscriber *self = user_data;

  self->retry_source = 0;
  subscribe (self);
  return G_SOURCE_REMOVE;
}

static void
wait_and_retry (HeadwayCliSubscriber *self,
                const GError *reason)
{
  headway_cli_reader_waiting (self->reader, reason);
  g_clear_handle_id (&self->retry_source, g_source_remove);
  self->retry_source = g_timeout_add (headway_cli_reader_next_delay_ms (self->reader, DELAY_MAX_MS), on_retry, self);
}

static GError *
create_absence (void)
{
  return g_error_new_literal (HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_UNREACHABLE, _ ("headwayd is not running on this message bus"));
}

/* Lets go of the subscription. What is left of it shall not count against the bus. */
static void
leave (HeadwayCliSubscriber *self)
{
  if (self->reading != NULL)
    self->way->close (self->reading);
  self->reading = NULL;
  g_cancellable_cancel (self->cancellable);
  g_clear_object (&self->cancellable);
  if (self->subscription != NULL)
    g_dbus_connection_call (self->connection, self->daemon, self->subscription, HEADWAY_CLI_SUBSCRIPTION_INTERFACE, "Close", NULL, NULL,
                            G_DBUS_CALL_FLAGS_NO_AUTO_START, -1, NULL, NULL, NULL);
  g_clear_pointer (&self->subscription, g_free);
}

/**
 * headway_cli_subscriber_end:
 * @self: a subscriber whose way is open
 * @reason: (nullable): what ended it, NULL if it was read to its end
 *
 * The subscription has nothing more, and what it had is written. Closes the way, and goes on with
 * a new one unless that was all.
 */
void
headway_cli_subscriber_end (HeadwayCliSubscriber *self,
                            const GError *reason)
{
  g_autoptr (GError) absence = create_absence ();

  leave (self);
  if (headway_cli_reader_end (self->reader))
    return;
  if (self->owner == NULL)
    headway_cli_reader_waiting (self->reader, absence);
  else if (g_strcmp0 (self->owner, self->daemon) != 0)
    {
      headway_cli_reader_waiting (self->reader, reason);
      subscribe (self);
    }
  else if (headway_cli_reader_was_evicted (self->reader))
    subscribe (self);
  else
    wait_and_retry (self, reason);
}

/**
 * headway_cli_subscriber_call_failed:
 * @self: a subscriber whose way is open
 * @error: of headway_cli_subscriber_finish()
 *
 * A call of the way failed: ends the subscription, or the program, as that wants it.
 */
void
headway_cli_subscriber_call_failed (HeadwayCliSubscriber *self,
                                    const GError *error)
{
  g_autoptr (GError) converted = headway_cli_error_from_dbus (error, self->options->words[0]);

  /* Read to its end, or its object went while our output was stuck. */
  if (g_error_matches (converted, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_CLOSED) || g_error_matches (converted, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_NO_SUCH_BUS))
    headway_cli_subscriber_end (self, NULL);
  else if (headway_cli_reader_may_wait (self->reader, converted))
    headway_cli_subscriber_end (self, converted);
  else
    headway_cli_reader_fail (self->reader, converted);
}

static void
on_subscribed (GObject *source,
               GAsyncResult *result,
               gpointer user_data)
{
  HeadwayCliSubscriber *self = user_data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) converted = NULL;
  g_autoptr (GVariant) reply = NULL;
  g_autoptr (GVariant) info = NULL;
  const char *epoch = NULL;
  guint64 last_id = 0;
  gboolean has_last_id;

  if (!headway_cli_subscriber_finish (source, result, &reply, NULL, &error))
    return;
  if (reply == NULL)
    {
      converted = headway_cli_error_from_dbus (error, self->options->words[0]);
      if (headway_cli_reader_may_wait (self->reader, converted))
        wait_and_retry (self, converted);
      else
        headway_cli_reader_fail (self->reader, converted);
      return;
    }
  g_variant_get (reply, "(o@a{sv})", &self->subscription, &info);
  g_variant_lookup (info, "epoch", "&s", &epoch);
  has_last_id = g_variant_lookup (info, "last-id", "t", &last_id);
  headway_cli_reader_opened (self->reader, epoch, last_id, has_last_id);
  self->reading = self->way->open (self);
}

static void
add_types (GVariantDict *dict,
           char **types)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();
  g_auto (GStrv) all = NULL;

  for (gsize i = 0; types[i] != NULL; i++)
    {
      g_auto (GStrv) parts = g_strsplit (types[i], ",", -1);

      g_strv_builder_addv (builder, (const char **) parts);
    }
  all = g_strv_builder_end (builder);
  g_variant_dict_insert (dict, "types", "^as", all);
}

static GVariant *
collect_options (HeadwayCliSubscriber *self)
{
  const HeadwayCliSubOptions *options = self->options;
  g_auto (GVariantDict) dict = G_VARIANT_DICT_INIT (NULL);
  const char *epoch = headway_cli_reader_get_epoch (self->reader);
  guint64 cursor;

  if (headway_cli_reader_get_cursor (self->reader, &cursor))
    g_variant_dict_insert (&dict, "last-event-id", "t", cursor);
  if (epoch != NULL)
    g_variant_dict_insert (&dict, "epoch", "s", epoch);
  if (options->mode != NULL)
    g_variant_dict_insert (&dict, "mode", "s", options->mode);
  if (options->scope != NULL)
    g_variant_dict_insert (&dict, "scope", "s", options->scope);
  if (options->eviction != NULL)
    g_variant_dict_insert (&dict, "eviction", "s", options->eviction);
  if (options->max_queued > 0)
    g_variant_dict_insert (&dict, "max-queued", "u", (guint32) options->max_queued);
  if (options->budget > 0)
    g_variant_dict_insert (&dict, "budget-bytes", "t", options->budget);
  if (options->types != NULL)
    add_types (&dict, options->types);
  return g_variant_dict_end (&dict);
}

/* Needs a daemon that is there, and nothing that is read. */
static void
subscribe (HeadwayCliSubscriber *self)
{
  g_autofree char *path = headway_cli_connection_get_bus_path (self->options->words[0]);

  g_free (self->daemon);
  self->daemon = g_strdup (self->owner);
  g_clear_object (&self->cancellable);
  self->cancellable = g_cancellable_new ();
  call (self, path, HEADWAY_CLI_BUS_INTERFACE, "Subscribe",
        g_variant_new ("(^as@a{sv})", self->options->words + 1, collect_options (self)), "(oa{sv})", on_subscribed, self);
}

static void
on_appeared (GDBusConnection *connection,
             const char *name,
             const char *owner,
             gpointer user_data)
{
  HeadwayCliSubscriber *self = user_data;

  g_free (self->owner);
  self->owner = g_strdup (owner);
  if (self->reading == NULL)
    subscribe (self);
}

static void
on_vanished (GDBusConnection *connection,
             const char *name,
             gpointer user_data)
{
  HeadwayCliSubscriber *self = user_data;
  g_autoptr (GError) absence = create_absence ();
  g_autoptr (GError) error = NULL;

  g_clear_pointer (&self->owner, g_free);
  if (connection == NULL || g_dbus_connection_is_closed (connection))
    {
      error = g_error_new_literal (HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_FAILED, _ ("the message bus is gone"));
      headway_cli_reader_fail (self->reader, error);
      return;
    }
  if (self->reading != NULL)
    return;
  g_clear_handle_id (&self->retry_source, g_source_remove);
  leave (self);
  if (headway_cli_reader_may_wait (self->reader, absence))
    headway_cli_reader_waiting (self->reader, absence);
  else
    headway_cli_reader_fail (self->reader, absence);
}

/**
 * headway_cli_subscriber_new:
 * @cli: the global options
 * @options: what to read; outlives the subscriber
 * @reader: whom to give it to; outlives the subscriber
 * @error: return location
 *
 * Starts to read, as soon as the main loop runs.
 *
 * Returns: (transfer full): a subscriber, or NULL with an error of HEADWAY_CLI_ERROR
 */
HeadwayCliSubscriber *
headway_cli_subscriber_new (HeadwayCli *cli,
                            const HeadwayCliSubOptions *options,
                            HeadwayCliReader *reader,
                            GError **error)
{
  g_autoptr (GDBusConnection) connection = headway_cli_connection_open (cli, error);
  HeadwayCliSubscriber *self;

  if (connection == NULL)
    return NULL;
  self = g_new0 (HeadwayCliSubscriber, 1);
  self->connection = g_steal_pointer (&connection);
  self->options = options;
  self->reader = reader;
  self->way = find_way (options);
  self->watch = g_bus_watch_name_on_connection (self->connection, HEADWAY_CLI_DBUS_NAME, G_BUS_NAME_WATCHER_FLAGS_AUTO_START,
                                                on_appeared, on_vanished, self, NULL);
  return self;
}

/**
 * headway_cli_subscriber_free:
 * @self: a subscriber
 *
 * Frees it. Its subscription goes with the connection.
 */
void
headway_cli_subscriber_free (HeadwayCliSubscriber *self)
{
  g_bus_unwatch_name (self->watch);
  g_clear_handle_id (&self->retry_source, g_source_remove);
  leave (self);
  g_clear_pointer (&self->owner, g_free);
  g_clear_pointer (&self->daemon, g_free);
  g_clear_object (&self->connection);
  g_free (self);
}
