/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads a bus over D-Bus: Subscribe, then one Receive after the other. All calls go to the
 * unique name of the daemon that is there now, so that none of them meets its successor. When
 * the name goes, the calls are given up; when it comes back, a new subscription opens behind
 * the reader's cursor. The daemon is started at first, if the message bus can, but not again:
 * whoever stops it shall succeed.
 */
#include "config.h"

#include "cli/headway-cli-receiver.h"

#include "cli/headway-cli-connection.h"
#include "cli/headway-cli-error.h"

#include <glib/gi18n.h>

#define RECEIVE_EVENTS_MAX 1024
#define RECEIVE_WAIT_MS    20000
#define DELAY_MAX_MS       3000

struct _HeadwayCliReceiver
{
  GDBusConnection *connection;         /* owned */
  const HeadwayCliSubOptions *options; /* borrowed, outlives self */
  HeadwayCliReader *reader;            /* borrowed, outlives self */
  GCancellable *cancellable;           /* owned: calls to the present daemon */
  char *owner;                         /* owned, nullable: unique name of the daemon */
  char *subscription;                  /* owned, nullable: object path */
  gboolean is_flushing;
  gboolean subscribe_after_flush;
  guint watch;
  guint retry_source;
};

static void subscribe (HeadwayCliReceiver *self);
static void receive (HeadwayCliReceiver *self);

static void
call (HeadwayCliReceiver *self,
      const char *path,
      const char *interface,
      const char *method,
      GVariant *parameters,
      const char *reply_type,
      GAsyncReadyCallback callback)
{
  g_dbus_connection_call (self->connection, self->owner, path, interface, method, parameters, G_VARIANT_TYPE (reply_type),
                          G_DBUS_CALL_FLAGS_NO_AUTO_START, HEADWAY_CLI_CALL_TIMEOUT_MS, self->cancellable, callback, self);
}

