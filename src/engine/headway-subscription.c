/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-bus-private.h"
#include "engine/headway-error.h"
#include "engine/headway-subscription-private.h"

#include <string.h>

G_DEFINE_ABSTRACT_TYPE_WITH_PRIVATE (HeadwaySubscription, headway_subscription, G_TYPE_OBJECT)

HeadwaySubscriptionPrivate *
headway_subscription_get_private (HeadwaySubscription *self)
{
  return headway_subscription_get_instance_private (self);
}

static void
headway_subscription_dispose (GObject *object)
{
  HeadwaySubscription *self = HEADWAY_SUBSCRIPTION (object);
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (self);

  headway_subscription_abort (self);
  priv->sink = NULL;
  if (priv->bus != NULL)
    headway_bus_forget_subscription (priv->bus, self);
  g_clear_object (&priv->bus);
  G_OBJECT_CLASS (headway_subscription_parent_class)->dispose (object);
}

static void
headway_subscription_finalize (GObject *object)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (HEADWAY_SUBSCRIPTION (object));

  g_clear_pointer (&priv->filter, headway_filter_unref);
  g_clear_pointer (&priv->gate, headway_gate_unref);
  g_clear_pointer (&priv->scope.principal, headway_principal_unref);
  g_free (priv->owner);
  G_OBJECT_CLASS (headway_subscription_parent_class)->finalize (object);
}

static void
headway_subscription_class_init (HeadwaySubscriptionClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->dispose = headway_subscription_dispose;
  object_class->finalize = headway_subscription_finalize;
}

static void
headway_subscription_init (HeadwaySubscription *self)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (self);

  priv->sink_kind = "none";
  priv->first_max = G_MAXSIZE;
  priv->subscriber = HEADWAY_SUBSCRIBER_OTHER;
  priv->uid = G_MAXUINT32;
}

void
headway_subscribe_options_init (HeadwaySubscribeOptions *options)
{
  HeadwayLimits limits;

  *options = (HeadwaySubscribeOptions){
    .mode = HEADWAY_MODE_STREAM,
    .max_queued = HEADWAY_MAX_QUEUED_DEFAULT,
  };
  headway_limits_init (&limits);
  headway_route_options_init (&options->route, &limits);
}

void
headway_subscription_setup (HeadwaySubscription *self,
                            HeadwayBus *bus,
                            const HeadwaySubscribeOptions *options,
                            guint number)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (self);

  priv->bus = g_object_ref (bus);
  priv->mode = options->mode;
  priv->filter = options->filter != NULL ? headway_filter_ref (options->filter)
                                         : headway_filter_new (NULL, NULL, NULL);
  priv->gate = options->gate != NULL ? headway_gate_ref (options->gate) : NULL;
  priv->scope = options->scope;
  if (priv->scope.principal != NULL)
    headway_principal_ref (priv->scope.principal);
  priv->is_selective = priv->gate != NULL || priv->scope.kind != HEADWAY_SCOPE_ALL ||
                       headway_filter_get_types (priv->filter)[0] != NULL;
  priv->number = number;
  /* An event that is just being published belongs to what was before: a replay has it. */
  priv->stamp = headway_bus_get_last_id (bus);
  priv->last_delivered_id = options->cursor.is_set ? options->cursor.last_event_id : 0;
  priv->joined_id = options->cursor.is_set ? MIN (options->cursor.last_event_id, priv->stamp) : priv->stamp;
}

void
headway_subscription_prefetch (HeadwaySubscription *self)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (self);

  __builtin_prefetch (&priv->subscriber, TRUE);
  __builtin_prefetch (self, TRUE);
}

void
headway_subscription_prefetch_sink (HeadwaySubscription *self)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (self);

  __builtin_prefetch (priv->sink, TRUE);
  __builtin_prefetch ((const char *) priv->sink + HEADWAY_CACHE_LINE, TRUE);
}

