/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-principal-map.h"
#include "engine/headway-route-options.h"
#include "engine/headway-scheduler.h"
#include "engine/headway-size-classes.h"
#include "engine/headway-subscription-private.h"
#include "engine/headway-take.h"

G_BEGIN_DECLS

/**
 * HeadwayRoute:
 *
 * What waits in a `routed` subscription: a queue for each principal under one budget, who has to go
 * when it is full, and what was lost (routing.md 1.7, 3.1, 3.4). Pushing, serving and evicting are
 * O(1) and allocate nothing but nodes and queues, which come from free lists. Plain, embedded in
 * its subscription.
 */
typedef struct
{
  HeadwayRouteOptions options;
  HeadwayPrincipalMap queues;      /* owned queues of one principal each */
  HeadwayPrincipalQueue *overflow; /* owned, nullable: of all who found no queue of their own free */
  GHashTable *overflowed;          /* owned, nullable: HeadwayPrincipal (borrowed) → events in `overflow` */
  HeadwayScheduler scheduler;
  HeadwaySizeClasses *classes; /* owned, nullable: eviction `fair` only */
  GQueue ordinary;             /* HeadwayQueueNode by `arrival`: what eviction takes, by id */
  GQueue spared;               /* the same of `final` events: only when nothing else is left */
  HeadwayLowWater low_water;
  HeadwayGap *gap; /* owned, nullable: of queues that are gone */
  guint64 bytes;   /* cost of all events */
  guint count;     /* events */
  guint64 lost;    /* events so far */
  guint64 losses[HEADWAY_N_GAP_REASONS][HEADWAY_N_PRINCIPAL_CLASSES];
  guint64 shared_losses[HEADWAY_N_PRINCIPAL_CLASSES]; /* of the count caps': by the cap of `overflow` */
  GList *free_nodes;                                  /* HeadwayQueueNode by `fifo`, single links */
  GList *free_queues;                                 /* HeadwayPrincipalQueue by `ring`, single links */
  guint n_free_nodes;
  guint n_free_queues;
} HeadwayRoute;

void headway_route_init (HeadwayRoute *self, const HeadwayRouteOptions *options);
/* Drops everything, gaps too; it can be used on. */
void headway_route_drop (HeadwayRoute *self);
void headway_route_clear (HeadwayRoute *self);

/**
 * headway_route_offer:
 *
 * Takes @event in, which has passed gate, filter and scope, and makes room for it. Every event that is
 * lost for it, or it itself, is in a gap afterwards.
 */
HeadwayOffer headway_route_offer (HeadwayRoute *self, HeadwayEvent *event);
/* Counts @event as lost for @reason without taking it in. */
void headway_route_refuse (HeadwayRoute *self, HeadwayEvent *event, HeadwayGapReason reason);

/* Neither an event nor a gap waits. */
static inline gboolean
headway_route_is_idle (const HeadwayRoute *self)
{
  return self->count == 0 && self->gap == NULL;
}

/**
 * headway_route_take:
 * @last_id: the last id that was offered, for resume ids
 *
 * Serves @take in the order of the scheduler, with each gap in its place. Without a budget this is
 * pop-one, repeated; with one it is a drain.
 */
void headway_route_take (HeadwayRoute *self, HeadwayTake *take, guint64 last_id);

/* The resume id: everything up to it was delivered or told (decisions.md 32). */
guint64 headway_route_get_low_water (const HeadwayRoute *self, guint64 last_id);
/* Queues: principals with something queued, those that share one counted once. */
guint headway_route_get_active_principals (const HeadwayRoute *self);
/* Appends a HeadwayPrincipalStat for each principal to @stats. */
void headway_route_list (const HeadwayRoute *self, GArray *stats);

/* --- Between headway-route.c and headway-route-eviction.c ----------------------------------- */

/* Makes room for @event, which fits the budget alone. FALSE: it is itself the one that has to go. */
gboolean headway_route_make_room (HeadwayRoute *self, const HeadwayEvent *event, guint *n_evicted);
HeadwayPrincipalQueue *headway_route_lookup (const HeadwayRoute *self, const HeadwayPrincipal *principal);
/* Loses @node, for whose sake @event comes in; its queue may be gone afterwards. */
void headway_route_lose (HeadwayRoute *self, HeadwayQueueNode *node, HeadwayGapReason reason, const HeadwayEvent *event);

G_END_DECLS
