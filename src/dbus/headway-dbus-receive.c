/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-receive.h"

#include "dbus/headway-dbus-error.h"
#include "dbus/headway-dbus-reply.h"
#include "dbus/headway-dbus-turn.h"
#include "wire/headway-clock.h"

struct _HeadwayDBusReceive
{
  HeadwayDBusCharge charge;
  HeadwaySubscription *subscription; /* owned */
  GDBusMethodInvocation *invocation; /* owned until it is answered */
  HeadwayDBusReply reply;
  HeadwayDBusWaiter waiter;
  guint64 max_cost;
  guint timeout_ms;
  gboolean is_expired;
  GSource *deadline; /* owned, nullable */
  GSource *turn;     /* owned, nullable: looks again in the next turn of the loop */
  HeadwayDBusReceiveDone done;
  gpointer user_data;
};

static void on_room (HeadwayDBusWaiter *waiter);
static void on_late (HeadwayDBusWaiter *waiter);

HeadwayDBusReceive *
headway_dbus_receive_new (HeadwaySubscription *subscription,
                          HeadwayDBusPeer *peer,
                          GDBusMethodInvocation *invocation,
                          guint max_events,
                          guint64 max_cost,
                          guint timeout_ms,
                          HeadwayDBusReceiveDone done,
                          gpointer user_data)
{
  HeadwayDBusReceive *self = g_new0 (HeadwayDBusReceive, 1);

  self->subscription = g_object_ref (subscription);
  self->invocation = invocation;
  self->max_cost = max_cost;
  self->timeout_ms = timeout_ms;
  self->done = done;
  self->user_data = user_data;
  self->waiter.go = on_room;
  self->waiter.expire = on_late;
  headway_dbus_reply_init (&self->reply, peer, max_events,
                           headway_subscription_get_mode (subscription) == HEADWAY_MODE_ROUTED);
  return self;
}

static void
finish (HeadwayDBusReceive *self, gboolean is_closed)
{
  headway_dbus_charge_release (&self->charge);
  headway_dbus_waiter_cancel (&self->waiter);
  headway_dbus_turn_clear (&self->deadline);
  headway_dbus_turn_clear (&self->turn);
  self->done (self, is_closed, self->user_data);
  headway_dbus_reply_clear (&self->reply);
  g_object_unref (self->subscription);
  g_free (self);
}

static void
finish_with_events (HeadwayDBusReceive *self)
{
  headway_dbus_reply_send (&self->reply, g_steal_pointer (&self->invocation));
  finish (self, FALSE);
}

static void
finish_with_error (HeadwayDBusReceive *self, GError *error, gboolean is_closed)
{
  headway_dbus_error_answer (g_steal_pointer (&self->invocation), error);
  finish (self, is_closed);
}

static void
finish_closed (HeadwayDBusReceive *self)
{
  finish_with_error (self,
                     g_error_new (HEADWAY_ERROR, HEADWAY_ERROR_CLOSED, "subscription %u has ended and is read out",
                                  headway_subscription_get_number (self->subscription)),
                     TRUE);
}

/* What its next event has at most, as far as that is known. */
static gsize
get_first_bytes (HeadwayDBusReceive *self)
{
  if (headway_subscription_get_mode (self->subscription) != HEADWAY_MODE_BROADCAST &&
      headway_subscription_get_state (self->subscription) == HEADWAY_STATE_LIVE)
    return MIN (headway_subscription_get_queued_bytes (self->subscription), HEADWAY_REPLY_BYTES);
  return HEADWAY_REPLY_BYTES;
}

/* @is_last: for a bit of room we need not wait. Returns: FALSE: there is something, but no room for it. */
static gboolean
pull (HeadwayDBusReceive *self, gboolean is_last)
{
  HeadwayDelivery deliveries[HEADWAY_REPLY_EVENTS];
  guint n;

  if (!headway_dbus_reply_begin (&self->reply, get_first_bytes (self)) && headway_subscription_is_ready (self->subscription))
    {
      if (!is_last || headway_dbus_account_get_unread (&self->reply.peer->account) >= HEADWAY_REPLY_BYTES)
        return FALSE;
      self->reply.bytes_max = HEADWAY_REPLY_BYTES;
    }
  n = headway_subscription_drain (self->subscription, headway_clock_now (), self->max_cost, self->reply.max_events,
                                  MAX (self->reply.bytes_max, 1), deliveries);
  headway_dbus_reply_add (&self->reply, deliveries, n);
  return TRUE;
}

