/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-bus.h"

#include "engine/headway-batch-private.h"
#include "engine/headway-broadcast-subscription.h"
#include "engine/headway-bus-private.h"
#include "engine/headway-error.h"
#include "engine/headway-handler-set.h"
#include "engine/headway-observer-list.h"
#include "engine/headway-routed-subscription.h"
#include "engine/headway-stream-subscription.h"
#include "engine/headway-subscription-private.h"
#include "engine/headway-subscription-set.h"

/* An event's way: headway_bus_publish() queues a batch, headway_bus_run() takes it up in order,
 * publish_event() gives the event its id, puts it into the ring and finds who wants it, and each
 * subscription is offered it. Nothing re-enters: a publish from inside another waits in `pending`. */

/* Blocks of ids (decisions.md 4). */
#define ID_BLOCK_MIN     10000
#define ID_BLOCK_SECONDS 10

/* Offers from one step of fetching memory ahead to the next. */
#define PREFETCH_AHEAD 4

struct _HeadwayBus
{
  GObject parent_instance;

  char *name;  /* owned */
  char *epoch; /* owned */
  HeadwayBusOptions options;
  HeadwayPrincipalTable *principals; /* owned */
  guint32 creator;
  gint64 last_used_us;
  HeadwayBusHooks hooks;
  HeadwayHandlerSet *handlers; /* borrowed, nullable: clears itself */

  HeadwayRing *ring; /* owned */
  guint64 last_id;   /* the last id that an event has */
  char *snapshot;    /* owned, nullable: JSON object, `snapshot_json` is a slice of it */
  HeadwayJson snapshot_json;

  GQueue pending; /* HeadwayBatch (owned), in order */
  gboolean is_running;
  gboolean is_closing;
  gboolean must_close;  /* headway_bus_close() came from inside a publish: what waits is refused */
  gboolean is_stopping; /* it closes with headwayd */
  gboolean is_closed;

  HeadwayBusStore *store; /* weak, nullable: every id may be used */
  guint64 granted_id;     /* the last id that may be used */
  guint64 block_size;     /* ids in the last block; the next is asked for when half of them are used */
  gboolean is_reserving;
  guint64 block_start_id; /* for the rate, since the last grant */
  gint64 block_start_us;

  HeadwaySubscriptionSet subscriptions; /* registered */
  GPtrArray *draining;                  /* HeadwaySubscription (borrowed): ended with the bus, maybe unread */
  guint last_number;

  HeadwayObserverList observers;
};

G_DEFINE_FINAL_TYPE (HeadwayBus, headway_bus, G_TYPE_OBJECT)

static void
headway_bus_dispose (GObject *object)
{
  HeadwayBus *self = HEADWAY_BUS (object);

  headway_bus_set_hooks (self, NULL);
  headway_bus_close (self);
  g_clear_weak_pointer (&self->store);
  G_OBJECT_CLASS (headway_bus_parent_class)->dispose (object);
}

static void
headway_bus_finalize (GObject *object)
{
  HeadwayBus *self = HEADWAY_BUS (object);

  headway_observer_list_clear (&self->observers);
  headway_subscription_set_clear (&self->subscriptions);
  g_ptr_array_unref (self->draining);
  headway_ring_free (self->ring);
  headway_principal_table_unref (self->principals);
  g_free (self->snapshot);
  g_free (self->epoch);
  g_free (self->name);
  G_OBJECT_CLASS (headway_bus_parent_class)->finalize (object);
}

static void
headway_bus_class_init (HeadwayBusClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->dispose = headway_bus_dispose;
  object_class->finalize = headway_bus_finalize;
}

static void
headway_bus_init (HeadwayBus *self)
{
  g_queue_init (&self->pending);
  self->creator = G_MAXUINT32;
  self->granted_id = HEADWAY_ID_MAX;
  self->block_size = ID_BLOCK_MIN;
  self->draining = g_ptr_array_new ();
  headway_subscription_set_init (&self->subscriptions);
  headway_observer_list_init (&self->observers);
}

HeadwayBus *
headway_bus_new (const char *name,
                 const char *epoch,
                 guint64 last_id,
                 const HeadwayBusOptions *options,
                 HeadwayPrincipalTable *principals)
{
  HeadwayBus *self = g_object_new (HEADWAY_TYPE_BUS, NULL);

  self->name = g_strdup (name);
  self->epoch = g_strdup (epoch);
  self->last_id = last_id;
  self->options = *options;
  self->principals = headway_principal_table_ref (principals);
  self->ring = headway_ring_new (options->ring_size, options->ring_max_bytes);
  return self;
}

