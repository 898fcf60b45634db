/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "dbus/headway-dbus-context.h"
#include "engine/headway-subscription.h"
#include "headway-dbus-generated.h"

G_BEGIN_DECLS

#define HEADWAY_DBUS_TYPE_SUBSCRIPTION_IMPL (headway_dbus_subscription_impl_get_type ())
G_DECLARE_FINAL_TYPE (HeadwayDBusSubscriptionImpl,
                      headway_dbus_subscription_impl,
                      HEADWAY_DBUS,
                      SUBSCRIPTION_IMPL,
                      HeadwayDBusSubscriptionSkeleton)

/**
 * HeadwayDBusSubscriptionImpl:
 *
 * A subscription as its owner sees it on the message bus; everybody else gets NotOwner. It goes when
 * it is closed, when its owner leaves, once it has ended and is read out, or a minute after its end
 * (decisions.md 6).
 *
 * headway_dbus_subscription_impl_new() charges @owner: NULL with QUOTA_EXCEEDED.
 */
HeadwayDBusSubscriptionImpl *headway_dbus_subscription_impl_new (HeadwayDBusContext *context,
                                                                 HeadwayDBusPeer *owner,
                                                                 GError **error);

/* Takes over @subscription and exports it; from then on the context keeps @self. @bus_path: object
 * of its bus. */
gboolean headway_dbus_subscription_impl_export (HeadwayDBusSubscriptionImpl *self,
                                                HeadwaySubscription *subscription,
                                                const char *bus_path,
                                                GError **error);

/* Answers a pending Receive at once: what there is, else Closed. */
void headway_dbus_subscription_impl_end_receive (HeadwayDBusSubscriptionImpl *self);

/* Ends it and takes its object away. Any number of times. */
void headway_dbus_subscription_impl_retire (HeadwayDBusSubscriptionImpl *self);

G_END_DECLS
