/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-scheduler.h"

#include "engine/headway-intrusive.h"

/* A round visits every queue that was in the ring at its start, once, from the front. A visit of a
 * queue that is not in turn puts it in turn and adds the quantum to its deficit; then it sends heads
 * while they fit its deficit. It ends in one of three ways:
 *
 *   the head exceeds the deficit   the turn is over, and the queue goes to the back;
 *   the head exceeds what is left of the budget
 *                                  the queue is suspended: it keeps turn, deficit and place;
 *   nothing is left                the queue leaves the ring.
 *
 * Who keeps his place stays in front of all whose turn is over. So whenever a call ends, the queue
 * that the next one has to begin with, the first suspended or else the one in turn, is in front
 * already, and the rotation that decisions.md 27 asks for needs no step of its own. */

void
headway_scheduler_init (HeadwayScheduler *self)
{
  *self = (HeadwayScheduler){ 0 };
}

void
headway_scheduler_add (HeadwayScheduler *self, HeadwayPrincipalQueue *queue)
{
  queue->deficit = 0;
  queue->is_in_turn = FALSE;
  headway_queue_push (&self->ring, &queue->ring);
}

void
headway_scheduler_remove (HeadwayScheduler *self, HeadwayPrincipalQueue *queue)
{
  headway_queue_unlink (&self->ring, &queue->ring);
}

void
headway_scheduler_begin (HeadwayScheduler *self,
                         HeadwaySchedulerCall *call,
                         guint64 quantum,
                         guint64 budget,
                         guint64 served,
                         gboolean has_emitted)
{
  *call = (HeadwaySchedulerCall){
    .quantum = quantum,
    .budget = budget,
    .served = served,
    .has_emitted = has_emitted,
  };
}

/* FALSE: there is no further round. One that is blocked by deficits alone is followed by another. */
static gboolean
begin_round (HeadwayScheduler *self, HeadwaySchedulerCall *call)
{
  if (self->ring.length == 0 || (call->is_begun && !call->has_round_emitted && call->has_suspended))
    return FALSE;
  call->is_begun = TRUE;
  call->has_round_emitted = call->has_visit_emitted = call->has_suspended = FALSE;
  call->visits_left = self->ring.length;
  call->at = self->ring.head;
  return TRUE;
}

static void
end_visit (HeadwaySchedulerCall *call, GList *next)
{
  call->at = next;
  call->visits_left--;
  call->has_visit_emitted = FALSE;
}

static void
count_starved (HeadwayScheduler *self, const HeadwayPrincipalQueue *queue)
{
  HeadwayPrincipalClass class =
    queue->principal != NULL ? headway_principal_get_class (queue->principal) : HEADWAY_PRINCIPAL_USER;

  self->starved[class]++;
}

static void
end_turn (HeadwayScheduler *self, HeadwaySchedulerCall *call, HeadwayPrincipalQueue *queue)
{
  GList *next = queue->ring.next;

  if (!call->has_visit_emitted)
    count_starved (self, queue);
  queue->is_in_turn = FALSE;
  headway_queue_unlink (&self->ring, &queue->ring);
  headway_queue_push (&self->ring, &queue->ring);
  end_visit (call, next);
}

HeadwayPrincipalQueue *
headway_scheduler_next (HeadwayScheduler *self, HeadwaySchedulerCall *call)
{
  if (call->has_emitted && call->served >= call->budget)
    return NULL;
  while (call->visits_left > 0 || begin_round (self, call))
    {
      HeadwayPrincipalQueue *queue = call->at->data;
      gsize cost = headway_principal_queue_head (queue)->cost;

      if (!queue->is_in_turn)
        {
          queue->deficit += call->quantum;
          queue->is_in_turn = TRUE;
        }
      if (cost > queue->deficit)
        end_turn (self, call, queue);
      else if (call->has_emitted && cost > call->budget - call->served)
        {
          call->has_suspended = TRUE;
          end_visit (call, queue->ring.next);
        }
      else
        return queue;
    }
  return NULL;
}

void
headway_scheduler_emitted (HeadwayScheduler *self, HeadwaySchedulerCall *call, gsize cost)
{
  HeadwayPrincipalQueue *queue = call->at->data;

  queue->deficit -= cost;
  call->served += cost;
  call->has_emitted = call->has_round_emitted = call->has_visit_emitted = TRUE;
  if (queue->fifo.length > 0)
    return;
  end_visit (call, queue->ring.next);
  headway_scheduler_remove (self, queue);
}

guint64
headway_scheduler_drain_quantum (const HeadwayScheduler *self, guint64 quantum, guint64 budget)
{
  return MAX (quantum, budget / MAX (self->ring.length, 1));
}