/* --- Publishing ----------------------------------------------------------------------------- */

static void
count_published (HeadwayBus *self, HeadwayEvent *event, HeadwayEventKind kind)
{
  headway_bus_count (self, HEADWAY_METRIC_EVENTS_PUBLISHED + (guint) kind, 1);
  headway_bus_count (self, HEADWAY_METRIC_PUBLISH_BYTES, (gint64) headway_event_get_cost (event));
}

static void
publish_event (HeadwayBus *self, HeadwayEvent *event, HeadwayOutcome *outcome, HeadwayInstant now)
{
  GPtrArray *matches;

  headway_event_set_id (event, ++self->last_id);
  count_published (self, event, headway_event_passes_filters (event) ? HEADWAY_EVENT_KIND_SESSION_CLOSED : HEADWAY_EVENT_KIND_EVENT);
  headway_ring_append (self->ring, event);
  headway_observer_list_notify (&self->observers, self, event, now);
  matches = headway_subscription_set_match (&self->subscriptions, event);
  for (guint i = 0; i < matches->len; i++)
    {
      HeadwayOffer offer;

      if (i + 2 * PREFETCH_AHEAD < matches->len)
        {
          headway_subscription_prefetch (g_ptr_array_index (matches, i + 2 * PREFETCH_AHEAD));
          headway_subscription_prefetch_sink (g_ptr_array_index (matches, i + PREFETCH_AHEAD));
        }
      offer = headway_subscription_offer (g_ptr_array_index (matches, i), event, now);
      outcome->subscriptions += offer.is_admitted ? 1 : 0;
      outcome->refused += offer.is_refused ? 1 : 0;
      outcome->evicted += offer.n_evicted;
    }
  if (self->handlers != NULL)
    headway_handler_set_offer (self->handlers, event, now);
}

/* History that was never here: takes ids, and empties the ring, since a part of it would lie about
 * what is missing (decisions.md 38). */
static void
seed_event (HeadwayBus *self, HeadwayEvent *event)
{
  headway_event_set_id (event, ++self->last_id);
  count_published (self, event, HEADWAY_EVENT_KIND_SEED);
  headway_ring_clear (self->ring);
}

static void
want_ids (HeadwayBus *self, guint64 needed, HeadwayInstant now)
{
  gint64 elapsed_us = now.monotonic_us - self->block_start_us;
  guint64 used = self->last_id - MIN (self->block_start_id, self->last_id);
  guint64 block = ID_BLOCK_MIN;

  if (self->store == NULL || self->is_reserving)
    return;
  if (elapsed_us > 0 && self->block_start_us > 0)
    block = MAX (block, used * ID_BLOCK_SECONDS * G_USEC_PER_SEC / (guint64) elapsed_us);
  self->is_reserving = TRUE;
  headway_bus_store_reserve (self->store, self,
                             MIN (MAX (self->granted_id, self->last_id + needed) + block, HEADWAY_ID_MAX));
}

/* Whether the ids of the whole batch are at hand: all or nothing. */
static gboolean
has_ids (HeadwayBus *self, HeadwayBatch *batch, HeadwayInstant now)
{
  guint64 needed = batch->events->len - batch->next;

  if (self->granted_id < HEADWAY_ID_MAX &&
      (self->last_id + needed > self->granted_id || self->granted_id - self->last_id - needed < self->block_size / 2))
    want_ids (self, needed, now);
  return self->last_id + needed <= self->granted_id;
}

static void
run_pending (HeadwayBus *self, guint budget, HeadwayInstant now)
{
  HeadwayBatch *batch;

  while ((batch = g_queue_peek_head (&self->pending)) != NULL)
    {
      if (batch->next == 0)
        {
          if (!has_ids (self, batch, now))
            return;
          batch->first_id = self->last_id + 1;
        }
      for (; batch->next < batch->events->len && budget > 0; budget--)
        {
          HeadwayEvent *event = g_ptr_array_index (batch->events, batch->next++);
          if (batch->is_seed)
            seed_event (self, event);
          else
            publish_event (self, event, &batch->outcome, now);
        }
      if (batch->next < batch->events->len)
        return;
      headway_batch_finish (g_queue_pop_head (&self->pending), NULL);
      if (self->must_close)
        return;
    }
}

static gboolean
bus_run (HeadwayBus *self, guint budget, HeadwayInstant now)
{
  g_autoptr (HeadwayBus) guard = NULL;
  HeadwayBatch *first;

  if (self->is_running)
    return FALSE;
  /* Whoever is answered may drop the bus. */
  guard = g_object_ref (self);
  self->is_running = TRUE;
  run_pending (self, budget, now);
  self->is_running = FALSE;
  if (self->must_close || (self->is_closing && g_queue_is_empty (&self->pending)))
    headway_bus_close (self);
  first = g_queue_peek_head (&self->pending);
  return first != NULL && (first->next > 0 || has_ids (self, first, now));
}

