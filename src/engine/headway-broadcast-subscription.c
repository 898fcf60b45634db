/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-broadcast-subscription.h"

#include "engine/headway-bus.h"
#include "engine/headway-opening.h"
#include "engine/headway-subscription-private.h"

/* The cursor runs over raw ids, but only up to the last event that was offered: an offer has passed
 * gate and filter, so behind it there is nothing to look for. While nothing waits the cursor means
 * nothing, and the next offer sets it: a reader that keeps up neither looks at what does not match
 * nor lags on it. */
struct _HeadwayBroadcastSubscription
{
  HeadwaySubscription parent_instance;

  HeadwayOpening opening;
  guint64 next_id; /* to look at */
  guint64 last_id; /* of the last offer; under `next_id`: nothing waits */
  guint capacity;
  HeadwayNotice closing; /* behind all that waits */
  gboolean has_closing;
};

G_DEFINE_FINAL_TYPE (HeadwayBroadcastSubscription, headway_broadcast_subscription, HEADWAY_TYPE_SUBSCRIPTION)

static gboolean
is_caught_up (const HeadwayBroadcastSubscription *self)
{
  return self->next_id > self->last_id;
}

static HeadwayOffer
broadcast_offer (HeadwaySubscription *subscription, HeadwayEvent *event, HeadwayInstant now)
{
  HeadwayBroadcastSubscription *self = (HeadwayBroadcastSubscription *) subscription;
  guint64 id = headway_event_get_id (event);

  if (is_caught_up (self))
    self->next_id = id;
  self->last_id = id;
  if (self->next_id == id && headway_opening_is_over (&self->opening) &&
      headway_subscription_put (subscription, event, id))
    {
      headway_subscription_delivered (subscription, event, FALSE);
      self->next_id = id + 1;
      return (HeadwayOffer){ .is_admitted = TRUE };
    }
  headway_subscription_wake (subscription);
  return (HeadwayOffer){ .is_admitted = TRUE };
}

/* The first id of the window, in which nothing is lost. */
static guint64
first_of_window (HeadwayBroadcastSubscription *self, HeadwaySubscriptionPrivate *priv)
{
  guint64 last_id = headway_bus_get_last_id (priv->bus);
  guint64 first_kept = headway_ring_get_first_id (headway_bus_get_ring (priv->bus));

  if (first_kept == 0)
    first_kept = last_id + 1;
  return MAX (first_kept, last_id >= self->capacity ? last_id - self->capacity + 1 : 1);
}

/* FALSE: the reader has fallen behind, and there is no room to say so. */
static gboolean
take_lag (HeadwayBroadcastSubscription *self, HeadwaySubscriptionPrivate *priv, HeadwayTake *take)
{
  guint64 first = first_of_window (self, priv);
  HeadwayGap gap = { .reason = HEADWAY_GAP_LAGGED };

  if (is_caught_up (self) || self->next_id >= first)
    return TRUE;
  if (!headway_take_fits_notice (take))
    return FALSE;
  gap.last_id = MIN (first - 1, self->last_id);
  gap.place.id = self->next_id;
  gap.count = gap.last_id - self->next_id + 1;
  gap.is_filtered = !headway_filter_is_empty (priv->filter);
  headway_take_add_gap (take, &gap);
  priv->dropped += gap.count;
  headway_subscription_count (take->subscription, HEADWAY_METRIC_RECEIVER_LAGGED + (guint) priv->subscriber, gap.count);
  headway_subscription_report_loss (take->subscription, NULL, take->now);
  self->next_id = gap.last_id + 1;
  return TRUE;
}

static void
take_window (HeadwayBroadcastSubscription *self, HeadwaySubscriptionPrivate *priv, HeadwayTake *take)
{
  HeadwayRing *ring = headway_bus_get_ring (priv->bus);
  guint looks = HEADWAY_DISPATCH_EVENTS;

  for (; !is_caught_up (self) && looks > 0; self->next_id++)
    {
      HeadwayEvent *event = headway_ring_lookup (ring, self->next_id);

      if (!headway_filter_matches (priv->filter, event))
        {
          looks--;
          continue;
        }
      if (!headway_take_fits (take, event))
        return;
      headway_take_add (take, event, self->next_id, FALSE);
    }
}

static guint
broadcast_take (HeadwaySubscription *subscription,
                HeadwayInstant now,
                guint max_events,
                gsize max_bytes,
                guint64 max_cost,
                HeadwayDelivery *deliveries)
{
  HeadwayBroadcastSubscription *self = (HeadwayBroadcastSubscription *) subscription;
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (subscription);
  HeadwayTake take = {
    .subscription = subscription,
    .now = now,
    .deliveries = deliveries,
    .max_events = max_events,
    .max_bytes = max_bytes,
    .max_cost = max_cost,
  };

  if (!headway_opening_take (&self->opening, &take) || !take_lag (self, priv, &take))
    return take.n;
  take_window (self, priv, &take);
  if (self->has_closing && is_caught_up (self) && headway_take_fits_notice (&take))
    {
      headway_take_add_notice (&take, &self->closing);
      self->has_closing = FALSE;
    }
  return take.n;
}

