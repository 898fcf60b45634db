/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-dispatcher-private.h"

#include "engine/headway-decision.h"
#include "engine/headway-error.h"
#include "engine/headway-handler-call-private.h"
#include "engine/headway-handler-set.h"
#include "engine/headway-intrusive.h"

/* The calls in flight are shared so: the handler with the fewest comes first, its principals in turn. One that has
 * CALLS_OF_ALL or more leaves what others have fewer than that, at most CALLS_LEFT_MAX in all, so that a slow handler with many
 * principals cannot take them all until their deadlines. */
#define CALLS_OF_ALL   4
#define CALLS_LEFT_MAX 48

/* Timers that one headway_dispatcher_run() looks at. */
#define TIMERS_PER_RUN 256

G_DEFINE_FINAL_TYPE (HeadwayDispatcher, headway_dispatcher, G_TYPE_OBJECT)

enum
{
  SIGNAL_DEADLINE_CHANGED,
  N_SIGNALS
};

static guint signals[N_SIGNALS];

static void
headway_dispatcher_finalize (GObject *object)
{
  HeadwayDispatcher *self = HEADWAY_DISPATCHER (object);

  headway_timers_clear (&self->timers);
  g_hash_table_unref (self->accounts);
  g_hash_table_unref (self->sets);
  g_hash_table_unref (self->origins);
  G_OBJECT_CLASS (headway_dispatcher_parent_class)->finalize (object);
}

static void
headway_dispatcher_class_init (HeadwayDispatcherClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = headway_dispatcher_finalize;
  signals[SIGNAL_DEADLINE_CHANGED] = g_signal_new ("deadline-changed", G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST,
                                                   0, NULL, NULL, NULL, G_TYPE_NONE, 0);
}

static void
headway_dispatcher_init (HeadwayDispatcher *self)
{
  headway_timers_init (&self->timers);
  self->sets = g_hash_table_new_full (NULL, NULL, g_object_unref, (GDestroyNotify) headway_handler_set_free);
  self->origins = g_hash_table_new (NULL, NULL);
  self->accounts = headway_decision_accounts_new ();
  self->announced_us = -1;
}

HeadwayDispatcher *
headway_dispatcher_new (HeadwayBusTable *table)
{
  HeadwayDispatcher *self = g_object_new (HEADWAY_TYPE_DISPATCHER, NULL);

  self->table = table;
  self->metrics = headway_bus_table_get_metrics (table);
  return self;
}

/* --- Registration --------------------------------------------------------------------------- */

static HeadwayHandlerSet *
get_set (HeadwayDispatcher *self, HeadwayBus *bus)
{
  HeadwayHandlerSet *set = g_hash_table_lookup (self->sets, bus);

  if (set != NULL)
    return set;
  set = headway_handler_set_new (self, bus);
  g_hash_table_insert (self->sets, g_object_ref (bus), set);
  headway_bus_set_handlers (bus, set);
  return set;
}

HeadwayHandler *
headway_dispatcher_register (HeadwayDispatcher *self,
                             HeadwayBus *bus,
                             const HeadwayHandlerOptions *options,
                             const HeadwayHandlerTransport *transport,
                             gpointer user_data,
                             HeadwayInstant now,
                             GError **error)
{
  HeadwayHandler *handler;
  HeadwayHandlerSet *set;

  if (headway_bus_is_closed (bus) || headway_bus_is_closing (bus))
    {
      g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_CLOSED, "bus \"%s\" is closed", headway_bus_get_name (bus));
      return NULL;
    }
  set = get_set (self, bus);
  if (set->all->len >= HEADWAY_HANDLERS_PER_BUS_MAX)
    {
      headway_set_error_with_limit (error, HEADWAY_ERROR_QUOTA_EXCEEDED, HEADWAY_HANDLERS_PER_BUS_MAX,
                                    "bus \"%s\" has %u handlers, at most %d are allowed",
                                    headway_bus_get_name (bus), set->all->len, HEADWAY_HANDLERS_PER_BUS_MAX);
      return NULL;
    }
  handler = headway_handler_new (bus, options, headway_bus_table_get_limits (self->table), error);
  if (handler == NULL)
    return NULL;
  handler->dispatcher = self;
  handler->number = ++self->last_number;
  handler->transport = transport;
  handler->user_data = user_data;
  self->n_handlers++;
  headway_handler_set_add (set, handler);
  headway_bus_touch (bus, now);
  return handler;
}

