/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-bus.h"
#include "engine/headway-metrics.h"
#include "engine/headway-subscription.h"

G_BEGIN_DECLS

/* What became of one offer; a publish adds them up (decisions.md 31). One goes back for each event and reader, so it
 * fits a register. */
typedef struct
{
  guint8 is_admitted;
  guint8 is_refused;
  guint n_evicted;
} HeadwayOffer;

/**
 * HeadwaySubscriptionClass:
 * @offer: a live event that the filter lets pass; never blocks, never fails the publish
 * @take: see headway_subscription_take() and headway_subscription_drain(), whose budget is @max_cost
 * @is_ready: see headway_subscription_is_ready()
 * @finish: no more offers come; @drop: what waits goes too, else it stays readable
 * @get_queued, @get_queued_bytes: decisions.md 25
 * @get_lag: (nullable): see headway_subscription_get_lag(); NULL: behind the last delivered id
 * @get_route_stats, @list_principals: (nullable): NULL: there are none
 *
 * How the events of one mode wait. The base class holds what all modes share.
 */
struct _HeadwaySubscriptionClass
{
  GObjectClass parent_class;

  HeadwayOffer (*offer) (HeadwaySubscription *self, HeadwayEvent *event, HeadwayInstant now);
  guint (*take) (HeadwaySubscription *self,
                 HeadwayInstant now,
                 guint max_events,
                 gsize max_bytes,
                 guint64 max_cost,
                 HeadwayDelivery *deliveries);
  gboolean (*is_ready) (HeadwaySubscription *self);
  gboolean (*is_replaying) (HeadwaySubscription *self);
  void (*finish) (HeadwaySubscription *self, gboolean drop);
  void (*evict_idle) (HeadwaySubscription *self, gint64 idle_ms, gint64 timeout_ms);
  guint (*get_queued) (HeadwaySubscription *self);
  guint64 (*get_queued_bytes) (HeadwaySubscription *self);
  guint64 (*get_lag) (HeadwaySubscription *self);
  void (*get_route_stats) (HeadwaySubscription *self, HeadwayRouteStats *stats);
  void (*list_principals) (HeadwaySubscription *self, GArray *stats);
};

/* What the base class keeps; the bus and the subclasses read and write it directly. GObject puts it right before
 * the instance: what every offer touches comes last, next to what the subclass has first, so that an event that goes
 * to thousands costs each of them two or three cache lines. */
typedef struct
{
  gboolean is_ended;
  gboolean is_evicted;
  HeadwayFilter *filter; /* owned */
  HeadwayGate *gate;     /* owned, nullable */
  HeadwayScope scope;    /* its principal is owned */
  HeadwayMode mode;
  guint number;
  guint64 dropped;
  guint64 drained_dropped; /* what `dropped` was when it was last drained */
  guint64 gaps_told;
  gsize first_max;             /* size of the first event of a take, G_MAXSIZE: whatever it has */
  gboolean is_first_too_large; /* the last take found it so */
  guint64 joined_id;           /* of the bus when it began, or an earlier one that its reader has: for its lag */
  char *owner;                 /* owned, nullable */
  const char *sink_kind;       /* static */
  guint32 uid;

  guint is_registered : 1;           /* the bus offers events and counts a slot */
  guint is_selective : 1;            /* has a gate, a scope or types: the index alone does not decide */
  HeadwaySubscriberClass subscriber; /* of `sink_kind`, for metrics */
  HeadwayBus *bus;                   /* owned: a replay reads its ring even after the slot is free */
  HeadwaySink *sink;                 /* borrowed; detaches before it goes */
  guint64 stamp;                     /* id of the last event offered: several patterns of one subscription match once */
  guint64 admitted;
  guint64 delivered;
  guint64 last_delivered_id;
} HeadwaySubscriptionPrivate;

HeadwaySubscriptionPrivate *headway_subscription_get_private (HeadwaySubscription *self);

/* Fills in what every mode shares; the bus calls it once, before it registers @self. */
void headway_subscription_setup (HeadwaySubscription *self,
                                 HeadwayBus *bus,
                                 const HeadwaySubscribeOptions *options,
                                 guint number);
/* Whether the first event of a take, of @size, is one that headway_subscription_take_one() may take. */
gboolean headway_subscription_fits_first (HeadwaySubscription *self, gsize size);
/* Two steps of fetching what an offer touches into the cache: itself, and once that is there, its sink. */
void headway_subscription_prefetch (HeadwaySubscription *self);
void headway_subscription_prefetch_sink (HeadwaySubscription *self);
HeadwayOffer headway_subscription_offer (HeadwaySubscription *self, HeadwayEvent *event, HeadwayInstant now);
/* Hands @event to the sink, if there is one that can take it now. */
gboolean headway_subscription_put (HeadwaySubscription *self, HeadwayEvent *event, guint64 resume_id);
void headway_subscription_wake (HeadwaySubscription *self);
/* It was handed over: counts it, remembers its id. A replayed event was never offered: it is admitted
 * at the same moment, so that the books balance. */
void headway_subscription_delivered (HeadwaySubscription *self, HeadwayEvent *event, gboolean is_replayed);
/* Counts @amount in @series. */
void headway_subscription_count (HeadwaySubscription *self, guint series, guint64 amount);
/* It has lost something: for whoever guards the machine. @event: (nullable): what it was lost for. */
void headway_subscription_report_loss (HeadwaySubscription *self, HeadwayEvent *event, HeadwayInstant now);
/* Leaves the bus, so that the slot is free; @is_evicted says why. What waits stays. */
void headway_subscription_end (HeadwaySubscription *self, gboolean is_evicted);

/* --- The bus's side ------------------------------------------------------------------------- */
void headway_bus_unregister (HeadwayBus *bus, HeadwaySubscription *subscription);
/* Returns: (transfer full) (nullable): the frame for `snapshot=1`. */
HeadwayEvent *headway_bus_new_snapshot (HeadwayBus *bus, HeadwayInstant now);

G_END_DECLS
