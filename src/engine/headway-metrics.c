/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-metrics.h"

#include "engine/headway-error.h"

#include <string.h>

/* --- Labels ---------------------------------------------------------------------------------- */

#define LABEL(name, values)                 \
  {                                         \
    (name), (values), G_N_ELEMENTS (values) \
  }

static const char *const subscribers[] = {
  [HEADWAY_SUBSCRIBER_SSE] = "sse",
  [HEADWAY_SUBSCRIBER_DBUS] = "dbus",
  [HEADWAY_SUBSCRIBER_STREAM] = "stream",
  [HEADWAY_SUBSCRIBER_MONITOR] = "monitor",
  [HEADWAY_SUBSCRIBER_OTHER] = "other",
  [HEADWAY_SUBSCRIBER_DISPATCHER] = "dispatcher",
};
static const char *const principal_classes[] = {
  [HEADWAY_PRINCIPAL_SYSTEM] = "system",
  [HEADWAY_PRINCIPAL_AGENT] = "agent",
  [HEADWAY_PRINCIPAL_USER] = "user",
};
static const char *const modes[] = {
  [HEADWAY_MODE_STREAM] = "stream",
  [HEADWAY_MODE_ROUTED] = "routed",
  [HEADWAY_MODE_BROADCAST] = "broadcast",
};
static const char *const event_kinds[] = {
  [HEADWAY_EVENT_KIND_EVENT] = "event",
  [HEADWAY_EVENT_KIND_SEED] = "seed",
  [HEADWAY_EVENT_KIND_SESSION_CLOSED] = "session_closed",
};
static const char *const rejects[] = {
  [HEADWAY_REJECT_INVALID] = "invalid",
  [HEADWAY_REJECT_FORBIDDEN] = "forbidden",
  [HEADWAY_REJECT_TOO_LARGE] = "too_large",
  [HEADWAY_REJECT_RATE] = "rate",
  [HEADWAY_REJECT_UNAVAILABLE] = "unavailable",
};
static const char *const drops[] = {
  [HEADWAY_DROP_OVERSIZE] = "oversize",
  [HEADWAY_DROP_BUDGET] = "budget",
  [HEADWAY_DROP_COUNT_CAP] = "count_cap",
  [HEADWAY_DROP_BUCKET_CAP] = "bucket_cap",
};
static const char *const evictions[] = {
  [HEADWAY_EVICTION_QUEUE_OVERFLOW] = "queue_overflow",
  [HEADWAY_EVICTION_QUEUE_BYTES_OVERFLOW] = "queue_bytes_overflow",
  [HEADWAY_EVICTION_WRITER_IDLE_TIMEOUT] = "writer_idle_timeout",
};
static const char *const resyncs[] = {
  "ring_evicted",
  "epoch_reset",
  "seeded_replay_not_in_ring",
  "replay_budget_exceeded",
};
static const char *const sse_closes[] = {
  "writer_idle_timeout",
  "socket_error",
  "iterator_error",
  "event_bus_evicted",
  "session_terminal",
  "source_complete",
  "client_disconnect",
  "drain_timeout",
};
static const char *const dispatch_drops[] = {
  [HEADWAY_DISPATCH_DROP_FULL] = "full",
  [HEADWAY_DISPATCH_DROP_CHAIN_CAP] = "chain_cap",
  [HEADWAY_DISPATCH_DROP_BUDGET] = "budget",
  [HEADWAY_DISPATCH_DROP_TIMEOUT] = "timeout",
  [HEADWAY_DISPATCH_DROP_UNREGISTERED] = "unregistered",
};
static const char *const phases[] = {
  [HEADWAY_PHASE_POST] = "post",
  [HEADWAY_PHASE_PRE] = "pre",
};
static const char *const verdicts[] = {
  [HEADWAY_VERDICT_LABEL_CONTINUE] = "continue",
  [HEADWAY_VERDICT_LABEL_FINAL] = "final",
  [HEADWAY_VERDICT_LABEL_DENY] = "deny",
  [HEADWAY_VERDICT_LABEL_SKIP] = "skip",
  [HEADWAY_VERDICT_LABEL_ERROR] = "error",
  [HEADWAY_VERDICT_LABEL_TIMEOUT] = "timeout",
};
static const char *const transports[] = {
  [HEADWAY_TRANSPORT_DBUS] = "dbus",
  [HEADWAY_TRANSPORT_HTTP] = "http",
  [HEADWAY_TRANSPORT_STREAM] = "stream",
};
static const char *const quota_levels[] = {
  [HEADWAY_QUOTA_LEVEL_PRINCIPAL] = "principal",
  [HEADWAY_QUOTA_LEVEL_UID] = "uid",
};

