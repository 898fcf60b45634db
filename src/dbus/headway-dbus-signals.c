/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-signals.h"

#include "dbus/headway-dbus-error.h"
#include "dbus/headway-dbus-names.h"
#include "dbus/headway-dbus-turn.h"
#include "wire/headway-clock.h"
#include "wire/headway-variant.h"

/* One that is not acknowledged. */
typedef struct
{
  gsize bytes;  /* event size */
  guint64 sent; /* to the peer so far, by its account */
} Sent;

struct _HeadwayDBusSignals
{
  GDBusConnection *connection;       /* owned */
  HeadwaySubscription *subscription; /* owned */
  HeadwayDBusPeer *peer;             /* owned */
  char *path;                        /* owned */
  guint window;                      /* 0: off */
  Sent *sent;                        /* owned, nullable: by sequence modulo the window */
  guint64 sequence;                  /* of the last that was sent */
  guint64 acknowledged;
  gsize bytes; /* unacknowledged */
  HeadwayDBusWaiter waiter;
  GSource *turn; /* owned, nullable: takes in the next turn of the loop */
  HeadwayDBusSignalsDone done;
  gpointer user_data;
};

static void on_room (HeadwayDBusWaiter *waiter);
static void on_late (HeadwayDBusWaiter *waiter);

HeadwayDBusSignals *
headway_dbus_signals_new (GDBusConnection *connection,
                          HeadwaySubscription *subscription,
                          HeadwayDBusPeer *peer,
                          const char *path,
                          HeadwayDBusSignalsDone done,
                          gpointer user_data)
{
  HeadwayDBusSignals *self = g_new0 (HeadwayDBusSignals, 1);

  self->connection = g_object_ref (connection);
  self->subscription = g_object_ref (subscription);
  self->peer = headway_dbus_peer_ref (peer);
  self->path = g_strdup (path);
  self->waiter.go = on_room;
  self->waiter.expire = on_late;
  self->done = done;
  self->user_data = user_data;
  return self;
}

void
headway_dbus_signals_free (HeadwayDBusSignals *self)
{
  headway_dbus_signals_stop (self);
  g_object_unref (self->connection);
  g_object_unref (self->subscription);
  headway_dbus_peer_unref (self->peer);
  g_free (self->path);
  g_free (self);
}

/* --- Sending -------------------------------------------------------------------------------- */

/* Event size that the window has room for, 0: no event. */
static gsize
get_window_room (HeadwayDBusSignals *self)
{
  guint64 n = self->sequence - self->acknowledged;

  if (n >= self->window)
    return 0;
  if (n == 0)
    return G_MAXSIZE;
  return self->bytes < HEADWAY_DBUS_WINDOW_BYTES_MAX ? HEADWAY_DBUS_WINDOW_BYTES_MAX - self->bytes : 0;
}

static void
send (HeadwayDBusSignals *self, HeadwayEvent *event, guint64 resume_id)
{
  gboolean is_routed = headway_subscription_get_mode (self->subscription) == HEADWAY_MODE_ROUTED;
  guint64 sequence = ++self->sequence;
  GVariant *parameters = g_variant_new ("(t@" HEADWAY_VARIANT_EVENT ")", sequence,
                                        headway_variant_new_event (event, is_routed ? resume_id : 0));

  headway_dbus_account_send (&self->peer->account, g_variant_get_size (parameters) + HEADWAY_DBUS_CALL_BYTES);
  self->bytes += headway_event_get_size (event);
  self->sent[sequence % self->window] = (Sent){ headway_event_get_size (event), self->peer->account.sent };
  /* It fails only where there is no message bus any more. */
  g_dbus_connection_emit_signal (self->connection, self->peer->name, self->path, HEADWAY_DBUS_SUBSCRIPTION_INTERFACE,
                                 "Event", parameters, NULL);
}

