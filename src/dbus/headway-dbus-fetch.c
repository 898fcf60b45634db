/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-fetch.h"

#include "dbus/headway-dbus-error.h"
#include "dbus/headway-dbus-receive.h"
#include "dbus/headway-dbus-reply.h"
#include "dbus/headway-dbus-turn.h"
#include "engine/headway-replay.h"
#include "wire/headway-clock.h"
#include "wire/headway-options.h"

struct _HeadwayDBusFetch
{
  HeadwayDBusCharge charge;          /* first: peer_left finds self by it */
  HeadwayBus *bus;                   /* owned */
  GDBusMethodInvocation *invocation; /* owned until it is answered */
  HeadwayFilter *filter;             /* owned */
  HeadwayReplay replay;
  HeadwayDBusReply reply;
  HeadwayDBusWaiter waiter;
  gsize wants_bytes; /* of the event that waits for room, else 0 */
  guint timeout_ms;
  gint64 deadline_us;
  guint observer;    /* of the bus, while it waits for the first event */
  GSource *deadline; /* owned, nullable */
  GSource *turn;     /* owned, nullable */
  GQueue *pending;   /* borrowed, outlives self */
  GList link;        /* in @pending */
};

typedef struct
{
  const char **patterns; /* owned array */
  const char **types;    /* owned array */
  guint timeout_ms;
  const char *epoch;
} FetchOptions;

static const HeadwayOptionSpec fetch_specs[] = {
  { "patterns", HEADWAY_OPTION_STRV, G_STRUCT_OFFSET (FetchOptions, patterns), 0, HEADWAY_PATTERNS_MAX },
  { "types", HEADWAY_OPTION_STRV, G_STRUCT_OFFSET (FetchOptions, types), 0, HEADWAY_TYPES_MAX },
  { "timeout-ms", HEADWAY_OPTION_UINT32, G_STRUCT_OFFSET (FetchOptions, timeout_ms), 0, HEADWAY_DBUS_WAIT_MAX_MS },
  { "epoch", HEADWAY_OPTION_STRING, G_STRUCT_OFFSET (FetchOptions, epoch), 1, 64, "A-Z a-z 0-9 _ -" },
  { NULL },
};

