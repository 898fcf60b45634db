/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-model.h"

#include "engine/headway-gap.h"

#define EVENT(queue, i) (&g_array_index ((queue)->events, ModelEvent, (i)))
#define QUEUE(self, i)  ((ModelQueue *) g_ptr_array_index ((self)->ring, (i)))

static void
queue_free (gpointer data)
{
  ModelQueue *queue = data;

  g_array_unref (queue->events);
  g_free (queue);
}

void
model_init (Model *self, const HeadwayRouteOptions *options)
{
  *self = (Model){ .options = *options, .ring = g_ptr_array_new_with_free_func (queue_free) };
}

void
model_clear (Model *self)
{
  g_ptr_array_unref (self->ring);
}

static guint64
queue_bytes (const ModelQueue *queue, gboolean spared_only)
{
  guint64 bytes = 0;

  for (guint i = 0; i < queue->events->len; i++)
    if (!spared_only || EVENT (queue, i)->is_spared)
      bytes += EVENT (queue, i)->cost;
  return bytes;
}

guint64
model_bytes (const Model *self)
{
  guint64 bytes = 0;

  for (guint i = 0; i < self->ring->len; i++)
    bytes += queue_bytes (QUEUE (self, i), FALSE);
  return bytes;
}

guint
model_count (const Model *self)
{
  guint count = 0;

  for (guint i = 0; i < self->ring->len; i++)
    count += QUEUE (self, i)->events->len;
  return count;
}

guint64
model_low_water (const Model *self, guint64 last_id)
{
  guint64 first = last_id + 1;

  if (self->gap.count > 0)
    first = MIN (first, self->gap.first);
  for (guint i = 0; i < self->ring->len; i++)
    {
      const ModelQueue *queue = QUEUE (self, i);

      if (queue->tail.count > 0)
        first = MIN (first, queue->tail.first);
      for (guint k = 0; k < queue->events->len; k++)
        {
          first = MIN (first, EVENT (queue, k)->id);
          if (EVENT (queue, k)->gap.count > 0)
            first = MIN (first, EVENT (queue, k)->gap.first);
        }
    }
  return first - 1;
}

/* Who shares the overflow queue stays there while anything of him waits in it. */
ModelQueue *
model_queue_of (const Model *self, int principal)
{
  for (guint i = 0; i < self->ring->len; i++)
    {
      ModelQueue *queue = QUEUE (self, i);

      if (queue->principal == principal)
        return queue;
      for (guint k = 0; queue->principal == -1 && k < queue->events->len; k++)
        if (EVENT (queue, k)->principal == principal)
          return queue;
    }
  return NULL;
}

/* --- Gaps ----------------------------------------------------------------------------------- */

static void
merge (ModelGap *into, ModelGap gap)
{
  if (gap.count == 0)
    return;
  if (into->count == 0)
    {
      *into = gap;
      return;
    }
  into->count += gap.count;
  into->bytes += gap.bytes;
  into->first = MIN (into->first, gap.first);
  into->last = MAX (into->last, gap.last);
  if (into->principal != gap.principal)
    into->principal = -1;
  if (gap.opened < into->opened)
    {
      into->opened = gap.opened;
      into->reason = gap.reason;
    }
}

static ModelGap
gap_of (const ModelEvent *event, int reason, guint64 opened)
{
  return (ModelGap){ 1, event->cost, event->id, event->id, opened, reason, event->principal };
}

/* An empty queue goes; what was lost behind its last event is the route's. */
static void
remove_if_empty (Model *self, ModelQueue *queue)
{
  if (queue->events->len > 0)
    return;
  merge (&self->gap, queue->tail);
  g_ptr_array_remove (self->ring, queue);
}

static void
lose (Model *self, ModelQueue *queue, guint index, int reason, guint64 opened)
{
  ModelEvent event = *EVENT (queue, index);
  ModelGap *place;

  g_array_remove_index (queue->events, index);
  self->lost++;
  if (queue->events->len == 0)
    place = &self->gap;
  else
    place = index < queue->events->len ? &EVENT (queue, index)->gap : &queue->tail;
  merge (place, event.gap);
  merge (place, gap_of (&event, reason, opened));
  remove_if_empty (self, queue);
}

static void
refuse (Model *self, const ModelEvent *event, int reason)
{
  ModelQueue *queue = model_queue_of (self, event->principal);

  self->lost++;
  merge (queue != NULL ? &queue->tail : &self->gap, gap_of (event, reason, event->id));
}

/* --- Eviction ------------------------------------------------------------------------------- */

static int
oldest_in (const ModelQueue *queue, gboolean spared)
{
  for (guint i = 0; i < queue->events->len; i++)
    if (EVENT (queue, i)->is_spared == spared)
      return (int) i;
  return -1;
}