static gboolean
is_selected (HeadwaySubscriptionPrivate *priv, HeadwayEvent *event)
{
  /* Before cost, budget and wake-up: what is not admitted takes nothing from anybody (routing.md 1.6). */
  if (priv->gate != NULL && !headway_gate_is_open (priv->gate))
    return FALSE;
  return headway_scope_admits (&priv->scope, event) && headway_filter_matches_type (priv->filter, event);
}

HeadwayOffer
headway_subscription_offer (HeadwaySubscription *self, HeadwayEvent *event, HeadwayInstant now)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (self);
  guint64 id = headway_event_get_id (event);

  if (!priv->is_registered || priv->stamp == id)
    return (HeadwayOffer){ 0 };
  priv->stamp = id;
  if (priv->is_selective && !is_selected (priv, event))
    return (HeadwayOffer){ 0 };
  priv->admitted++;
  return HEADWAY_SUBSCRIPTION_GET_CLASS (self)->offer (self, event, now);
}

gboolean
headway_subscription_put (HeadwaySubscription *self, HeadwayEvent *event, guint64 resume_id)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (self);

  return priv->sink != NULL && priv->sink->klass->put (priv->sink, event, resume_id);
}

void
headway_subscription_wake (HeadwaySubscription *self)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (self);

  if (priv->sink != NULL)
    priv->sink->klass->wake (priv->sink);
}

void
headway_subscription_delivered (HeadwaySubscription *self, HeadwayEvent *event, gboolean is_replayed)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (self);

  if (headway_event_is_synthetic (event))
    return;
  priv->admitted += is_replayed ? 1 : 0;
  priv->delivered++;
  headway_subscription_count (self, HEADWAY_METRIC_EVENTS_DELIVERED + (guint) priv->subscriber, 1);
  priv->last_delivered_id = headway_event_get_id (event);
}

void
headway_subscription_count (HeadwaySubscription *self, guint series, guint64 amount)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (self);

  if (priv->bus != NULL)
    headway_bus_count (priv->bus, series, (gint64) amount);
}

void
headway_subscription_report_loss (HeadwaySubscription *self, HeadwayEvent *event, HeadwayInstant now)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (self);

  headway_bus_report_loss (priv->bus, priv->uid, event != NULL ? headway_event_get_principal (event) : NULL, now);
}

void
headway_subscription_end (HeadwaySubscription *self, gboolean is_evicted)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (self);

  if (priv->is_ended)
    return;
  priv->is_ended = TRUE;
  priv->is_evicted = is_evicted;
  headway_bus_unregister (priv->bus, self);
  headway_subscription_wake (self);
}

guint
headway_subscription_take (HeadwaySubscription *self,
                           HeadwayInstant now,
                           guint max_events,
                           gsize max_bytes,
                           HeadwayDelivery *deliveries)
{
  g_return_val_if_fail (max_events > 0, 0);

  return HEADWAY_SUBSCRIPTION_GET_CLASS (self)->take (self, now, max_events, max_bytes, G_MAXUINT64, deliveries);
}

guint
headway_subscription_drain (HeadwaySubscription *self,
                            HeadwayInstant now,
                            guint64 max_cost,
                            guint max_events,
                            gsize max_bytes,
                            HeadwayDelivery *deliveries)
{
  g_return_val_if_fail (max_cost > 0 && max_events > 0, 0);

  return HEADWAY_SUBSCRIPTION_GET_CLASS (self)->take (self, now, max_events, max_bytes, max_cost, deliveries);
}

gboolean
headway_subscription_fits_first (HeadwaySubscription *self, gsize size)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (self);

  if (size <= priv->first_max)
    return TRUE;
  priv->is_first_too_large = TRUE;
  return FALSE;
}

gboolean
headway_subscription_take_one (HeadwaySubscription *self,
                               HeadwayInstant now,
                               gsize max_bytes,
                               HeadwayDelivery *delivery,
                               gboolean *is_too_large)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (self);
  guint n;

  priv->first_max = max_bytes;
  priv->is_first_too_large = FALSE;
  n = headway_subscription_take (self, now, 1, max_bytes, delivery);
  priv->first_max = G_MAXSIZE;
  *is_too_large = priv->is_first_too_large;
  return n > 0;
}

