/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-subscription-private.h"

G_BEGIN_DECLS

/**
 * HeadwayRoutedSubscription:
 *
 * The mode `routed` (dbus-api.md, Subscription): a queue per principal under one byte budget, served
 * fairly in bytes, a `gap` event in the place of each loss. It is never evicted for being slow.
 */
#define HEADWAY_TYPE_ROUTED_SUBSCRIPTION (headway_routed_subscription_get_type ())
G_DECLARE_FINAL_TYPE (HeadwayRoutedSubscription, headway_routed_subscription, HEADWAY, ROUTED_SUBSCRIPTION, HeadwaySubscription)

/* For headway_bus_subscribe(), which registers it afterwards. */
HeadwaySubscription *headway_routed_subscription_new (HeadwayBus *bus,
                                                      const HeadwaySubscribeOptions *options,
                                                      guint number,
                                                      HeadwayInstant now);

G_END_DECLS
