/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-work.h"

#include "engine/headway-dispatcher-private.h"
#include "engine/headway-intrusive.h"

/* The log is told of failures of one handler at most so often. */
#define TELL_US ((gint64) G_USEC_PER_SEC)

static void head_changed (HeadwayHandlerQueue *queue, HeadwayInstant now);
static void work_turn (HeadwayWork *self, HeadwayInstant now);

static gboolean
is_post_chain (const HeadwayWork *self)
{
  return self->is_chain && self->phase == HEADWAY_PHASE_POST;
}

static HeadwayWork *
work_new (HeadwayDispatcher *dispatcher, HeadwayHandler *const *handlers, guint n, HeadwayEvent *event, HeadwayPhase phase)
{
  HeadwayWork *self = g_malloc0 (sizeof (HeadwayWork) + n * sizeof (HeadwayStep));

  self->dispatcher = dispatcher;
  self->event = headway_event_ref (event);
  self->phase = phase;
  self->is_chain = n > 1 && handlers[0]->priority != handlers[n - 1]->priority;
  self->n_steps = self->n_left = n;
  for (guint i = 0; i < n; i++)
    {
      HeadwayStep *step = &self->steps[i];

      step->work = self;
      step->handler = g_object_ref (handlers[i]);
      step->link.data = step->ready_link.data = step;
      step->timer = (HeadwayTimer){ .owner = step, .kind = HEADWAY_TIMER_STEP };
      step->handler->admitted++;
      step->handler->n_unfinished++;
    }
  return self;
}

/* --- A step and its queue ------------------------------------------------------------------- */

static void
set_deadline (HeadwayStep *self, HeadwayInstant now)
{
  headway_timers_set (&self->work->dispatcher->timers, &self->timer, now.monotonic_us + self->handler->timeout_us);
}

/* No call of its handler is under way that would end by its deadline and let this one go: so the clock must. */
static void
watch_if_stuck (HeadwayStep *self, HeadwayInstant now)
{
  if (!self->handler->has_room && self->handler->in_flight == 0 && !headway_timer_is_set (&self->timer))
    set_deadline (self, now);
}

void
headway_steps_heed_room (HeadwayHandler *handler, HeadwayInstant now)
{
  for (GList *l = handler->ready.head; l != NULL; l = l->next)
    {
      HeadwayStep *step = l->data;

      if (!handler->has_room)
        watch_if_stuck (step, now);
      /* What has a deadline of its own anyway keeps it. */
      else if (step->work->phase == HEADWAY_PHASE_POST && !step->work->is_chain)
        headway_timers_unset (&step->work->dispatcher->timers, &step->timer);
    }
}

static void
want_call (HeadwayStep *self, HeadwayInstant now)
{
  watch_if_stuck (self, now);
  self->state = HEADWAY_STEP_READY;
  headway_dispatcher_add_ready (self->work->dispatcher, self, FALSE);
}

static void
stop_waiting (HeadwayStep *self)
{
  if (!self->is_waiting)
    return;
  self->is_waiting = FALSE;
  headway_handler_queues_remove_waiting (&self->handler->queues, self->queue, headway_event_get_cost (self->work->event));
}

/* FALSE: something is before it. */
static gboolean
enter_queue (HeadwayStep *self)
{
  HeadwayHandlerQueues *queues = &self->handler->queues;

  headway_handler_queues_set_busy (queues, self->queue);
  headway_queue_push (&self->queue->steps, &self->link);
  self->state = HEADWAY_STEP_QUEUED;
  if (self->is_sharing)
    headway_handler_queues_add_sharer (queues, headway_event_get_principal (self->work->event));
  if (self->work->phase == HEADWAY_PHASE_POST)
    {
      self->is_waiting = TRUE;
      headway_handler_queues_add_waiting (queues, self->queue, headway_event_get_cost (self->work->event));
    }
  return self->queue->steps.head == &self->link;
}

static void
set_queue_idle (HeadwayHandler *handler, HeadwayHandlerQueue *queue, HeadwayInstant now)
{
  headway_handler_queues_set_idle (&handler->queues, queue, now.monotonic_us);
  headway_dispatcher_watch_idle (handler->dispatcher, handler, now);
}

void
headway_step_begin_call (HeadwayStep *self, HeadwayInstant now)
{
  stop_waiting (self);
  self->state = HEADWAY_STEP_CALLED;
  if (!headway_timer_is_set (&self->timer))
    set_deadline (self, now);
}

