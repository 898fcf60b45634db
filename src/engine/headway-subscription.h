/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-filter.h"
#include "engine/headway-gap.h"
#include "engine/headway-gate.h"
#include "engine/headway-replay.h"
#include "engine/headway-route-options.h"
#include "engine/headway-scope.h"
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
  guint max_queued;          /* events, 1 … HEADWAY_MAX_QUEUED_MAX; `stream` */
  gboolean wants_snapshot;   /* `session_snapshot` behind the replay (decisions.md 39) */
  HeadwayGate *gate;         /* (nullable): NULL is always open (decisions.md 24) */
  HeadwayScope scope;        /* whose events; `routed` */
  HeadwayRouteOptions route; /* `routed`; headway_route_options_init() sets them to the limits in force */
} HeadwaySubscribeOptions;

/* What of one principal waits in a `routed` subscription (decisions.md 25). */
typedef struct
{
  HeadwayPrincipal *principal; /* owned by the array */
  guint events;
  guint64 bytes;     /* cost */
  guint64 lost;      /* and not yet told */
  guint64 oldest_id; /* 0: nothing waits */
} HeadwayPrincipalStat;

/* At most so many are listed. */
#define HEADWAY_PRINCIPALS_LISTED 1000

/* For metrics (routing.md 1.12): what a `routed` subscription holds, and what it has lost. Arrays are by
 * HeadwayGapReason and HeadwayPrincipalClass. */
typedef struct
{
  guint active_principals;
  guint64 bytes; /* cost of what waits */
  guint64 starved[HEADWAY_N_PRINCIPAL_CLASSES];
  guint64 losses[HEADWAY_N_GAP_REASONS][HEADWAY_N_PRINCIPAL_CLASSES];
  guint64 shared_losses[HEADWAY_N_PRINCIPAL_CLASSES]; /* of those by count: in the queue that many principals share */
} HeadwayRouteStats;

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

/**
 * headway_subscription_take_one:
 * @max_bytes: event size that it may have at most; a synthetic event counts as HEADWAY_NOTICE_SIZE_MAX
 * @delivery: (out caller-allocates): the event is (transfer full)
 * @is_too_large: (out): whether something waits that is larger
 *
 * headway_subscription_take() of one event, for who has no room for a larger one (decisions.md 26).
 * FALSE, and @is_too_large FALSE, with headway_subscription_is_ready() still TRUE means: come again
 * in the next turn.
 * Returns: TRUE if one was taken.
 */
gboolean headway_subscription_take_one (HeadwaySubscription *self,
                                        HeadwayInstant now,
                                        gsize max_bytes,
                                        HeadwayDelivery *delivery,
                                        gboolean *is_too_large);

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
/* Its owner closes it while it is being read: nothing more comes, what waits stays readable. Any number of times. */
void headway_subscription_close (HeadwaySubscription *self);
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
/* Events lost since this was last asked (dbus-api.md, DrainLagged). */
guint64 headway_subscription_drain_lagged (HeadwaySubscription *self);
/* How many ids of the bus lie between what the reader has and the last one; 0: nothing waits. */
guint64 headway_subscription_get_lag (HeadwaySubscription *self);
/* Gaps that have reached the reader. */
guint64 headway_subscription_get_gaps_told (HeadwaySubscription *self);
/* Principals with something queued; 0 in the other modes, as below. */
guint headway_subscription_get_active_principals (HeadwaySubscription *self);
/* Visits of the scheduler in which a head exceeded its deficit. */
guint64 headway_subscription_get_starved (HeadwaySubscription *self);
void headway_subscription_get_route_stats (HeadwaySubscription *self, HeadwayRouteStats *stats);
/* Returns: (transfer full) (element-type HeadwayPrincipalStat): heaviest first, at most
 *   HEADWAY_PRINCIPALS_LISTED. */
GArray *headway_subscription_list_principals (HeadwaySubscription *self);

/* The books: admitted = delivered + dropped + queued (architecture.md). In `broadcast` mode with a
 * filter the right side may be larger: what is lost or queued there is counted before the filter. */
guint64 headway_subscription_get_admitted (HeadwaySubscription *self);
guint64 headway_subscription_get_delivered (HeadwaySubscription *self);
/* Id of the last event handed to the reader, in `routed` mode its resume id; the cursor before the first. */
guint64 headway_subscription_get_last_delivered_id (HeadwaySubscription *self);

/* Adapters name who reads and how, for ListSubscriptions. @owner is copied, @sink_kind a literal:
 * one of `dbus`, `sse`, `stream`, `none`. */
void headway_subscription_set_owner (HeadwaySubscription *self, const char *owner, guint32 uid);
void headway_subscription_set_sink_kind (HeadwaySubscription *self, const char *sink_kind);
const char *headway_subscription_get_owner (HeadwaySubscription *self);
guint32 headway_subscription_get_uid (HeadwaySubscription *self);
const char *headway_subscription_get_sink_kind (HeadwaySubscription *self);
/* Counts up from 1 over all buses of a table. */
guint headway_subscription_get_number (HeadwaySubscription *self);

G_END_DECLS
