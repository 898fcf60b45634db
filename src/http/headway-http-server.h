/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-bus-table.h"
#include "http/headway-http-settings.h"
#include "stream/headway-stream-hub.h"

G_BEGIN_DECLS

#define HEADWAY_TYPE_HTTP_SERVER (headway_http_server_get_type ())
G_DECLARE_FINAL_TYPE (HeadwayHttpServer, headway_http_server, HEADWAY, HTTP_SERVER, GObject)

/**
 * HeadwayHttpServer:
 *
 * The HTTP side of the daemon (http-api.md): any number of listeners, one libsoup server that only
 * parses and answers, and the streams.
 *
 * Signals: `drained ()` when, after headway_http_server_shut_down(), the last connection is gone.
 *
 * @table: referenced
 * @hub: referenced: its streams, and those of others
 */
HeadwayHttpServer *headway_http_server_new (HeadwayBusTable *table,
                                            HeadwayStreamHub *hub,
                                            const HeadwayHttpSettings *settings);

/* Applies at once; caps to new connections. */
void headway_http_server_set_settings (HeadwayHttpServer *self, const HeadwayHttpSettings *settings);
const HeadwayHttpSettings *headway_http_server_get_settings (HeadwayHttpServer *self);

/* Listens on a Unix socket at @path, mode 0600. A socket that nobody listens on any more is replaced. */
gboolean headway_http_server_listen_unix (HeadwayHttpServer *self, const char *path, GError **error);
/* @address: "127.0.0.1:8787", "[::1]:0", "localhost:80"; no names but that one are looked up. */
gboolean headway_http_server_listen_tcp (HeadwayHttpServer *self, const char *address, GError **error);
/* @fd: (transfer full): a listening stream socket, as systemd passes them. */
gboolean headway_http_server_listen_fd (HeadwayHttpServer *self, int fd, GError **error);

/* "http://127.0.0.1:8787", "unix:/run/…/http.sock". (transfer full) */
char **headway_http_server_get_uris (HeadwayHttpServer *self);

/* Stops accepting, ends idle connections, refuses further requests. Streams end by themselves once
 * their bus is closed, within the drain window. */
void headway_http_server_shut_down (HeadwayHttpServer *self);
gboolean headway_http_server_is_shut_down (HeadwayHttpServer *self);

/* TRUE while nobody is connected. */
gboolean headway_http_server_is_idle (HeadwayHttpServer *self);
guint headway_http_server_get_n_connections (HeadwayHttpServer *self);

/* (transfer none) */
HeadwayBusTable *headway_http_server_get_table (HeadwayHttpServer *self);
HeadwayStreamHub *headway_http_server_get_hub (HeadwayHttpServer *self);

/* Room for bodies that are being collected, of all requests together. FALSE: there is none. */
gboolean headway_http_server_reserve (HeadwayHttpServer *self, gsize bytes);
void headway_http_server_unreserve (HeadwayHttpServer *self, gsize bytes);

G_END_DECLS
