/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "dbus/headway-dbus-context.h"

G_BEGIN_DECLS

#define HEADWAY_DBUS_TYPE_STANDARD (headway_dbus_standard_get_type ())
G_DECLARE_FINAL_TYPE (HeadwayDBusStandard, headway_dbus_standard, HEADWAY_DBUS, STANDARD, GObject)

/**
 * HeadwayDBusStandard:
 *
 * Answers what GDBus would answer by itself, uncounted: the standard interfaces of all our objects, and
 * calls of what is not there. Each call waits for the turn of its sender among its other calls, and its
 * answer is charged to the sender's account (HeadwayDBusMeter). The calls come from HeadwayDBusDiverter.
 *
 * @objects: the buses
 * @spared_path: (nullable): calls of the object there are left to GDBus
 */
HeadwayDBusStandard *headway_dbus_standard_new (HeadwayDBusContext *context,
                                                GDBusObjectManagerServer *objects,
                                                const char *spared_path,
                                                GError **error);
G_END_DECLS
