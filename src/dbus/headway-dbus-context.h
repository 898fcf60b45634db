/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "dbus/headway-dbus-peers.h"
#include "engine/headway-bus-table.h"
#include "handler/headway-handler-caller.h"
#include "stream/headway-stream-hub.h"

G_BEGIN_DECLS

/* How long an ended subscription that nobody reads out stays (decisions.md 6). */
#define HEADWAY_DBUS_LINGER_MS (60 * 1000)

/* No call but a publish needs more. */
#define HEADWAY_DBUS_CALL_BYTES_MAX (1024 * 1024)

/**
 * HeadwayDBusContext:
 * @exports: object path (owned) → GDBusInterfaceSkeleton (borrowed): all but the buses
 * @subscriptions: HeadwayDBusSubscriptionImpl (owned): those that are exported
 * @publishers: the streams of OpenPublisher(), of headway-dbus-publisher (owned)
 * @caller: of handlers
 * @handlers: HeadwayDBusHandlerImpl (owned): those that have not ended
 * @is_shut_down: new work is refused
 * @linger_ms: HEADWAY_DBUS_LINGER_MS, but for tests
 * @outcome: (nullable): the last answer to a publish, and what it says: most are like the one before
 *
 * What all objects of one HeadwayDBusService share. Reference-counted.
 */
typedef struct
{
  GDBusConnection *connection; /* owned */
  HeadwayBusTable *table;      /* owned */
  HeadwayStreamHub *hub;       /* owned */
  HeadwayDBusPeers *peers;     /* owned */
  GHashTable *exports;         /* owned */
  GHashTable *subscriptions;   /* owned */
  GQueue publishers;
  HeadwayHandlerCaller *caller; /* owned */
  GHashTable *handlers;         /* owned */
  gboolean is_shut_down;
  guint linger_ms;
  GVariant *outcome; /* owned */
  HeadwayOutcome outcome_values;
} HeadwayDBusContext;

HeadwayDBusContext *headway_dbus_context_new (GDBusConnection *connection,
                                              HeadwayBusTable *table,
                                              HeadwayStreamHub *hub,
                                              gboolean is_session);
HeadwayDBusContext *headway_dbus_context_ref (HeadwayDBusContext *self);
void headway_dbus_context_unref (HeadwayDBusContext *self);

/* Exports an object with one interface, so that HeadwayDBusStandard knows it too. */
gboolean headway_dbus_context_export (HeadwayDBusContext *self,
                                      GDBusInterfaceSkeleton *skeleton,
                                      const char *path,
                                      GError **error);
/* Any number of times, also of one that was never exported. */
void headway_dbus_context_unexport (HeadwayDBusContext *self, GDBusInterfaceSkeleton *skeleton);

/* Answers a call that brings more than @bytes_max, before anything of it is copied. */
gboolean headway_dbus_context_answer_large (GDBusMethodInvocation *invocation, gsize bytes_max);

/* Answers a call that would begin something new once the service is shut down. */
gboolean headway_dbus_context_answer_shut_down (HeadwayDBusContext *self, GDBusMethodInvocation *invocation);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayDBusContext, headway_dbus_context_unref)

G_END_DECLS