static void look_in_next_turn (HeadwayDBusReceive *self);

/* Returns: FALSE once the call is answered. */
static gboolean
look (HeadwayDBusReceive *self)
{
  if (self->reply.count == 0 && !pull (self, FALSE))
    {
      headway_dbus_waiter_wait (&self->waiter, &self->reply.peer->account, get_first_bytes (self), 0);
      return TRUE;
    }
  if (self->reply.count > 0)
    finish_with_events (self);
  else if (headway_subscription_is_finished (self->subscription))
    finish_closed (self);
  else if (headway_subscription_is_ready (self->subscription))
    {
      /* All it has looked at so far was held back by the filter. */
      look_in_next_turn (self);
      return TRUE;
    }
  else if (self->timeout_ms == 0 || self->is_expired)
    finish_with_events (self);
  else
    return TRUE;
  return FALSE;
}

static void
on_room (HeadwayDBusWaiter *waiter)
{
  look ((HeadwayDBusReceive *) ((char *) waiter - G_STRUCT_OFFSET (HeadwayDBusReceive, waiter)));
}

static void
on_late (HeadwayDBusWaiter *waiter)
{
  HeadwayDBusReceive *self = (HeadwayDBusReceive *) ((char *) waiter - G_STRUCT_OFFSET (HeadwayDBusReceive, waiter));

  finish_with_error (self, headway_dbus_account_new_error (&self->reply.peer->account), FALSE);
}

static gboolean
on_turn (gpointer user_data)
{
  HeadwayDBusReceive *self = user_data;

  headway_dbus_turn_clear (&self->turn);
  look (self);
  return G_SOURCE_REMOVE;
}

/* Between two dispatches, before anything less urgent. */
static void
look_in_next_turn (HeadwayDBusReceive *self)
{
  if (self->turn != NULL)
    return;
  self->turn = headway_dbus_turn_new ("headway Receive", on_turn, self);
}

static gboolean
on_deadline (gpointer user_data)
{
  HeadwayDBusReceive *self = user_data;

  headway_dbus_turn_clear (&self->deadline);
  self->is_expired = TRUE;
  if (self->turn == NULL)
    finish_with_events (self);
  return G_SOURCE_REMOVE;
}

void
headway_dbus_receive_start (HeadwayDBusReceive *self)
{
  GError *error = NULL;

  if (!look (self))
    return;
  if (!headway_dbus_charge_take (&self->charge, self->reply.peer, HEADWAY_DBUS_CHARGE_CALL, 0, NULL, &error))
    {
      finish_with_error (self, error, FALSE);
      return;
    }
  if (self->timeout_ms == 0)
    return;
  self->deadline = g_timeout_source_new (self->timeout_ms);
  g_source_set_static_name (self->deadline, "headway Receive deadline");
  g_source_set_callback (self->deadline, on_deadline, self, NULL);
  g_source_attach (self->deadline, g_main_context_get_thread_default ());
}

gboolean
headway_dbus_receive_put (HeadwayDBusReceive *self, HeadwayEvent *event, guint64 resume_id)
{
  look_in_next_turn (self);
  /* A budget is kept by the subscription alone. */
  return self->max_cost == G_MAXUINT64 && headway_dbus_reply_offer (&self->reply, event, resume_id);
}

void
headway_dbus_receive_wake (HeadwayDBusReceive *self)
{
  look_in_next_turn (self);
}

void
headway_dbus_receive_end (HeadwayDBusReceive *self)
{
  /* What a peer that does not read has not asked for in time is lost. */
  if (self->reply.count == 0)
    pull (self, TRUE);
  if (self->reply.count > 0)
    finish_with_events (self);
  else
    finish_closed (self);
}
