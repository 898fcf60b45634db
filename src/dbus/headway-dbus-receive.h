/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "dbus/headway-dbus-peer.h"
#include "engine/headway-subscription.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/* A call waits no longer: gdbus and busctl give up at 25 s (decisions.md 21). */
#define HEADWAY_DBUS_WAIT_MAX_MS 20000

typedef struct _HeadwayDBusReceive HeadwayDBusReceive;

/* The call has been answered, and @self is about to be freed. @is_closed: there was nothing left to
 * read, now or ever. */
typedef void (*HeadwayDBusReceiveDone) (HeadwayDBusReceive *self, gboolean is_closed, gpointer user_data);

/**
 * HeadwayDBusReceive:
 *
 * One call of Receive() or Drain(): takes what waits, or waits for it and collects until the present
 * dispatch ends (decisions.md 12, 20, 21). It belongs to whoever holds it until it calls
 * HeadwayDBusReceiveDone, exactly once.
 *
 * @invocation: (transfer full)
 * @max_events: from 1
 * @max_cost: budget of Drain(), from 1; G_MAXUINT64 for none
 * @timeout_ms: 0 … HEADWAY_DBUS_WAIT_MAX_MS
 */
HeadwayDBusReceive *headway_dbus_receive_new (HeadwaySubscription *subscription,
                                              HeadwayDBusPeer *peer,
                                              GDBusMethodInvocation *invocation,
                                              guint max_events,
                                              guint64 max_cost,
                                              guint timeout_ms,
                                              HeadwayDBusReceiveDone done,
                                              gpointer user_data);

/* Reads; its peer is charged if it must wait. May be done before this returns. */
void headway_dbus_receive_start (HeadwayDBusReceive *self);

/* The subscription's side, from within a publish: see HeadwaySinkClass. Never done from here. */
gboolean headway_dbus_receive_put (HeadwayDBusReceive *self, HeadwayEvent *event, guint64 resume_id);
void headway_dbus_receive_wake (HeadwayDBusReceive *self);

/* Answers at once: with what has been collected, else Closed. */
void headway_dbus_receive_end (HeadwayDBusReceive *self);

G_END_DECLS
