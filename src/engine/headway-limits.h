/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-types.h"

G_BEGIN_DECLS

/* Limits that no setting moves. */
#define HEADWAY_NAME_MAX           255
#define HEADWAY_TOPIC_MAX          256
#define HEADWAY_TOPIC_SEGMENTS_MAX 20
#define HEADWAY_TYPE_MAX           128
#define HEADWAY_PRINCIPAL_MAX      128
#define HEADWAY_CLIENT_MAX         128
#define HEADWAY_META_MAX           4096
#define HEADWAY_EVENT_CEILING      (5 * 1024 * 1024)
#define HEADWAY_JSON_DEPTH_MAX     128
#define HEADWAY_BATCH_EVENTS_MAX   4096
#define HEADWAY_BATCH_BYTES_MAX    (16 * 1024 * 1024)
#define HEADWAY_PATTERNS_MAX       64
#define HEADWAY_TYPES_MAX          64
#define HEADWAY_RING_SIZE_MAX      1000000
#define HEADWAY_MAX_QUEUED_MAX     65536
#define HEADWAY_MAX_QUEUED_DEFAULT 256

/**
 * HeadwayBusOptions:
 *
 * What CreateBus takes (dbus-api.md, Manager). All in the units of the settings of the same name.
 */
typedef struct
{
  guint ring_size;             /* events, 1 … 1 000 000 */
  guint64 ring_max_bytes;      /* event size; one event is always kept */
  guint max_subscribers;       /* subscriptions at a time */
  guint64 max_queued_bytes;    /* event size waiting in one `stream` subscription */
  guint channel_capacity;      /* events, window of `broadcast` */
  guint64 replay_budget_bytes; /* event size of one replay; 0: no budget */
} HeadwayBusOptions;

/**
 * HeadwayLimits:
 *
 * Every setting that the engine heeds (cli.md, Settings), as one plain struct.
 */
typedef struct
{
  HeadwayBusOptions bus; /* the defaults of a new bus */
  gboolean auto_create_buses;
  guint max_buses;
  guint bus_expire_seconds; /* 0: never */
  guint64 event_max_bytes;  /* cost of one event, never over HEADWAY_EVENT_CEILING */
  guint64 route_budget_bytes;
  guint route_quantum_bytes;
  guint route_principal_messages;
  guint route_messages;
  guint route_principals;
  guint64 principal_bytes_per_second;
  guint64 principal_events_per_second;
  guint64 uid_bytes_per_second;
  guint64 uid_events_per_second;
  guint handler_queue;
  guint handler_principals;
  guint handler_idle_grace_ms;
} HeadwayLimits;

/* Fills @limits with the defaults of cli.md. */
void headway_limits_init (HeadwayLimits *limits);

/* One option of CreateBus: its D-Bus key, JSON member, type and range. */
typedef struct
{
  const char *key;       /* "ring-size" */
  const char *json_name; /* "ringSize" */
  gsize offset;          /* in HeadwayBusOptions */
  gboolean is_uint64;    /* `t`, else `u` */
  guint64 minimum;
  guint64 maximum;
} HeadwayBusOptionSpec;

/* The table of all options, ended by an entry whose key is NULL. */
const HeadwayBusOptionSpec *headway_bus_option_specs (void);

/* Sets one option; HEADWAY_ERROR_INVALID_OPTION, naming the value and the range, if it is out of it. */
gboolean headway_bus_options_set (HeadwayBusOptions *options,
                                  const HeadwayBusOptionSpec *spec,
                                  guint64 value,
                                  GError **error);
guint64 headway_bus_options_get (const HeadwayBusOptions *options,
                                 const HeadwayBusOptionSpec *spec);

G_END_DECLS
