/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-stream-subscription.h"

#include "engine/headway-bus.h"
#include "engine/headway-subscription-private.h"

/* What a reader gets, in this order (sse-contract.md 1.6). */
typedef enum
{
  PHASE_REPLAY,
  PHASE_REPLAY_COMPLETE,
  PHASE_SNAPSHOT,
  PHASE_LIVE,
} Phase;

/* A queued event, or a notice, which counts for neither cap. */
typedef struct
{
  HeadwayEvent *event;   /* owned, nullable */
  HeadwayNotice *notice; /* owned, nullable */
} Entry;

struct _HeadwayStreamSubscription
{
  HeadwaySubscription parent_instance;

  /* First, since every offer looks at them. */
  Phase phase;
  gboolean is_warned;
  guint length;

  /* Circular, `capacity` a power of two; freed when it runs empty, so that an idle reader is cheap. */
  guint capacity;
  guint head;
  Entry *entries;

  guint max_queued;
  guint live_count;
  guint64 max_queued_bytes;
  guint64 live_bytes;

  HeadwayReplay replay;
  HeadwayEvent *snapshot; /* owned, nullable: until it is sent */
};

/* What comes next, seen but not taken. */
typedef struct
{
  HeadwayEvent *event; /* borrowed, NULL with a notice */
  HeadwayNotice notice;
  HeadwayReplayStep step;
} Next;

G_DEFINE_FINAL_TYPE (HeadwayStreamSubscription, headway_stream_subscription, HEADWAY_TYPE_SUBSCRIPTION)

static Entry *
queue_head (HeadwayStreamSubscription *self)
{
  return &self->entries[self->head];
}

static void
queue_append (HeadwayStreamSubscription *self, HeadwayEvent *event, const HeadwayNotice *notice)
{
  Entry *entry;

  if (self->length == self->capacity)
    {
      guint capacity = self->capacity > 0 ? self->capacity * 2 : 8;
      Entry *entries = g_new (Entry, capacity);

      for (guint i = 0; i < self->length; i++)
        entries[i] = self->entries[(self->head + i) & (self->capacity - 1)];
      g_free (self->entries);
      self->entries = entries;
      self->capacity = capacity;
      self->head = 0;
    }
  entry = &self->entries[(self->head + self->length++) & (self->capacity - 1)];
  entry->event = event != NULL ? headway_event_ref (event) : NULL;
  entry->notice = notice != NULL ? g_memdup2 (notice, sizeof *notice) : NULL;
}

static void
queue_remove_head (HeadwayStreamSubscription *self)
{
  Entry *entry = queue_head (self);

  g_clear_pointer (&entry->event, headway_event_unref);
  g_clear_pointer (&entry->notice, g_free);
  self->head = (self->head + 1) & (self->capacity - 1);
  if (--self->length > 0)
    return;
  g_clear_pointer (&self->entries, g_free);
  self->capacity = self->head = 0;
}

static void
queue_clear (HeadwayStreamSubscription *self)
{
  while (self->length > 0)
    queue_remove_head (self);
  self->live_count = 0;
  self->live_bytes = 0;
}

static HeadwayQueueLevels
queue_levels (HeadwayStreamSubscription *self)
{
  return (HeadwayQueueLevels){
    .queued = self->live_count,
    .max_queued = self->max_queued,
    .queued_bytes = self->live_bytes,
    .max_queued_bytes = self->max_queued_bytes,
  };
}

static HeadwaySubscriberClass
get_class (HeadwayStreamSubscription *self)
{
  return headway_subscription_get_private (HEADWAY_SUBSCRIPTION (self))->subscriber;
}

static void
count_eviction (HeadwayStreamSubscription *self, HeadwayEvictionReason reason)
{
  headway_subscription_count (HEADWAY_SUBSCRIPTION (self), headway_metric_stream_evictions (get_class (self), reason), 1);
}

