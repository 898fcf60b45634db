/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-route.h"

#include "engine/headway-intrusive.h"

/* An event that waits is a node in four places at once: the queue of its principal, the arrival list
 * that eviction takes from, the list of places behind the resume id, and, through its queue, the
 * scheduler. Because every queue is in the order of ids, "the oldest head of all queues" is simply
 * the front of the arrival list: no clock, no scan, no ties.
 *
 * A loss leaves a gap: on the event behind it in its queue, else behind the last one of the queue,
 * else, if the queue is gone, on the route (decisions.md 28). There is one record in each of these
 * places at most, so their number is bounded by what is queued. */

/* What is kept for the next burst; the rest goes back. */
#define FREE_NODES_MAX  256
#define FREE_QUEUES_MAX 64

void
headway_route_init (HeadwayRoute *self, const HeadwayRouteOptions *options)
{
  *self = (HeadwayRoute){ .options = *options };
  headway_principal_map_init (&self->queues);
  headway_scheduler_init (&self->scheduler);
  headway_low_water_init (&self->low_water);
  if (options->eviction == HEADWAY_EVICTION_FAIR)
    self->classes = headway_size_classes_new ();
}

/* --- Nodes and queues ----------------------------------------------------------------------- */

static HeadwayQueueNode *
node_new (HeadwayRoute *self)
{
  GList *link = self->free_nodes;

  if (link == NULL)
    return g_new (HeadwayQueueNode, 1);
  self->free_nodes = link->next;
  self->n_free_nodes--;
  return link->data;
}

static void
node_free (HeadwayRoute *self, HeadwayQueueNode *node)
{
  headway_event_unref (node->event);
  if (self->n_free_nodes == FREE_NODES_MAX)
    {
      g_free (node);
      return;
    }
  node->fifo = (GList){ .data = node, .next = self->free_nodes };
  self->free_nodes = &node->fifo;
  self->n_free_nodes++;
}

static HeadwayPrincipalQueue *
queue_new (HeadwayRoute *self, HeadwayPrincipal *principal)
{
  GList *link = self->free_queues;
  HeadwayPrincipalQueue *queue;

  if (link == NULL)
    queue = g_new (HeadwayPrincipalQueue, 1);
  else
    {
      self->free_queues = link->next;
      self->n_free_queues--;
      queue = link->data;
    }
  headway_principal_queue_init (queue, principal);
  headway_scheduler_add (&self->scheduler, queue);
  return queue;
}

static void
queue_free (HeadwayRoute *self, HeadwayPrincipalQueue *queue)
{
  g_assert (queue->fifo.length == 0 && queue->gap == NULL);
  if (self->n_free_queues == FREE_QUEUES_MAX)
    {
      g_free (queue);
      return;
    }
  queue->ring = (GList){ .data = queue, .next = self->free_queues };
  self->free_queues = &queue->ring;
  self->n_free_queues++;
}

HeadwayPrincipalQueue *
headway_route_lookup (const HeadwayRoute *self, const HeadwayPrincipal *principal)
{
  if (self->overflow != NULL && g_hash_table_contains (self->overflowed, principal))
    return self->overflow;
  return headway_principal_map_lookup (&self->queues, principal);
}

/* A principal that shares the overflow queue stays there until nothing of it waits there any more:
 * otherwise its next event would overtake those. */
static HeadwayPrincipalQueue *
ensure_queue (HeadwayRoute *self, HeadwayPrincipal *principal)
{
  HeadwayPrincipalQueue *queue;

  if (self->overflow != NULL && g_hash_table_contains (self->overflowed, principal))
    return self->overflow;
  if (self->queues.length < self->options.principals)
    {
      HeadwayPrincipalQueue **place = headway_principal_map_place (&self->queues, principal);

      if (*place == NULL)
        *place = queue_new (self, principal);
      return *place;
    }
  queue = headway_principal_map_lookup (&self->queues, principal);
  if (queue != NULL)
    return queue;
  if (self->overflow == NULL)
    self->overflow = queue_new (self, NULL);
  if (self->overflowed == NULL)
    self->overflowed = g_hash_table_new (NULL, NULL);
  return self->overflow;
}

static void
count_overflowed (HeadwayRoute *self, HeadwayPrincipal *principal, gint change)
{
  guint count = GPOINTER_TO_UINT (g_hash_table_lookup (self->overflowed, principal)) + change;

  if (count == 0)
    g_hash_table_remove (self->overflowed, principal);
  else
    g_hash_table_insert (self->overflowed, principal, GUINT_TO_POINTER (count));
}

