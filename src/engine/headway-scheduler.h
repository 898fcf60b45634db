/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-principal-queue.h"

G_BEGIN_DECLS

/**
 * HeadwayScheduler:
 *
 * The order in which the principals of a route are served: one resumable deficit round robin under
 * every way of reading (decisions.md 27, routing.md 3.3). A queue in turn keeps its turn from call to
 * call; nothing is forgotten between two of them. Plain, embedded in its route.
 *
 * The bound: from the moment an event is the head of its queue, between two visits of that queue
 * every other one sends less than its largest event and one quantum together, and an event of cost c
 * is sent in the visit in which deficits of quanta reach c. docs/fairness.md has it in plain words.
 */
typedef struct
{
  GQueue ring;                                  /* borrowed HeadwayPrincipalQueue, by `ring`; the front is served next */
  guint64 starved[HEADWAY_N_PRINCIPAL_CLASSES]; /* visits in which the head exceeded the deficit */
} HeadwayScheduler;

/* One call of a reader: how far it has come. */
typedef struct
{
  guint64 quantum;
  guint64 budget; /* cost; G_MAXUINT64: no budget */
  guint64 served;
  gboolean has_emitted; /* something, so that the budget counts */
  GList *at;            /* the queue that is visited */
  guint visits_left;    /* of this round, with the present one */
  gboolean is_begun;    /* some round has */
  gboolean has_round_emitted;
  gboolean has_visit_emitted;
  gboolean has_suspended;
} HeadwaySchedulerCall;

void headway_scheduler_init (HeadwayScheduler *self);
/* A queue that has got its first event: to the back. */
void headway_scheduler_add (HeadwayScheduler *self, HeadwayPrincipalQueue *queue);
/* One that is empty, between two calls: its turn and its deficit go with it. */
void headway_scheduler_remove (HeadwayScheduler *self, HeadwayPrincipalQueue *queue);

/**
 * headway_scheduler_begin:
 * @quantum: bytes that a turn adds, from 1; headway_scheduler_drain_quantum() for a drain
 * @budget: cost that the call may serve, from 1
 * @served: cost that it has served already, from elsewhere
 * @has_emitted: whether it has emitted an event already
 */
void headway_scheduler_begin (HeadwayScheduler *self,
                              HeadwaySchedulerCall *call,
                              guint64 quantum,
                              guint64 budget,
                              guint64 served,
                              gboolean has_emitted);

/**
 * headway_scheduler_next:
 *
 * Returns: (transfer none) (nullable): the queue whose head comes next, in front of the ring but for
 *   those that are suspended; NULL: the call is over. Asked again without headway_scheduler_emitted()
 *   between, it says the same.
 */
HeadwayPrincipalQueue *headway_scheduler_next (HeadwayScheduler *self, HeadwaySchedulerCall *call);

/* The head of the queue that headway_scheduler_next() named is on its way: it has been removed from
 * its queue, and cost @cost. An empty queue leaves the ring. */
void headway_scheduler_emitted (HeadwayScheduler *self, HeadwaySchedulerCall *call, gsize cost);

/* What a drain of @budget adds in a turn: an equal part of it, but at least @quantum. */
guint64 headway_scheduler_drain_quantum (const HeadwayScheduler *self, guint64 quantum, guint64 budget);

G_END_DECLS
