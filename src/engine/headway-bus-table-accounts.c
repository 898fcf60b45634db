/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-bus-table.h"

#include "engine/headway-batch-private.h"
#include "engine/headway-bus-private.h"
#include "engine/headway-bus-table-private.h"
#include "engine/headway-decision.h"
#include "engine/headway-dispatcher-private.h"
#include "engine/headway-error.h"
#include "engine/headway-ring.h"

/* What all buses of a table are measured by: the rates of publishers, the metrics, the security log. */

/* After so long there may be room again before the handlers of phase `pre`. */
#define DECISION_WAIT_US 5000

/* --- Publishing ----------------------------------------------------------------------------- */

/* What handlers of phase `pre` may have to say about it comes first. */
static void
publish (HeadwayBus *bus, guint32 uid, HeadwayBatch *batch, HeadwayInstant now)
{
  HeadwayHandlerSet *handlers = headway_bus_get_handlers (bus);

  if (handlers != NULL && headway_decision_may_wait (handlers) && !headway_bus_is_closed (bus) && !headway_bus_is_closing (bus))
    headway_decision_submit (handlers, uid, batch, now);
  else
    headway_bus_publish (bus, batch, now);
}

void
headway_bus_table_publish (HeadwayBusTable *self, HeadwayBus *bus, guint32 uid, HeadwayBatch *batch, HeadwayInstant now)
{
  g_autoptr (GError) error = NULL;

  /* What comes too late is answered by the bus, and costs nothing. */
  if (headway_bus_is_closed (bus) || headway_bus_is_closing (bus) ||
      headway_rate_limiter_charge_batch (headway_bus_table_get_limiter (self), headway_bus_table_get_limits (self), bus, batch, uid, now, &error))
    publish (bus, uid, batch, now);
  else
    headway_batch_finish (batch, error);
}

gint64
headway_bus_table_get_wait_us (HeadwayBusTable *self, HeadwayBus *bus, guint32 uid, const HeadwayBatch *batch, HeadwayInstant now)
{
  HeadwayHandlerSet *handlers = headway_bus_get_handlers (bus);
  gint64 wait_us;

  if (headway_bus_is_closed (bus) || headway_bus_is_closing (bus))
    return 0;
  wait_us = headway_rate_limiter_batch_wait_us (headway_bus_table_get_limiter (self), headway_bus_table_get_limits (self), bus, batch, uid, now);
  if (wait_us == 0 && handlers != NULL && !headway_decision_has_room (handlers, uid, batch))
    wait_us = DECISION_WAIT_US;
  return wait_us;
}

static gboolean
fits (guint64 amount, guint64 rate)
{
  return rate == 0 || amount <= rate;
}

gboolean
headway_bus_table_fits_rates (HeadwayBusTable *self, guint64 bytes, guint events)
{
  const HeadwayLimits *limits = headway_bus_table_get_limits (self);

  return fits (bytes, limits->principal_bytes_per_second) && fits (bytes, limits->uid_bytes_per_second) &&
         fits (events, limits->principal_events_per_second) && fits (events, limits->uid_events_per_second);
}

/* FALSE: of no interest to who guards the machine. */
static gboolean
security_kind_of (const GError *error, HeadwaySecurityKind *kind)
{
  if (g_error_matches (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_DATA))
    *kind = HEADWAY_SECURITY_MALFORMED;
  else if (g_error_matches (error, HEADWAY_ERROR, HEADWAY_ERROR_NOT_AUTHORIZED))
    *kind = HEADWAY_SECURITY_NOT_AUTHORIZED;
  else if (g_error_matches (error, HEADWAY_ERROR, HEADWAY_ERROR_TOO_LARGE))
    *kind = HEADWAY_SECURITY_TOO_LARGE;
  else if (g_error_matches (error, HEADWAY_ERROR, HEADWAY_ERROR_RATE_LIMITED))
    *kind = HEADWAY_SECURITY_RATE_LIMITED;
  else if (g_error_matches (error, HEADWAY_ERROR, HEADWAY_ERROR_QUOTA_EXCEEDED))
    *kind = HEADWAY_SECURITY_QUOTA_EXCEEDED;
  else
    return FALSE;
  return TRUE;
}