/* --- Gaps ----------------------------------------------------------------------------------- */

/* Puts @gap where another may hang already. The place of the one that begins earlier stays. */
static void
hang (HeadwayRoute *self, HeadwayGap **slot, HeadwayGap *gap)
{
  HeadwayGap *present = *slot;

  if (present == NULL)
    {
      *slot = gap;
      return;
    }
  headway_gap_absorb (present, gap);
  if (gap->place.id < present->place.id)
    {
      headway_low_water_remove (&self->low_water, &present->place);
      headway_low_water_insert_at (&self->low_water, &present->place, &gap->place);
    }
  headway_low_water_remove (&self->low_water, &gap->place);
  headway_gap_free (gap);
}

static void
count_loss (HeadwayRoute *self, const HeadwayEvent *event, HeadwayGapReason reason)
{
  self->lost++;
  self->losses[reason][headway_principal_get_class (headway_event_get_principal (event))]++;
}

/* --- Taking out ----------------------------------------------------------------------------- */

/* Whatever emptied it: its turn, its deficit and its place in the ring go with it, and what was lost
 * behind its last event is told by the route. */
static void
remove_queue (HeadwayRoute *self, HeadwayPrincipalQueue *queue)
{
  if (queue->gap != NULL)
    hang (self, &self->gap, g_steal_pointer (&queue->gap));
  if (queue == self->overflow)
    self->overflow = NULL;
  else
    headway_principal_map_remove (&self->queues, queue->principal);
  queue_free (self, queue);
}

/* Out of all lists but the one of places. The queue stays, even if it is empty now. */
static void
unlink_node (HeadwayRoute *self, HeadwayQueueNode *node)
{
  HeadwayPrincipalQueue *queue = node->queue;

  headway_principal_queue_remove (queue, node);
  headway_queue_unlink (node->is_spared ? &self->spared : &self->ordinary, &node->arrival);
  self->bytes -= node->cost;
  self->count--;
  if (self->classes != NULL)
    headway_size_classes_update (self->classes, queue);
  if (G_UNLIKELY (queue == self->overflow))
    count_overflowed (self, headway_event_get_principal (node->event), -1);
}

void
headway_route_lose (HeadwayRoute *self, HeadwayQueueNode *node, HeadwayGapReason reason, const HeadwayEvent *event)
{
  HeadwayPrincipalQueue *queue = node->queue;
  GList *next = node->fifo.next;
  gboolean is_gone;
  HeadwayGap **slot;

  unlink_node (self, node);
  is_gone = queue->fifo.length == 0;
  if (is_gone)
    {
      headway_scheduler_remove (&self->scheduler, queue);
      slot = &self->gap;
    }
  else
    {
      slot = next != NULL ? &((HeadwayQueueNode *) next->data)->gap : &queue->gap;
      queue->untold++;
    }
  if (node->gap != NULL)
    hang (self, slot, node->gap);
  if (*slot == NULL)
    {
      *slot = headway_gap_new (reason, node->event, headway_event_get_id (event));
      headway_low_water_insert_at (&self->low_water, &(*slot)->place, &node->place);
    }
  else
    {
      headway_gap_add (*slot, node->event);
      if (node->place.id < (*slot)->place.id)
        {
          headway_low_water_remove (&self->low_water, &(*slot)->place);
          headway_low_water_insert_at (&self->low_water, &(*slot)->place, &node->place);
        }
    }
  headway_low_water_remove (&self->low_water, &node->place);
  count_loss (self, node->event, reason);
  if (is_gone)
    remove_queue (self, queue);
  node_free (self, node);
}

void
headway_route_refuse (HeadwayRoute *self, HeadwayEvent *event, HeadwayGapReason reason)
{
  HeadwayPrincipalQueue *queue = headway_route_lookup (self, headway_event_get_principal (event));
  HeadwayGap **slot = queue != NULL ? &queue->gap : &self->gap;

  if (queue != NULL)
    queue->untold++;
  count_loss (self, event, reason);
  if (*slot != NULL)
    {
      headway_gap_add (*slot, event);
      return;
    }
  *slot = headway_gap_new (reason, event, headway_event_get_id (event));
  headway_low_water_append (&self->low_water, &(*slot)->place, headway_event_get_id (event));
}

/* --- Taking in ------------------------------------------------------------------------------ */

static gboolean
is_spared (const HeadwayRoute *self, const HeadwayPrincipalQueue *queue, const HeadwayEvent *event)
{
  return headway_event_is_final (event) &&
         queue->spared_bytes + headway_event_get_cost (event) <= self->options.budget_bytes / 8;
}

