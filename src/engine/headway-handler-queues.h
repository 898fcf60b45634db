/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-handler-queue.h"
#include "engine/headway-limits.h"

G_BEGIN_DECLS

/**
 * HeadwayHandlerQueues:
 *
 * The queues of one handler (routing.md 1.9): one for each principal, up to a number; the events of further
 * principals share that of the system principal, and a principal that came to share goes on with it until nothing of
 * its own is left there, so that its order is kept. An empty queue is kept for a while, since another event
 * may be near; nothing but memory hangs on that. Plain, embedded in its handler.
 */
typedef struct
{
  guint queue_max;          /* events that wait for one principal */
  guint principals_max;     /* queues */
  guint64 budget_bytes;     /* cost of all that wait */
  GHashTable *queues;       /* HeadwayPrincipal (borrowed: of the queue) → HeadwayHandlerQueue (owned) */
  GHashTable *sharers;      /* HeadwayPrincipal (owned) → how many steps it has in the shared queue */
  GQueue idle;              /* HeadwayHandlerQueue (borrowed), by idle_link, the longest idle first */
  GQueue weights[64];       /* HeadwayHandlerQueue (borrowed), by weight_link: by power of two of their bytes */
  guint64 used_weights;     /* bit n: weights[n] is not empty */
  guint64 bytes;            /* cost of all that wait */
  HeadwayGap *gap;          /* owned, nullable: lost of queues that are gone, and not told */
  HeadwayPrincipal *system; /* owned */
} HeadwayHandlerQueues;

void headway_handler_queues_init (HeadwayHandlerQueues *self, const HeadwayLimits *limits, HeadwayPrincipal *system);
/* Every queue is empty. */
void headway_handler_queues_clear (HeadwayHandlerQueues *self);

/**
 * headway_handler_queues_get:
 * @is_shared: (out): TRUE if @principal has to share the queue
 *
 * The queue that a step of @principal belongs into; made if it is not there. At the limit the queue that
 * is idle for longest makes room.
 */
HeadwayHandlerQueue *headway_handler_queues_get (HeadwayHandlerQueues *self, HeadwayPrincipal *principal, gboolean *is_shared);
/* A step of @principal came into the shared queue, or left it. */
void headway_handler_queues_add_sharer (HeadwayHandlerQueues *self, HeadwayPrincipal *principal);
void headway_handler_queues_remove_sharer (HeadwayHandlerQueues *self, HeadwayPrincipal *principal);

/* One more or one less waits in @queue, of @cost bytes. */
void headway_handler_queues_add_waiting (HeadwayHandlerQueues *self, HeadwayHandlerQueue *queue, guint64 cost);
void headway_handler_queues_remove_waiting (HeadwayHandlerQueues *self, HeadwayHandlerQueue *queue, guint64 cost);
/* The queue with the most bytes, as exact as routing.md 3.1 asks. (transfer none) (nullable) */
HeadwayHandlerQueue *headway_handler_queues_heaviest (HeadwayHandlerQueues *self);

/* @queue is about to get a step. */
void headway_handler_queues_set_busy (HeadwayHandlerQueues *self, HeadwayHandlerQueue *queue);
/* @queue has become empty: it is idle from @now_us on. */
void headway_handler_queues_set_idle (HeadwayHandlerQueues *self, HeadwayHandlerQueue *queue, gint64 now_us);
/* Frees what is idle since @since_us or longer. Returns: since when the next one is; -1: none is. */
gint64 headway_handler_queues_free_idle (HeadwayHandlerQueues *self, gint64 since_us);
/* How many are not idle. */
guint headway_handler_queues_count_active (const HeadwayHandlerQueues *self);
/* What was lost and is to be told with the next call for @queue. (transfer full) (nullable) */
HeadwayGap *headway_handler_queues_take_gap (HeadwayHandlerQueues *self, HeadwayHandlerQueue *queue);

G_END_DECLS
