/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-handler-queues.h"

#include "engine/headway-intrusive.h"

/* Of how many of one weight the heaviest is chosen. */
#define LOOKS 8

void
headway_handler_queues_init (HeadwayHandlerQueues *self, const HeadwayLimits *limits, HeadwayPrincipal *system)
{
  self->queue_max = limits->handler_queue;
  self->principals_max = limits->handler_principals;
  self->budget_bytes = MAX (limits->route_budget_bytes, limits->event_max_bytes);
  self->system = headway_principal_ref (system);
  self->queues = g_hash_table_new_full (NULL, NULL, NULL, (GDestroyNotify) headway_handler_queue_free);
  self->sharers = g_hash_table_new_full (NULL, NULL, (GDestroyNotify) headway_principal_unref, NULL);
}

void
headway_handler_queues_clear (HeadwayHandlerQueues *self)
{
  g_clear_pointer (&self->queues, g_hash_table_unref);
  g_clear_pointer (&self->sharers, g_hash_table_unref);
  g_clear_pointer (&self->gap, headway_gap_free);
  g_clear_pointer (&self->system, headway_principal_unref);
}

/* --- Finding -------------------------------------------------------------------------------- */

static void
absorb_gap (HeadwayHandlerQueues *self, HeadwayGap *gap)
{
  if (self->gap == NULL)
    {
      self->gap = gap;
      return;
    }
  headway_gap_absorb (self->gap, gap);
  self->gap->place.id = MIN (self->gap->place.id, gap->place.id);
  headway_gap_free (gap);
}

void
headway_handler_queues_set_busy (HeadwayHandlerQueues *self, HeadwayHandlerQueue *queue)
{
  if (queue->idle_since_us < 0)
    return;
  headway_queue_unlink (&self->idle, &queue->idle_link);
  queue->idle_since_us = -1;
}

static void
free_queue (HeadwayHandlerQueues *self, HeadwayHandlerQueue *queue)
{
  headway_handler_queues_set_busy (self, queue);
  g_hash_table_remove (self->queues, queue->principal);
}

static HeadwayHandlerQueue *
get_or_make (HeadwayHandlerQueues *self, HeadwayPrincipal *principal)
{
  HeadwayHandlerQueue *queue = g_hash_table_lookup (self->queues, principal);

  if (queue == NULL)
    {
      queue = headway_handler_queue_new (principal);
      g_hash_table_insert (self->queues, queue->principal, queue);
    }
  headway_handler_queues_set_busy (self, queue);
  return queue;
}

HeadwayHandlerQueue *
headway_handler_queues_get (HeadwayHandlerQueues *self, HeadwayPrincipal *principal, gboolean *is_shared)
{
  HeadwayHandlerQueue *queue;

  *is_shared = FALSE;
  if (principal == self->system)
    return get_or_make (self, principal);
  if (g_hash_table_size (self->sharers) > 0 && g_hash_table_contains (self->sharers, principal))
    {
      *is_shared = TRUE;
      return get_or_make (self, self->system);
    }
  queue = g_hash_table_lookup (self->queues, principal);
  if (queue != NULL)
    {
      headway_handler_queues_set_busy (self, queue);
      return queue;
    }
  if (g_hash_table_size (self->queues) >= self->principals_max && self->idle.head != NULL)
    free_queue (self, self->idle.head->data);
  if (g_hash_table_size (self->queues) < self->principals_max)
    return get_or_make (self, principal);
  *is_shared = TRUE;
  return get_or_make (self, self->system);
}

void
headway_handler_queues_add_sharer (HeadwayHandlerQueues *self, HeadwayPrincipal *principal)
{
  guint n = GPOINTER_TO_UINT (g_hash_table_lookup (self->sharers, principal));

  g_hash_table_insert (self->sharers, headway_principal_ref (principal), GUINT_TO_POINTER (n + 1));
}

void
headway_handler_queues_remove_sharer (HeadwayHandlerQueues *self, HeadwayPrincipal *principal)
{
  guint n = GPOINTER_TO_UINT (g_hash_table_lookup (self->sharers, principal));

  if (n <= 1)
    g_hash_table_remove (self->sharers, principal);
  else
    g_hash_table_insert (self->sharers, headway_principal_ref (principal), GUINT_TO_POINTER (n - 1));
}

/* --- Weights -------------------------------------------------------------------------------- */

static void
update_weight (HeadwayHandlerQueues *self, HeadwayHandlerQueue *queue)
{
  gint weight = queue->bytes > 0 ? 63 - __builtin_clzll (queue->bytes) : -1;

  if (weight == queue->weight)
    return;
  if (queue->weight >= 0)
    {
      headway_queue_unlink (&self->weights[queue->weight], &queue->weight_link);
      if (self->weights[queue->weight].length == 0)
        self->used_weights &= ~(G_GUINT64_CONSTANT (1) << queue->weight);
    }
  if (weight >= 0)
    {
      headway_queue_push (&self->weights[weight], &queue->weight_link);
      self->used_weights |= G_GUINT64_CONSTANT (1) << weight;
    }
  queue->weight = weight;
}

void
headway_handler_queues_add_waiting (HeadwayHandlerQueues *self, HeadwayHandlerQueue *queue, guint64 cost)
{
  queue->waiting++;
  queue->bytes += cost;
  self->bytes += cost;
  update_weight (self, queue);
}

void
headway_handler_queues_remove_waiting (HeadwayHandlerQueues *self, HeadwayHandlerQueue *queue, guint64 cost)
{
  queue->waiting--;
  queue->bytes -= cost;
  self->bytes -= cost;
  update_weight (self, queue);
}

HeadwayHandlerQueue *
headway_handler_queues_heaviest (HeadwayHandlerQueues *self)
{
  HeadwayHandlerQueue *best = NULL;
  GList *link;

  if (self->used_weights == 0)
    return NULL;
  link = self->weights[63 - __builtin_clzll (self->used_weights)].head;
  for (guint i = 0; link != NULL && i < LOOKS; i++, link = link->next)
    {
      HeadwayHandlerQueue *queue = link->data;
      best = best == NULL || queue->bytes > best->bytes ? queue : best;
    }
  return best;
}

/* --- Idle ----------------------------------------------------------------------------------- */

void
headway_handler_queues_set_idle (HeadwayHandlerQueues *self, HeadwayHandlerQueue *queue, gint64 now_us)
{
  if (queue->idle_since_us >= 0)
    return;
  if (queue->gap != NULL)
    absorb_gap (self, g_steal_pointer (&queue->gap));
  queue->idle_since_us = now_us;
  headway_queue_push (&self->idle, &queue->idle_link);
}

gint64
headway_handler_queues_free_idle (HeadwayHandlerQueues *self, gint64 since_us)
{
  while (self->idle.head != NULL)
    {
      HeadwayHandlerQueue *queue = self->idle.head->data;

      if (queue->idle_since_us > since_us)
        return queue->idle_since_us;
      free_queue (self, queue);
    }
  return -1;
}

guint
headway_handler_queues_count_active (const HeadwayHandlerQueues *self)
{
  return self->queues != NULL ? g_hash_table_size (self->queues) - self->idle.length : 0;
}

HeadwayGap *
headway_handler_queues_take_gap (HeadwayHandlerQueues *self, HeadwayHandlerQueue *queue)
{
  if (self->gap == NULL)
    return g_steal_pointer (&queue->gap);
  if (queue->gap != NULL)
    absorb_gap (self, g_steal_pointer (&queue->gap));
  return g_steal_pointer (&self->gap);
}