static HeadwayQueueNode *
push (HeadwayRoute *self, HeadwayEvent *event)
{
  HeadwayPrincipal *principal = headway_event_get_principal (event);
  HeadwayPrincipalQueue *queue = ensure_queue (self, principal);
  HeadwayQueueNode *node = node_new (self);

  node->event = headway_event_ref (event);
  node->cost = headway_event_get_cost (event);
  node->is_spared = is_spared (self, queue, event);
  /* What was lost behind the last event was lost before this one. */
  node->gap = g_steal_pointer (&queue->gap);
  node->arrival.data = node;
  headway_principal_queue_push (queue, node);
  headway_queue_push (node->is_spared ? &self->spared : &self->ordinary, &node->arrival);
  headway_low_water_append (&self->low_water, &node->place, headway_event_get_id (event));
  self->bytes += node->cost;
  self->count++;
  if (self->classes != NULL)
    headway_size_classes_update (self->classes, queue);
  if (G_UNLIKELY (queue == self->overflow))
    count_overflowed (self, principal, 1);
  return node;
}

/* The oldest of a principal that has too many, but not what has just come in. */
static void
keep_principal_cap (HeadwayRoute *self, HeadwayQueueNode *newest, guint *n_evicted)
{
  HeadwayPrincipalQueue *queue = newest->queue;
  HeadwayQueueNode *victim = headway_principal_queue_ordinary (queue);

  if (queue->fifo.length <= self->options.principal_messages)
    return;
  if (victim == NULL || victim == newest)
    victim = headway_principal_queue_head (queue);
  if (G_UNLIKELY (queue == self->overflow))
    self->shared_losses[headway_principal_get_class (headway_event_get_principal (victim->event))]++;
  headway_route_lose (self, victim, HEADWAY_GAP_COUNT_CAP, newest->event);
  ++*n_evicted;
}

HeadwayOffer
headway_route_offer (HeadwayRoute *self, HeadwayEvent *event)
{
  HeadwayOffer offer = { 0 };

  if (headway_event_get_cost (event) > self->options.budget_bytes)
    {
      headway_route_refuse (self, event, HEADWAY_GAP_OVERSIZE);
      offer.is_refused = TRUE;
      return offer;
    }
  if (!headway_route_make_room (self, event, &offer.n_evicted))
    {
      headway_route_refuse (self, event, HEADWAY_GAP_BUDGET);
      offer.is_refused = TRUE;
      return offer;
    }
  keep_principal_cap (self, push (self, event), &offer.n_evicted);
  offer.is_admitted = TRUE;
  return offer;
}

/* --- Serving -------------------------------------------------------------------------------- */

guint64
headway_route_get_low_water (const HeadwayRoute *self, guint64 last_id)
{
  return headway_low_water_get (&self->low_water, last_id);
}

/* TRUE: no gap hangs there any more. */
static gboolean
tell (HeadwayRoute *self, HeadwayTake *take, HeadwayGap **slot)
{
  g_autoptr (HeadwayGap) gap = NULL;

  if (*slot == NULL)
    return TRUE;
  if (!headway_take_fits_notice (take))
    return FALSE;
  gap = g_steal_pointer (slot);
  headway_low_water_remove (&self->low_water, &gap->place);
  headway_take_add_gap (take, gap);
  return TRUE;
}

static void
serve_head (HeadwayRoute *self, HeadwaySchedulerCall *call, HeadwayTake *take, guint64 last_id)
{
  HeadwayPrincipalQueue *queue = call->at->data;
  HeadwayQueueNode *node = headway_principal_queue_head (queue);

  unlink_node (self, node);
  headway_low_water_remove (&self->low_water, &node->place);
  headway_scheduler_emitted (&self->scheduler, call, node->cost);
  if (queue->fifo.length == 0)
    remove_queue (self, queue);
  headway_take_add (take, node->event, headway_route_get_low_water (self, last_id), FALSE);
  node_free (self, node);
}