G_STATIC_ASSERT (G_N_ELEMENTS (subscribers) == HEADWAY_N_SUBSCRIBERS);
G_STATIC_ASSERT (G_N_ELEMENTS (principal_classes) == HEADWAY_N_PRINCIPAL_CLASSES);
G_STATIC_ASSERT (G_N_ELEMENTS (modes) == HEADWAY_N_MODES);
G_STATIC_ASSERT (G_N_ELEMENTS (event_kinds) == HEADWAY_N_EVENT_KINDS);
G_STATIC_ASSERT (G_N_ELEMENTS (rejects) == HEADWAY_N_REJECTS);
G_STATIC_ASSERT (G_N_ELEMENTS (drops) == HEADWAY_N_DROPS);
G_STATIC_ASSERT (G_N_ELEMENTS (evictions) == HEADWAY_N_EVICTIONS);
G_STATIC_ASSERT (G_N_ELEMENTS (resyncs) == HEADWAY_N_RESYNCS);
G_STATIC_ASSERT (G_N_ELEMENTS (sse_closes) == HEADWAY_N_SSE_CLOSES);
G_STATIC_ASSERT (G_N_ELEMENTS (dispatch_drops) == HEADWAY_N_DISPATCH_DROPS);
G_STATIC_ASSERT (G_N_ELEMENTS (phases) == HEADWAY_N_PHASES);
G_STATIC_ASSERT (G_N_ELEMENTS (verdicts) == HEADWAY_N_VERDICT_LABELS);
G_STATIC_ASSERT (G_N_ELEMENTS (transports) == HEADWAY_N_TRANSPORTS);
G_STATIC_ASSERT (G_N_ELEMENTS (quota_levels) == HEADWAY_N_QUOTA_LEVELS);

static const HeadwayMetricLabel by_subscriber = LABEL ("subscriber", subscribers);
/* Of what handlers have no part in. */
static const HeadwayMetricLabel by_reader = { "subscriber", subscribers, HEADWAY_N_READERS };
static const HeadwayMetricLabel by_principal_class = LABEL ("principal_class", principal_classes);
static const HeadwayMetricLabel by_mode = LABEL ("mode", modes);
static const HeadwayMetricLabel by_event_kind = LABEL ("kind", event_kinds);
static const HeadwayMetricLabel by_reject = LABEL ("reason", rejects);
static const HeadwayMetricLabel by_drop = LABEL ("reason", drops);
static const HeadwayMetricLabel by_eviction = LABEL ("reason", evictions);
static const HeadwayMetricLabel by_resync = LABEL ("reason", resyncs);
static const HeadwayMetricLabel by_sse_close = LABEL ("reason", sse_closes);
static const HeadwayMetricLabel by_dispatch_drop = LABEL ("reason", dispatch_drops);
static const HeadwayMetricLabel by_phase = LABEL ("phase", phases);
static const HeadwayMetricLabel by_verdict = LABEL ("verdict", verdicts);
static const HeadwayMetricLabel by_transport = LABEL ("transport", transports);
static const HeadwayMetricLabel by_quota_level = LABEL ("level", quota_levels);
static const HeadwayMetricLabel by_security_kind = { "kind", headway_security_kind_names, HEADWAY_N_SECURITY_KINDS };

/* --- Families -------------------------------------------------------------------------------- */

