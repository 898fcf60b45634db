/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "dbus/headway-dbus-peer.h"
#include "engine/headway-bus.h"

#include <gio/gio.h>

G_BEGIN_DECLS

typedef struct _HeadwayDBusFetch HeadwayDBusFetch;

/**
 * HeadwayDBusFetch:
 *
 * One call of Fetch(): reads the ring of a bus behind an id without subscribing, a bounded number of
 * events in each turn of the loop, and waits for the first one if asked (decisions.md 23).
 *
 * headway_dbus_fetch_start() checks the arguments and answers @invocation, (transfer full), now or
 * later. While the call is pending it stands in @pending, so that headway_dbus_fetch_end() can
 * answer it early.
 *
 * @pending: outlives the call
 */
void headway_dbus_fetch_start (HeadwayBus *bus,
                               HeadwayDBusPeer *peer,
                               GDBusMethodInvocation *invocation,
                               guint64 after_id,
                               guint max_events,
                               GVariant *options,
                               GQueue *pending);

/* Answers all of @pending: with what has been collected, else Closed. */
void headway_dbus_fetch_end_all (GQueue *pending);

G_END_DECLS
