/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-bus.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/* The subscriptions of @bus as ListSubscriptions() tells them (decisions.md 25): an `aa{sv}` of at
 * most HEADWAY_REPLY_BYTES. Returns: (transfer floating). */
GVariant *headway_dbus_listing_new (HeadwayBus *bus);

G_END_DECLS