gboolean
headway_bus_run (HeadwayBus *self, HeadwayInstant now)
{
  return bus_run (self, HEADWAY_DISPATCH_EVENTS, now);
}

static void
run_or_ask (HeadwayBus *self, HeadwayInstant now)
{
  if (headway_bus_run (self, now) && self->hooks.work != NULL)
    self->hooks.work (self, self->hooks.data);
}

GError *
headway_bus_new_closed_error (HeadwayBus *self, const char *what)
{
  if (self->is_stopping)
    return headway_error_new_stopping ();
  return g_error_new (HEADWAY_ERROR, HEADWAY_ERROR_CLOSED, "bus \"%s\"%s", self->name, what);
}

void
headway_bus_publish (HeadwayBus *self, HeadwayBatch *batch, HeadwayInstant now)
{
  g_return_if_fail (batch->events->len > 0);

  if (self->is_closed || self->is_closing)
    {
      g_autoptr (GError) error = headway_bus_new_closed_error (self, " is closed");
      headway_batch_finish (batch, error);
      return;
    }
  self->last_used_us = now.monotonic_us;
  batch->queued_us = now.monotonic_us;
  g_queue_push_tail (&self->pending, batch);
  if (self->pending.length == 1 && !self->is_running)
    run_or_ask (self, now);
}

/* @error: (transfer full). */
static void
bus_fail_pending (HeadwayBus *self, GError *error)
{
  g_autoptr (GError) owned = error;
  HeadwayBatch *begun = NULL;
  HeadwayBatch *batch = g_queue_peek_head (&self->pending);
  GQueue failed;

  /* One that has begun is published to its end: all or nothing. */
  if (batch != NULL && batch->next > 0)
    begun = g_queue_pop_head (&self->pending);
  failed = self->pending;
  g_queue_init (&self->pending);
  if (begun != NULL)
    g_queue_push_head (&self->pending, begun);
  while ((batch = g_queue_pop_head (&failed)) != NULL)
    headway_batch_finish (batch, error);
}

/* --- Ids in blocks -------------------------------------------------------------------------- */

void
headway_bus_set_store (HeadwayBus *self, HeadwayBusStore *store, guint64 granted_id)
{
  g_set_weak_pointer (&self->store, store);
  self->granted_id = granted_id;
}

void
headway_bus_request_ids (HeadwayBus *self, HeadwayInstant now)
{
  want_ids (self, 0, now);
}

void
headway_bus_grant_ids (HeadwayBus *self, guint64 up_to, HeadwayInstant now)
{
  self->is_reserving = FALSE;
  if (up_to > self->granted_id)
    {
      self->block_size = MAX (up_to - self->granted_id, ID_BLOCK_MIN);
      self->granted_id = up_to;
    }
  self->block_start_id = self->last_id;
  self->block_start_us = now.monotonic_us;
  run_or_ask (self, now);
}

void
headway_bus_refuse_ids (HeadwayBus *self, const char *reason)
{
  self->is_reserving = FALSE;
  if (headway_bus_is_waiting_for_ids (self))
    bus_fail_pending (self, g_error_new (HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE, "bus \"%s\": %s", self->name, reason));
  /* `session_closed` could not be said; the bus closes all the same. */
  if (self->is_closing && g_queue_is_empty (&self->pending))
    headway_bus_close (self);
}

guint64
headway_bus_get_granted_id (HeadwayBus *self)
{
  return self->granted_id;
}

gboolean
headway_bus_is_reserving_ids (HeadwayBus *self)
{
  return self->is_reserving;
}

gboolean
headway_bus_is_waiting_for_ids (HeadwayBus *self)
{
  return headway_bus_get_waiting_since_us (self) > 0;
}

gint64
headway_bus_get_waiting_since_us (HeadwayBus *self)
{
  HeadwayBatch *batch = g_queue_peek_head (&self->pending);

  if (batch == NULL || batch->next > 0 || self->last_id + batch->events->len <= self->granted_id)
    return 0;
  return batch->queued_us;
}

/* --- Subscribing ---------------------------------------------------------------------------- */

void
headway_bus_unregister (HeadwayBus *self, HeadwaySubscription *subscription)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (subscription);

  if (!priv->is_registered)
    return;
  priv->is_registered = FALSE;
  headway_subscription_set_remove (&self->subscriptions, subscription);
}