static void
fetch_options_clear (FetchOptions *options)
{
  g_clear_pointer (&options->patterns, g_free);
  g_clear_pointer (&options->types, g_free);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (FetchOptions, fetch_options_clear)

/* The invocation has been answered. */
static void
fetch_free (HeadwayDBusFetch *self)
{
  headway_dbus_charge_release (&self->charge);
  headway_dbus_waiter_cancel (&self->waiter);
  g_queue_unlink (self->pending, &self->link);
  if (self->observer != 0)
    headway_bus_remove_observer (self->bus, self->observer);
  headway_dbus_turn_clear (&self->deadline);
  headway_dbus_turn_clear (&self->turn);
  headway_dbus_reply_clear (&self->reply);
  headway_filter_unref (self->filter);
  g_object_unref (self->bus);
  g_free (self);
}

static void
finish (HeadwayDBusFetch *self)
{
  headway_dbus_reply_send (&self->reply, g_steal_pointer (&self->invocation));
  fetch_free (self);
}

static void
finish_with_error (HeadwayDBusFetch *self, GError *error)
{
  headway_dbus_error_answer (g_steal_pointer (&self->invocation), error);
  fetch_free (self);
}

static void
finish_closed (HeadwayDBusFetch *self)
{
  finish_with_error (self, g_error_new (HEADWAY_ERROR, HEADWAY_ERROR_CLOSED, "bus \"%s\" is closed",
                                        headway_bus_get_name (self->bus)));
}

static void
on_peer_left (HeadwayDBusCharge *charge)
{
  HeadwayDBusFetch *self = (HeadwayDBusFetch *) charge;

  finish_with_error (self, g_error_new_literal (HEADWAY_ERROR, HEADWAY_ERROR_CLOSED, "the caller has left"));
}

static gboolean
offer (HeadwayDBusFetch *self, HeadwayEvent *event)
{
  if (headway_dbus_reply_begin (&self->reply, headway_event_get_size (event)))
    return headway_dbus_reply_offer (&self->reply, event, 0);
  self->wants_bytes = headway_event_get_size (event);
  return FALSE;
}

static gboolean
offer_notice (HeadwayDBusFetch *self, const HeadwayNotice *notice)
{
  g_autoptr (HeadwayEvent) event = headway_notice_to_event (notice, self->replay.last_sent_id,
                                                            headway_bus_get_system (self->bus),
                                                            headway_clock_now ());

  return offer (self, event);
}

/* Collects from the ring. Returns: FALSE if there may be more to look at in the next turn. */
static gboolean
collect (HeadwayDBusFetch *self)
{
  HeadwayRing *ring = headway_bus_get_ring (self->bus);
  guint looks = HEADWAY_DISPATCH_EVENTS;

  self->wants_bytes = 0;
  while (!self->reply.is_full && self->wants_bytes == 0)
    {
      HeadwayEvent *event = NULL;
      HeadwayNotice notice;
      HeadwayReplayStep step = headway_replay_peek (&self->replay, ring, self->filter, &looks, &event, &notice);
      gboolean is_taken;

      if (step == HEADWAY_REPLAY_LOOKED)
        return FALSE;
      if (step == HEADWAY_REPLAY_DONE)
        return TRUE;
      is_taken = step == HEADWAY_REPLAY_EVENT ? offer (self, event)
                                              : offer_notice (self, &notice);
      if (is_taken)
        headway_replay_advance (&self->replay, step, event, &notice);
    }
  return TRUE;
}

static void look (HeadwayDBusFetch *self);
static void look_in_next_turn (HeadwayDBusFetch *self);

/* Collects until the present dispatch ends, then answers. */
static void
on_event (HeadwayBus *bus, HeadwayEvent *event, HeadwayInstant now, gpointer user_data)
{
  HeadwayDBusFetch *self = user_data;

  if (!headway_filter_matches (self->filter, event) || self->wants_bytes > 0)
    return;
  if (offer (self, event) || self->wants_bytes > 0)
    look_in_next_turn (self);
}

static void
on_room (HeadwayDBusWaiter *waiter)
{
  look ((HeadwayDBusFetch *) ((char *) waiter - G_STRUCT_OFFSET (HeadwayDBusFetch, waiter)));
}

static void
on_late (HeadwayDBusWaiter *waiter)
{
  HeadwayDBusFetch *self = (HeadwayDBusFetch *) ((char *) waiter - G_STRUCT_OFFSET (HeadwayDBusFetch, waiter));

  finish_with_error (self, headway_dbus_account_new_error (&self->reply.peer->account));
}

/* What it has seen of the bus while it waited for an event it reads from the ring when there is room. */
static void
wait_for_room (HeadwayDBusFetch *self)
{
  if (self->observer != 0)
    {
      headway_bus_remove_observer (self->bus, self->observer);
      self->observer = 0;
      self->replay.until = headway_bus_get_last_id (self->bus);
    }
  headway_dbus_waiter_wait (&self->waiter, &self->reply.peer->account, self->wants_bytes, 0);
}

static gboolean
on_deadline (gpointer user_data)
{
  HeadwayDBusFetch *self = user_data;

  headway_dbus_turn_clear (&self->deadline);
  finish (self);
  return G_SOURCE_REMOVE;
}

static void
wait_for_event (HeadwayDBusFetch *self)
{
  gint64 left_us = self->deadline_us - g_get_monotonic_time ();

  if (left_us <= 0)
    {
      finish (self);
      return;
    }
  self->observer = headway_bus_add_observer (self->bus, on_event, self, NULL);
  self->deadline = g_timeout_source_new ((guint) ((left_us + 999) / 1000));
  g_source_set_static_name (self->deadline, "headway Fetch deadline");
  g_source_set_callback (self->deadline, on_deadline, self, NULL);
  g_source_attach (self->deadline, g_main_context_get_thread_default ());
}

static void
look (HeadwayDBusFetch *self)
{
  if (self->observer != 0)
    {
      if (self->reply.count > 0)
        finish (self);
      else
        wait_for_room (self);
      return;
    }
  if (!collect (self))
    {
      look_in_next_turn (self);
      return;
    }
  if (self->reply.count > 0)
    finish (self);
  else if (self->wants_bytes > 0)
    wait_for_room (self);
  else if (headway_bus_get_last_id (self->bus) > self->replay.until)
    {
      /* Published while the filter held back what was there before. */
      self->replay.until = headway_bus_get_last_id (self->bus);
      look_in_next_turn (self);
    }
  else if (headway_bus_is_closed (self->bus))
    finish_closed (self);
  else
    wait_for_event (self);
}

static gboolean
on_turn (gpointer user_data)
{
  HeadwayDBusFetch *self = user_data;

  headway_dbus_turn_clear (&self->turn);
  look (self);
  return G_SOURCE_REMOVE;
}

static void
look_in_next_turn (HeadwayDBusFetch *self)
{
  if (self->turn != NULL)
    return;
  self->turn = headway_dbus_turn_new ("headway Fetch", on_turn, self);
}

static gboolean
check_arguments (guint64 after_id, guint max_events, GError **error)
{
  if (after_id > HEADWAY_ID_MAX)
    {
      headway_set_error_with_limit (error, HEADWAY_ERROR_INVALID_OPTION, (gint64) HEADWAY_ID_MAX,
                                    "after_id is %" G_GUINT64_FORMAT ", it takes 0 to %" G_GUINT64_FORMAT,
                                    after_id, HEADWAY_ID_MAX);
      return FALSE;
    }
  if (max_events == 0)
    {
      headway_set_error_with_limit (error, HEADWAY_ERROR_INVALID_OPTION, HEADWAY_REPLY_EVENTS,
                                    "max_events is 0, it takes 1 or more, of which %d are returned at most",
                                    HEADWAY_REPLY_EVENTS);
      return FALSE;
    }
  return TRUE;
}

static HeadwayDBusFetch *
fetch_new (HeadwayBus *bus, HeadwayDBusPeer *peer, guint64 after_id, guint max_events, GVariant *arguments, GError **error)
{
  g_auto (FetchOptions) options = { 0 };
  g_autoptr (HeadwayFilter) filter = NULL;
  HeadwayCursor cursor = { .is_set = TRUE, .last_event_id = after_id };
  HeadwayDBusFetch *self;

  if (!check_arguments (after_id, max_events, error) ||
      !headway_options_parse (arguments, fetch_specs, &options, NULL, error))
    return NULL;
  filter = headway_filter_new (options.patterns, options.types, error);
  if (filter == NULL)
    return NULL;

  self = g_new0 (HeadwayDBusFetch, 1);
  self->bus = g_object_ref (bus);
  self->filter = g_steal_pointer (&filter);
  self->timeout_ms = options.timeout_ms;
  self->deadline_us = g_get_monotonic_time () + options.timeout_ms * G_TIME_SPAN_MILLISECOND;
  self->link.data = self;
  self->waiter.go = on_room;
  self->waiter.expire = on_late;
  cursor.epoch = options.epoch;
  headway_replay_init (&self->replay, &cursor, headway_bus_get_ring (bus), headway_bus_get_last_id (bus) + 1,
                       headway_bus_get_epoch (bus), 0);
  headway_dbus_reply_init (&self->reply, peer, max_events, FALSE);
  return self;
}

void
headway_dbus_fetch_start (HeadwayBus *bus,
                          HeadwayDBusPeer *peer,
                          GDBusMethodInvocation *invocation,
                          guint64 after_id,
                          guint max_events,
                          GVariant *options,
                          GQueue *pending)
{
  GError *error = NULL;
  HeadwayDBusFetch *self = fetch_new (bus, peer, after_id, max_events, options, &error);

  if (self == NULL)
    {
      headway_dbus_error_answer (invocation, error);
      return;
    }
  self->invocation = invocation;
  self->pending = pending;
  g_queue_push_tail_link (pending, &self->link);
  headway_bus_touch (bus, headway_clock_now ());
  if (!headway_dbus_charge_take (&self->charge, peer, HEADWAY_DBUS_CHARGE_CALL, 0, on_peer_left, &error))
    {
      finish_with_error (self, error);
      return;
    }
  look (self);
}

void
headway_dbus_fetch_end_all (GQueue *pending)
{
  while (!g_queue_is_empty (pending))
    {
      HeadwayDBusFetch *self = g_queue_peek_head (pending);

      if (self->reply.count > 0)
        finish (self);
      else
        finish_closed (self);
    }
}
