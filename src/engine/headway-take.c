/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-take.h"

#include "engine/headway-subscription-private.h"

gboolean
headway_take_fits_first (const HeadwayTake *self, gsize size)
{
  return self->n > 0 || headway_subscription_fits_first (self->subscription, size);
}

gboolean
headway_take_fits_notice (const HeadwayTake *self)
{
  return self->n < self->max_events &&
         (self->n == 0 || self->bytes + HEADWAY_NOTICE_SIZE_MAX <= self->max_bytes) &&
         headway_take_fits_first (self, HEADWAY_NOTICE_SIZE_MAX);
}

gboolean
headway_take_has_room (const HeadwayTake *self, const HeadwayEvent *event)
{
  return self->n < self->max_events &&
         (self->n_events == 0 || self->bytes + headway_event_get_size (event) <= self->max_bytes) &&
         headway_take_fits_first (self, headway_event_get_size (event));
}

gboolean
headway_take_fits (const HeadwayTake *self, const HeadwayEvent *event)
{
  return headway_take_has_room (self, event) &&
         (self->n_events == 0 || self->cost + headway_event_get_cost (event) <= self->max_cost);
}

void
headway_take_add (HeadwayTake *self, HeadwayEvent *event, guint64 resume_id, gboolean is_replayed)
{
  headway_subscription_delivered (self->subscription, event, is_replayed);
  /* Where a reader goes on behind what it has: with events that overtake, not the last one's id. */
  headway_subscription_get_private (self->subscription)->last_delivered_id = resume_id;
  self->deliveries[self->n++] = (HeadwayDelivery){ headway_event_ref (event), resume_id };
  self->n_events++;
  self->bytes += headway_event_get_size (event);
  self->cost += headway_event_get_cost (event);
}

void
headway_take_add_synthetic (HeadwayTake *self, HeadwayEvent *event)
{
  self->deliveries[self->n++] = (HeadwayDelivery){ event, 0 };
  self->bytes += headway_event_get_size (event);
}

void
headway_take_add_notice (HeadwayTake *self, const HeadwayNotice *notice)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (self->subscription);

  if (notice->kind == HEADWAY_NOTICE_RESYNC)
    headway_subscription_count (self->subscription, HEADWAY_METRIC_RESYNCS + (guint) notice->resync.reason, 1);
  headway_take_add_synthetic (self, headway_notice_to_event (notice, priv->last_delivered_id,
                                                             headway_bus_get_system (priv->bus), self->now));
}

void
headway_take_add_gap (HeadwayTake *self, const HeadwayGap *gap)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (self->subscription);

  priv->gaps_told++;
  headway_subscription_count (self->subscription, HEADWAY_METRIC_GAPS_DELIVERED + (guint) priv->subscriber, 1);
  headway_take_add_synthetic (self, headway_gap_to_event (gap, headway_bus_get_system (priv->bus), self->now));
}