/* Re-armed at or under 37.5 % of both caps, warned at or over 75 % of one. */
static void
evaluate_warning (HeadwayStreamSubscription *self, HeadwayEvent *event)
{
  gboolean is_over_frames = self->live_count * G_GUINT64_CONSTANT (4) >= self->max_queued * G_GUINT64_CONSTANT (3);
  gboolean is_over_bytes = self->live_bytes * 4 >= self->max_queued_bytes * 3;
  HeadwayNotice notice = { .kind = HEADWAY_NOTICE_SLOW_CLIENT_WARNING };

  if (self->is_warned &&
      self->live_count * G_GUINT64_CONSTANT (8) <= self->max_queued * G_GUINT64_CONSTANT (3) &&
      self->live_bytes * 8 <= self->max_queued_bytes * 3)
    self->is_warned = FALSE;
  if (self->is_warned || event == NULL || (!is_over_frames && !is_over_bytes))
    return;

  self->is_warned = TRUE;
  headway_subscription_count (HEADWAY_SUBSCRIPTION (self), HEADWAY_METRIC_STREAM_WARNINGS + (guint) get_class (self), 1);
  notice.warning.levels = queue_levels (self);
  notice.warning.last_event_id = headway_event_get_id (event);
  notice.warning.is_over_frames = is_over_frames;
  notice.warning.is_over_bytes = is_over_bytes;
  queue_append (self, NULL, &notice);
}

static HeadwayOffer
evict (HeadwayStreamSubscription *self, HeadwayEvent *event, gboolean is_over_bytes, HeadwayInstant now)
{
  HeadwaySubscription *subscription = HEADWAY_SUBSCRIPTION (self);
  HeadwayNotice notice = {
    .kind = HEADWAY_NOTICE_EVICTED_OVERFLOW,
    .overflow = {
      .levels = queue_levels (self),
      .dropped_id = headway_event_get_id (event),
      .is_over_bytes = is_over_bytes,
      .event_bytes = headway_event_get_size (event),
    },
  };

  queue_append (self, NULL, &notice);
  headway_subscription_get_private (subscription)->dropped++;
  count_eviction (self, is_over_bytes ? HEADWAY_EVICTION_QUEUE_BYTES_OVERFLOW : HEADWAY_EVICTION_QUEUE_OVERFLOW);
  headway_subscription_report_loss (subscription, event, now);
  headway_subscription_end (subscription, TRUE);
  return (HeadwayOffer){ .is_refused = TRUE };
}

/* The order of sse-contract.md 2, "Offer to one subscriber". */
static HeadwayOffer
stream_offer (HeadwaySubscription *subscription, HeadwayEvent *event, HeadwayInstant now)
{
  HeadwayStreamSubscription *self = (HeadwayStreamSubscription *) subscription;
  gsize size;

  if (self->phase == PHASE_LIVE && self->length == 0 &&
      headway_subscription_put (subscription, event, headway_event_get_id (event)))
    {
      headway_subscription_delivered (subscription, event, FALSE);
      if (self->is_warned)
        evaluate_warning (self, NULL);
      return (HeadwayOffer){ .is_admitted = TRUE };
    }
  size = headway_event_get_size (event);
  if (self->live_count >= self->max_queued)
    return evict (self, event, FALSE, now);
  if (self->live_count > 0 && self->live_bytes + size > self->max_queued_bytes)
    return evict (self, event, TRUE, now);

  queue_append (self, event, NULL);
  self->live_count++;
  self->live_bytes += size;
  evaluate_warning (self, event);
  headway_subscription_wake (subscription);
  return (HeadwayOffer){ .is_admitted = TRUE };
}

static gboolean
peek_replay (HeadwayStreamSubscription *self, guint *looks, Next *next)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (HEADWAY_SUBSCRIPTION (self));
  HeadwayRing *ring = headway_bus_get_ring (priv->bus);

  next->step = headway_replay_peek (&self->replay, ring, priv->filter, looks, &next->event, &next->notice);
  if (next->step == HEADWAY_REPLAY_DONE)
    {
      self->phase = PHASE_REPLAY_COMPLETE;
      next->event = NULL;
      headway_replay_complete (&self->replay, !headway_filter_is_empty (priv->filter), &next->notice);
      return TRUE;
    }
  if (next->step != HEADWAY_REPLAY_EVENT)
    next->event = NULL;
  return next->step != HEADWAY_REPLAY_LOOKED;
}

