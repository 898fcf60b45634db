/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-filter.h"
#include "engine/headway-replay.h"
#include "engine/headway-sink.h"

G_BEGIN_DECLS

#define HEADWAY_TYPE_SUBSCRIPTION (headway_subscription_get_type ())
G_DECLARE_DERIVABLE_TYPE (HeadwaySubscription, headway_subscription, HEADWAY, SUBSCRIPTION, GObject)

/**
 * HeadwaySubscribeOptions:
 *
 * What a subscriber asks for (dbus-api.md, Subscribe). Initialise with
 * headway_subscribe_options_init(); pointers are borrowed for the call.
 */
typedef struct
{
  HeadwayMode mode;
  HeadwayFilter *filter; /* (nullable): NULL lets everything pass */
  HeadwayCursor cursor;
  guint max_queued;        /* events, 1 … HEADWAY_MAX_QUEUED_MAX; `stream` */
  gboolean wants_snapshot; /* `session_snapshot` behind the replay (decisions.md 39) */
} HeadwaySubscribeOptions;

void headway_subscribe_options_init (HeadwaySubscribeOptions *options);

/**
 * headway_subscription_take:
 * @deliveries: (out caller-allocates): room for @max_events
 * @max_events: 1 … HEADWAY_REPLY_EVENTS
 * @max_bytes: event size to stay within; the first one is taken whatever its size
 *
 * Takes what waits, in the order of the mode. Looks at a bounded number of events that do not
 * match: 0 with headway_subscription_is_ready() still TRUE means: come again in the next turn.
 * Returns: how many were taken; the caller owns the events.
 */
guint headway_subscription_take (HeadwaySubscription *self,
                                 HeadwayInstant now,
                                 guint max_events,
                                 gsize max_bytes,
                                 HeadwayDelivery *deliveries);

/**
 * headway_subscription_drain:
 * @max_cost: routing cost to stay within, from 1; the first event is taken whatever it costs
 *
 * headway_subscription_take() under a budget of cost (decisions.md 12, 27).
 */
guint headway_subscription_drain (HeadwaySubscription *self,
                                  HeadwayInstant now,
                                  guint64 max_cost,
                                  guint max_events,
                                  gsize max_bytes,
                                  HeadwayDelivery *deliveries);

/* TRUE if headway_subscription_take() has something to do. */
gboolean headway_subscription_is_ready (HeadwaySubscription *self);
/* TRUE once it has ended (evicted, closed, aborted) and nothing waits any more. */
gboolean headway_subscription_is_finished (HeadwaySubscription *self);

/* The one reader. HEADWAY_ERROR_BUSY if there is another. A sink that is attached while something
 * waits must look for itself. */
gboolean headway_subscription_attach (HeadwaySubscription *self, HeadwaySink *sink, GError **error);
void headway_subscription_detach (HeadwaySubscription *self, HeadwaySink *sink);

/* The reader leaves: what waits is dropped at once, the slot is free at once. Any number of times. */
void headway_subscription_abort (HeadwaySubscription *self);
/* Ends it with `client_evicted`, reason writer_idle_timeout (sse-contract.md 1.5); what waits stays
 * readable before it. */
void headway_subscription_evict_idle (HeadwaySubscription *self, gint64 idle_ms, gint64 timeout_ms);

HeadwayBus *headway_subscription_get_bus (HeadwaySubscription *self);       /* also after it has ended */
HeadwayFilter *headway_subscription_get_filter (HeadwaySubscription *self); /* never NULL */
HeadwayMode headway_subscription_get_mode (HeadwaySubscription *self);
HeadwayState headway_subscription_get_state (HeadwaySubscription *self);
guint headway_subscription_get_queued (HeadwaySubscription *self); /* live events waiting (decisions.md 25) */
guint64 headway_subscription_get_queued_bytes (HeadwaySubscription *self);
guint64 headway_subscription_get_dropped (HeadwaySubscription *self); /* events lost so far */
/* The books: admitted = delivered + dropped + queued (architecture.md). */
guint64 headway_subscription_get_admitted (HeadwaySubscription *self);
guint64 headway_subscription_get_delivered (HeadwaySubscription *self);
/* Id of the last event handed to the reader; the cursor before the first. */
guint64 headway_subscription_get_last_delivered_id (HeadwaySubscription *self);

/* Adapters name who reads and how, for ListSubscriptions. @owner is copied, @sink_kind a literal:
 * one of `dbus`, `sse`, `none`. */
void headway_subscription_set_owner (HeadwaySubscription *self, const char *owner, guint32 uid);
void headway_subscription_set_sink_kind (HeadwaySubscription *self, const char *sink_kind);
const char *headway_subscription_get_owner (HeadwaySubscription *self);
guint32 headway_subscription_get_uid (HeadwaySubscription *self);
const char *headway_subscription_get_sink_kind (HeadwaySubscription *self);
/* Counts up from 1 over all buses of a table. */
guint headway_subscription_get_number (HeadwaySubscription *self);

G_END_DECLS