gboolean
headway_subscription_is_ready (HeadwaySubscription *self)
{
  return HEADWAY_SUBSCRIPTION_GET_CLASS (self)->is_ready (self);
}

gboolean
headway_subscription_is_finished (HeadwaySubscription *self)
{
  return headway_subscription_get_private (self)->is_ended && !headway_subscription_is_ready (self);
}

gboolean
headway_subscription_attach (HeadwaySubscription *self, HeadwaySink *sink, GError **error)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (self);

  if (priv->sink != NULL)
    {
      g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_BUSY,
                   "subscription %u already has a reader, one is allowed", priv->number);
      return FALSE;
    }
  priv->sink = sink;
  return TRUE;
}

void
headway_subscription_detach (HeadwaySubscription *self, HeadwaySink *sink)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (self);

  if (priv->sink == sink)
    priv->sink = NULL;
}

void
headway_subscription_abort (HeadwaySubscription *self)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (self);

  if (priv->bus == NULL)
    return;
  /* The reader itself leaves: it need not be woken. */
  priv->sink = NULL;
  headway_subscription_end (self, FALSE);
  HEADWAY_SUBSCRIPTION_GET_CLASS (self)->finish (self, TRUE);
}

void
headway_subscription_close (HeadwaySubscription *self)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (self);

  if (priv->is_ended)
    return;
  HEADWAY_SUBSCRIPTION_GET_CLASS (self)->finish (self, FALSE);
  headway_subscription_end (self, FALSE);
}

void
headway_subscription_evict_idle (HeadwaySubscription *self, gint64 idle_ms, gint64 timeout_ms)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (self);

  if (priv->is_ended)
    return;
  headway_subscription_count (self, headway_metric_stream_evictions (priv->subscriber, HEADWAY_EVICTION_WRITER_IDLE_TIMEOUT), 1);
  HEADWAY_SUBSCRIPTION_GET_CLASS (self)->evict_idle (self, idle_ms, timeout_ms);
  headway_subscription_end (self, TRUE);
}

HeadwayBus *
headway_subscription_get_bus (HeadwaySubscription *self)
{
  return headway_subscription_get_private (self)->bus;
}

HeadwayFilter *
headway_subscription_get_filter (HeadwaySubscription *self)
{
  return headway_subscription_get_private (self)->filter;
}

HeadwayMode
headway_subscription_get_mode (HeadwaySubscription *self)
{
  return headway_subscription_get_private (self)->mode;
}

HeadwayState
headway_subscription_get_state (HeadwaySubscription *self)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (self);

  if (priv->is_ended)
    return priv->is_evicted ? HEADWAY_STATE_EVICTED : HEADWAY_STATE_ENDED;
  return HEADWAY_SUBSCRIPTION_GET_CLASS (self)->is_replaying (self) ? HEADWAY_STATE_REPLAYING : HEADWAY_STATE_LIVE;
}

guint
headway_subscription_get_queued (HeadwaySubscription *self)
{
  return HEADWAY_SUBSCRIPTION_GET_CLASS (self)->get_queued (self);
}

guint64
headway_subscription_get_queued_bytes (HeadwaySubscription *self)
{
  return HEADWAY_SUBSCRIPTION_GET_CLASS (self)->get_queued_bytes (self);
}

guint64
headway_subscription_get_dropped (HeadwaySubscription *self)
{
  return headway_subscription_get_private (self)->dropped;
}

guint64
headway_subscription_drain_lagged (HeadwaySubscription *self)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (self);
  guint64 lagged = priv->dropped - priv->drained_dropped;

  priv->drained_dropped = priv->dropped;
  return lagged;
}

guint64
headway_subscription_get_lag (HeadwaySubscription *self)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (self);
  HeadwaySubscriptionClass *klass = HEADWAY_SUBSCRIPTION_GET_CLASS (self);
  guint64 last_id;

  if (klass->get_lag != NULL)
    return klass->get_lag (self);
  if (priv->bus == NULL || klass->get_queued (self) == 0)
    return 0;
  last_id = headway_bus_get_last_id (priv->bus);
  /* Who has read nothing yet has come late; a cursor of another life of the bus says nothing. */
  return last_id - (priv->last_delivered_id <= last_id ? MAX (priv->last_delivered_id, priv->joined_id) : priv->joined_id);
}