static const HeadwayMetricFamily families[] = {
  {
    "headway_events_published_total",
    HEADWAY_METRIC_COUNTER,
    HEADWAY_METRIC_EVENTS_PUBLISHED,
    { &by_event_kind },
    "Events that have taken an id.",
  },
  {
    "headway_publish_bytes_total",
    HEADWAY_METRIC_COUNTER,
    HEADWAY_METRIC_PUBLISH_BYTES,
    { NULL },
    "Cost of the events published: data, topic and meta.",
  },
  {
    "headway_publish_rejected_total",
    HEADWAY_METRIC_COUNTER,
    HEADWAY_METRIC_PUBLISH_REJECTED,
    { &by_reject },
    "Publishes refused; nothing of them was published.",
  },
  {
    "headway_rate_limiter_keys",
    HEADWAY_METRIC_GAUGE,
    HEADWAY_METRIC_QUOTA_KEYS,
    { &by_quota_level },
    "Quotas in use: of a principal on a bus, and of a user.",
  },
  {
    "headway_events_delivered_total",
    HEADWAY_METRIC_COUNTER,
    HEADWAY_METRIC_EVENTS_DELIVERED,
    { &by_subscriber },
    "Events handed to readers, replayed ones included, and to handlers.",
  },
  {
    "headway_gaps_delivered_total",
    HEADWAY_METRIC_COUNTER,
    HEADWAY_METRIC_GAPS_DELIVERED,
    { &by_subscriber },
    "Gap events handed to readers and handlers, each in the place of a loss.",
  },
  {
    "headway_receiver_lagged_total",
    HEADWAY_METRIC_COUNTER,
    HEADWAY_METRIC_RECEIVER_LAGGED,
    { &by_reader },
    "Events that broadcast readers were too slow for.",
  },
  {
    "headway_resyncs_total",
    HEADWAY_METRIC_COUNTER,
    HEADWAY_METRIC_RESYNCS,
    { &by_resync },
    "Readers told that their replay has a hole.",
  },
  {
    "headway_stream_warnings_total",
    HEADWAY_METRIC_COUNTER,
    HEADWAY_METRIC_STREAM_WARNINGS,
    { &by_reader },
    "Stream readers warned that their queue fills.",
  },
  {
    "headway_stream_evictions_total",
    HEADWAY_METRIC_COUNTER,
    HEADWAY_METRIC_STREAM_EVICTIONS,
    { &by_reader, &by_eviction },
    "Stream subscriptions ended because the reader was too slow.",
  },
  {
    "headway_route_drops_total",
    HEADWAY_METRIC_COUNTER,
    HEADWAY_METRIC_ROUTE_DROPS,
    { &by_reader, &by_principal_class, &by_drop },
    "Events lost to routed readers, by the class of whose event it was.",
  },
  {
    "headway_route_starved_total",
    HEADWAY_METRIC_COUNTER,
    HEADWAY_METRIC_ROUTE_STARVED,
    { &by_reader, &by_principal_class },
    "Turns in which a principal could send nothing, its next event being larger than its share.",
  },
  {
    "headway_route_active_principals",
    HEADWAY_METRIC_GAUGE,
    HEADWAY_METRIC_ROUTE_ACTIVE_PRINCIPALS,
    { &by_reader },
    "Principals with events waiting in routed subscriptions.",
  },
  {
    "headway_route_bytes",
    HEADWAY_METRIC_GAUGE,
    HEADWAY_METRIC_ROUTE_BYTES,
    { &by_reader },
    "Cost of the events waiting in routed subscriptions.",
  },
  {
    "headway_dispatch_drops_total",
    HEADWAY_METRIC_COUNTER,
    HEADWAY_METRIC_DISPATCH_DROPS,
    { &by_dispatch_drop },
    "Events lost for handlers: their queue was full, or they left.",
  },
  {
    "headway_dispatch_degraded_total",
    HEADWAY_METRIC_COUNTER,
    HEADWAY_METRIC_DISPATCH_DEGRADED,
    { NULL },
    "Events for handlers that had to use the queue shared by all principals.",
  },
  {
    "headway_verdicts_total",
    HEADWAY_METRIC_COUNTER,
    HEADWAY_METRIC_VERDICTS,
    { &by_phase, &by_verdict },
    "Answers of handlers, and those that did not come.",
  },
  {
    "headway_handlers",
    HEADWAY_METRIC_GAUGE,
    HEADWAY_METRIC_HANDLERS,
    { &by_phase },
    "Handlers registered, those that still drain included.",
  },
  {
    "headway_handler_calls",
    HEADWAY_METRIC_GAUGE,
    HEADWAY_METRIC_HANDLER_CALLS,
    { NULL },
    "Calls of handlers under way.",
  },
  {
    "headway_handler_queued",
    HEADWAY_METRIC_GAUGE,
    HEADWAY_METRIC_HANDLER_QUEUED,
    { NULL },
    "Events that wait for handlers.",
  },
  {
    "headway_publishes_undecided",
    HEADWAY_METRIC_GAUGE,
    HEADWAY_METRIC_UNDECIDED,
    { NULL },
    "Publishes that wait for handlers of phase pre.",
  },
  {
    "headway_sse_opened_total",
    HEADWAY_METRIC_COUNTER,
    HEADWAY_METRIC_SSE_OPENED,
    { NULL },
    "Event streams opened, over HTTP or by OpenStream().",
  },
  {
    "headway_sse_closed_total",
    HEADWAY_METRIC_COUNTER,
    HEADWAY_METRIC_SSE_CLOSED,
    { &by_sse_close },
    "Event streams closed, over HTTP or of OpenStream().",
  },
  {
    "headway_sse_frames_total",
    HEADWAY_METRIC_COUNTER,
    HEADWAY_METRIC_SSE_FRAMES,
    { NULL },
    "Frames made for event streams; readers share them.",
  },
  {
    "headway_sse_writes_total",
    HEADWAY_METRIC_COUNTER,
    HEADWAY_METRIC_SSE_WRITES,
    { NULL },
    "Writes to the sockets of event streams.",
  },
  {
    "headway_sse_blocked_total",
    HEADWAY_METRIC_COUNTER,
    HEADWAY_METRIC_SSE_BLOCKED,
    { NULL },
    "Writes to event streams that found the socket full.",
  },
  {
    "headway_sse_bytes_total",
    HEADWAY_METRIC_COUNTER,
    HEADWAY_METRIC_SSE_BYTES,
    { NULL },
    "Bytes written to event streams.",
  },
  {
    "headway_buses",
    HEADWAY_METRIC_GAUGE,
    HEADWAY_METRIC_BUSES,
    { NULL },
    "Buses open.",
  },
  {
    "headway_connections",
    HEADWAY_METRIC_GAUGE,
    HEADWAY_METRIC_CONNECTIONS,
    { &by_transport },
    "Connections of clients: callers on the message bus, sockets over HTTP, streams of OpenStream().",
  },
  {
    "headway_subscriptions",
    HEADWAY_METRIC_GAUGE,
    HEADWAY_METRIC_SUBSCRIPTIONS,
    { &by_mode },
    "Subscriptions registered.",
  },
  {
    "headway_queued_events",
    HEADWAY_METRIC_GAUGE,
    HEADWAY_METRIC_QUEUED_EVENTS,
    { &by_mode },
    "Events waiting in subscriptions.",
  },
  {
    "headway_queued_bytes",
    HEADWAY_METRIC_GAUGE,
    HEADWAY_METRIC_QUEUED_BYTES,
    { &by_mode },
    "Bytes waiting in subscriptions: event size in mode stream, cost in mode routed.",
  },
  {
    "headway_ring_events",
    HEADWAY_METRIC_GAUGE,
    HEADWAY_METRIC_RING_EVENTS,
    { NULL },
    "Events kept for replay by all buses.",
  },
  {
    "headway_ring_bytes",
    HEADWAY_METRIC_GAUGE,
    HEADWAY_METRIC_RING_BYTES,
    { NULL },
    "Size of the events kept for replay by all buses.",
  },
  {
    "headway_principals",
    HEADWAY_METRIC_GAUGE,
    HEADWAY_METRIC_PRINCIPALS,
    { NULL },
    "Principals known at this moment.",
  },
  {
    "headway_security_events_total",
    HEADWAY_METRIC_COUNTER,
    HEADWAY_METRIC_SECURITY_EVENTS,
    { &by_security_kind },
    "Events that the security log has counted.",
  },
};