/* FALSE: nothing more now, and what it waits for will make it look again. */
static gboolean
send_next (HeadwayDBusSignals *self)
{
  HeadwayDBusAccount *account = &self->peer->account;
  gsize window_room = get_window_room (self);
  gsize room = headway_dbus_account_get_room (account, HEADWAY_REPLY_BYTES) > 0 ? G_MAXSIZE : 0;
  HeadwayDelivery delivery;
  gboolean is_too_large = FALSE;

  if (window_room == 0 || !headway_subscription_is_ready (self->subscription))
    return FALSE;
  if (room == 0)
    room = headway_dbus_account_get_room (account, 0);
  if (room > 0 &&
      headway_subscription_take_one (self->subscription, headway_clock_now (), MIN (room, window_room), &delivery, &is_too_large))
    {
      send (self, delivery.event, delivery.resume_id);
      headway_event_unref (delivery.event);
      return TRUE;
    }
  /* Too large for the window: it waits for Acknowledge(). */
  if (room < window_room && (room == 0 || is_too_large))
    headway_dbus_waiter_wait (&self->waiter, account, room == 0 ? 0 : HEADWAY_REPLY_BYTES, 0);
  else if (!is_too_large)
    headway_dbus_signals_wake (self);
  return FALSE;
}

static void
look (HeadwayDBusSignals *self)
{
  guint n = 0;

  while (n < HEADWAY_DISPATCH_EVENTS && send_next (self))
    n++;
  if (n == HEADWAY_DISPATCH_EVENTS)
    headway_dbus_signals_wake (self);
  else if (self->acknowledged == self->sequence && headway_subscription_is_finished (self->subscription))
    self->done (self, self->user_data);
}

static gboolean
on_turn (gpointer user_data)
{
  HeadwayDBusSignals *self = user_data;

  headway_dbus_turn_clear (&self->turn);
  if (self->waiter.account == NULL)
    look (self);
  return G_SOURCE_REMOVE;
}

static void
on_room (HeadwayDBusWaiter *waiter)
{
  look ((HeadwayDBusSignals *) ((char *) waiter - G_STRUCT_OFFSET (HeadwayDBusSignals, waiter)));
}

/* Events lose nothing by waiting on. */
static void
on_late (HeadwayDBusWaiter *waiter)
{
  headway_dbus_signals_wake ((HeadwayDBusSignals *) ((char *) waiter - G_STRUCT_OFFSET (HeadwayDBusSignals, waiter)));
}

gboolean
headway_dbus_signals_put (HeadwayDBusSignals *self, HeadwayEvent *event, guint64 resume_id)
{
  gsize size = headway_event_get_size (event);

  if (self->waiter.account != NULL || get_window_room (self) < size ||
      headway_dbus_account_get_room (&self->peer->account, size) == 0)
    return FALSE;
  send (self, event, resume_id);
  return TRUE;
}

void
headway_dbus_signals_wake (HeadwayDBusSignals *self)
{
  if (self->turn != NULL || self->window == 0)
    return;
  self->turn = headway_dbus_turn_new ("headway signals", on_turn, self);
}

/* --- What its reader does ------------------------------------------------------------------- */

gboolean
headway_dbus_signals_is_on (HeadwayDBusSignals *self)
{
  return self->window > 0;
}

gboolean
headway_dbus_signals_start (HeadwayDBusSignals *self, guint window, GError **error)
{
  g_return_val_if_fail (self->window == 0, FALSE);

  if (window < 1 || window > HEADWAY_DBUS_WINDOW_MAX)
    {
      g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION, "window is %u, it takes 1 to %d", window,
                   HEADWAY_DBUS_WINDOW_MAX);
      return FALSE;
    }
  self->window = window;
  self->sent = g_new (Sent, window);
  headway_dbus_signals_wake (self);
  return TRUE;
}

void
headway_dbus_signals_stop (HeadwayDBusSignals *self)
{
  headway_dbus_waiter_cancel (&self->waiter);
  headway_dbus_turn_clear (&self->turn);
  self->window = 0;
  g_clear_pointer (&self->sent, g_free);
  self->acknowledged = self->sequence;
  self->bytes = 0;
}

gboolean
headway_dbus_signals_acknowledge (HeadwayDBusSignals *self, guint64 sequence, GError **error)
{
  if (sequence > self->sequence)
    {
      g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION,
                   "sequence is %" G_GUINT64_FORMAT ", the last signal that was sent is %" G_GUINT64_FORMAT,
                   sequence, self->sequence);
      return FALSE;
    }
  if (sequence <= self->acknowledged)
    return TRUE;
  headway_dbus_account_claim (&self->peer->account, self->sent[sequence % self->window].sent);
  while (self->acknowledged < sequence)
    self->bytes -= self->sent[++self->acknowledged % self->window].bytes;
  headway_dbus_signals_wake (self);
  return TRUE;
}
