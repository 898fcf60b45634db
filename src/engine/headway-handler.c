/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-handler-private.h"

#include "engine/headway-decision.h"
#include "engine/headway-dispatcher-private.h"
#include "engine/headway-error.h"
#include "engine/headway-handler-set.h"

#include <string.h>

G_DEFINE_FINAL_TYPE (HeadwayHandler, headway_handler, G_TYPE_OBJECT)

static const char *const phase_names[] = {
  [HEADWAY_PHASE_POST] = "post",
  [HEADWAY_PHASE_PRE] = "pre",
};

G_STATIC_ASSERT (G_N_ELEMENTS (phase_names) == HEADWAY_N_PHASES);

const char *
headway_phase_get_name (HeadwayPhase phase)
{
  g_return_val_if_fail ((guint) phase < HEADWAY_N_PHASES, "");

  return phase_names[phase];
}

void
headway_handler_options_init (HeadwayHandlerOptions *options)
{
  *options = (HeadwayHandlerOptions){
    .priority = HEADWAY_HANDLER_PRIORITY_DEFAULT,
    .phase = HEADWAY_PHASE_POST,
    .on_error = HEADWAY_ON_ERROR_CONTINUE,
    .timeout_ms = HEADWAY_HANDLER_TIMEOUT_MS_DEFAULT,
    .uid = G_MAXUINT32,
  };
}

static void
headway_handler_finalize (GObject *object)
{
  HeadwayHandler *self = HEADWAY_HANDLER (object);

  headway_handler_queues_clear (&self->queues);
  g_clear_pointer (&self->filter, headway_filter_unref);
  g_clear_object (&self->bus);
  g_free (self->name);
  G_OBJECT_CLASS (headway_handler_parent_class)->finalize (object);
}

static void
headway_handler_class_init (HeadwayHandlerClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = headway_handler_finalize;
}

static void
headway_handler_init (HeadwayHandler *self)
{
  self->level = -1;
  self->level_link.data = self;
  self->has_room = TRUE;
  self->pause = (HeadwayTimer){ .owner = self, .kind = HEADWAY_TIMER_PAUSE };
  self->idle = (HeadwayTimer){ .owner = self, .kind = HEADWAY_TIMER_IDLE };
}

HeadwayHandler *
headway_handler_new (HeadwayBus *bus, const HeadwayHandlerOptions *options, const HeadwayLimits *limits, GError **error)
{
  g_autoptr (HeadwayFilter) filter = headway_filter_new (options->patterns, NULL, error);
  HeadwayHandler *self;

  if (filter == NULL)
    return NULL;
  if (options->timeout_ms < 1 || options->timeout_ms > HEADWAY_HANDLER_TIMEOUT_MS_MAX)
    {
      headway_set_error_with_limit (error, HEADWAY_ERROR_INVALID_OPTION, HEADWAY_HANDLER_TIMEOUT_MS_MAX,
                                    "timeout-ms is %u, allowed is 1 to %d",
                                    options->timeout_ms, HEADWAY_HANDLER_TIMEOUT_MS_MAX);
      return NULL;
    }
  self = g_object_new (HEADWAY_TYPE_HANDLER, NULL);
  self->bus = g_object_ref (bus);
  self->filter = g_steal_pointer (&filter);
  self->name = g_strdup (options->name != NULL ? options->name : "");
  self->priority = options->priority;
  self->phase = options->phase;
  self->on_error = options->on_error;
  self->timeout_us = options->timeout_ms * (gint64) 1000;
  self->uid = options->uid;
  self->origin = options->origin;
  headway_handler_queues_init (&self->queues, limits, headway_bus_get_system (bus));
  return self;
}

int
headway_handler_compare (const HeadwayHandler *a, const HeadwayHandler *b)
{
  int names;

  if (a->priority != b->priority)
    return a->priority < b->priority ? -1 : 1;
  names = strcmp (a->name, b->name);
  if (names != 0)
    return names;
  return (a->number > b->number) - (a->number < b->number);
}

/* --- Life ----------------------------------------------------------------------------------- */

void
headway_handler_stop_matching (HeadwayHandler *self)
{
  if (!self->is_matching)
    return;
  self->is_matching = FALSE;
  headway_handler_set_remove (headway_bus_get_handlers (self->bus), self);
}

