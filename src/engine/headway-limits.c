/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-limits.h"

#include "engine/headway-error.h"

#define OFFSET(field) G_STRUCT_OFFSET (HeadwayBusOptions, field)

static const HeadwayBusOptionSpec bus_option_specs[] = {
  { "ring-size", "ringSize", OFFSET (ring_size), FALSE, 1, HEADWAY_RING_SIZE_MAX },
  { "ring-max-bytes", "ringMaxBytes", OFFSET (ring_max_bytes), TRUE, 1, HEADWAY_ID_MAX },
  { "max-subscribers", "maxSubscribers", OFFSET (max_subscribers), FALSE, 1, G_MAXUINT32 },
  { "max-queued-bytes", "maxQueuedBytes", OFFSET (max_queued_bytes), TRUE, 1, HEADWAY_ID_MAX },
  { "channel-capacity", "channelCapacity", OFFSET (channel_capacity), FALSE, 1, HEADWAY_RING_SIZE_MAX },
  { "replay-budget-bytes", "replayBudgetBytes", OFFSET (replay_budget_bytes), TRUE, 0, HEADWAY_ID_MAX },
  { NULL, NULL, 0, FALSE, 0, 0 },
};

void
headway_limits_init (HeadwayLimits *limits)
{
  g_return_if_fail (limits != NULL);

  *limits = (HeadwayLimits){
    .bus = {
      .ring_size = 8000,
      .ring_max_bytes = 32 * 1024 * 1024,
      .max_subscribers = 64,
      .max_queued_bytes = 2 * 1024 * 1024,
      .channel_capacity = 1024,
      .replay_budget_bytes = 0,
    },
    .auto_create_buses = TRUE,
    .max_buses = 1024,
    .bus_expire_seconds = 7 * 24 * 60 * 60,
    .event_max_bytes = 1024 * 1024,
    .route_budget_bytes = 1024 * 1024,
    .route_quantum_bytes = 4096,
    .route_principal_messages = 16384,
    .route_messages = 65536,
    .route_principals = 10000,
    .principal_bytes_per_second = 10 * 1024 * 1024,
    .principal_events_per_second = 20000,
    .uid_bytes_per_second = 100 * 1024 * 1024,
    .uid_events_per_second = 200000,
    .handler_queue = 64,
    .handler_principals = 10000,
    .handler_idle_grace_ms = 60000,
  };
}

const HeadwayBusOptionSpec *
headway_bus_option_specs (void)
{
  return bus_option_specs;
}

gboolean
headway_bus_options_set (HeadwayBusOptions *options,
                         const HeadwayBusOptionSpec *spec,
                         guint64 value,
                         GError **error)
{
  g_return_val_if_fail (options != NULL, FALSE);
  g_return_val_if_fail (spec != NULL && spec->key != NULL, FALSE);

  if (value < spec->minimum || value > spec->maximum)
    {
      g_set_error (error,
                   HEADWAY_ERROR,
                   HEADWAY_ERROR_INVALID_OPTION,
                   "%s %" G_GUINT64_FORMAT " is out of range, %" G_GUINT64_FORMAT
                   " to %" G_GUINT64_FORMAT,
                   spec->key,
                   value,
                   spec->minimum,
                   spec->maximum);
      return FALSE;
    }

  if (spec->is_uint64)
    G_STRUCT_MEMBER (guint64, options, spec->offset) = value;
  else
    G_STRUCT_MEMBER (guint, options, spec->offset) = (guint) value;

  return TRUE;
}

guint64
headway_bus_options_get (const HeadwayBusOptions *options,
                         const HeadwayBusOptionSpec *spec)
{
  g_return_val_if_fail (options != NULL, 0);
  g_return_val_if_fail (spec != NULL && spec->key != NULL, 0);

  if (spec->is_uint64)
    return G_STRUCT_MEMBER (guint64, options, spec->offset);

  return G_STRUCT_MEMBER (guint, options, spec->offset);
}
