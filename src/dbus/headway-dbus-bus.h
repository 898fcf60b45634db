/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "dbus/headway-dbus-context.h"
#include "headway-dbus-generated.h"

G_BEGIN_DECLS

#define HEADWAY_DBUS_TYPE_BUS_IMPL (headway_dbus_bus_impl_get_type ())
G_DECLARE_FINAL_TYPE (HeadwayDBusBusImpl, headway_dbus_bus_impl, HEADWAY_DBUS, BUS_IMPL, HeadwayDBusBusSkeleton)

/* A bus as everybody sees it on the message bus. Its properties are read from @bus when they are
 * asked for; no change is ever signalled. */
HeadwayDBusBusImpl *headway_dbus_bus_impl_new (HeadwayDBusContext *context, HeadwayBus *bus);

/* The object path; (transfer none). */
const char *headway_dbus_bus_impl_get_path (HeadwayDBusBusImpl *self);

/* Answers every Fetch() that is pending: with what it has, else Closed. */
void headway_dbus_bus_impl_end_fetches (HeadwayDBusBusImpl *self);

G_END_DECLS
