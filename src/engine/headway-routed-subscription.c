/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-routed-subscription.h"

#include "engine/headway-opening.h"
#include "engine/headway-route.h"

#include <string.h>

struct _HeadwayRoutedSubscription
{
  HeadwaySubscription parent_instance;

  HeadwayOpening opening;
  HeadwayRoute route;
  HeadwayNotice closing; /* behind all that waits */
  gboolean has_closing;
  guint64 end_id;            /* the last id offered before it was evicted or closed; 0: it was not */
  HeadwayRouteStats counted; /* what the metrics know of */
};

G_DEFINE_FINAL_TYPE (HeadwayRoutedSubscription, headway_routed_subscription, HEADWAY_TYPE_SUBSCRIPTION)

static guint64
last_offered_id (HeadwayRoutedSubscription *self)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (HEADWAY_SUBSCRIPTION (self));

  return self->end_id > 0 ? self->end_id : headway_bus_get_last_id (priv->bus);
}

/* --- Metrics -------------------------------------------------------------------------------- */

static void
count_drops (HeadwayRoutedSubscription *self, HeadwayPrincipalClass class, HeadwayDropReason reason, guint64 all, guint64 *counted)
{
  HeadwaySubscription *subscription = (HeadwaySubscription *) self;
  HeadwaySubscriberClass subscriber = headway_subscription_get_private (subscription)->subscriber;

  if (all == *counted)
    return;
  headway_subscription_count (subscription, headway_metric_route_drops (subscriber, class, reason), all - *counted);
  *counted = all;
}

/* The route counts for itself; what has been added since goes into the metrics. */
static void
count_losses (HeadwayRoutedSubscription *self)
{
  const HeadwayRoute *route = &self->route;
  HeadwayRouteStats *counted = &self->counted;

  for (guint i = 0; i < HEADWAY_N_PRINCIPAL_CLASSES; i++)
    {
      guint64 by_count = route->losses[HEADWAY_GAP_COUNT_CAP][i] - route->shared_losses[i];

      count_drops (self, i, HEADWAY_DROP_OVERSIZE, route->losses[HEADWAY_GAP_OVERSIZE][i], &counted->losses[HEADWAY_GAP_OVERSIZE][i]);
      count_drops (self, i, HEADWAY_DROP_BUDGET, route->losses[HEADWAY_GAP_BUDGET][i], &counted->losses[HEADWAY_GAP_BUDGET][i]);
      count_drops (self, i, HEADWAY_DROP_COUNT_CAP, by_count, &counted->losses[HEADWAY_GAP_COUNT_CAP][i]);
      count_drops (self, i, HEADWAY_DROP_BUCKET_CAP, route->shared_losses[i], &counted->shared_losses[i]);
    }
}

static void
count_starved (HeadwayRoutedSubscription *self)
{
  HeadwaySubscription *subscription = (HeadwaySubscription *) self;
  HeadwaySubscriberClass subscriber = headway_subscription_get_private (subscription)->subscriber;
  const guint64 *starved = self->route.scheduler.starved;

  for (guint i = 0; i < HEADWAY_N_PRINCIPAL_CLASSES; i++)
    {
      headway_subscription_count (subscription, headway_metric_route_starved (subscriber, i), starved[i] - self->counted.starved[i]);
      self->counted.starved[i] = starved[i];
    }
}

/* --- Offers and takes ----------------------------------------------------------------------- */

/* A reader that can take gets the event at once, but only while nothing else waits: then it overtakes
 * nobody, no deficit is owed, and the order is the one that the scheduler would choose. */
static gboolean
hand_over (HeadwayRoutedSubscription *self, HeadwayEvent *event)
{
  HeadwaySubscription *subscription = (HeadwaySubscription *) self;

  return headway_opening_is_over (&self->opening) && headway_route_is_idle (&self->route) &&
         headway_event_get_cost (event) <= self->route.options.budget_bytes &&
         headway_subscription_put (subscription, event, headway_event_get_id (event));
}

static HeadwayOffer
routed_offer (HeadwaySubscription *subscription, HeadwayEvent *event, HeadwayInstant now)
{
  HeadwayRoutedSubscription *self = (HeadwayRoutedSubscription *) subscription;
  HeadwaySubscriptionPrivate *priv;
  guint64 lost = self->route.lost;
  HeadwayOffer offer;

  if (hand_over (self, event))
    {
      headway_subscription_delivered (subscription, event, FALSE);
      return (HeadwayOffer){ .is_admitted = TRUE };
    }
  offer = headway_route_offer (&self->route, event);
  priv = headway_subscription_get_private (subscription);
  if (self->route.lost != lost)
    {
      priv->dropped += self->route.lost - lost;
      count_losses (self);
      headway_subscription_report_loss (subscription, event, now);
    }
  /* A loss is something to read too. */
  headway_subscription_wake (subscription);
  return offer;
}

static guint
routed_take (HeadwaySubscription *subscription,
             HeadwayInstant now,
             guint max_events,
             gsize max_bytes,
             guint64 max_cost,
             HeadwayDelivery *deliveries)
{
  HeadwayRoutedSubscription *self = (HeadwayRoutedSubscription *) subscription;
  HeadwayTake take = {
    .subscription = subscription,
    .now = now,
    .deliveries = deliveries,
    .max_events = max_events,
    .max_bytes = max_bytes,
    .max_cost = max_cost,
  };

  if (!headway_opening_take (&self->opening, &take))
    return take.n;
  headway_route_take (&self->route, &take, last_offered_id (self));
  count_starved (self);
  if (self->has_closing && headway_route_is_idle (&self->route) && headway_take_fits_notice (&take))
    {
      headway_take_add_notice (&take, &self->closing);
      self->has_closing = FALSE;
    }
  return take.n;
}

