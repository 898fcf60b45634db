/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "dbus/headway-dbus-peer.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/* Calls of one peer that may be held until it is known or reads what it was sent, and their bytes. */
#define HEADWAY_DBUS_HELD_MAX       1024
#define HEADWAY_DBUS_HELD_BYTES_MAX (32 * 1024 * 1024)
/* Calls beyond that wait to be refused, as nothing but their serials. Who reads no answers for so many gets
 * none any more. */
#define HEADWAY_DBUS_REFUSED_MAX 65536

#define HEADWAY_DBUS_TYPE_PEERS (headway_dbus_peers_get_type ())
G_DECLARE_FINAL_TYPE (HeadwayDBusPeers, headway_dbus_peers, HEADWAY_DBUS, PEERS, GObject)

/**
 * HeadwayDBusPeers:
 *
 * The one place that knows who calls: asks the message bus for the uid behind a unique name at its
 * first call, watches the name, and when it is gone ends all that it had here.
 *
 * Calls of a peer reach their objects in the order in which they were sent, the very first ones
 * too: they are held until the peer is known, and whenever it leaves too much unread
 * (HeadwayDBusMeter). `g-authorize-method` cannot do that (traps T1, T2).
 */
HeadwayDBusPeers *headway_dbus_peers_new (GDBusConnection *connection,
                                          gboolean is_session,
                                          HeadwayPrincipalTable *principals);

/**
 * headway_dbus_peers_admit:
 * @invocation: (transfer full): a call that has just come in
 * @func: handles it; @object, a GObject that is kept meanwhile, is its last argument
 *
 * Calls @func now, or in its turn once the peer is known. If that fails, answers the call itself.
 */
void headway_dbus_peers_admit (HeadwayDBusPeers *self,
                               GDBusMethodInvocation *invocation,
                               GDBusInterfaceMethodCallFunc func,
                               gpointer object);

/* The peer that sent @invocation, which was admitted. (transfer none), never NULL. */
HeadwayDBusPeer *headway_dbus_peers_get (HeadwayDBusPeers *self, GDBusMethodInvocation *invocation);

/* The uid behind @name, (nullable), if that is known already; else HEADWAY_UID_NOBODY. */
guint32 headway_dbus_peers_get_uid (HeadwayDBusPeers *self, const char *name);

/* Refuses calls of the connection @name by their @serials, guint32, as there is room for the answers. */
void headway_dbus_peers_refuse (HeadwayDBusPeers *self, const char *name, GArray *serials);

/* TRUE if no peer has anything here. */
gboolean headway_dbus_peers_is_idle (HeadwayDBusPeers *self);
/* How many peers are remembered. */
guint headway_dbus_peers_get_size (HeadwayDBusPeers *self);

/* Refuses what is held of peers that are known. */
void headway_dbus_peers_end_held (HeadwayDBusPeers *self);

/* Lets go of all peers, as if they had left. */
void headway_dbus_peers_clear (HeadwayDBusPeers *self);

G_END_DECLS
