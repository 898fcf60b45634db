/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-handler-private.h"

G_BEGIN_DECLS

typedef struct _HeadwayStep HeadwayStep;
typedef struct _HeadwayWork HeadwayWork;

/* What a step came to: what the application said, or why it said nothing. */
typedef enum
{
  HEADWAY_VERDICT_CONTINUE,
  HEADWAY_VERDICT_FINAL,
  HEADWAY_VERDICT_DENY,
  HEADWAY_VERDICT_SKIP, /* it does not do this */
  HEADWAY_VERDICT_ERROR,
  HEADWAY_VERDICT_TIMEOUT,
} HeadwayVerdict;

typedef enum
{
  HEADWAY_STEP_ASIDE,  /* of phase `pre`: its turn has not come */
  HEADWAY_STEP_QUEUED, /* in its queue */
  HEADWAY_STEP_READY,  /* to be called as soon as a call may be made */
  HEADWAY_STEP_CALLED,
  HEADWAY_STEP_DONE,
  HEADWAY_STEP_GONE, /* its handler left before its turn: an error when that comes */
} HeadwayStepState;

/* What one handler has to do with one event. */
struct _HeadwayStep
{
  HeadwayWork *work;          /* borrowed: holds the step */
  HeadwayHandler *handler;    /* owned */
  HeadwayHandlerQueue *queue; /* borrowed, nullable: where it stands */
  HeadwayHandlerCall *call;   /* borrowed, nullable: while it is called */
  GList link;                 /* in `queue` */
  GList ready_link;           /* in HeadwayHandler.ready */
  HeadwayTimer timer;         /* its deadline */
  HeadwayStepState state;
  gboolean is_sharing;    /* it stands in the shared queue, which is not its principal's */
  gboolean is_waiting;    /* counted as waiting by its queue */
  HeadwayVerdict verdict; /* of a step of phase `pre` that is done; see headway_step_end() */
  HeadwayEvent *event;    /* owned, nullable: likewise */
  char *reason;           /* owned, nullable: likewise */
};

/**
 * HeadwayWorkDone:
 * @event: (nullable) (transfer none): the event with new data; NULL: as it was
 * @reason: (nullable): why it was denied; NULL: it was not
 *
 * Work of phase `pre` is decided. It is gone when this returns.
 */
typedef void (*HeadwayWorkDone) (HeadwayEvent *event, const char *reason, HeadwayInstant now, gpointer data);

/**
 * HeadwayWork:
 *
 * One event on its way through the handlers that match it (routing.md 1.10): one handler, a chain, or, in
 * phase `pre`, several at once. (In phase `post` each of several at once is a work of its own.)
 *
 * A chain of phase `post` stands in the queues of all its handlers from the start, and begins when it is at the
 * head of all of them. Events come into the queues in one order, so that two chains never wait for each
 * other; and since it leaves them together, chains of one principal that share a handler never overlap, and no
 * single event overtakes them. In phase `pre` the events of a principal are decided one after the other anyway, and a step
 * enters its queue when its turn comes, so that what a handler publishes from within its call is not held up.
 */
struct _HeadwayWork
{
  HeadwayDispatcher *dispatcher; /* borrowed: outlives it */
  HeadwayEvent *event;           /* owned: with what the steps so far made of it */
  HeadwayPhase phase;
  gboolean is_chain;   /* one step after the other */
  gboolean is_running; /* a chain of phase `post` that has begun */
  gboolean is_changed; /* `event` is not the one it began with */
  guint n_queued;      /* a chain of phase `post`: queues it stands in */
  guint n_heads;       /* at the head of how many of them */
  guint n_left;        /* phase `pre`, not a chain: steps not done */
  guint n_steps;
  guint at;             /* of a chain: the step whose turn it is */
  GPtrArray *late;      /* borrowed, nullable: HeadwayHandler (owned) that missed the deadline are added */
  HeadwayWorkDone done; /* nullable: nobody waits for it */
  gpointer data;        /* of `done` */
  HeadwayStep steps[];
};

/* Hands @event, which has been delivered, to the @n handlers at @handlers, in the order of routing.md 1.10. */
void headway_work_post (HeadwayDispatcher *dispatcher, HeadwayHandler *const *handlers, guint n, HeadwayEvent *event, HeadwayInstant now);

/* Has @event decided by the @n handlers at @handlers, likewise in order. @done is called later, never from here. Handlers that
 * miss their deadline are added to @late (nullable), with a reference. Returns: (transfer none): lasts until @done. */
HeadwayWork *headway_work_pre (HeadwayDispatcher *dispatcher,
                               HeadwayHandler *const *handlers,
                               guint n,
                               HeadwayEvent *event,
                               HeadwayInstant now,
                               GPtrArray *late,
                               HeadwayWorkDone done,
                               gpointer data);
/* @handler is not asked about @event: that counts as one more deadline missed. */
void headway_work_skip_late (HeadwayDispatcher *dispatcher, HeadwayHandler *handler);
/* Nobody waits for it any more: what has not begun does not. */
void headway_work_detach (HeadwayWork *self, HeadwayInstant now);

/**
 * headway_step_end:
 * @event: (transfer full) (nullable): with CONTINUE, the event with new data
 * @reason: (transfer full) (nullable): with DENY, why; with ERROR for the debug log
 *
 * The step is done: the work goes on or ends, and may be gone when this returns. A call under way is none any more.
 */
void headway_step_end (HeadwayStep *self, HeadwayVerdict verdict, HeadwayEvent *event, char *reason, HeadwayInstant now);
/* Nothing is to be done any more. */
gboolean headway_step_is_over (const HeadwayStep *self);
/* It is being called. */
void headway_step_begin_call (HeadwayStep *self, HeadwayInstant now);
/* Its deadline is over. */
void headway_step_time_out (HeadwayStep *self, HeadwayInstant now);
/* There is room for calls of @handler again, or none any more (headway_handler_set_room()), or its last call has just ended:
 * while there is none and no call, the deadlines of steps that are to be called run all the same (decisions.md 35). */
void headway_steps_heed_room (HeadwayHandler *handler, HeadwayInstant now);
/* The handler of @self has gone before its turn came: the event is lost for it. */
void headway_step_lose_handler (HeadwayStep *self, HeadwayInstant now);

G_END_DECLS