void
headway_handler_unregister (HeadwayHandler *self, HeadwayInstant now)
{
  if (self->state != HEADWAY_HANDLER_REGISTERED)
    return;
  self->state = HEADWAY_HANDLER_DRAINING;
  /* What waits for a decision is looked up when its turn comes. */
  if (!headway_decision_keep (headway_bus_get_handlers (self->bus), self))
    headway_handler_stop_matching (self);
  headway_dispatcher_end_if_drained (self->dispatcher, self);
  headway_dispatcher_settle (self->dispatcher, now);
}

/* From the last to the first, so that none comes to stand at the head on the way. Each may take others with it, such
 * as those of one publish that is denied. A step that is over is the head, of a chain that is under way elsewhere. */
static void
lose_steps (HeadwayHandlerQueue *queue, HeadwayInstant now)
{
  while (queue->steps.tail != NULL && !headway_step_is_over (queue->steps.tail->data))
    headway_step_lose_handler (queue->steps.tail->data, now);
}

void
headway_handler_end (HeadwayHandler *self, HeadwayInstant now)
{
  g_autoptr (GList) queues = NULL;

  if (self->state == HEADWAY_HANDLER_ENDED)
    return;
  headway_handler_stop_matching (self);
  self->state = HEADWAY_HANDLER_ENDED;
  /* No queue comes or goes from here on. */
  queues = g_hash_table_get_values (self->queues.queues);
  for (GList *at = queues; at != NULL; at = at->next)
    lose_steps (at->data, now);
  /* Those of phase `pre` whose turn has not come. */
  self->handled += self->n_unfinished;
  self->n_unfinished = 0;
  headway_dispatcher_end_handler (self->dispatcher, self);
}

void
headway_handler_drop (HeadwayHandler *self, HeadwayInstant now)
{
  g_autoptr (HeadwayHandler) guard = g_object_ref (self);

  if (self->state == HEADWAY_HANDLER_ENDED)
    return;
  headway_handler_end (self, now);
  headway_dispatcher_settle (self->dispatcher, now);
}

void
headway_handler_set_room (HeadwayHandler *self, gboolean has_room, HeadwayInstant now)
{
  if (self->has_room == has_room || self->state == HEADWAY_HANDLER_ENDED)
    return;
  self->has_room = has_room;
  headway_steps_heed_room (self, now);
  headway_dispatcher_update_handler (self->dispatcher, self);
  headway_dispatcher_settle (self->dispatcher, now);
}

/* --- What it is ----------------------------------------------------------------------------- */

HeadwayBus *
headway_handler_get_bus (HeadwayHandler *self)
{
  return self->bus;
}

guint
headway_handler_get_number (HeadwayHandler *self)
{
  return self->number;
}

const char *const *
headway_handler_get_patterns (HeadwayHandler *self)
{
  return headway_filter_get_patterns (self->filter);
}

const char *
headway_handler_get_name (HeadwayHandler *self)
{
  return self->name;
}

guint
headway_handler_get_priority (HeadwayHandler *self)
{
  return self->priority;
}

HeadwayPhase
headway_handler_get_phase (HeadwayHandler *self)
{
  return self->phase;
}

HeadwayOnError
headway_handler_get_on_error (HeadwayHandler *self)
{
  return self->on_error;
}

guint
headway_handler_get_timeout_ms (HeadwayHandler *self)
{
  return (guint) (self->timeout_us / 1000);
}

gconstpointer
headway_handler_get_origin (HeadwayHandler *self)
{
  return self->origin;
}

gboolean
headway_handler_is_registered (HeadwayHandler *self)
{
  return self->state == HEADWAY_HANDLER_REGISTERED;
}

gboolean
headway_handler_has_ended (HeadwayHandler *self)
{
  return self->is_told;
}

guint64
headway_handler_get_admitted (HeadwayHandler *self)
{
  return self->admitted;
}

guint64
headway_handler_get_handled (HeadwayHandler *self)
{
  return self->handled;
}

guint64
headway_handler_get_dropped (HeadwayHandler *self)
{
  return self->dropped;
}

guint
headway_handler_get_pending (HeadwayHandler *self)
{
  return self->n_unfinished - self->in_flight;
}

guint64
headway_handler_get_pending_bytes (HeadwayHandler *self)
{
  return self->queues.bytes;
}

guint
headway_handler_get_in_flight (HeadwayHandler *self)
{
  return self->in_flight;
}

guint
headway_handler_get_active_principals (HeadwayHandler *self)
{
  return headway_handler_queues_count_active (&self->queues);
}

guint
headway_handler_get_queues (HeadwayHandler *self)
{
  return g_hash_table_size (self->queues.queues);
}
