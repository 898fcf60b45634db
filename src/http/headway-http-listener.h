/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "http/headway-http-connection.h"

G_BEGIN_DECLS

#define HEADWAY_TYPE_HTTP_LISTENER (headway_http_listener_get_type ())
G_DECLARE_FINAL_TYPE (HeadwayHttpListener, headway_http_listener, HEADWAY, HTTP_LISTENER, GObject)

/**
 * HeadwayHttpListener:
 *
 * One listening socket. It accepts a bounded number of connections per turn of the main loop and
 * waits a while when the process has no descriptors left.
 */

/* @fd: (transfer full): a connected, non-blocking socket. @uid: of the peer, G_MAXUINT32 over TCP. */
typedef void (*HeadwayHttpAccepted) (HeadwayHttpListener *listener, int fd, guint32 uid, gpointer user_data);

/* Each returns (transfer full) (nullable): NULL with G_IO_ERROR, ADDRESS_IN_USE among them. */
HeadwayHttpListener *headway_http_listener_new_unix (const char *path, GError **error);
HeadwayHttpListener *headway_http_listener_new_tcp (const char *address, GError **error);
/* @fd: (transfer full): also on failure. */
HeadwayHttpListener *headway_http_listener_new_fd (int fd, GError **error);

/* Starts accepting; @user_data outlives the listener. */
void headway_http_listener_start (HeadwayHttpListener *self, HeadwayHttpAccepted accepted, gpointer user_data);
/* Stops for good, and removes its own Unix socket from the file system. */
void headway_http_listener_stop (HeadwayHttpListener *self);

const char *headway_http_listener_get_uri (HeadwayHttpListener *self);
const HeadwayHttpPlace *headway_http_listener_get_place (HeadwayHttpListener *self);

G_END_DECLS