void
headway_bus_forget_subscription (HeadwayBus *self, HeadwaySubscription *subscription)
{
  g_ptr_array_remove_fast (self->draining, subscription);
}

static gboolean
check_subscribe (HeadwayBus *self, const HeadwaySubscribeOptions *options, GError **error)
{
  guint n_subscribers = headway_subscription_set_size (&self->subscriptions);

  if (options->mode == HEADWAY_MODE_ROUTED && !headway_route_options_check (&options->route, error))
    return FALSE;
  if (options->mode != HEADWAY_MODE_ROUTED && options->scope.kind != HEADWAY_SCOPE_ALL)
    {
      g_set_error_literal (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION, "scope needs mode \"routed\"");
      return FALSE;
    }
  if (options->max_queued < 1 || options->max_queued > HEADWAY_MAX_QUEUED_MAX)
    {
      headway_set_error_with_limit (error, HEADWAY_ERROR_INVALID_OPTION, HEADWAY_MAX_QUEUED_MAX,
                                    "max-queued is %u, allowed is 1 to %d",
                                    options->max_queued, HEADWAY_MAX_QUEUED_MAX);
      return FALSE;
    }
  if (n_subscribers >= self->options.max_subscribers)
    {
      headway_set_error_with_limit (error, HEADWAY_ERROR_SUBSCRIBER_LIMIT, self->options.max_subscribers,
                                    "bus \"%s\" has %u subscribers, at most %u are allowed",
                                    self->name, n_subscribers, self->options.max_subscribers);
      return FALSE;
    }
  return TRUE;
}

static HeadwaySubscription *
new_subscription (HeadwayBus *self, const HeadwaySubscribeOptions *options, guint number, HeadwayInstant now)
{
  switch (options->mode)
    {
    case HEADWAY_MODE_ROUTED:
      return headway_routed_subscription_new (self, options, number, now);
    case HEADWAY_MODE_BROADCAST:
      return headway_broadcast_subscription_new (self, options, number, now);
    case HEADWAY_MODE_STREAM:
      return headway_stream_subscription_new (self, options, number, now);
    default:
      g_return_val_if_reached (NULL);
    }
}

HeadwaySubscription *
headway_bus_subscribe (HeadwayBus *self,
                       const HeadwaySubscribeOptions *options,
                       HeadwayInstant now,
                       GError **error)
{
  HeadwaySubscription *subscription;
  guint number;

  if (!check_subscribe (self, options, error))
    return NULL;

  number = self->hooks.next_number != NULL ? self->hooks.next_number (self->hooks.data) : ++self->last_number;
  subscription = new_subscription (self, options, number, now);
  self->last_used_us = now.monotonic_us;
  if (self->is_closed)
    {
      headway_subscription_abort (subscription);
      return subscription;
    }
  headway_subscription_get_private (subscription)->is_registered = TRUE;
  headway_subscription_set_add (&self->subscriptions, subscription);
  return subscription;
}

/* --- Closing -------------------------------------------------------------------------------- */

void
headway_bus_close (HeadwayBus *self)
{
  g_autoptr (GPtrArray) subscriptions = NULL;
  HeadwayBatch *batch;

  if (self->is_closed)
    return;
  self->is_closing = TRUE;
  /* From inside a publish: bus_run() closes when that has ended. */
  self->must_close = TRUE;
  if (self->is_running)
    return;
  bus_fail_pending (self, headway_bus_new_closed_error (self, ": closed while the publish waited"));
  batch = g_queue_peek_head (&self->pending);
  if (batch != NULL)
    {
      HeadwayInstant queued = { .monotonic_us = batch->queued_us };
      self->is_running = TRUE;
      run_pending (self, G_MAXUINT, queued);
      self->is_running = FALSE;
    }
  /* An answer to a refused publish may have closed it meanwhile. */
  if (self->is_closed)
    return;
  self->is_closed = TRUE;

  subscriptions = headway_subscription_set_list (&self->subscriptions);
  for (guint i = 0; i < subscriptions->len; i++)
    {
      HeadwaySubscription *subscription = g_ptr_array_index (subscriptions, i);
      g_ptr_array_add (self->draining, subscription);
      headway_subscription_end (subscription, FALSE);
    }
  if (self->hooks.closed != NULL)
    self->hooks.closed (self, self->hooks.data);
}

void
headway_bus_stop (HeadwayBus *self)
{
  self->is_stopping = self->is_stopping || !self->is_closing;
  headway_bus_close (self);
}