void
headway_route_take (HeadwayRoute *self, HeadwayTake *take, guint64 last_id)
{
  guint64 quantum = self->options.quantum_bytes;
  HeadwaySchedulerCall call;
  HeadwayPrincipalQueue *queue;

  if (take->max_cost < G_MAXUINT64)
    quantum = headway_scheduler_drain_quantum (&self->scheduler, quantum, take->max_cost);
  headway_scheduler_begin (&self->scheduler, &call, quantum, take->max_cost, take->cost, take->n_events > 0);
  /* A full reply is not looked beyond: the next turn is not begun before somebody reads on. */
  while (tell (self, take, &self->gap) && take->n < take->max_events &&
         (queue = headway_scheduler_next (&self->scheduler, &call)) != NULL)
    {
      HeadwayQueueNode *node = headway_principal_queue_head (queue);
      guint64 untold = node->gap != NULL ? node->gap->count : 0;

      if (!tell (self, take, &node->gap))
        break;
      queue->untold -= untold;
      if (!headway_take_has_room (take, node->event))
        break;
      serve_head (self, &call, take, last_id);
    }
}

/* --- What it holds -------------------------------------------------------------------------- */

guint
headway_route_get_active_principals (const HeadwayRoute *self)
{
  return self->scheduler.ring.length;
}

static void
list_overflow (const HeadwayRoute *self, GArray *stats)
{
  g_autoptr (GHashTable) places = g_hash_table_new (NULL, NULL); /* HeadwayPrincipal → index in stats, from 1 */

  for (GList *link = self->overflow->fifo.head; link != NULL; link = link->next)
    {
      HeadwayQueueNode *node = link->data;
      HeadwayPrincipal *principal = headway_event_get_principal (node->event);
      guint place = GPOINTER_TO_UINT (g_hash_table_lookup (places, principal));
      HeadwayPrincipalStat *stat;

      if (place == 0)
        {
          HeadwayPrincipalStat first = { headway_principal_ref (principal), 0, 0, 0, node->place.id };

          g_array_append_val (stats, first);
          place = stats->len;
          g_hash_table_insert (places, principal, GUINT_TO_POINTER (place));
        }
      stat = &g_array_index (stats, HeadwayPrincipalStat, place - 1);
      stat->events++;
      stat->bytes += node->cost;
    }
}

void
headway_route_list (const HeadwayRoute *self, GArray *stats)
{
  gboolean is_told = self->gap == NULL || self->gap->principal == NULL;

  for (GList *link = self->scheduler.ring.head; link != NULL; link = link->next)
    {
      HeadwayPrincipalQueue *queue = link->data;
      HeadwayPrincipalStat stat = { queue->principal, queue->fifo.length, queue->bytes, queue->untold, 0 };

      if (queue->principal == NULL)
        continue;
      stat.oldest_id = headway_principal_queue_head (queue)->place.id;
      headway_principal_ref (stat.principal);
      if (!is_told && self->gap->principal == queue->principal)
        {
          stat.lost += self->gap->count;
          is_told = TRUE;
        }
      g_array_append_val (stats, stat);
    }
  if (self->overflow != NULL)
    list_overflow (self, stats);
  /* One of whom everything was lost waits for nothing, and yet has lost something. */
  if (!is_told)
    {
      HeadwayPrincipalStat stat = { headway_principal_ref (self->gap->principal), 0, 0, self->gap->count, 0 };

      g_array_append_val (stats, stat);
    }
}

/* --- The end -------------------------------------------------------------------------------- */

void
headway_route_drop (HeadwayRoute *self)
{
  GList *link;

  while ((link = self->scheduler.ring.head) != NULL)
    {
      HeadwayPrincipalQueue *queue = link->data;
      HeadwayQueueNode *node = headway_principal_queue_head (queue);

      g_clear_pointer (&node->gap, headway_gap_free);
      unlink_node (self, node);
      if (queue->fifo.length == 0)
        {
          headway_scheduler_remove (&self->scheduler, queue);
          g_clear_pointer (&queue->gap, headway_gap_free);
          remove_queue (self, queue);
        }
      node_free (self, node);
    }
  g_clear_pointer (&self->gap, headway_gap_free);
  headway_low_water_init (&self->low_water);
}

void
headway_route_clear (HeadwayRoute *self)
{
  headway_route_drop (self);
  while (self->free_nodes != NULL)
    {
      HeadwayQueueNode *node = self->free_nodes->data;

      self->free_nodes = self->free_nodes->next;
      g_free (node);
    }
  while (self->free_queues != NULL)
    {
      HeadwayPrincipalQueue *queue = self->free_queues->data;

      self->free_queues = self->free_queues->next;
      g_free (queue);
    }
  self->n_free_nodes = self->n_free_queues = 0;
  headway_principal_map_clear (&self->queues);
  g_clear_pointer (&self->overflowed, g_hash_table_unref);
  g_clear_pointer (&self->classes, headway_size_classes_free);
}
