/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "dbus/headway-dbus-peer.h"
#include "engine/headway-subscription.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/* What StartSignals() takes, and the event size that may be unacknowledged (decisions.md 26). */
#define HEADWAY_DBUS_WINDOW_MAX       1024
#define HEADWAY_DBUS_WINDOW_BYTES_MAX (256 * 1024)

typedef struct _HeadwayDBusSignals HeadwayDBusSignals;

/* The subscription has ended, and all that it had is sent and acknowledged. @self may be freed from here. */
typedef void (*HeadwayDBusSignalsDone) (HeadwayDBusSignals *self, gpointer user_data);

/**
 * HeadwayDBusSignals:
 *
 * Sends the events of one subscription as signals to its owner alone, while they are on. At most a
 * window of events and HEADWAY_DBUS_WINDOW_BYTES_MAX are unacknowledged, but at least one event
 * whatever its size (decisions.md 20, 26); beyond that events wait in the subscription, where they
 * are counted. The count of signals goes on when they are turned off and on again.
 *
 * @path: object path of the subscription, copied
 */
HeadwayDBusSignals *headway_dbus_signals_new (GDBusConnection *connection,
                                              HeadwaySubscription *subscription,
                                              HeadwayDBusPeer *peer,
                                              const char *path,
                                              HeadwayDBusSignalsDone done,
                                              gpointer user_data);
void headway_dbus_signals_free (HeadwayDBusSignals *self);

gboolean headway_dbus_signals_is_on (HeadwayDBusSignals *self);
/* @window: 1 … HEADWAY_DBUS_WINDOW_MAX; else HEADWAY_ERROR_INVALID_OPTION. They must be off. What waits
 * is sent from the next turn of the loop on. */
gboolean headway_dbus_signals_start (HeadwayDBusSignals *self, guint window, GError **error);
/* What is unacknowledged counts as delivered. Any number of times. */
void headway_dbus_signals_stop (HeadwayDBusSignals *self);
/* All signals up to @sequence have been read; again or older: nothing happens. HEADWAY_ERROR_INVALID_OPTION
 * beyond the last that was sent. */
gboolean headway_dbus_signals_acknowledge (HeadwayDBusSignals *self, guint64 sequence, GError **error);

/* The subscription's side, from within a publish: see HeadwaySinkClass. Never done from here. */
gboolean headway_dbus_signals_put (HeadwayDBusSignals *self, HeadwayEvent *event, guint64 resume_id);
void headway_dbus_signals_wake (HeadwayDBusSignals *self);

G_END_DECLS
