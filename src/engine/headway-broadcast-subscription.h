/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-subscription-private.h"

G_BEGIN_DECLS

/**
 * HeadwayBroadcastSubscription:
 *
 * The mode `broadcast` (routing.md 1.4, decisions.md 33): no queue, a cursor into the ring of the bus.
 * A reader that falls out of its window skips ahead, and a `gap` event says how far.
 */
#define HEADWAY_TYPE_BROADCAST_SUBSCRIPTION (headway_broadcast_subscription_get_type ())
G_DECLARE_FINAL_TYPE (HeadwayBroadcastSubscription, headway_broadcast_subscription, HEADWAY, BROADCAST_SUBSCRIPTION, HeadwaySubscription)

/* For headway_bus_subscribe(), which registers it afterwards. */
HeadwaySubscription *headway_broadcast_subscription_new (HeadwayBus *bus,
                                                         const HeadwaySubscribeOptions *options,
                                                         guint number,
                                                         HeadwayInstant now);

G_END_DECLS
