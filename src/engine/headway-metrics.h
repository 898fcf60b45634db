/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-principal.h"
#include "engine/headway-security-log.h"

G_BEGIN_DECLS

/* --- Label values: closed sets, made of constants (routing.md 1.12) -------------------------- */

/* How who gets events is told in metrics, whatever it calls itself: readers first, then handlers. */
typedef enum
{
  HEADWAY_SUBSCRIBER_SSE,
  HEADWAY_SUBSCRIBER_DBUS,
  HEADWAY_SUBSCRIBER_STREAM,
  HEADWAY_SUBSCRIBER_MONITOR,
  HEADWAY_SUBSCRIBER_OTHER,
  HEADWAY_N_READERS,
  HEADWAY_SUBSCRIBER_DISPATCHER = HEADWAY_N_READERS,
  HEADWAY_N_SUBSCRIBERS
} HeadwaySubscriberClass;

#define HEADWAY_N_MODES (HEADWAY_MODE_BROADCAST + 1)

typedef enum
{
  HEADWAY_EVENT_KIND_EVENT,
  HEADWAY_EVENT_KIND_SEED,           /* took an id only (decisions.md 38) */
  HEADWAY_EVENT_KIND_SESSION_CLOSED, /* decisions.md 2 */
  HEADWAY_N_EVENT_KINDS
} HeadwayEventKind;

typedef enum
{
  HEADWAY_REJECT_INVALID,
  HEADWAY_REJECT_FORBIDDEN,
  HEADWAY_REJECT_TOO_LARGE,
  HEADWAY_REJECT_RATE,        /* a rate or another quota */
  HEADWAY_REJECT_UNAVAILABLE, /* no such bus, closed, no ids */
  HEADWAY_N_REJECTS
} HeadwayRejectReason;

typedef enum
{
  HEADWAY_DROP_OVERSIZE,
  HEADWAY_DROP_BUDGET,
  HEADWAY_DROP_COUNT_CAP,
  HEADWAY_DROP_BUCKET_CAP,
  HEADWAY_N_DROPS
} HeadwayDropReason;

typedef enum
{
  HEADWAY_EVICTION_QUEUE_OVERFLOW,
  HEADWAY_EVICTION_QUEUE_BYTES_OVERFLOW,
  HEADWAY_EVICTION_WRITER_IDLE_TIMEOUT,
  HEADWAY_N_EVICTIONS
} HeadwayEvictionReason;

/* In the order of HeadwayResyncReason. */
#define HEADWAY_N_RESYNCS 4
/* In the order of HeadwayStreamCloseReason, which is of src/stream. */
#define HEADWAY_N_SSE_CLOSES 8

typedef enum
{
  HEADWAY_DISPATCH_DROP_FULL,
  HEADWAY_DISPATCH_DROP_CHAIN_CAP,
  HEADWAY_DISPATCH_DROP_BUDGET,
  HEADWAY_DISPATCH_DROP_TIMEOUT,      /* a step of a chain that could not be called in time */
  HEADWAY_DISPATCH_DROP_UNREGISTERED, /* its handler left the message bus */
  HEADWAY_N_DISPATCH_DROPS
} HeadwayDispatchDropReason;

typedef enum
{
  HEADWAY_VERDICT_LABEL_CONTINUE,
  HEADWAY_VERDICT_LABEL_FINAL,
  HEADWAY_VERDICT_LABEL_DENY,
  HEADWAY_VERDICT_LABEL_SKIP,  /* it does not do this */
  HEADWAY_VERDICT_LABEL_ERROR, /* no answer, or one that says nothing */
  HEADWAY_VERDICT_LABEL_TIMEOUT,
  HEADWAY_N_VERDICT_LABELS
} HeadwayVerdictLabel;

typedef enum
{
  HEADWAY_TRANSPORT_DBUS,
  HEADWAY_TRANSPORT_HTTP,
  HEADWAY_TRANSPORT_STREAM, /* socket pairs of OpenStream() */
  HEADWAY_N_TRANSPORTS
} HeadwayTransport;

typedef enum
{
  HEADWAY_QUOTA_LEVEL_PRINCIPAL,
  HEADWAY_QUOTA_LEVEL_UID,
  HEADWAY_N_QUOTA_LEVELS
} HeadwayQuotaLevel;

/* --- Series ---------------------------------------------------------------------------------- */

/**
 * HeadwayMetric:
 *
 * Where the series of each family begin in the one array of values. A family with a label has one
 * series for each of its values, at its first one plus the value; one with more labels has a function
 * below. Each entry is the one before it plus the size of that one's family; a test checks it.
 */
