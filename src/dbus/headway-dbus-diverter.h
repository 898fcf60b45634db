/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "dbus/headway-dbus-peers.h"

G_BEGIN_DECLS

/* Diverted calls of one sender that may be on their way to the main loop; more are refused. */
#define HEADWAY_DBUS_DIVERTED_MAX 1024

/* Where diverted calls go. */
#define HEADWAY_DBUS_DIVERTED_PATH      "/org/headway/Headway1/diverted"
#define HEADWAY_DBUS_DIVERTED_INTERFACE "org.headway.Headway1.Diverted"

typedef struct _HeadwayDBusDiverter HeadwayDBusDiverter;

/**
 * HeadwayDBusDiverter:
 *
 * GDBus answers many calls by itself: reads of properties, Introspect(), Ping(), and all that it finds
 * wrong. Nothing counts these answers, nor the calls that wait for them. So, in GDBus's worker thread,
 * all calls but those that reach a method of our interfaces are made into calls of the object at
 * HEADWAY_DBUS_DIVERTED_PATH, where HeadwayDBusStandard answers them in the turn of their sender. They keep their
 * sender, serial and flags; the method is `Get`, `GetAll`, `Set`, `Introspect`, `Ping`, `GetMachineId`,
 * `GetManagedObjects`, or `Refuse`; the arguments are `(sssv)`: path, interface and member that were
 * called, and the former arguments as a tuple, `()` where they are too long for anything of use.
 *
 * Its functions may be called from any thread.
 */

/* Diverts from now on. @spared_path: (nullable): calls of the object there are left to GDBus. */
HeadwayDBusDiverter *headway_dbus_diverter_new (GDBusConnection *connection, const char *spared_path);
/* Diverts no more. */
void headway_dbus_diverter_free (HeadwayDBusDiverter *self);

/* A diverted call of @sender has reached the main loop. Returns: (transfer full) (nullable) (element-type
 * guint32): serials of those that were too many since this was last told, for headway_dbus_peers_refuse(). */
GArray *headway_dbus_diverter_arrived (HeadwayDBusDiverter *self, const char *sender);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayDBusDiverter, headway_dbus_diverter_free)

G_END_DECLS
