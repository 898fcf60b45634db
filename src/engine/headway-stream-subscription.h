/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-subscription-private.h"

G_BEGIN_DECLS

#define HEADWAY_TYPE_STREAM_SUBSCRIPTION (headway_stream_subscription_get_type ())
G_DECLARE_FINAL_TYPE (HeadwayStreamSubscription, headway_stream_subscription, HEADWAY, STREAM_SUBSCRIPTION, HeadwaySubscription)

/**
 * headway_stream_subscription_new:
 * @bus: whose ring a replay reads; referenced
 * @options: with mode HEADWAY_MODE_STREAM
 * @number: of the subscription
 *
 * The mode `stream` (sse-contract.md 2): a replay as a position in the ring, then a queue of its own
 * that is bounded in events and bytes; a reader that lets it fill is warned, then evicted. The bus
 * registers it.
 */
HeadwaySubscription *headway_stream_subscription_new (HeadwayBus *bus,
                                                      const HeadwaySubscribeOptions *options,
                                                      guint number,
                                                      HeadwayInstant now);

G_END_DECLS