static void
lose_oldest_of_all (Model *self, int reason, guint64 opened)
{
  for (int spared = FALSE; spared <= TRUE; spared++)
    {
      ModelQueue *best = NULL;
      int best_index = -1;

      for (guint i = 0; i < self->ring->len; i++)
        {
          int index = oldest_in (QUEUE (self, i), spared);

          if (index >= 0 && (best == NULL || EVENT (QUEUE (self, i), index)->id < EVENT (best, best_index)->id))
            {
              best = QUEUE (self, i);
              best_index = index;
            }
        }
      if (best == NULL)
        continue;
      lose (self, best, (guint) best_index, reason, opened);
      return;
    }
  g_assert_not_reached ();
}

static void
lose_oldest_of (Model *self, ModelQueue *queue, int reason, guint64 opened)
{
  int index = oldest_in (queue, FALSE);

  lose (self, queue, index >= 0 ? (guint) index : 0, reason, opened);
}

/* The heaviest above the share but for the sender, of equals the one with the older head. */
static ModelQueue *
heaviest (const Model *self, guint64 share, const ModelQueue *except, gboolean wants_ordinary)
{
  ModelQueue *best = NULL;

  for (guint i = 0; i < self->ring->len; i++)
    {
      ModelQueue *queue = QUEUE (self, i);
      guint64 bytes = queue_bytes (queue, FALSE);

      if (queue == except || bytes <= share || (wants_ordinary && oldest_in (queue, FALSE) < 0))
        continue;
      if (best == NULL || bytes > queue_bytes (best, FALSE) ||
          (bytes == queue_bytes (best, FALSE) && EVENT (queue, 0)->id < EVENT (best, 0)->id))
        best = queue;
    }
  return best;
}

/* FALSE: the event that comes in is the loss. */
static gboolean
lose_fair (Model *self, const ModelEvent *event)
{
  ModelQueue *sender = model_queue_of (self, event->principal);
  guint active = self->ring->len + (sender == NULL ? 1 : 0);
  guint64 share = self->options.budget_bytes / active;
  guint64 own = sender != NULL ? queue_bytes (sender, FALSE) : 0;
  ModelQueue *other = heaviest (self, share, sender, TRUE);
  gboolean is_sender_over = own + event->cost > share;

  if (sender != NULL && is_sender_over)
    {
      gboolean pays = other == NULL || own + event->cost > queue_bytes (other, FALSE) ||
                      (own + event->cost == queue_bytes (other, FALSE) && EVENT (sender, 0)->id < EVENT (other, 0)->id);

      if (pays && other == NULL && model_bytes (self) - own + event->cost > self->options.budget_bytes)
        return FALSE;
      if (pays)
        other = sender;
    }
  if (other == NULL && !is_sender_over)
    other = heaviest (self, share, sender, FALSE);
  if (other == NULL)
    return FALSE;
  lose_oldest_of (self, other, HEADWAY_GAP_BUDGET, event->id);
  return TRUE;
}

static void
lose_for_count (Model *self, const ModelEvent *event)
{
  ModelQueue *sender = model_queue_of (self, event->principal);
  guint active = self->ring->len + (sender == NULL ? 1 : 0);

  if (self->options.eviction == HEADWAY_EVICTION_FAIR && sender != NULL &&
      sender->events->len + 1 > self->options.messages / active)
    lose_oldest_of (self, sender, HEADWAY_GAP_COUNT_CAP, event->id);
  else
    lose_oldest_of_all (self, HEADWAY_GAP_COUNT_CAP, event->id);
}

static gboolean
make_room (Model *self, const ModelEvent *event, guint *evicted)
{
  for (;; ++*evicted)
    {
      if (model_bytes (self) + event->cost > self->options.budget_bytes)
        {
          if (self->options.eviction == HEADWAY_EVICTION_OLDEST)
            lose_oldest_of_all (self, HEADWAY_GAP_BUDGET, event->id);
          else if (!lose_fair (self, event))
            return FALSE;
        }
      else if (model_count (self) + 1 > self->options.messages)
        lose_for_count (self, event);
      else
        return TRUE;
    }
}

static ModelQueue *
ensure_queue (Model *self, int principal)
{
  ModelQueue *queue = model_queue_of (self, principal);
  guint own = 0;

  if (queue != NULL)
    return queue;
  for (guint i = 0; i < self->ring->len; i++)
    {
      own += QUEUE (self, i)->principal >= 0 ? 1 : 0;
      if (QUEUE (self, i)->principal == -1)
        queue = QUEUE (self, i);
    }
  if (own >= self->options.principals && queue != NULL)
    return queue;
  queue = g_new0 (ModelQueue, 1);
  queue->principal = own < self->options.principals ? principal : -1;
  queue->events = g_array_new (FALSE, FALSE, sizeof (ModelEvent));
  g_ptr_array_add (self->ring, queue);
  return queue;
}