/* The step behind it is told once it is gone. */
static void
leave_queue (HeadwayStep *self, HeadwayInstant now)
{
  HeadwayHandlerQueue *queue = self->queue;
  gboolean is_head;

  if (queue == NULL)
    return;
  stop_waiting (self);
  self->queue = NULL;
  is_head = queue->steps.head == &self->link;
  headway_queue_unlink (&queue->steps, &self->link);
  if (self->is_sharing)
    headway_handler_queues_remove_sharer (&self->handler->queues, headway_event_get_principal (self->work->event));
  if (queue->steps.head == NULL)
    set_queue_idle (self->handler, queue, now);
  else if (is_head)
    head_changed (queue, now);
}

/* Looks up where a step belongs; tells when that is not where it would want to be. */
static void
find_queue (HeadwayStep *self, HeadwayInstant now)
{
  HeadwayPrincipal *principal = headway_event_get_principal (self->work->event);

  self->queue = headway_handler_queues_get (&self->handler->queues, principal, &self->is_sharing);
  if (!self->is_sharing)
    return;
  headway_metrics_add (self->work->dispatcher->metrics, HEADWAY_METRIC_DISPATCH_DEGRADED, 1);
  headway_dispatcher_add_security (self->work->dispatcher, HEADWAY_SECURITY_QUOTA_EXCEEDED, self->handler, principal, now);
}

/* --- The end -------------------------------------------------------------------------------- */

static void
finish_step (HeadwayStep *self, HeadwayStepState state)
{
  HeadwayHandler *handler = self->handler;

  if (self->state == HEADWAY_STEP_READY)
    headway_dispatcher_remove_ready (self->work->dispatcher, self);
  headway_timers_unset (&self->work->dispatcher->timers, &self->timer);
  self->state = state;
  handler->n_unfinished--;
  headway_dispatcher_end_if_drained (self->work->dispatcher, handler);
}

/* Its handler is not needed any more, and has lost nothing by it. One that has ended has counted it. */
static void
spare_step (HeadwayStep *self)
{
  if (self->state == HEADWAY_STEP_ASIDE && self->handler->state == HEADWAY_HANDLER_ENDED)
    {
      self->state = HEADWAY_STEP_DONE;
      return;
    }
  finish_step (self, HEADWAY_STEP_DONE);
  self->handler->handled++;
}

gboolean
headway_step_is_over (const HeadwayStep *self)
{
  return self->state == HEADWAY_STEP_DONE || self->state == HEADWAY_STEP_GONE;
}

/* Nothing of it is called. Steps whose turn did not come needed nothing of their handlers. */
static void
work_free (HeadwayWork *self, HeadwayInstant now)
{
  for (guint i = 0; i < self->n_steps; i++)
    {
      HeadwayStep *step = &self->steps[i];

      if (!headway_step_is_over (step))
        spare_step (step);
      leave_queue (step, now);
    }
  for (guint i = 0; i < self->n_steps; i++)
    {
      g_clear_pointer (&self->steps[i].event, headway_event_unref);
      g_free (self->steps[i].reason);
      g_object_unref (self->steps[i].handler);
    }
  headway_event_unref (self->event);
  g_free (self);
}

/* @reason: (nullable): why the event is denied. */
static void
work_finish (HeadwayWork *self, const char *reason, HeadwayInstant now)
{
  g_autoptr (HeadwayEvent) event = self->is_changed ? headway_event_ref (self->event) : NULL;
  g_autofree char *copy = g_strdup (reason);
  HeadwayWorkDone done = self->done;
  gpointer data = self->data;

  work_free (self, now);
  if (done != NULL)
    done (event, copy, now, data);
}

/* --- Phase post ----------------------------------------------------------------------------- */

static const HeadwayGapReason gap_reasons[HEADWAY_N_DISPATCH_DROPS] = {
  [HEADWAY_DISPATCH_DROP_FULL] = HEADWAY_GAP_FULL,
  [HEADWAY_DISPATCH_DROP_CHAIN_CAP] = HEADWAY_GAP_FULL,
  [HEADWAY_DISPATCH_DROP_BUDGET] = HEADWAY_GAP_BUDGET,
  [HEADWAY_DISPATCH_DROP_TIMEOUT] = HEADWAY_GAP_FULL,
  [HEADWAY_DISPATCH_DROP_UNREGISTERED] = HEADWAY_GAP_FULL,
};