void
headway_dispatcher_end_handler (HeadwayDispatcher *self, HeadwayHandler *handler)
{
  handler->state = HEADWAY_HANDLER_ENDED;
  headway_timers_unset (&self->timers, &handler->pause);
  headway_timers_unset (&self->timers, &handler->idle);
  headway_dispatcher_update_handler (self, handler);
  self->n_handlers--;
  g_queue_push_tail (&self->ended, g_object_ref (handler));
}

void
headway_dispatcher_end_if_drained (HeadwayDispatcher *self, HeadwayHandler *handler)
{
  if (handler->state != HEADWAY_HANDLER_DRAINING || handler->n_unfinished > 0 || headway_decision_may_want (handler))
    return;
  headway_handler_stop_matching (handler);
  headway_dispatcher_end_handler (self, handler);
}

void
headway_dispatcher_close_bus (HeadwayDispatcher *self, HeadwayBus *bus, HeadwayInstant now)
{
  HeadwayHandlerSet *set = g_hash_table_lookup (self->sets, bus);
  g_autoptr (GPtrArray) handlers = headway_dispatcher_list_handlers (self, bus);

  if (set == NULL)
    return;
  headway_decision_close_bus (set, now);
  for (guint i = 0; i < handlers->len; i++)
    {
      HeadwayHandler *handler = g_ptr_array_index (handlers, i);

      /* Nothing is left to be decided. */
      if (handler->phase == HEADWAY_PHASE_PRE)
        headway_handler_end (handler, now);
      else
        headway_handler_unregister (handler, now);
    }
  headway_dispatcher_settle (self, now);
}

void
headway_dispatcher_forget_bus (HeadwayDispatcher *self, HeadwayBus *bus, HeadwayInstant now)
{
  g_autoptr (HeadwayDispatcher) guard = g_object_ref (self);
  g_autoptr (GPtrArray) handlers = headway_dispatcher_list_handlers (self, bus);

  if (g_hash_table_lookup (self->sets, bus) == NULL)
    return;
  for (guint i = 0; i < handlers->len; i++)
    headway_handler_end (g_ptr_array_index (handlers, i), now);
  headway_dispatcher_settle (self, now);
  headway_bus_set_handlers (bus, NULL);
  g_hash_table_remove (self->sets, bus);
}

/* --- Who may be called ---------------------------------------------------------------------- */

static gint
level_for (const HeadwayHandler *handler)
{
  if (handler->ready.length == 0 || !handler->has_room || handler->state == HEADWAY_HANDLER_ENDED ||
      headway_timer_is_set (&handler->pause))
    return -1;
  return (gint) handler->in_flight;
}

void
headway_dispatcher_update_handler (HeadwayDispatcher *self, HeadwayHandler *handler)
{
  gint level = level_for (handler);

  if (level == handler->level)
    return;
  if (handler->level >= 0)
    {
      headway_queue_unlink (&self->levels[handler->level], &handler->level_link);
      self->n_ready--;
    }
  if (level >= 0)
    {
      headway_queue_push (&self->levels[level], &handler->level_link);
      self->n_ready++;
    }
  handler->level = level;
}

void
headway_dispatcher_add_ready (HeadwayDispatcher *self, HeadwayStep *step, gboolean is_first)
{
  if (is_first)
    headway_queue_push_head (&step->handler->ready, &step->ready_link);
  else
    headway_queue_push (&step->handler->ready, &step->ready_link);
  headway_dispatcher_update_handler (self, step->handler);
}

