/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-bus-table.h"
#include "stream/headway-stream-hub.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/**
 * HeadwayDBusServiceInfo:
 * @version: of headwayd
 * @capabilities: (nullable): the features of GET /capabilities
 * @http_uris: (nullable): where it listens
 * @http_token_file: (nullable): NULL where no token is asked for
 * @is_session: whether callers of the same user may name principals (dbus-api.md, Access)
 *
 * What the Manager tells about headwayd. Copied.
 */
typedef struct
{
  const char *version;
  const char *const *capabilities;
  const char *const *http_uris;
  const char *http_token_file;
  gboolean is_session;
} HeadwayDBusServiceInfo;

#define HEADWAY_DBUS_TYPE_SERVICE (headway_dbus_service_get_type ())
G_DECLARE_FINAL_TYPE (HeadwayDBusService, headway_dbus_service, HEADWAY_DBUS, SERVICE, GObject)

/**
 * HeadwayDBusService:
 *
 * Headway on a message bus: the Manager, an object for each bus of @table as it comes and goes, the
 * subscriptions of callers, the streams of those who open one, which are in @hub. It does not own the name: its owner requests it once
 * headway_dbus_service_export() has returned.
 */
HeadwayDBusService *headway_dbus_service_new (GDBusConnection *connection,
                                              HeadwayBusTable *table,
                                              HeadwayStreamHub *hub,
                                              const HeadwayDBusServiceInfo *info);

/* Exports all objects, once. Fails with the error of GDBus, for instance when they are there already. */
gboolean headway_dbus_service_export (HeadwayDBusService *self, GError **error);

/* @uris: (nullable): copied. */
void headway_dbus_service_set_http_uris (HeadwayDBusService *self, const char *const *uris);

/* TRUE while nobody has a subscription or a pending call here. */
gboolean headway_dbus_service_is_idle (HeadwayDBusService *self);

/* From now on whatever would begin something new gets Unavailable; pending calls of Receive() and
 * Fetch() are answered with what there is, else Closed; subscriptions can still be read out, without
 * waiting. Any number of times. */
void headway_dbus_service_shut_down (HeadwayDBusService *self);

/* For tests: how long an ended subscription stays when nobody reads it out. */
void headway_dbus_service_set_linger_ms (HeadwayDBusService *self, guint linger_ms);
/* Publishers (OpenPublisher()) that are open: after a shut-down those with something left to say. */
guint headway_dbus_service_get_n_publishers (HeadwayDBusService *self);
/* For tests: an object that is not of the service is at @path; before the export. */
void headway_dbus_service_spare_path (HeadwayDBusService *self, const char *path);
/* For tests: how many connections are remembered. */
guint headway_dbus_service_get_n_peers (HeadwayDBusService *self);

G_END_DECLS
