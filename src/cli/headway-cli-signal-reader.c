/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Signals come whether standard output takes more or not, but never more of them than the window:
 * they wait here until what came before is written. Half a window, or BYTES_ACKNOWLEDGED, are
 * acknowledged as soon as they are, fewer when the loop has nothing else to do: the next event may be so
 * large that the daemon sends it only once all before it are acknowledged.
 *
 * Nothing tells that no signal will come any more but the last event itself, or the daemon's unique
 * name, which vanishes behind all that it sent.
 */
#include "config.h"

#include "cli/headway-cli-signal-reader.h"

#include "cli/headway-cli-connection.h"

#define WINDOW             256
#define BYTES_ACKNOWLEDGED (64 * 1024)

typedef struct
{
  HeadwayCliSubscriber *subscriber; /* borrowed, outlives self */
  GQueue signals;                   /* GVariant (owned): (t(tsssxsa{sv})), at most WINDOW */
  guint64 last;                     /* sequence of the last one that was taken */
  guint n_taken;                    /* taken, not acknowledged */
  gsize bytes_taken;
  gboolean is_flushing;
  gboolean is_cut; /* nothing more comes */
  guint signal_subscription;
  guint daemon_watch;
  guint take_source;
  guint acknowledge_source; /* while something is taken that is not acknowledged, and all is written */
} HeadwayCliSignalReader;

/* Whether all that came is written. */
static gboolean
is_idle (HeadwayCliSignalReader *self)
{
  return !self->is_flushing && g_queue_is_empty (&self->signals);
}

static void
on_answered (GObject *source,
             GAsyncResult *result,
             gpointer user_data)
{
  HeadwayCliSignalReader *self = user_data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GVariant) reply = NULL;

  if (!headway_cli_subscriber_finish (source, result, &reply, NULL, &error))
    return;
  if (reply == NULL && is_idle (self))
    headway_cli_subscriber_call_failed (self->subscriber, error);
  else if (reply == NULL)
    self->is_cut = TRUE;
}

static void
acknowledge (HeadwayCliSignalReader *self)
{
  g_clear_handle_id (&self->acknowledge_source, g_source_remove);
  self->n_taken = 0;
  self->bytes_taken = 0;
  headway_cli_subscriber_call (self->subscriber, "Acknowledge", g_variant_new ("(t)", self->last), "()", on_answered, self);
}

static gboolean
on_nothing_else (gpointer user_data)
{
  HeadwayCliSignalReader *self = user_data;

  self->acknowledge_source = 0;
  acknowledge (self);
  return G_SOURCE_REMOVE;
}

static void
take_signals (HeadwayCliSignalReader *self)
{
  GVariant *signal;

  /* What is taken now counts as done only when it is written. */
  g_clear_handle_id (&self->acknowledge_source, g_source_remove);

  while ((signal = g_queue_pop_head (&self->signals)) != NULL)
    {
      g_autoptr (GVariant) event = NULL;

      g_variant_get (signal, "(t@(tsssxsa{sv}))", &self->last, &event);
      self->n_taken++;
      self->bytes_taken += g_variant_get_size (signal);
      headway_cli_subscriber_take_variant (self->subscriber, event);
      g_variant_unref (signal);
    }
  self->is_flushing = TRUE;
  headway_cli_subscriber_flush (self->subscriber);
}

static gboolean
on_take (gpointer user_data)
{
  HeadwayCliSignalReader *self = user_data;

  self->take_source = 0;
  take_signals (self);
  return G_SOURCE_REMOVE;
}

static void
signal_reader_proceed (gpointer user_data)
{
  HeadwayCliSignalReader *self = user_data;

  self->is_flushing = FALSE;
  if (!g_queue_is_empty (&self->signals))
    self->take_source = g_idle_add_full (G_PRIORITY_DEFAULT, on_take, self, NULL);
  else if (self->is_cut || headway_cli_reader_is_over (headway_cli_subscriber_get_reader (self->subscriber)))
    {
      headway_cli_subscriber_end (self->subscriber, NULL);
      return;
    }
  if (self->n_taken >= WINDOW / 2 || self->bytes_taken >= BYTES_ACKNOWLEDGED)
    acknowledge (self);
  else if (self->n_taken > 0 && self->take_source == 0 && self->acknowledge_source == 0)
    self->acknowledge_source = g_idle_add_full (G_PRIORITY_DEFAULT_IDLE, on_nothing_else, self, NULL);
}

static void
on_event (GDBusConnection *connection,
          const char *sender,
          const char *path,
          const char *interface,
          const char *name,
          GVariant *parameters,
          gpointer user_data)
{
  HeadwayCliSignalReader *self = user_data;

  if (!g_variant_is_of_type (parameters, G_VARIANT_TYPE ("(t(tsssxsa{sv}))")))
    return;
  g_queue_push_tail (&self->signals, g_variant_ref (parameters));
  if (!self->is_flushing && self->take_source == 0)
    self->take_source = g_idle_add_full (G_PRIORITY_DEFAULT, on_take, self, NULL);
}

static void
on_daemon_vanished (GDBusConnection *connection,
                    const char *name,
                    gpointer user_data)
{
  HeadwayCliSignalReader *self = user_data;

  self->is_cut = TRUE;
  if (is_idle (self))
    headway_cli_subscriber_end (self->subscriber, NULL);
}

static gpointer
signal_reader_open (HeadwayCliSubscriber *subscriber)
{
  HeadwayCliSignalReader *self = g_new0 (HeadwayCliSignalReader, 1);
  GDBusConnection *connection = headway_cli_subscriber_get_connection (subscriber);
  const char *daemon = headway_cli_subscriber_get_daemon (subscriber);

  self->subscriber = subscriber;
  g_queue_init (&self->signals);
  /* Signals to us alone come without a match rule. */
  self->signal_subscription = g_dbus_connection_signal_subscribe (connection, daemon, HEADWAY_CLI_SUBSCRIPTION_INTERFACE, "Event",
                                                                  headway_cli_subscriber_get_path (subscriber), NULL,
                                                                  G_DBUS_SIGNAL_FLAGS_NO_MATCH_RULE, on_event, self, NULL);
  self->daemon_watch = g_bus_watch_name_on_connection (connection, daemon, G_BUS_NAME_WATCHER_FLAGS_NONE, NULL, on_daemon_vanished, self, NULL);
  headway_cli_subscriber_call (subscriber, "StartSignals", g_variant_new ("(u)", WINDOW), "()", on_answered, self);
  return self;
}

static void
signal_reader_close (gpointer user_data)
{
  HeadwayCliSignalReader *self = user_data;

  g_dbus_connection_signal_unsubscribe (headway_cli_subscriber_get_connection (self->subscriber), self->signal_subscription);
  g_bus_unwatch_name (self->daemon_watch);
  g_clear_handle_id (&self->take_source, g_source_remove);
  g_clear_handle_id (&self->acknowledge_source, g_source_remove);
  g_queue_clear_full (&self->signals, (GDestroyNotify) g_variant_unref);
  g_free (self);
}

const HeadwayCliWay headway_cli_signal_reader_way = {
  .open = signal_reader_open,
  .proceed = signal_reader_proceed,
  .close = signal_reader_close,
};