static gboolean
routed_is_ready (HeadwaySubscription *subscription)
{
  HeadwayRoutedSubscription *self = (HeadwayRoutedSubscription *) subscription;

  return !headway_opening_is_over (&self->opening) || !headway_route_is_idle (&self->route) || self->has_closing;
}

static gboolean
routed_is_replaying (HeadwaySubscription *subscription)
{
  return !headway_opening_is_over (&HEADWAY_ROUTED_SUBSCRIPTION (subscription)->opening);
}

static void
routed_finish (HeadwaySubscription *subscription, gboolean drop)
{
  HeadwayRoutedSubscription *self = HEADWAY_ROUTED_SUBSCRIPTION (subscription);

  if (!drop)
    {
      /* The bus goes on without it. */
      self->end_id = last_offered_id (self);
      return;
    }
  /* The books: what a reader left behind is lost to it. */
  headway_subscription_get_private (subscription)->dropped += self->route.count;
  headway_route_drop (&self->route);
  headway_opening_clear (&self->opening);
  self->has_closing = FALSE;
}

static void
routed_evict_idle (HeadwaySubscription *subscription, gint64 idle_ms, gint64 timeout_ms)
{
  HeadwayRoutedSubscription *self = HEADWAY_ROUTED_SUBSCRIPTION (subscription);

  self->end_id = last_offered_id (self);
  self->has_closing = TRUE;
  self->closing = (HeadwayNotice){
    .kind = HEADWAY_NOTICE_EVICTED_IDLE_WRITER,
    .idle_writer = { .idle_ms = idle_ms, .timeout_ms = timeout_ms },
  };
}

static guint
routed_get_queued (HeadwaySubscription *subscription)
{
  return HEADWAY_ROUTED_SUBSCRIPTION (subscription)->route.count;
}

static guint64
routed_get_queued_bytes (HeadwaySubscription *subscription)
{
  return HEADWAY_ROUTED_SUBSCRIPTION (subscription)->route.bytes;
}

static guint64
routed_get_lag (HeadwaySubscription *subscription)
{
  HeadwayRoutedSubscription *self = HEADWAY_ROUTED_SUBSCRIPTION (subscription);
  guint64 last_id = last_offered_id (self);

  return last_id - headway_route_get_low_water (&self->route, last_id);
}

static void
routed_get_route_stats (HeadwaySubscription *subscription, HeadwayRouteStats *stats)
{
  const HeadwayRoute *route = &HEADWAY_ROUTED_SUBSCRIPTION (subscription)->route;

  stats->active_principals = headway_route_get_active_principals (route);
  stats->bytes = route->bytes;
  memcpy (stats->starved, route->scheduler.starved, sizeof stats->starved);
  memcpy (stats->losses, route->losses, sizeof stats->losses);
  memcpy (stats->shared_losses, route->shared_losses, sizeof stats->shared_losses);
}

static void
routed_list_principals (HeadwaySubscription *subscription, GArray *stats)
{
  headway_route_list (&HEADWAY_ROUTED_SUBSCRIPTION (subscription)->route, stats);
}

static void
headway_routed_subscription_finalize (GObject *object)
{
  HeadwayRoutedSubscription *self = HEADWAY_ROUTED_SUBSCRIPTION (object);

  headway_opening_clear (&self->opening);
  headway_route_clear (&self->route);
  G_OBJECT_CLASS (headway_routed_subscription_parent_class)->finalize (object);
}

static void
headway_routed_subscription_class_init (HeadwayRoutedSubscriptionClass *klass)
{
  HeadwaySubscriptionClass *subscription_class = HEADWAY_SUBSCRIPTION_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = headway_routed_subscription_finalize;
  subscription_class->offer = routed_offer;
  subscription_class->take = routed_take;
  subscription_class->is_ready = routed_is_ready;
  subscription_class->is_replaying = routed_is_replaying;
  subscription_class->finish = routed_finish;
  subscription_class->evict_idle = routed_evict_idle;
  subscription_class->get_queued = routed_get_queued;
  subscription_class->get_queued_bytes = routed_get_queued_bytes;
  subscription_class->get_lag = routed_get_lag;
  subscription_class->get_route_stats = routed_get_route_stats;
  subscription_class->list_principals = routed_list_principals;
}

static void
headway_routed_subscription_init (HeadwayRoutedSubscription *self)
{
}

HeadwaySubscription *
headway_routed_subscription_new (HeadwayBus *bus,
                                 const HeadwaySubscribeOptions *options,
                                 guint number,
                                 HeadwayInstant now)
{
  HeadwayRoutedSubscription *self = g_object_new (HEADWAY_TYPE_ROUTED_SUBSCRIPTION, NULL);
  HeadwaySubscription *subscription = HEADWAY_SUBSCRIPTION (self);

  headway_subscription_setup (subscription, bus, options, number);
  headway_route_init (&self->route, &options->route);
  headway_opening_init (&self->opening, subscription, options, now);
  return subscription;
}