void
headway_bus_table_add_refusal (HeadwayBusTable *self,
                               const char *bus_name,
                               guint32 uid,
                               HeadwayPrincipal *principal,
                               const GError *error,
                               HeadwayInstant now)
{
  const char *name = principal != NULL ? headway_principal_get_name (principal) : NULL;
  HeadwaySecurityKind kind;

  headway_metrics_add_rejected (headway_bus_table_get_metrics (self), error);
  if (security_kind_of (error, &kind))
    headway_bus_table_add_security (self, kind, bus_name, uid, name, now);
}

void
headway_bus_table_add_security (HeadwayBusTable *self,
                                HeadwaySecurityKind kind,
                                const char *bus_name,
                                guint32 uid,
                                const char *principal,
                                HeadwayInstant now)
{
  HeadwaySecurityLog *log = headway_bus_table_get_security_log (self);

  headway_metrics_add (headway_bus_table_get_metrics (self), HEADWAY_METRIC_SECURITY_EVENTS + (guint) kind, 1);
  if (log != NULL)
    headway_security_log_add (log, kind, uid, principal, bus_name, now);
}

/* --- Metrics -------------------------------------------------------------------------------- */

static void
collect_subscription (HeadwayMetrics *metrics, HeadwaySubscription *subscription)
{
  guint mode = (guint) headway_subscription_get_mode (subscription);
  guint subscriber = (guint) headway_subscriber_class_of (headway_subscription_get_sink_kind (subscription));
  HeadwayRouteStats route;

  headway_metrics_add (metrics, HEADWAY_METRIC_SUBSCRIPTIONS + mode, 1);
  headway_metrics_add (metrics, HEADWAY_METRIC_QUEUED_EVENTS + mode, headway_subscription_get_queued (subscription));
  headway_metrics_add (metrics, HEADWAY_METRIC_QUEUED_BYTES + mode,
                       (gint64) headway_subscription_get_queued_bytes (subscription));
  headway_subscription_get_route_stats (subscription, &route);
  headway_metrics_add (metrics, HEADWAY_METRIC_ROUTE_ACTIVE_PRINCIPALS + subscriber, route.active_principals);
  headway_metrics_add (metrics, HEADWAY_METRIC_ROUTE_BYTES + subscriber, (gint64) route.bytes);
}

static void
collect_bus (HeadwayMetrics *metrics, HeadwayBus *bus)
{
  g_autoptr (GPtrArray) subscriptions = headway_bus_list_subscriptions (bus);
  HeadwayRing *ring = headway_bus_get_ring (bus);

  headway_metrics_add (metrics, HEADWAY_METRIC_RING_EVENTS, headway_ring_get_length (ring));
  headway_metrics_add (metrics, HEADWAY_METRIC_RING_BYTES, (gint64) headway_ring_get_bytes (ring));
  for (guint i = 0; i < subscriptions->len; i++)
    collect_subscription (metrics, g_ptr_array_index (subscriptions, i));
}

void
headway_bus_table_collect (HeadwayBusTable *self)
{
  HeadwayMetrics *metrics = headway_bus_table_get_metrics (self);
  HeadwayRateLimiter *limiter = headway_bus_table_get_limiter (self);
  g_autoptr (GPtrArray) buses = headway_bus_table_list_all (self);

  for (guint i = HEADWAY_METRIC_SUBSCRIPTIONS; i <= HEADWAY_METRIC_RING_BYTES; i++)
    headway_metrics_set (metrics, i, 0);
  for (guint i = HEADWAY_METRIC_ROUTE_ACTIVE_PRINCIPALS; i < HEADWAY_METRIC_DISPATCH_DROPS; i++)
    headway_metrics_set (metrics, i, 0);
  for (guint i = 0; i < buses->len; i++)
    collect_bus (metrics, g_ptr_array_index (buses, i));
  headway_metrics_set (metrics, HEADWAY_METRIC_BUSES, buses->len);
  headway_metrics_set (metrics, HEADWAY_METRIC_PRINCIPALS, headway_principal_table_size (headway_bus_table_get_principals (self)));
  headway_metrics_set (metrics, HEADWAY_METRIC_QUOTA_KEYS + HEADWAY_QUOTA_LEVEL_PRINCIPAL,
                       headway_rate_limiter_size (limiter));
  headway_metrics_set (metrics, HEADWAY_METRIC_QUOTA_KEYS + HEADWAY_QUOTA_LEVEL_UID,
                       headway_rate_limiter_n_uids (limiter));
  headway_dispatcher_collect (headway_bus_table_get_dispatcher (self));
  g_signal_emit_by_name (self, "collect-metrics");
}