static gboolean
broadcast_is_ready (HeadwaySubscription *subscription)
{
  HeadwayBroadcastSubscription *self = (HeadwayBroadcastSubscription *) subscription;

  return !is_caught_up (self) || !headway_opening_is_over (&self->opening) || self->has_closing;
}

static gboolean
broadcast_is_replaying (HeadwaySubscription *subscription)
{
  return !headway_opening_is_over (&HEADWAY_BROADCAST_SUBSCRIPTION (subscription)->opening);
}

static guint
broadcast_get_queued (HeadwaySubscription *subscription)
{
  HeadwayBroadcastSubscription *self = HEADWAY_BROADCAST_SUBSCRIPTION (subscription);

  return is_caught_up (self) ? 0 : (guint) MIN (self->last_id - self->next_id + 1, G_MAXUINT);
}

/* It holds nothing: what waits belongs to the ring. */
static guint64
broadcast_get_queued_bytes (HeadwaySubscription *subscription)
{
  return 0;
}

static guint64
broadcast_get_lag (HeadwaySubscription *subscription)
{
  HeadwayBroadcastSubscription *self = HEADWAY_BROADCAST_SUBSCRIPTION (subscription);
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (subscription);

  if (is_caught_up (self) || priv->bus == NULL)
    return 0;
  return headway_bus_get_last_id (priv->bus) - self->next_id + 1;
}

static void
broadcast_finish (HeadwaySubscription *subscription, gboolean drop)
{
  HeadwayBroadcastSubscription *self = HEADWAY_BROADCAST_SUBSCRIPTION (subscription);

  if (!drop)
    return;
  /* The books: what a reader left behind is lost to it. */
  headway_subscription_get_private (subscription)->dropped += broadcast_get_queued (subscription);
  self->next_id = self->last_id + 1;
  headway_opening_clear (&self->opening);
  self->has_closing = FALSE;
}

static void
broadcast_evict_idle (HeadwaySubscription *subscription, gint64 idle_ms, gint64 timeout_ms)
{
  HeadwayBroadcastSubscription *self = HEADWAY_BROADCAST_SUBSCRIPTION (subscription);

  self->has_closing = TRUE;
  self->closing = (HeadwayNotice){
    .kind = HEADWAY_NOTICE_EVICTED_IDLE_WRITER,
    .idle_writer = { .idle_ms = idle_ms, .timeout_ms = timeout_ms },
  };
}

static void
headway_broadcast_subscription_finalize (GObject *object)
{
  headway_opening_clear (&HEADWAY_BROADCAST_SUBSCRIPTION (object)->opening);
  G_OBJECT_CLASS (headway_broadcast_subscription_parent_class)->finalize (object);
}

static void
headway_broadcast_subscription_class_init (HeadwayBroadcastSubscriptionClass *klass)
{
  HeadwaySubscriptionClass *subscription_class = HEADWAY_SUBSCRIPTION_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = headway_broadcast_subscription_finalize;
  subscription_class->offer = broadcast_offer;
  subscription_class->take = broadcast_take;
  subscription_class->is_ready = broadcast_is_ready;
  subscription_class->is_replaying = broadcast_is_replaying;
  subscription_class->finish = broadcast_finish;
  subscription_class->evict_idle = broadcast_evict_idle;
  subscription_class->get_queued = broadcast_get_queued;
  subscription_class->get_queued_bytes = broadcast_get_queued_bytes;
  subscription_class->get_lag = broadcast_get_lag;
}

static void
headway_broadcast_subscription_init (HeadwayBroadcastSubscription *self)
{
  self->next_id = 1;
}

HeadwaySubscription *
headway_broadcast_subscription_new (HeadwayBus *bus,
                                    const HeadwaySubscribeOptions *options,
                                    guint number,
                                    HeadwayInstant now)
{
  HeadwayBroadcastSubscription *self = g_object_new (HEADWAY_TYPE_BROADCAST_SUBSCRIPTION, NULL);
  HeadwaySubscription *subscription = HEADWAY_SUBSCRIPTION (self);

  headway_subscription_setup (subscription, bus, options, number);
  self->capacity = headway_bus_get_options (bus)->channel_capacity;
  headway_opening_init (&self->opening, subscription, options, now);
  return subscription;
}