/* Returns NULL if the call was given up: then @self may be gone too. */
static GVariant *
finish_call (GObject *source,
             GAsyncResult *result,
             HeadwayCliReceiver *self,
             GError **error)
{
  g_autoptr (GError) local_error = NULL;
  GVariant *reply = g_dbus_connection_call_finish (G_DBUS_CONNECTION (source), result, &local_error);

  if (reply != NULL || g_error_matches (local_error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    return reply;
  g_propagate_error (error, headway_cli_error_from_dbus (local_error, self->options->words[0]));
  return NULL;
}

static gboolean
on_retry (gpointer user_data)
{
  HeadwayCliReceiver *self = user_data;

  self->retry_source = 0;
  subscribe (self);
  return G_SOURCE_REMOVE;
}

static void
wait_and_retry (HeadwayCliReceiver *self,
                const GError *reason)
{
  headway_cli_reader_waiting (self->reader, reason);
  g_clear_handle_id (&self->retry_source, g_source_remove);
  self->retry_source = g_timeout_add (headway_cli_reader_next_delay_ms (self->reader, DELAY_MAX_MS), on_retry, self);
}

static void
on_subscribed (GObject *source,
               GAsyncResult *result,
               gpointer user_data)
{
  HeadwayCliReceiver *self = user_data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GVariant) reply = finish_call (source, result, self, &error);
  g_autoptr (GVariant) info = NULL;
  const char *epoch = NULL;
  guint64 last_id = 0;
  gboolean has_last_id;

  if (reply == NULL && error == NULL)
    return;
  if (error != NULL && headway_cli_reader_may_wait (self->reader, error))
    {
      wait_and_retry (self, error);
      return;
    }
  if (error != NULL)
    {
      headway_cli_reader_fail (self->reader, error);
      return;
    }
  g_variant_get (reply, "(o@a{sv})", &self->subscription, &info);
  g_variant_lookup (info, "epoch", "&s", &epoch);
  has_last_id = g_variant_lookup (info, "last-id", "t", &last_id);
  headway_cli_reader_opened (self->reader, epoch, last_id, has_last_id);
  receive (self);
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
collect_options (HeadwayCliReceiver *self)
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

static void
subscribe (HeadwayCliReceiver *self)
{
  g_autofree char *path = headway_cli_connection_get_bus_path (self->options->words[0]);

  if (self->owner == NULL)
    return;
  if (self->is_flushing)
    {
      self->subscribe_after_flush = TRUE;
      return;
    }
  g_clear_pointer (&self->subscription, g_free);
  call (self, path, HEADWAY_CLI_BUS_INTERFACE, "Subscribe",
        g_variant_new ("(^as@a{sv})", self->options->words + 1, collect_options (self)), "(oa{sv})", on_subscribed);
}

static void
stream_ended (HeadwayCliReceiver *self,
              const GError *reason)
{
  g_clear_pointer (&self->subscription, g_free);
  if (headway_cli_reader_end (self->reader))
    return;
  if (headway_cli_reader_was_evicted (self->reader))
    subscribe (self);
  else
    wait_and_retry (self, reason);
}

static void
on_flushed (gpointer user_data)
{
  HeadwayCliReceiver *self = user_data;

  self->is_flushing = FALSE;
  if (self->subscribe_after_flush)
    {
      self->subscribe_after_flush = FALSE;
      subscribe (self);
    }
  else if (self->subscription != NULL)
    receive (self);
}

static void
take_events (HeadwayCliReceiver *self,
             GVariant *reply)
{
  g_autoptr (GVariantIter) events = NULL;
  gboolean is_routed = g_strcmp0 (self->options->mode, "routed") == 0;
  HeadwayCliEvent event = { 0 };
  GVariant *extra;

  g_variant_get (reply, "(a(tsssxsa{sv}))", &events);
  while (g_variant_iter_next (events, "(t&s&s&sx&s@a{sv})", &event.id, &event.topic, &event.type, &event.principal, &event.timestamp_us, &event.data, &extra))
    {
      event.client = NULL;
      event.meta = NULL;
      event.resume_id = is_routed ? 0 : event.id;
      g_variant_lookup (extra, "client", "&s", &event.client);
      g_variant_lookup (extra, "meta", "&s", &event.meta);
      g_variant_lookup (extra, "resume-id", "t", &event.resume_id);
      headway_cli_reader_take (self->reader, &event);
      g_variant_unref (extra);
    }
}

static void
on_received (GObject *source,
             GAsyncResult *result,
             gpointer user_data)
{
  HeadwayCliReceiver *self = user_data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GVariant) reply = finish_call (source, result, self, &error);

  if (reply == NULL && error == NULL)
    return;
  if (reply != NULL)
    {
      take_events (self, reply);
      self->is_flushing = TRUE;
      headway_cli_reader_flush (self->reader, on_flushed, self);
    }
  else if (g_error_matches (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_CLOSED) || g_error_matches (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_NO_SUCH_BUS))
    stream_ended (self, NULL); /* read to its end, or the object went while our output was stuck */
  else if (headway_cli_reader_may_wait (self->reader, error))
    stream_ended (self, error);
  else
    headway_cli_reader_fail (self->reader, error);
}

static void
receive (HeadwayCliReceiver *self)
{
  call (self, self->subscription, HEADWAY_CLI_SUBSCRIPTION_INTERFACE, "Receive",
        g_variant_new ("(ui)", headway_cli_reader_get_wanted (self->reader, RECEIVE_EVENTS_MAX), RECEIVE_WAIT_MS),
        "(a(tsssxsa{sv}))", on_received);
}

static void
forget_daemon (HeadwayCliReceiver *self)
{
  g_cancellable_cancel (self->cancellable);
  g_clear_object (&self->cancellable);
  g_clear_pointer (&self->owner, g_free);
  g_clear_pointer (&self->subscription, g_free);
  g_clear_handle_id (&self->retry_source, g_source_remove);
  self->subscribe_after_flush = FALSE;
}

static void
on_appeared (GDBusConnection *connection,
             const char *name,
             const char *owner,
             gpointer user_data)
{
  HeadwayCliReceiver *self = user_data;

  forget_daemon (self);
  self->owner = g_strdup (owner);
  self->cancellable = g_cancellable_new ();
  subscribe (self);
}

static void
on_vanished (GDBusConnection *connection,
             const char *name,
             gpointer user_data)
{
  HeadwayCliReceiver *self = user_data;
  g_autoptr (GError) error = NULL;

  forget_daemon (self);
  if (connection == NULL || g_dbus_connection_is_closed (connection))
    error = g_error_new_literal (HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_FAILED, _ ("the message bus is gone"));
  else
    error = g_error_new_literal (HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_UNREACHABLE, _ ("headwayd is not running on this message bus"));
  if (headway_cli_reader_may_wait (self->reader, error))
    headway_cli_reader_waiting (self->reader, error);
  else
    headway_cli_reader_fail (self->reader, error);
}

/**
 * headway_cli_receiver_new:
 * @cli: the global options
 * @options: what to read; outlives the receiver
 * @reader: whom to give it to; outlives the receiver
 * @error: return location
 *
 * Starts to read, as soon as the main loop runs.
 *
 * Returns: (transfer full): a receiver, or NULL with an error of HEADWAY_CLI_ERROR
 */
HeadwayCliReceiver *
headway_cli_receiver_new (HeadwayCli *cli,
                          const HeadwayCliSubOptions *options,
                          HeadwayCliReader *reader,
                          GError **error)
{
  g_autoptr (GDBusConnection) connection = headway_cli_connection_open (cli, error);
  HeadwayCliReceiver *self;

  if (connection == NULL)
    return NULL;
  self = g_new0 (HeadwayCliReceiver, 1);
  self->connection = g_steal_pointer (&connection);
  self->options = options;
  self->reader = reader;
  self->watch = g_bus_watch_name_on_connection (self->connection, HEADWAY_CLI_DBUS_NAME, G_BUS_NAME_WATCHER_FLAGS_AUTO_START,
                                                on_appeared, on_vanished, self, NULL);
  return self;
}

/**
 * headway_cli_receiver_free:
 * @self: a receiver
 *
 * Frees it. Its subscription goes with the connection.
 */
void
headway_cli_receiver_free (HeadwayCliReceiver *self)
{
  g_bus_unwatch_name (self->watch);
  forget_daemon (self);
  g_clear_object (&self->connection);
  g_free (self);
}