ModelOffer
model_offer (Model *self, guint64 id, int principal, gsize cost, gboolean is_final)
{
  ModelEvent event = { .id = id, .cost = cost, .principal = principal };
  ModelOffer offer = { FALSE, 0 };
  ModelQueue *queue;

  if (cost > self->options.budget_bytes)
    {
      refuse (self, &event, HEADWAY_GAP_OVERSIZE);
      return offer;
    }
  if (!make_room (self, &event, &offer.evicted))
    {
      refuse (self, &event, HEADWAY_GAP_BUDGET);
      return offer;
    }
  queue = ensure_queue (self, principal);
  event.is_spared = is_final && queue_bytes (queue, TRUE) + cost <= self->options.budget_bytes / 8;
  event.gap = queue->tail;
  queue->tail = (ModelGap){ 0 };
  g_array_append_val (queue->events, event);
  if (queue->events->len > self->options.principal_messages)
    {
      int index = oldest_in (queue, FALSE);

      if (index < 0 || index == (int) queue->events->len - 1)
        index = 0;
      lose (self, queue, (guint) index, HEADWAY_GAP_COUNT_CAP, id);
      offer.evicted++;
    }
  offer.is_admitted = TRUE;
  return offer;
}

/* --- Serving: decisions.md 27, sentence by sentence ----------------------------------------- */

typedef struct
{
  guint64 quantum;
  guint64 budget;
  guint64 served;
  guint max_items;
  guint64 last_id;
  GArray *items;
  gboolean has_emitted;
  gboolean has_round_emitted;
  ModelQueue *first_suspended;
  ModelQueue *in_turn;
} Call;

static gboolean
tell (Call *call, ModelGap *gap)
{
  ModelItem item = { .gap = *gap };

  if (gap->count == 0)
    return TRUE;
  if (call->items->len == call->max_items)
    return FALSE;
  g_array_append_val (call->items, item);
  *gap = (ModelGap){ 0 };
  return TRUE;
}

/* FALSE: the reply is full. @is_out: whether the event went out before that. */
static gboolean
emit (Model *self, Call *call, ModelQueue *queue, gboolean *is_out)
{
  ModelItem item = { .id = EVENT (queue, 0)->id, .cost = EVENT (queue, 0)->cost };

  *is_out = FALSE;
  if (!tell (call, &EVENT (queue, 0)->gap) || call->items->len == call->max_items)
    return FALSE;
  *is_out = TRUE;
  queue->deficit -= item.cost;
  call->served += item.cost;
  call->has_emitted = call->has_round_emitted = TRUE;
  g_array_remove_index (queue->events, 0);
  remove_if_empty (self, queue);
  item.resume_id = model_low_water (self, call->last_id);
  g_array_append_val (call->items, item);
  return tell (call, &self->gap);
}

static void
move_to_back (Model *self, ModelQueue *queue)
{
  guint index;

  g_assert_true (g_ptr_array_find (self->ring, queue, &index));
  g_ptr_array_add (self->ring, g_ptr_array_steal_index (self->ring, index));
}

/* FALSE: the call is over. */
static gboolean
visit (Model *self, Call *call, ModelQueue *queue)
{
  gboolean has_emitted = FALSE;

  if (!queue->is_in_turn)
    queue->deficit += call->quantum;
  queue->is_in_turn = TRUE;
  for (;;)
    {
      gsize cost = EVENT (queue, 0)->cost;
      gboolean is_last = queue->events->len == 1;
      gboolean is_out, may_go_on;

      if (cost > queue->deficit)
        {
          queue->is_in_turn = FALSE;
          self->starved += has_emitted ? 0 : 1;
          move_to_back (self, queue);
          return TRUE;
        }
      if (call->has_emitted && call->served + cost > call->budget)
        {
          if (call->first_suspended == NULL)
            call->first_suspended = queue;
          return TRUE;
        }
      call->in_turn = queue;
      may_go_on = emit (self, call, queue, &is_out);
      has_emitted |= is_out;
      if (is_out && is_last)
        call->in_turn = NULL;
      if (!may_go_on || call->served >= call->budget || call->items->len == call->max_items)
        return FALSE;
      if (is_last)
        return TRUE;
      call->in_turn = NULL;
    }
}

/* Order kept, @queue in front. */
static void
rotate_to (Model *self, ModelQueue *queue)
{
  while (queue != NULL && QUEUE (self, 0) != queue)
    g_ptr_array_add (self->ring, g_ptr_array_steal_index (self->ring, 0));
}

void
model_take (Model *self, guint64 budget, guint max_items, guint64 last_id, GArray *items)
{
  Call call = { .quantum = self->options.quantum_bytes, .budget = budget, .max_items = max_items, .last_id = last_id, .items = items };
  gboolean is_over = !tell (&call, &self->gap) || items->len == max_items;

  if (budget < G_MAXUINT64)
    call.quantum = MAX (call.quantum, budget / MAX (self->ring->len, 1));
  while (!is_over && self->ring->len > 0)
    {
      g_autoptr (GPtrArray) round = g_ptr_array_copy (self->ring, NULL, NULL);

      call.has_round_emitted = FALSE;
      call.first_suspended = NULL;
      g_ptr_array_set_free_func (round, NULL);
      for (guint i = 0; i < round->len && !is_over; i++)
        is_over = !visit (self, &call, g_ptr_array_index (round, i));
      if (!call.has_round_emitted && call.first_suspended != NULL)
        is_over = TRUE;
    }
  if (self->ring->len > 0)
    rotate_to (self, call.first_suspended != NULL ? call.first_suspended : call.in_turn);
}