guint64
headway_subscription_get_gaps_told (HeadwaySubscription *self)
{
  return headway_subscription_get_private (self)->gaps_told;
}

void
headway_subscription_get_route_stats (HeadwaySubscription *self, HeadwayRouteStats *stats)
{
  HeadwaySubscriptionClass *klass = HEADWAY_SUBSCRIPTION_GET_CLASS (self);

  *stats = (HeadwayRouteStats){ 0 };
  if (klass->get_route_stats != NULL)
    klass->get_route_stats (self, stats);
}

guint
headway_subscription_get_active_principals (HeadwaySubscription *self)
{
  HeadwayRouteStats stats;

  headway_subscription_get_route_stats (self, &stats);
  return stats.active_principals;
}

guint64
headway_subscription_get_starved (HeadwaySubscription *self)
{
  HeadwayRouteStats stats;
  guint64 starved = 0;

  headway_subscription_get_route_stats (self, &stats);
  for (guint i = 0; i < HEADWAY_N_PRINCIPAL_CLASSES; i++)
    starved += stats.starved[i];
  return starved;
}

static int
compare_stats (gconstpointer a, gconstpointer b)
{
  const HeadwayPrincipalStat *first = a;
  const HeadwayPrincipalStat *second = b;

  if (first->bytes != second->bytes)
    return first->bytes > second->bytes ? -1 : 1;
  return strcmp (headway_principal_get_name (first->principal), headway_principal_get_name (second->principal));
}

static void
clear_stat (gpointer data)
{
  headway_principal_unref (((HeadwayPrincipalStat *) data)->principal);
}

GArray *
headway_subscription_list_principals (HeadwaySubscription *self)
{
  HeadwaySubscriptionClass *klass = HEADWAY_SUBSCRIPTION_GET_CLASS (self);
  GArray *stats = g_array_new (FALSE, FALSE, sizeof (HeadwayPrincipalStat));

  g_array_set_clear_func (stats, clear_stat);
  if (klass->list_principals == NULL)
    return stats;
  klass->list_principals (self, stats);
  g_array_sort (stats, compare_stats);
  if (stats->len > HEADWAY_PRINCIPALS_LISTED)
    g_array_set_size (stats, HEADWAY_PRINCIPALS_LISTED);
  return stats;
}

guint64
headway_subscription_get_admitted (HeadwaySubscription *self)
{
  return headway_subscription_get_private (self)->admitted;
}

guint64
headway_subscription_get_delivered (HeadwaySubscription *self)
{
  return headway_subscription_get_private (self)->delivered;
}

guint64
headway_subscription_get_last_delivered_id (HeadwaySubscription *self)
{
  return headway_subscription_get_private (self)->last_delivered_id;
}

void
headway_subscription_set_owner (HeadwaySubscription *self, const char *owner, guint32 uid)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (self);
  g_autofree char *old = priv->owner;

  priv->owner = g_strdup (owner);
  priv->uid = uid;
}

void
headway_subscription_set_sink_kind (HeadwaySubscription *self, const char *sink_kind)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (self);

  priv->sink_kind = sink_kind;
  priv->subscriber = headway_subscriber_class_of (sink_kind);
}

const char *
headway_subscription_get_owner (HeadwaySubscription *self)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (self);

  return priv->owner != NULL ? priv->owner : "";
}

guint32
headway_subscription_get_uid (HeadwaySubscription *self)
{
  return headway_subscription_get_private (self)->uid;
}

const char *
headway_subscription_get_sink_kind (HeadwaySubscription *self)
{
  return headway_subscription_get_private (self)->sink_kind;
}

guint
headway_subscription_get_number (HeadwaySubscription *self)
{
  return headway_subscription_get_private (self)->number;
}
