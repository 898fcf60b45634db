/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib-object.h>

G_BEGIN_DECLS

typedef struct _HeadwayBatch HeadwayBatch;
typedef struct _HeadwayBus HeadwayBus;
typedef struct _HeadwayBusStore HeadwayBusStore;
typedef struct _HeadwayBusTable HeadwayBusTable;
typedef struct _HeadwayDispatcher HeadwayDispatcher;
typedef struct _HeadwayEvent HeadwayEvent;
typedef struct _HeadwayFilter HeadwayFilter;
typedef struct _HeadwayHandler HeadwayHandler;
typedef struct _HeadwayHandlerCall HeadwayHandlerCall;
typedef struct _HeadwayHandlerSet HeadwayHandlerSet;
typedef struct _HeadwayPrincipal HeadwayPrincipal;
typedef struct _HeadwayPrincipalTable HeadwayPrincipalTable;
typedef struct _HeadwayRing HeadwayRing;
typedef struct _HeadwaySink HeadwaySink;
typedef struct _HeadwayStreamSubscription HeadwayStreamSubscription;
typedef struct _HeadwaySubscription HeadwaySubscription;
typedef struct _HeadwayTopicIndex HeadwayTopicIndex;

/* The largest id and the largest cursor: 2^53 - 1, what a JavaScript number holds exactly. */
#define HEADWAY_ID_MAX G_GUINT64_CONSTANT (9007199254740991)

/* What one dispatch of the main loop may handle (decisions.md 20, routing.md 3.9). */
#define HEADWAY_DISPATCH_EVENTS 32

/* Bounds of one reply or one batch handed to a reader (decisions.md 12). */
#define HEADWAY_REPLY_EVENTS 1024
#define HEADWAY_REPLY_BYTES  (1024 * 1024)

/* How the events of a subscription wait (dbus-api.md, Subscription). */
typedef enum
{
  HEADWAY_MODE_STREAM,
  HEADWAY_MODE_ROUTED,
  HEADWAY_MODE_BROADCAST,
} HeadwayMode;

/* The state that readers see (decisions.md 6). */
typedef enum
{
  HEADWAY_STATE_REPLAYING,
  HEADWAY_STATE_LIVE,
  HEADWAY_STATE_EVICTED,
  HEADWAY_STATE_ENDED,
} HeadwayState;

/* When a handler is called (routing.md 3.7). */
typedef enum
{
  HEADWAY_PHASE_POST, /* after the event is out; what it says touches later steps only */
  HEADWAY_PHASE_PRE,  /* before the event has an id; it may change or deny it */
  HEADWAY_N_PHASES
} HeadwayPhase;

/**
 * HeadwayInstant:
 * @monotonic_us: microseconds of the monotonic clock; the engine measures with it
 * @real_us: microseconds since 1970-01-01 UTC; the engine only stamps events with it
 *
 * The engine reads no clock. Whoever calls it says what time it is.
 */
typedef struct
{
  gint64 monotonic_us;
  gint64 real_us;
} HeadwayInstant;

G_END_DECLS
