/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-route.h"

/* Who has to go, so that a new event fits (routing.md 1.7, 3.1; decisions.md 29, 30).
 *
 * `oldest`: whatever has waited longest, whoever sent it. It costs one look, and a flood pushes the
 * older events of quiet principals out with its own.
 *
 * `fair`: nobody loses anything while his bytes are within an equal share of the budget. Shares bind
 * before `final` does: the flag protects an event from other events of those who have to pay, not
 * its sender from paying. */

static gboolean
is_over_budget (const HeadwayRoute *self, gsize cost)
{
  return self->bytes + cost > self->options.budget_bytes;
}

static HeadwayQueueNode *
oldest_of_all (const HeadwayRoute *self)
{
  const GQueue *list = self->ordinary.length > 0 ? &self->ordinary : &self->spared;

  return list->head->data;
}

static HeadwayQueueNode *
oldest_of (const HeadwayPrincipalQueue *queue)
{
  return queue->ordinary != NULL ? headway_principal_queue_ordinary (queue) : headway_principal_queue_head (queue);
}

static guint
n_active (const HeadwayRoute *self, const HeadwayPrincipalQueue *sender)
{
  return headway_route_get_active_principals (self) + (sender == NULL ? 1 : 0);
}

/* Whether the sender, with the event that comes in, has to pay rather than @other. Of equals the one
 * whose head is older. */
static gboolean
sender_pays (const HeadwayPrincipalQueue *sender, guint64 sender_bytes, const HeadwayPrincipalQueue *other)
{
  if (other == NULL || sender_bytes != other->bytes)
    return other == NULL || sender_bytes > other->bytes;
  return headway_principal_queue_head (sender)->place.id < headway_principal_queue_head (other)->place.id;
}

/* Returns: (nullable): NULL: the event that comes in is the only one over its share. */
static HeadwayQueueNode *
fair_victim (HeadwayRoute *self, const HeadwayPrincipalQueue *sender, gsize cost)
{
  guint64 share = self->options.budget_bytes / n_active (self, sender);
  guint64 sender_bytes = (sender != NULL ? sender->bytes : 0) + cost;
  HeadwayPrincipalQueue *other = headway_size_classes_heaviest (self->classes, share, sender, TRUE);

  if (sender != NULL && sender_bytes > share && sender_pays (sender, sender_bytes, other))
    {
      /* All of his own would not be enough, and nobody else has to pay: to lose them too helps nobody. */
      if (other == NULL && self->bytes - sender->bytes + cost > self->options.budget_bytes)
        return NULL;
      return oldest_of (sender);
    }
  if (other == NULL && sender_bytes <= share)
    other = headway_size_classes_heaviest (self->classes, share, sender, FALSE);
  return other != NULL ? oldest_of (other) : NULL;
}

static HeadwayQueueNode *
victim_of_budget (HeadwayRoute *self, const HeadwayPrincipalQueue *sender, gsize cost)
{
  if (self->options.eviction == HEADWAY_EVICTION_FAIR)
    return fair_victim (self, sender, cost);
  return oldest_of_all (self);
}

/* With `fair`, one who holds more than an equal share of the events pays himself. */
static HeadwayQueueNode *
victim_of_count (HeadwayRoute *self, const HeadwayPrincipalQueue *sender)
{
  if (self->options.eviction == HEADWAY_EVICTION_FAIR && sender != NULL &&
      sender->fifo.length >= self->options.messages / n_active (self, sender))
    return oldest_of (sender);
  return oldest_of_all (self);
}

gboolean
headway_route_make_room (HeadwayRoute *self, const HeadwayEvent *event, guint *n_evicted)
{
  gsize cost = headway_event_get_cost (event);

  while (is_over_budget (self, cost) || self->count >= self->options.messages)
    {
      gboolean is_budget = is_over_budget (self, cost);
      const HeadwayPrincipalQueue *sender = headway_route_lookup (self, headway_event_get_principal (event));
      HeadwayQueueNode *victim = is_budget ? victim_of_budget (self, sender, cost) : victim_of_count (self, sender);

      if (victim == NULL)
        return FALSE;
      headway_route_lose (self, victim, is_budget ? HEADWAY_GAP_BUDGET : HEADWAY_GAP_COUNT_CAP, event);
      ++*n_evicted;
    }
  return TRUE;
}