const HeadwayMetricFamily *
headway_metric_families (guint *n)
{
  *n = G_N_ELEMENTS (families);
  return families;
}

guint
headway_metric_family_n_labels (const HeadwayMetricFamily *self)
{
  guint n = 0;

  while (n < HEADWAY_METRIC_LABELS_MAX && self->labels[n] != NULL)
    n++;
  return n;
}

guint
headway_metric_family_size (const HeadwayMetricFamily *self)
{
  guint n_labels = headway_metric_family_n_labels (self);
  guint size = 1;

  for (guint i = 0; i < n_labels; i++)
    size *= self->labels[i]->n_values;
  return size;
}

const char *
headway_metric_family_get_label_value (const HeadwayMetricFamily *self, guint index, guint label)
{
  guint n_labels = headway_metric_family_n_labels (self);

  g_return_val_if_fail (label < n_labels, NULL);

  for (guint i = n_labels - 1; i > label; i--)
    index /= self->labels[i]->n_values;
  return self->labels[label]->values[index % self->labels[label]->n_values];
}

/* --- Values ---------------------------------------------------------------------------------- */

HeadwayMetrics *
headway_metrics_new (void)
{
  return g_new0 (HeadwayMetrics, 1);
}

void
headway_metrics_free (HeadwayMetrics *self)
{
  g_free (self);
}