typedef enum
{
  /* Publishing */
  HEADWAY_METRIC_EVENTS_PUBLISHED = 0, /* + HeadwayEventKind */
  HEADWAY_METRIC_PUBLISH_BYTES = HEADWAY_METRIC_EVENTS_PUBLISHED + HEADWAY_N_EVENT_KINDS,
  HEADWAY_METRIC_PUBLISH_REJECTED,                                                 /* + HeadwayRejectReason */
  HEADWAY_METRIC_QUOTA_KEYS = HEADWAY_METRIC_PUBLISH_REJECTED + HEADWAY_N_REJECTS, /* + HeadwayQuotaLevel */

  /* Reading */
  HEADWAY_METRIC_EVENTS_DELIVERED = HEADWAY_METRIC_QUOTA_KEYS + HEADWAY_N_QUOTA_LEVELS,    /* + HeadwaySubscriberClass */
  HEADWAY_METRIC_GAPS_DELIVERED = HEADWAY_METRIC_EVENTS_DELIVERED + HEADWAY_N_SUBSCRIBERS, /* + HeadwaySubscriberClass */
  HEADWAY_METRIC_RECEIVER_LAGGED = HEADWAY_METRIC_GAPS_DELIVERED + HEADWAY_N_SUBSCRIBERS,  /* + HeadwaySubscriberClass */
  HEADWAY_METRIC_RESYNCS = HEADWAY_METRIC_RECEIVER_LAGGED + HEADWAY_N_READERS,             /* + HeadwayResyncReason */
  HEADWAY_METRIC_STREAM_WARNINGS = HEADWAY_METRIC_RESYNCS + HEADWAY_N_RESYNCS,             /* + HeadwaySubscriberClass */
  HEADWAY_METRIC_STREAM_EVICTIONS = HEADWAY_METRIC_STREAM_WARNINGS + HEADWAY_N_READERS,    /* headway_metric_stream_evictions() */

  /* Routes */
  HEADWAY_METRIC_ROUTE_DROPS = HEADWAY_METRIC_STREAM_EVICTIONS + HEADWAY_N_READERS * HEADWAY_N_EVICTIONS, /* headway_metric_route_drops() */
  HEADWAY_METRIC_ROUTE_STARVED = HEADWAY_METRIC_ROUTE_DROPS +
                                 HEADWAY_N_READERS * HEADWAY_N_PRINCIPAL_CLASSES * HEADWAY_N_DROPS, /* headway_metric_route_starved() */
  HEADWAY_METRIC_ROUTE_ACTIVE_PRINCIPALS = HEADWAY_METRIC_ROUTE_STARVED +
                                           HEADWAY_N_READERS * HEADWAY_N_PRINCIPAL_CLASSES, /* + HeadwaySubscriberClass */
  HEADWAY_METRIC_ROUTE_BYTES = HEADWAY_METRIC_ROUTE_ACTIVE_PRINCIPALS + HEADWAY_N_READERS,  /* + HeadwaySubscriberClass */

  /* Handlers */
  HEADWAY_METRIC_DISPATCH_DROPS = HEADWAY_METRIC_ROUTE_BYTES + HEADWAY_N_READERS, /* + HeadwayDispatchDropReason */
  HEADWAY_METRIC_DISPATCH_DEGRADED = HEADWAY_METRIC_DISPATCH_DROPS + HEADWAY_N_DISPATCH_DROPS,
  HEADWAY_METRIC_VERDICTS,                                                                         /* headway_metric_verdicts() */
  HEADWAY_METRIC_HANDLERS = HEADWAY_METRIC_VERDICTS + HEADWAY_N_PHASES * HEADWAY_N_VERDICT_LABELS, /* + HeadwayPhase */
  HEADWAY_METRIC_HANDLER_CALLS = HEADWAY_METRIC_HANDLERS + HEADWAY_N_PHASES,
  HEADWAY_METRIC_HANDLER_QUEUED,
  HEADWAY_METRIC_UNDECIDED,

  /* HTTP */
  HEADWAY_METRIC_SSE_OPENED,
  HEADWAY_METRIC_SSE_CLOSED, /* + HeadwayStreamCloseReason */
  HEADWAY_METRIC_SSE_FRAMES = HEADWAY_METRIC_SSE_CLOSED + HEADWAY_N_SSE_CLOSES,
  HEADWAY_METRIC_SSE_WRITES,
  HEADWAY_METRIC_SSE_BLOCKED,
  HEADWAY_METRIC_SSE_BYTES,

  /* What is there at this moment */
  HEADWAY_METRIC_BUSES,
  HEADWAY_METRIC_CONNECTIONS,                                                       /* + HeadwayTransport */
  HEADWAY_METRIC_SUBSCRIPTIONS = HEADWAY_METRIC_CONNECTIONS + HEADWAY_N_TRANSPORTS, /* + HeadwayMode */
  HEADWAY_METRIC_QUEUED_EVENTS = HEADWAY_METRIC_SUBSCRIPTIONS + HEADWAY_N_MODES,    /* + HeadwayMode */
  HEADWAY_METRIC_QUEUED_BYTES = HEADWAY_METRIC_QUEUED_EVENTS + HEADWAY_N_MODES,     /* + HeadwayMode */
  HEADWAY_METRIC_RING_EVENTS = HEADWAY_METRIC_QUEUED_BYTES + HEADWAY_N_MODES,
  HEADWAY_METRIC_RING_BYTES,
  HEADWAY_METRIC_PRINCIPALS,

  /* Watching */
  HEADWAY_METRIC_SECURITY_EVENTS, /* + HeadwaySecurityKind */
  HEADWAY_N_METRICS = HEADWAY_METRIC_SECURITY_EVENTS + HEADWAY_N_SECURITY_KINDS
} HeadwayMetric;