void
headway_dispatcher_remove_ready (HeadwayDispatcher *self, HeadwayStep *step)
{
  headway_queue_unlink (&step->handler->ready, &step->ready_link);
  headway_dispatcher_update_handler (self, step->handler);
}

/* --- Calls ---------------------------------------------------------------------------------- */

static void
add_origin (HeadwayDispatcher *self, HeadwayHandler *handler, gint amount)
{
  gint n;

  if (handler->phase != HEADWAY_PHASE_PRE || handler->origin == NULL)
    return;
  n = GPOINTER_TO_INT (g_hash_table_lookup (self->origins, handler->origin)) + amount;
  if (n == 0)
    g_hash_table_remove (self->origins, handler->origin);
  else
    g_hash_table_insert (self->origins, (gpointer) handler->origin, GINT_TO_POINTER (n));
}

gboolean
headway_dispatcher_has_origin (HeadwayDispatcher *self, gconstpointer origin)
{
  return origin != NULL && g_hash_table_contains (self->origins, origin);
}

static void
start_call (HeadwayDispatcher *self, HeadwayStep *step, HeadwayInstant now)
{
  HeadwayHandler *handler = step->handler;
  HeadwayGap *gap = headway_handler_queues_take_gap (&handler->queues, step->queue);

  headway_queue_unlink (&handler->ready, &step->ready_link);
  self->in_flight++;
  self->n_of_all += handler->in_flight++ < CALLS_OF_ALL ? 1 : 0;
  add_origin (self, handler, 1);
  headway_dispatcher_update_handler (self, handler);
  headway_step_begin_call (step, now);
  headway_metrics_add (self->metrics, HEADWAY_METRIC_EVENTS_DELIVERED + HEADWAY_SUBSCRIBER_DISPATCHER, 1);
  if (gap != NULL)
    headway_metrics_add (self->metrics, HEADWAY_METRIC_GAPS_DELIVERED + HEADWAY_SUBSCRIBER_DISPATCHER, 1);
  step->call = headway_handler_call_new (self, step, gap, now);
  handler->transport->call (handler, step->call, handler->user_data);
}

HeadwayHandlerCall *
headway_dispatcher_remove_call (HeadwayDispatcher *self, HeadwayStep *step)
{
  HeadwayHandlerCall *call = g_steal_pointer (&step->call);

  call->step = NULL;
  self->in_flight--;
  self->n_of_all -= --step->handler->in_flight < CALLS_OF_ALL ? 1 : 0;
  add_origin (self, step->handler, -1);
  headway_dispatcher_update_handler (self, step->handler);
  return call;
}

void
headway_dispatcher_abandon (HeadwayDispatcher *self, HeadwayHandlerCall *call)
{
  if (call->handler->transport->abandon == NULL)
    return;
  call->is_abandoning = TRUE;
  g_queue_push_tail (&self->abandoned, call);
}

/* The next handler that may be called. (nullable) */
static HeadwayHandler *
next_handler (HeadwayDispatcher *self)
{
  guint n_free = HEADWAY_CALLS_MAX - self->in_flight;
  guint n_left = MIN (CALLS_OF_ALL * self->n_handlers - MIN (self->n_of_all, CALLS_OF_ALL * self->n_handlers), CALLS_LEFT_MAX);
  guint n_levels = n_free > n_left ? HEADWAY_CALLS_MAX : CALLS_OF_ALL;

  if (self->n_ready == 0 || n_free == 0)
    return NULL;
  for (guint i = 0; i < n_levels; i++)
    if (self->levels[i].head != NULL)
      return self->levels[i].head->data;
  return NULL;
}

/* --- Settling ------------------------------------------------------------------------------- */

