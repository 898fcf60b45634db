/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-handler-call-private.h"

#include "engine/headway-dispatcher-private.h"
#include "engine/headway-error.h"

#include <string.h>

/* A reason to deny is cut off behind so many bytes. */
#define REASON_MAX 1024

/* What could not be made is tried again after so long; a call that comes back meanwhile is the better sign. */
#define RETRY_US 20000

HeadwayHandlerCall *
headway_handler_call_new (HeadwayDispatcher *dispatcher, HeadwayStep *step, HeadwayGap *gap, HeadwayInstant now)
{
  HeadwayHandlerCall *self = g_new0 (HeadwayHandlerCall, 1);

  self->dispatcher = g_object_ref (dispatcher);
  self->handler = g_object_ref (step->handler);
  self->step = step;
  self->event = headway_event_ref (step->work->event);
  self->gap = gap;
  if (gap != NULL)
    self->lost = headway_gap_to_event (gap, headway_bus_get_system (step->handler->bus), now);
  self->deadline_us = step->timer.at_us;
  return self;
}

static void
call_free (HeadwayHandlerCall *self)
{
  if (self->is_abandoning)
    g_queue_remove (&self->dispatcher->abandoned, self);
  g_clear_pointer (&self->gap, headway_gap_free);
  g_clear_pointer (&self->lost, headway_event_unref);
  headway_event_unref (self->event);
  g_object_unref (self->handler);
  g_object_unref (self->dispatcher);
  g_free (self);
}

HeadwayEvent *
headway_handler_call_get_event (HeadwayHandlerCall *self)
{
  return self->event;
}

HeadwayEvent *
headway_handler_call_get_lost (HeadwayHandlerCall *self)
{
  return self->lost;
}

gint64
headway_handler_call_get_deadline_us (HeadwayHandlerCall *self)
{
  return self->deadline_us;
}

gboolean
headway_handler_call_is_abandoned (HeadwayHandlerCall *self)
{
  return self->step == NULL;
}

/* --- Back ----------------------------------------------------------------------------------- */

/* @event, @reason: (transfer full) (nullable). */
static void
give_back (HeadwayHandlerCall *self, HeadwayVerdict verdict, HeadwayEvent *event, char *reason, HeadwayInstant now)
{
  g_autoptr (HeadwayDispatcher) dispatcher = g_object_ref (self->dispatcher);
  g_autofree char *owned_reason = reason;
  HeadwayStep *step = self->step;

  if (headway_timer_is_set (&self->handler->pause))
    {
      headway_timers_unset (&dispatcher->timers, &self->handler->pause);
      headway_dispatcher_update_handler (dispatcher, self->handler);
    }
  if (step != NULL)
    headway_step_end (step, verdict, event, g_steal_pointer (&owned_reason), now);
  call_free (self);
  headway_dispatcher_settle (dispatcher, now);
}

static char *
dup_reason (const char *data, gsize length)
{
  gboolean is_cut = length > REASON_MAX;
  gsize n = is_cut ? REASON_MAX : length;

  if (n == 0)
    return NULL;
  /* Not in the middle of a character. */
  while (is_cut && n > 0 && ((guchar) data[n] & 0xc0) == 0x80)
    n--;
  return g_utf8_make_valid (data, (gssize) n);
}

/* Whether what a step returns is of use to another one, or to the publisher. */
static gboolean
is_data_used (const HeadwayStep *step)
{
  return step->work->phase == HEADWAY_PHASE_PRE || step->work->is_chain;
}

void
headway_handler_call_finish (HeadwayHandlerCall *self, const char *verdict, const char *data, gsize length, HeadwayInstant now)
{
  g_autoptr (GError) error = NULL;
  HeadwayEvent *event = NULL;

  if (self->step == NULL)
    give_back (self, HEADWAY_VERDICT_CONTINUE, NULL, NULL, now);
  else if (strcmp (verdict, "continue") == 0)
    {
      if (length > 0 && is_data_used (self->step))
        event = headway_event_new_with_data (self->event, data, length,
                                             headway_bus_table_get_limits (self->dispatcher->table)->event_max_bytes, &error);
      if (error != NULL)
        give_back (self, HEADWAY_VERDICT_ERROR, NULL, g_strdup (error->message), now);
      else
        give_back (self, HEADWAY_VERDICT_CONTINUE, event, NULL, now);
    }
  else if (strcmp (verdict, "final") == 0)
    give_back (self, HEADWAY_VERDICT_FINAL, NULL, NULL, now);
  else if (strcmp (verdict, "deny") == 0 || strcmp (verdict, "abort") == 0)
    give_back (self, HEADWAY_VERDICT_DENY, NULL, dup_reason (data, length), now);
  else
    give_back (self, HEADWAY_VERDICT_ERROR, NULL, g_strdup_printf ("unknown verdict \"%.64s\"", verdict), now);
}

void
headway_handler_call_skip (HeadwayHandlerCall *self, HeadwayInstant now)
{
  give_back (self, HEADWAY_VERDICT_SKIP, NULL, NULL, now);
}

void
headway_handler_call_fail (HeadwayHandlerCall *self, const char *reason, HeadwayInstant now)
{
  give_back (self, HEADWAY_VERDICT_ERROR, NULL, g_strdup (reason), now);
}

void
headway_handler_call_retry (HeadwayHandlerCall *self, HeadwayInstant now)
{
  g_autoptr (HeadwayDispatcher) dispatcher = g_object_ref (self->dispatcher);
  HeadwayStep *step = self->step;

  if (step != NULL)
    {
      headway_dispatcher_remove_call (dispatcher, step);
      /* It was not told after all. */
      headway_metrics_add (dispatcher->metrics, HEADWAY_METRIC_EVENTS_DELIVERED + HEADWAY_SUBSCRIBER_DISPATCHER, -1);
      if (self->gap != NULL)
        {
          headway_metrics_add (dispatcher->metrics, HEADWAY_METRIC_GAPS_DELIVERED + HEADWAY_SUBSCRIBER_DISPATCHER, -1);
          headway_handler_queue_put_back_gap (step->queue, g_steal_pointer (&self->gap));
        }
      headway_timers_set (&dispatcher->timers, &self->handler->pause, now.monotonic_us + RETRY_US);
      step->state = HEADWAY_STEP_READY;
      headway_dispatcher_add_ready (dispatcher, step, TRUE);
    }
  call_free (self);
  headway_dispatcher_settle (dispatcher, now);
}