/* The event is lost for its handler, which is told with its next call. */
static void
lose_step (HeadwayStep *self, HeadwayDispatchDropReason reason, HeadwayInstant now)
{
  HeadwayHandler *handler = self->handler;
  HeadwayPrincipal *principal = headway_event_get_principal (self->work->event);

  finish_step (self, HEADWAY_STEP_GONE);
  handler->dropped++;
  headway_metrics_add (self->work->dispatcher->metrics, HEADWAY_METRIC_DISPATCH_DROPS + (guint) reason, 1);
  headway_dispatcher_add_security (self->work->dispatcher, HEADWAY_SECURITY_EVENTS_LOST, handler, principal, now);
  if (self->queue != NULL)
    headway_handler_add_loss (&self->queue->gap, gap_reasons[reason], self->work->event);
}

static void
work_lose (HeadwayWork *self, HeadwayDispatchDropReason reason, HeadwayInstant now)
{
  for (guint i = 0; i < self->n_steps; i++)
    if (!headway_step_is_over (&self->steps[i]))
      lose_step (&self->steps[i], reason, now);
  work_free (self, now);
}

/* It never came into the queues it has found. */
static void
work_refuse (HeadwayWork *self, HeadwayDispatchDropReason reason, HeadwayInstant now)
{
  for (guint i = 0; i < self->n_steps; i++)
    {
      HeadwayStep *step = &self->steps[i];

      lose_step (step, reason, now);
      if (step->queue->steps.head == NULL)
        set_queue_idle (step->handler, step->queue, now);
      step->queue = NULL;
    }
  work_free (self, now);
}

/* Loses the newest of the heaviest until @self fits, so that nobody goes below his share. FALSE: the heaviest
 * is its own queue, and itself the newest. */
static gboolean
make_room (HeadwayStep *self, HeadwayInstant now)
{
  HeadwayHandlerQueues *queues = &self->handler->queues;
  guint64 cost = headway_event_get_cost (self->work->event);

  while (queues->bytes + cost > queues->budget_bytes)
    {
      HeadwayHandlerQueue *heaviest = headway_handler_queues_heaviest (queues);

      if (heaviest == NULL || self->queue->bytes + cost >= heaviest->bytes)
        return FALSE;
      work_lose (((HeadwayStep *) heaviest->steps.tail->data)->work, HEADWAY_DISPATCH_DROP_BUDGET, now);
    }
  return TRUE;
}

static gboolean
has_room (HeadwayWork *self, HeadwayDispatchDropReason *reason, HeadwayInstant now)
{
  gboolean is_full = FALSE;

  for (guint i = 0; i < self->n_steps; i++)
    {
      find_queue (&self->steps[i], now);
      is_full = is_full || self->steps[i].queue->waiting >= self->steps[i].handler->queues.queue_max;
    }
  *reason = self->is_chain ? HEADWAY_DISPATCH_DROP_CHAIN_CAP : HEADWAY_DISPATCH_DROP_FULL;
  if (is_full)
    return FALSE;
  *reason = HEADWAY_DISPATCH_DROP_BUDGET;
  for (guint i = 0; i < self->n_steps; i++)
    if (!make_room (&self->steps[i], now))
      return FALSE;
  return TRUE;
}

/* At the head of every queue it stands in. */
static void
start_if_first (HeadwayWork *self, HeadwayInstant now)
{
  if (self->is_running || self->n_heads < self->n_queued)
    return;
  self->is_running = TRUE;
  for (guint i = 0; i < self->n_steps; i++)
    stop_waiting (&self->steps[i]);
  work_turn (self, now);
}

static void
post (HeadwayDispatcher *dispatcher, HeadwayHandler *const *handlers, guint n, HeadwayEvent *event, HeadwayInstant now)
{
  HeadwayWork *self = work_new (dispatcher, handlers, n, event, HEADWAY_PHASE_POST);
  HeadwayDispatchDropReason reason;

  if (!has_room (self, &reason, now))
    {
      work_refuse (self, reason, now);
      return;
    }
  self->n_queued = n;
  for (guint i = 0; i < n; i++)
    self->n_heads += enter_queue (&self->steps[i]) ? 1 : 0;
  if (self->is_chain)
    start_if_first (self, now);
  else if (self->n_heads > 0)
    want_call (&self->steps[0], now);
}

void
headway_work_post (HeadwayDispatcher *dispatcher, HeadwayHandler *const *handlers, guint n, HeadwayEvent *event, HeadwayInstant now)
{
  if (handlers[0]->priority != handlers[n - 1]->priority)
    {
      post (dispatcher, handlers, n, event, now);
      return;
    }
  for (guint i = 0; i < n; i++)
    post (dispatcher, handlers + i, 1, event, now);
}