static void
tell_abandoned (HeadwayDispatcher *self)
{
  HeadwayHandlerCall *call;

  while ((call = g_queue_pop_head (&self->abandoned)) != NULL)
    {
      HeadwayHandler *handler = call->handler;

      call->is_abandoning = FALSE;
      handler->transport->abandon (handler, call, handler->user_data);
    }
}

static void
tell_ended (HeadwayDispatcher *self)
{
  HeadwayHandler *next;

  while ((next = g_queue_pop_head (&self->ended)) != NULL)
    {
      g_autoptr (HeadwayHandler) handler = next;
      HeadwayHandlerSet *set = g_hash_table_lookup (self->sets, handler->bus);

      handler->is_told = TRUE;
      if (set != NULL)
        headway_handler_set_forget (set, handler);
      if (handler->transport->ended != NULL)
        handler->transport->ended (handler, handler->user_data);
    }
}

static gint64
next_deadline_us (HeadwayDispatcher *self)
{
  HeadwayTimer *timer = headway_timers_peek (&self->timers);

  if (self->published.length > 0)
    return 0;
  return timer != NULL ? timer->at_us : -1;
}

static void
announce (HeadwayDispatcher *self)
{
  gint64 next_us = next_deadline_us (self);

  if (next_us >= 0 && (self->announced_us < 0 || next_us < self->announced_us))
    {
      self->announced_us = next_us;
      g_signal_emit (self, signals[SIGNAL_DEADLINE_CHANGED], 0);
    }
}

void
headway_dispatcher_settle (HeadwayDispatcher *self, HeadwayInstant now)
{
  g_autoptr (HeadwayDispatcher) guard = NULL;
  guint budget = HEADWAY_DISPATCH_EVENTS;
  gboolean is_busy = TRUE;

  if (self->is_settling)
    return;
  guard = g_object_ref (self);
  self->is_settling = TRUE;
  while (is_busy)
    {
      HeadwayHandler *handler;

      tell_abandoned (self);
      headway_decision_tell_settled (self, now);
      headway_decision_publish (self, &budget, now);
      while ((handler = next_handler (self)) != NULL)
        start_call (self, handler->ready.head->data, now);
      tell_ended (self);
      is_busy = self->abandoned.length > 0 || next_handler (self) != NULL || self->settled.length > 0 ||
                (self->published.length > 0 && budget > 0) || self->ended.length > 0;
    }
  self->is_settling = FALSE;
  announce (self);
}

/* --- Time ----------------------------------------------------------------------------------- */

static gint64
grace_us (HeadwayDispatcher *self)
{
  return headway_bus_table_get_limits (self->table)->handler_idle_grace_ms * (gint64) 1000;
}

void
headway_dispatcher_watch_idle (HeadwayDispatcher *self, HeadwayHandler *handler, HeadwayInstant now)
{
  if (!headway_timer_is_set (&handler->idle) && handler->state != HEADWAY_HANDLER_ENDED)
    headway_timers_set (&self->timers, &handler->idle, now.monotonic_us + grace_us (self));
}

static void
free_idle (HeadwayDispatcher *self, HeadwayHandler *handler, HeadwayInstant now)
{
  gint64 since_us = headway_handler_queues_free_idle (&handler->queues, now.monotonic_us - grace_us (self));

  if (since_us >= 0 && handler->state != HEADWAY_HANDLER_ENDED)
    headway_timers_set (&self->timers, &handler->idle, since_us + grace_us (self));
}

static void
fire (HeadwayDispatcher *self, HeadwayTimer *timer, HeadwayInstant now)
{
  switch (timer->kind)
    {
    case HEADWAY_TIMER_STEP:
      headway_step_time_out (timer->owner, now);
      break;
    case HEADWAY_TIMER_PAUSE:
      headway_dispatcher_update_handler (self, timer->owner);
      break;
    case HEADWAY_TIMER_IDLE:
      free_idle (self, timer->owner, now);
      break;
    default:
      g_assert_not_reached ();
    }
}