/* The series of a family with several labels. */
static inline guint
headway_metric_stream_evictions (HeadwaySubscriberClass subscriber, HeadwayEvictionReason reason)
{
  return HEADWAY_METRIC_STREAM_EVICTIONS + (guint) subscriber * HEADWAY_N_EVICTIONS + (guint) reason;
}

static inline guint
headway_metric_route_drops (HeadwaySubscriberClass subscriber, HeadwayPrincipalClass principal, HeadwayDropReason reason)
{
  return HEADWAY_METRIC_ROUTE_DROPS +
         ((guint) subscriber * HEADWAY_N_PRINCIPAL_CLASSES + (guint) principal) * HEADWAY_N_DROPS + (guint) reason;
}

static inline guint
headway_metric_route_starved (HeadwaySubscriberClass subscriber, HeadwayPrincipalClass principal)
{
  return HEADWAY_METRIC_ROUTE_STARVED + (guint) subscriber * HEADWAY_N_PRINCIPAL_CLASSES + (guint) principal;
}

static inline guint
headway_metric_verdicts (HeadwayPhase phase, HeadwayVerdictLabel verdict)
{
  return HEADWAY_METRIC_VERDICTS + (guint) phase * HEADWAY_N_VERDICT_LABELS + (guint) verdict;
}

/* --- Values ---------------------------------------------------------------------------------- */

/**
 * HeadwayMetrics:
 *
 * Counters and gauges of one daemon. To count is one addition into an array: no look-up, no
 * allocation, no branch. Everything is there from the start, at zero.
 *
 * Plain, so that what counts can be inlined; nobody else looks into it.
 */
typedef struct
{
  gint64 values[HEADWAY_N_METRICS];
} HeadwayMetrics;

HeadwayMetrics *headway_metrics_new (void);
void headway_metrics_free (HeadwayMetrics *self);

/* @series: below HEADWAY_N_METRICS. @amount: of a counter, from 0; a gauge may also go down. */
static inline void
headway_metrics_add (HeadwayMetrics *self, guint series, gint64 amount)
{
  self->values[series] += amount;
}

/* For gauges, and for counters that are counted elsewhere. */
static inline void
headway_metrics_set (HeadwayMetrics *self, guint series, gint64 value)
{
  self->values[series] = value;
}

static inline gint64
headway_metrics_get (const HeadwayMetrics *self, guint series)
{
  return self->values[series];
}

/* A publish was refused with @error, of HEADWAY_ERROR; anything else counts as invalid. */
void headway_metrics_add_rejected (HeadwayMetrics *self, const GError *error);
HeadwayRejectReason headway_reject_reason_of (const GError *error);

/* The class of the reader of a subscription, by headway_subscription_get_sink_kind(). */
HeadwaySubscriberClass headway_subscriber_class_of (const char *sink_kind);

/* --- What there is to show ------------------------------------------------------------------- */

#define HEADWAY_METRIC_LABELS_MAX 3

typedef enum
{
  HEADWAY_METRIC_COUNTER,
  HEADWAY_METRIC_GAUGE,
} HeadwayMetricType;

typedef struct
{
  const char *name;
  const char *const *values; /* @n_values of them, indexed by the enum of the label */
  guint n_values;
} HeadwayMetricLabel;

/* The series of a family follow one another, the last label changing first. */
typedef struct
{
  const char *name; /* of a counter, it ends in `_total` */
  HeadwayMetricType type;
  guint first;                                                 /* series */
  const HeadwayMetricLabel *labels[HEADWAY_METRIC_LABELS_MAX]; /* NULL behind the last one */
  const char *help;
} HeadwayMetricFamily;

/* @n: (out). In the order in which they are shown. */
const HeadwayMetricFamily *headway_metric_families (guint *n);
/* How many series it has. */
guint headway_metric_family_size (const HeadwayMetricFamily *self);
guint headway_metric_family_n_labels (const HeadwayMetricFamily *self);
/* The value of label @label in series @index of the family, from 0. */
const char *headway_metric_family_get_label_value (const HeadwayMetricFamily *self, guint index, guint label);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayMetrics, headway_metrics_free)

G_END_DECLS