HeadwayRejectReason
headway_reject_reason_of (const GError *error)
{
  if (error->domain != HEADWAY_ERROR)
    return HEADWAY_REJECT_INVALID;
  switch ((HeadwayError) error->code)
    {
    case HEADWAY_ERROR_TOO_LARGE:
      return HEADWAY_REJECT_TOO_LARGE;
    case HEADWAY_ERROR_RATE_LIMITED:
    case HEADWAY_ERROR_QUOTA_EXCEEDED:
      return HEADWAY_REJECT_RATE;
    case HEADWAY_ERROR_NOT_OWNER:
    case HEADWAY_ERROR_NOT_AUTHORIZED:
    case HEADWAY_ERROR_DENIED:
      return HEADWAY_REJECT_FORBIDDEN;
    case HEADWAY_ERROR_NO_SUCH_BUS:
    case HEADWAY_ERROR_CLOSED:
    case HEADWAY_ERROR_UNAVAILABLE:
      return HEADWAY_REJECT_UNAVAILABLE;
    case HEADWAY_ERROR_INVALID_NAME:
    case HEADWAY_ERROR_INVALID_TOPIC:
    case HEADWAY_ERROR_INVALID_PATTERN:
    case HEADWAY_ERROR_INVALID_TYPE:
    case HEADWAY_ERROR_INVALID_DATA:
    case HEADWAY_ERROR_INVALID_OPTION:
    case HEADWAY_ERROR_INVALID_PRINCIPAL:
    case HEADWAY_ERROR_SUBSCRIBER_LIMIT:
    case HEADWAY_ERROR_BUS_EXISTS:
    case HEADWAY_ERROR_NOT_SUPPORTED:
    case HEADWAY_ERROR_BUSY:
    case HEADWAY_N_ERRORS:
      break;
    }
  return HEADWAY_REJECT_INVALID;
}

void
headway_metrics_add_rejected (HeadwayMetrics *self, const GError *error)
{
  headway_metrics_add (self, HEADWAY_METRIC_PUBLISH_REJECTED + (guint) headway_reject_reason_of (error), 1);
}

HeadwaySubscriberClass
headway_subscriber_class_of (const char *sink_kind)
{
  for (guint i = 0; i < HEADWAY_N_READERS; i++)
    {
      if (g_strcmp0 (sink_kind, subscribers[i]) == 0)
        return (HeadwaySubscriberClass) i;
    }
  return HEADWAY_SUBSCRIBER_OTHER;
}