/* FALSE: nothing to take now. */
static gboolean
peek (HeadwayStreamSubscription *self, guint *looks, Next *next)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (HEADWAY_SUBSCRIPTION (self));

  switch (self->phase)
    {
    case PHASE_REPLAY:
      return peek_replay (self, looks, next);
    case PHASE_REPLAY_COMPLETE:
      next->event = NULL;
      headway_replay_complete (&self->replay, !headway_filter_is_empty (priv->filter), &next->notice);
      return TRUE;
    case PHASE_SNAPSHOT:
      next->event = self->snapshot;
      return TRUE;
    case PHASE_LIVE:
      break;
    default:
      g_assert_not_reached ();
    }
  if (self->length == 0)
    return FALSE;
  next->event = queue_head (self)->event;
  if (next->event == NULL)
    next->notice = *queue_head (self)->notice;
  return TRUE;
}

static void
consume (HeadwayStreamSubscription *self, Next *next)
{
  gboolean is_live = self->phase == PHASE_LIVE;

  if (next->event != NULL)
    headway_subscription_delivered (HEADWAY_SUBSCRIPTION (self), next->event, self->phase == PHASE_REPLAY);
  switch (self->phase)
    {
    case PHASE_REPLAY:
      if (next->step == HEADWAY_REPLAY_NOTICE)
        headway_subscription_count (HEADWAY_SUBSCRIPTION (self), HEADWAY_METRIC_RESYNCS + (guint) next->notice.resync.reason, 1);
      headway_replay_advance (&self->replay, next->step, next->event, &next->notice);
      break;
    case PHASE_REPLAY_COMPLETE:
      self->phase = self->snapshot != NULL ? PHASE_SNAPSHOT : PHASE_LIVE;
      break;
    case PHASE_SNAPSHOT:
      g_clear_pointer (&self->snapshot, headway_event_unref);
      self->phase = PHASE_LIVE;
      break;
    case PHASE_LIVE:
      break;
    default:
      g_assert_not_reached ();
    }
  if (!is_live)
    return;
  if (next->event != NULL)
    {
      self->live_count--;
      self->live_bytes -= headway_event_get_size (next->event);
    }
  queue_remove_head (self);
}

/* Synthetic events get their time when they are read, the snapshot too, whose data was taken with
 * the subscription (sse-contract.md 1.4, decisions.md 39). */
static HeadwayEvent *
next_to_event (HeadwayStreamSubscription *self, const Next *next, HeadwayInstant now)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (HEADWAY_SUBSCRIPTION (self));
  HeadwayPrincipal *system = headway_bus_get_system (priv->bus);
  const char *data;
  gsize length;

  if (next->event == NULL)
    return headway_notice_to_event (&next->notice, priv->last_delivered_id, system, now);
  if (!headway_event_is_synthetic (next->event))
    return headway_event_ref (next->event);
  data = headway_event_get_data (next->event, &length);
  return headway_event_new_synthetic (headway_event_get_type (next->event), data, length, system, now);
}

static guint
stream_take (HeadwaySubscription *subscription,
             HeadwayInstant now,
             guint max_events,
             gsize max_bytes,
             guint64 max_cost,
             HeadwayDelivery *deliveries)
{
  HeadwayStreamSubscription *self = HEADWAY_STREAM_SUBSCRIPTION (subscription);
  guint looks = HEADWAY_DISPATCH_EVENTS;
  gsize bytes = 0;
  guint64 cost = 0;
  guint n = 0;
  Next next;

  while (n < max_events && cost < max_cost && peek (self, &looks, &next))
    {
      gsize size = next.event != NULL ? headway_event_get_size (next.event) : HEADWAY_NOTICE_SIZE_MAX;
      gsize event_cost = next.event != NULL ? headway_event_get_cost (next.event) : 0;
      HeadwayEvent *event;

      if (n > 0 ? bytes + size > max_bytes || cost + event_cost > max_cost : !headway_subscription_fits_first (subscription, size))
        break;
      bytes += size;
      cost += event_cost;
      event = next_to_event (self, &next, now);
      deliveries[n++] = (HeadwayDelivery){ .event = event, .resume_id = headway_event_get_id (event) };
      consume (self, &next);
    }
  return n;
}