/* --- Phase pre ------------------------------------------------------------------------------ */

/* The turn of a step of phase `pre` has come. Its deadline runs from here, whatever it waits for. */
static void
begin_step (HeadwayStep *self, HeadwayInstant now)
{
  find_queue (self, now);
  set_deadline (self, now);
  if (enter_queue (self))
    want_call (self, now);
}

HeadwayWork *
headway_work_pre (HeadwayDispatcher *dispatcher,
                  HeadwayHandler *const *handlers,
                  guint n,
                  HeadwayEvent *event,
                  HeadwayInstant now,
                  GPtrArray *late,
                  HeadwayWorkDone done,
                  gpointer data)
{
  HeadwayWork *self = work_new (dispatcher, handlers, n, event, HEADWAY_PHASE_PRE);

  self->late = late;
  self->done = done;
  self->data = data;
  for (guint i = 0; i < (self->is_chain ? 1 : n); i++)
    begin_step (&self->steps[i], now);
  return self;
}

void
headway_work_skip_late (HeadwayDispatcher *dispatcher, HeadwayHandler *handler)
{
  handler->admitted++;
  handler->handled++;
  headway_metrics_add (dispatcher->metrics, headway_metric_verdicts (handler->phase, HEADWAY_VERDICT_LABEL_TIMEOUT), 1);
}

void
headway_work_detach (HeadwayWork *self, HeadwayInstant now)
{
  gboolean is_called = FALSE;

  self->done = NULL;
  self->late = NULL;
  for (guint i = 0; i < self->n_steps; i++)
    {
      HeadwayStep *step = &self->steps[i];

      if (step->state == HEADWAY_STEP_CALLED)
        is_called = TRUE;
      else if (!headway_step_is_over (step))
        {
          spare_step (step);
          leave_queue (step, now);
          self->n_left--;
        }
    }
  if (!is_called)
    work_free (self, now);
}

/* All of them ran: the first in order that denies counts, else the last in order that changed the data. */
static void
combine (HeadwayWork *self, HeadwayInstant now)
{
  for (guint i = 0; i < self->n_steps; i++)
    if (self->steps[i].verdict == HEADWAY_VERDICT_DENY)
      {
        work_finish (self, self->steps[i].reason, now);
        return;
      }
  for (guint i = self->n_steps; i > 0 && !self->is_changed; i--)
    if (self->steps[i - 1].event != NULL)
      {
        headway_event_unref (self->event);
        self->event = g_steal_pointer (&self->steps[i - 1].event);
        self->is_changed = TRUE;
      }
  work_finish (self, NULL, now);
}

/* --- Steps ---------------------------------------------------------------------------------- */

static void
head_changed (HeadwayHandlerQueue *queue, HeadwayInstant now)
{
  HeadwayStep *step = queue->steps.head->data;

  if (is_post_chain (step->work))
    {
      step->work->n_heads++;
      start_if_first (step->work, now);
    }
  else if (step->state == HEADWAY_STEP_QUEUED)
    want_call (step, now);
}

static const struct
{
  const char *name;
  HeadwayVerdictLabel label;
} verdicts[] = {
  [HEADWAY_VERDICT_CONTINUE] = { "continue", HEADWAY_VERDICT_LABEL_CONTINUE },
  [HEADWAY_VERDICT_FINAL] = { "final", HEADWAY_VERDICT_LABEL_FINAL },
  [HEADWAY_VERDICT_DENY] = { "deny", HEADWAY_VERDICT_LABEL_DENY },
  [HEADWAY_VERDICT_SKIP] = { "skip", HEADWAY_VERDICT_LABEL_SKIP },
  [HEADWAY_VERDICT_ERROR] = { "error", HEADWAY_VERDICT_LABEL_ERROR },
  [HEADWAY_VERDICT_TIMEOUT] = { "timeout", HEADWAY_VERDICT_LABEL_TIMEOUT },
};

/* For the operator who asks why, once a second for each handler. */
static void
tell_failure (HeadwayStep *self, HeadwayVerdict verdict, const char *reason, HeadwayInstant now)
{
  HeadwayHandler *handler = self->handler;

  if (handler->told_us != 0 && now.monotonic_us - handler->told_us < TELL_US)
    return;
  handler->told_us = now.monotonic_us;
  if (verdict == HEADWAY_VERDICT_TIMEOUT)
    g_info ("handler %u (%s) of bus \"%s\", phase %s: timeout: no answer within %" G_GINT64_FORMAT " ms", handler->number, handler->name,
            headway_bus_get_name (handler->bus), headway_phase_get_name (handler->phase), handler->timeout_us / 1000);
  else
    g_info ("handler %u (%s) of bus \"%s\", phase %s: error: %s", handler->number, handler->name, headway_bus_get_name (handler->bus),
            headway_phase_get_name (handler->phase), reason != NULL ? reason : "unknown");
}

