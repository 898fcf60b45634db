/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-bus.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/* The subscriptions of @bus as ListSubscriptions() tells them (decisions.md 25): an `aa{sv}` of at
 * most HEADWAY_REPLY_BYTES. Returns: (transfer floating). */
GVariant *headway_dbus_listing_new (HeadwayBus *bus);

/* Who fills @subscription, the heaviest first, at most @maximum: an `a(suttt)` as ListPrincipals() tells
 * it. Returns: (transfer floating). */
GVariant *headway_dbus_listing_new_principals (HeadwaySubscription *subscription, guint maximum);

G_END_DECLS