gint64
headway_dispatcher_get_next_deadline_us (HeadwayDispatcher *self)
{
  self->announced_us = next_deadline_us (self);
  return self->announced_us;
}

void
headway_dispatcher_run (HeadwayDispatcher *self, HeadwayInstant now)
{
  HeadwayTimer *timer;

  for (guint n = 0; n < TIMERS_PER_RUN; n++)
    {
      timer = headway_timers_peek (&self->timers);
      if (timer == NULL || timer->at_us > now.monotonic_us)
        break;
      headway_timers_unset (&self->timers, timer);
      fire (self, timer, now);
    }
  headway_dispatcher_settle (self, now);
}

void
headway_dispatcher_tick (HeadwayDispatcher *self, HeadwayInstant now)
{
  GHashTableIter iter;
  gpointer value;

  g_hash_table_iter_init (&iter, self->sets);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    {
      GPtrArray *handlers = ((HeadwayHandlerSet *) value)->all;

      for (guint i = 0; i < handlers->len; i++)
        free_idle (self, g_ptr_array_index (handlers, i), now);
    }
  headway_dispatcher_settle (self, now);
}

/* --- What there is -------------------------------------------------------------------------- */

void
headway_dispatcher_add_security (HeadwayDispatcher *self,
                                 HeadwaySecurityKind kind,
                                 HeadwayHandler *handler,
                                 HeadwayPrincipal *principal,
                                 HeadwayInstant now)
{
  headway_bus_table_add_security (self->table, kind, headway_bus_get_name (handler->bus), handler->uid,
                                  headway_principal_get_name (principal), now);
}

guint
headway_dispatcher_count_handlers (HeadwayDispatcher *self, HeadwayBus *bus)
{
  HeadwayHandlerSet *set = g_hash_table_lookup (self->sets, bus);

  return set != NULL ? set->all->len : 0;
}

GPtrArray *
headway_dispatcher_list_handlers (HeadwayDispatcher *self, HeadwayBus *bus)
{
  HeadwayHandlerSet *set = g_hash_table_lookup (self->sets, bus);
  GPtrArray *list = g_ptr_array_new_with_free_func (g_object_unref);

  for (guint i = 0; set != NULL && i < set->all->len; i++)
    g_ptr_array_add (list, g_object_ref (g_ptr_array_index (set->all, i)));
  return list;
}

gboolean
headway_dispatcher_has_pre (HeadwayDispatcher *self, HeadwayBus *bus)
{
  HeadwayHandlerSet *set = headway_bus_get_handlers (bus);

  return set != NULL && headway_decision_may_wait (set);
}

guint
headway_dispatcher_get_in_flight (HeadwayDispatcher *self)
{
  return self->in_flight;
}

guint
headway_dispatcher_get_undecided (HeadwayDispatcher *self)
{
  return self->undecided;
}

void
headway_dispatcher_collect (HeadwayDispatcher *self)
{
  guint counts[HEADWAY_N_PHASES] = { 0 };
  guint64 n_queued = 0;
  GHashTableIter iter;
  gpointer value;

  g_hash_table_iter_init (&iter, self->sets);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    {
      GPtrArray *handlers = ((HeadwayHandlerSet *) value)->all;

      for (guint i = 0; i < handlers->len; i++)
        {
          HeadwayHandler *handler = g_ptr_array_index (handlers, i);

          counts[handler->phase]++;
          n_queued += headway_handler_get_pending (handler);
        }
    }
  for (guint i = 0; i < HEADWAY_N_PHASES; i++)
    headway_metrics_set (self->metrics, HEADWAY_METRIC_HANDLERS + i, counts[i]);
  headway_metrics_set (self->metrics, HEADWAY_METRIC_HANDLER_QUEUED, (gint64) n_queued);
  headway_metrics_set (self->metrics, HEADWAY_METRIC_HANDLER_CALLS, self->in_flight);
  headway_metrics_set (self->metrics, HEADWAY_METRIC_UNDECIDED, self->undecided);
}