static gboolean
stream_is_ready (HeadwaySubscription *subscription)
{
  HeadwayStreamSubscription *self = HEADWAY_STREAM_SUBSCRIPTION (subscription);

  return self->phase != PHASE_LIVE || self->length > 0;
}

static gboolean
stream_is_replaying (HeadwaySubscription *subscription)
{
  return HEADWAY_STREAM_SUBSCRIPTION (subscription)->phase != PHASE_LIVE;
}

static void
stream_finish (HeadwaySubscription *subscription, gboolean drop)
{
  HeadwayStreamSubscription *self = HEADWAY_STREAM_SUBSCRIPTION (subscription);

  if (!drop)
    return;
  /* The books: what a reader left behind is lost to it. */
  headway_subscription_get_private (subscription)->dropped += self->live_count;
  queue_clear (self);
  g_clear_pointer (&self->snapshot, headway_event_unref);
  self->phase = PHASE_LIVE;
}

static void
stream_evict_idle (HeadwaySubscription *subscription, gint64 idle_ms, gint64 timeout_ms)
{
  HeadwayNotice notice = {
    .kind = HEADWAY_NOTICE_EVICTED_IDLE_WRITER,
    .idle_writer = { .idle_ms = idle_ms, .timeout_ms = timeout_ms },
  };

  queue_append (HEADWAY_STREAM_SUBSCRIPTION (subscription), NULL, &notice);
}

static guint
stream_get_queued (HeadwaySubscription *subscription)
{
  return HEADWAY_STREAM_SUBSCRIPTION (subscription)->live_count;
}

static guint64
stream_get_queued_bytes (HeadwaySubscription *subscription)
{
  return HEADWAY_STREAM_SUBSCRIPTION (subscription)->live_bytes;
}

static void
headway_stream_subscription_finalize (GObject *object)
{
  HeadwayStreamSubscription *self = HEADWAY_STREAM_SUBSCRIPTION (object);

  queue_clear (self);
  g_clear_pointer (&self->snapshot, headway_event_unref);
  G_OBJECT_CLASS (headway_stream_subscription_parent_class)->finalize (object);
}

static void
headway_stream_subscription_class_init (HeadwayStreamSubscriptionClass *klass)
{
  HeadwaySubscriptionClass *subscription_class = HEADWAY_SUBSCRIPTION_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = headway_stream_subscription_finalize;
  subscription_class->offer = stream_offer;
  subscription_class->take = stream_take;
  subscription_class->is_ready = stream_is_ready;
  subscription_class->is_replaying = stream_is_replaying;
  subscription_class->finish = stream_finish;
  subscription_class->evict_idle = stream_evict_idle;
  subscription_class->get_queued = stream_get_queued;
  subscription_class->get_queued_bytes = stream_get_queued_bytes;
}

static void
headway_stream_subscription_init (HeadwayStreamSubscription *self)
{
  self->phase = PHASE_LIVE;
}

HeadwaySubscription *
headway_stream_subscription_new (HeadwayBus *bus,
                                 const HeadwaySubscribeOptions *options,
                                 guint number,
                                 HeadwayInstant now)
{
  HeadwayStreamSubscription *self = g_object_new (HEADWAY_TYPE_STREAM_SUBSCRIPTION, NULL);
  const HeadwayBusOptions *bus_options = headway_bus_get_options (bus);

  headway_subscription_setup (HEADWAY_SUBSCRIPTION (self), bus, options, number);
  self->max_queued = options->max_queued;
  self->max_queued_bytes = bus_options->max_queued_bytes;
  if (options->wants_snapshot)
    {
      self->snapshot = headway_bus_new_snapshot (bus, now);
      self->phase = PHASE_SNAPSHOT;
    }
  if (options->cursor.is_set)
    {
      headway_replay_init (&self->replay, &options->cursor, headway_bus_get_ring (bus),
                           headway_bus_get_last_id (bus) + 1, headway_bus_get_epoch (bus),
                           bus_options->replay_budget_bytes);
      self->phase = PHASE_REPLAY;
    }
  return HEADWAY_SUBSCRIPTION (self);
}