/* @reason: (nullable): of an error; that of a denial is the application's, and no business of a log. */
static void
count_verdict (HeadwayStep *self, HeadwayVerdict verdict, const char *reason, HeadwayInstant now)
{
  HeadwayHandler *handler = self->handler;

  headway_metrics_add (self->work->dispatcher->metrics, headway_metric_verdicts (handler->phase, verdicts[verdict].label), 1);
  /* It would be written before it is thrown away, and that is a third of a call. */
  if (!g_log_writer_default_would_drop (G_LOG_LEVEL_DEBUG, G_LOG_DOMAIN))
    g_debug ("handler %u of bus \"%s\", phase %s: %s", handler->number, headway_bus_get_name (handler->bus),
             headway_phase_get_name (handler->phase), verdicts[verdict].name);
  if (verdict != HEADWAY_VERDICT_ERROR && verdict != HEADWAY_VERDICT_TIMEOUT)
    return;
  tell_failure (self, verdict, reason, now);
  headway_dispatcher_add_security (self->work->dispatcher, HEADWAY_SECURITY_HANDLER_FAILED, handler,
                                   headway_event_get_principal (self->work->event), now);
}

/* What a failure means at this handler. */
static HeadwayVerdict
resolve (const HeadwayStep *self, HeadwayVerdict verdict)
{
  if (verdict != HEADWAY_VERDICT_ERROR && verdict != HEADWAY_VERDICT_TIMEOUT)
    return verdict;
  return self->handler->on_error == HEADWAY_ON_ERROR_DENY ? HEADWAY_VERDICT_DENY : HEADWAY_VERDICT_CONTINUE;
}

static const char *
reason_for (HeadwayVerdict verdict)
{
  switch (verdict)
    {
    case HEADWAY_VERDICT_TIMEOUT:
      return "a handler did not answer in time";
    case HEADWAY_VERDICT_ERROR:
      return "a handler failed";
    case HEADWAY_VERDICT_CONTINUE:
    case HEADWAY_VERDICT_FINAL:
    case HEADWAY_VERDICT_DENY:
    case HEADWAY_VERDICT_SKIP:
    default:
      return "denied by a handler";
    }
}

/* The step at `at` is over. @event: (transfer full). TRUE: the next one has its turn, else the work is gone. */
static gboolean
advance (HeadwayWork *self, HeadwayVerdict verdict, HeadwayEvent *event, const char *reason, HeadwayInstant now)
{
  HeadwayVerdict resolved = resolve (&self->steps[self->at], verdict);

  if (event != NULL)
    {
      headway_event_unref (self->event);
      self->event = event;
      self->is_changed = TRUE;
    }
  if (resolved == HEADWAY_VERDICT_DENY)
    work_finish (self, reason != NULL && verdict == HEADWAY_VERDICT_DENY ? reason : reason_for (verdict), now);
  else if (resolved == HEADWAY_VERDICT_FINAL || self->at + 1 == self->n_steps ||
           (self->phase == HEADWAY_PHASE_PRE && self->done == NULL))
    work_finish (self, NULL, now);
  else
    {
      self->at++;
      return TRUE;
    }
  return FALSE;
}

/* The turn of the step at `at` of a chain; those whose handlers are gone are over at once. */
static void
work_turn (HeadwayWork *self, HeadwayInstant now)
{
  for (;;)
    {
      HeadwayStep *step = &self->steps[self->at];

      if (step->state == HEADWAY_STEP_ASIDE && step->handler->state == HEADWAY_HANDLER_ENDED)
        spare_step (step);
      if (!headway_step_is_over (step))
        break;
      count_verdict (step, HEADWAY_VERDICT_ERROR, "it has left", now);
      if (!advance (self, HEADWAY_VERDICT_ERROR, NULL, NULL, now))
        return;
    }
  if (self->phase == HEADWAY_PHASE_PRE)
    {
      begin_step (&self->steps[self->at], now);
      return;
    }
  set_deadline (&self->steps[self->at], now);
  want_call (&self->steps[self->at], now);
}