void
headway_bus_close_session (HeadwayBus *self, HeadwayInstant now)
{
  HeadwayBatch *batch;

  if (self->is_closed || self->is_closing)
    return;
  batch = headway_batch_new (1, NULL, NULL);
  headway_batch_add (batch, headway_event_new_session_closed (
                              self->name, headway_principal_table_get_system (self->principals), now));
  batch->queued_us = now.monotonic_us;
  self->is_closing = TRUE;
  g_queue_push_tail (&self->pending, batch);
  run_or_ask (self, now);
}

gboolean
headway_bus_is_closed (HeadwayBus *self)
{
  return self->is_closed;
}

gboolean
headway_bus_is_closing (HeadwayBus *self)
{
  return self->is_closing;
}

gboolean
headway_bus_is_drained (HeadwayBus *self)
{
  for (guint i = 0; i < self->draining->len; i++)
    if (!headway_subscription_is_finished (g_ptr_array_index (self->draining, i)))
      return FALSE;
  return TRUE;
}

/* --- Observers ------------------------------------------------------------------------------ */

guint
headway_bus_add_observer (HeadwayBus *self, HeadwayObserver func, gpointer user_data, GDestroyNotify destroy)
{
  return headway_observer_list_add (&self->observers, func, user_data, destroy);
}

void
headway_bus_remove_observer (HeadwayBus *self, guint observer)
{
  headway_observer_list_remove (&self->observers, observer);
}

/* --- What it is ----------------------------------------------------------------------------- */

void
headway_bus_set_hooks (HeadwayBus *self, const HeadwayBusHooks *hooks)
{
  self->hooks = hooks != NULL ? *hooks : (HeadwayBusHooks){ 0 };
}

void
headway_bus_set_handlers (HeadwayBus *self, HeadwayHandlerSet *handlers)
{
  self->handlers = handlers;
}

HeadwayHandlerSet *
headway_bus_get_handlers (HeadwayBus *self)
{
  return self->handlers;
}

void
headway_bus_count (HeadwayBus *self, guint series, gint64 amount)
{
  if (self->hooks.metrics != NULL)
    headway_metrics_add (self->hooks.metrics, series, amount);
}

void
headway_bus_report_loss (HeadwayBus *self, guint32 uid, HeadwayPrincipal *principal, HeadwayInstant now)
{
  if (self->hooks.lost != NULL)
    self->hooks.lost (self, uid, principal, now, self->hooks.data);
}

const char *
headway_bus_get_name (HeadwayBus *self)
{
  return self->name;
}

const char *
headway_bus_get_epoch (HeadwayBus *self)
{
  return self->epoch;
}

const HeadwayBusOptions *
headway_bus_get_options (HeadwayBus *self)
{
  return &self->options;
}

HeadwayRing *
headway_bus_get_ring (HeadwayBus *self)
{
  return self->ring;
}

HeadwayPrincipal *
headway_bus_get_system (HeadwayBus *self)
{
  return headway_principal_table_get_system (self->principals);
}

guint64
headway_bus_get_last_id (HeadwayBus *self)
{
  return self->last_id;
}

guint
headway_bus_get_subscriber_count (HeadwayBus *self)
{
  return headway_subscription_set_size (&self->subscriptions);
}

GPtrArray *
headway_bus_list_subscriptions (HeadwayBus *self)
{
  return headway_subscription_set_list (&self->subscriptions);
}

guint32
headway_bus_get_creator (HeadwayBus *self)
{
  return self->creator;
}

void
headway_bus_set_creator (HeadwayBus *self, guint32 uid)
{
  self->creator = uid;
}

gint64
headway_bus_get_last_used_us (HeadwayBus *self)
{
  return self->last_used_us;
}

void
headway_bus_touch (HeadwayBus *self, HeadwayInstant now)
{
  self->last_used_us = now.monotonic_us;
}

gboolean
headway_bus_set_snapshot (HeadwayBus *self, const char *text, gsize length, guint64 max_bytes, GError **error)
{
  g_autofree char *copy = NULL;
  HeadwayJson json = { 0 };

  if (text != NULL && (copy = headway_notice_copy_snapshot (text, length, max_bytes, &json, error)) == NULL)
    return FALSE;
  g_free (self->snapshot);
  self->snapshot = g_steal_pointer (&copy);
  self->snapshot_json = json;
  return TRUE;
}

HeadwayEvent *
headway_bus_new_snapshot (HeadwayBus *self, HeadwayInstant now)
{
  return headway_notice_snapshot (self->name, self->snapshot != NULL ? &self->snapshot_json : NULL,
                                  headway_bus_get_system (self), now);
}