static void
end_fan_out_step (HeadwayStep *self, HeadwayVerdict verdict, HeadwayEvent *event, const char *reason, HeadwayInstant now)
{
  HeadwayWork *work = self->work;

  self->verdict = resolve (self, verdict);
  self->event = event;
  self->reason = g_strdup (reason != NULL && verdict == HEADWAY_VERDICT_DENY ? reason : reason_for (verdict));
  if (--work->n_left == 0)
    combine (work, now);
}

void
headway_step_end (HeadwayStep *self, HeadwayVerdict verdict, HeadwayEvent *event, char *reason, HeadwayInstant now)
{
  g_autofree char *owned_reason = reason;
  HeadwayWork *work = self->work;

  if (self->state == HEADWAY_STEP_CALLED)
    headway_dispatcher_remove_call (work->dispatcher, self);
  count_verdict (self, verdict, reason, now);
  finish_step (self, HEADWAY_STEP_DONE);
  self->handler->handled++;
  if (!is_post_chain (work))
    leave_queue (self, now);
  if (!work->is_chain && work->phase == HEADWAY_PHASE_PRE)
    end_fan_out_step (self, verdict, event, reason, now);
  else if (advance (work, verdict, event, reason, now))
    work_turn (work, now);
}

void
headway_step_time_out (HeadwayStep *self, HeadwayInstant now)
{
  if (self->work->late != NULL)
    g_ptr_array_add (self->work->late, g_object_ref (self->handler));
  if (self->state == HEADWAY_STEP_CALLED)
    {
      headway_dispatcher_abandon (self->work->dispatcher, headway_dispatcher_remove_call (self->work->dispatcher, self));
      self->state = HEADWAY_STEP_QUEUED;
      headway_steps_heed_room (self->handler, now);
    }
  else if (self->work->phase == HEADWAY_PHASE_POST)
    {
      HeadwayWork *work = self->work;

      /* It could never be called: its handler is told that it has lost the event. */
      lose_step (self, HEADWAY_DISPATCH_DROP_TIMEOUT, now);
      count_verdict (self, HEADWAY_VERDICT_TIMEOUT, NULL, now);
      if (advance (work, HEADWAY_VERDICT_TIMEOUT, NULL, NULL, now))
        work_turn (work, now);
      return;
    }
  headway_step_end (self, HEADWAY_VERDICT_TIMEOUT, NULL, NULL, now);
}

static void
lose_post (HeadwayStep *self, HeadwayInstant now)
{
  HeadwayWork *work = self->work;
  gboolean is_turn = work->is_running && self == &work->steps[work->at];
  gboolean is_head = self->queue->steps.head == &self->link;

  lose_step (self, HEADWAY_DISPATCH_DROP_UNREGISTERED, now);
  if (!work->is_chain)
    {
      work_free (work, now);
      return;
    }
  work->n_queued--;
  work->n_heads -= is_head ? 1 : 0;
  leave_queue (self, now);
  if (is_turn)
    work_turn (work, now);
  else if (work->n_queued == 0)
    work_free (work, now);
  else
    start_if_first (work, now);
}

/* Nobody waits for what its handler says. */
static void
give_up_call (HeadwayStep *self, HeadwayInstant now)
{
  HeadwayWork *work = self->work;

  headway_dispatcher_abandon (work->dispatcher, headway_dispatcher_remove_call (work->dispatcher, self));
  self->state = HEADWAY_STEP_QUEUED;
  spare_step (self);
  leave_queue (self, now);
  if (work->is_chain || --work->n_left == 0)
    work_free (work, now);
}

void
headway_step_lose_handler (HeadwayStep *self, HeadwayInstant now)
{
  if (self->state == HEADWAY_STEP_CALLED && self->work->phase == HEADWAY_PHASE_PRE && self->work->done == NULL)
    give_up_call (self, now);
  else if (self->state == HEADWAY_STEP_CALLED)
    {
      headway_dispatcher_abandon (self->work->dispatcher, headway_dispatcher_remove_call (self->work->dispatcher, self));
      self->state = HEADWAY_STEP_QUEUED;
      headway_step_end (self, HEADWAY_VERDICT_ERROR, NULL, g_strdup ("it has left"), now);
    }
  else if (self->work->phase == HEADWAY_PHASE_PRE)
    headway_step_end (self, HEADWAY_VERDICT_ERROR, NULL, g_strdup ("it has left"), now);
  else if (!headway_step_is_over (self))
    lose_post (self, now);
}
