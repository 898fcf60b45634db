/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-server.h"

#include "http/headway-http-farewell.h"
#include "http/headway-http-gate.h"
#include "http/headway-http-header.h"
#include "http/headway-http-listener.h"
#include "http/headway-http-route.h"
#include "wire/headway-clock.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* libsoup parses requests and writes answers; everything about sockets is ours. Each accepted socket
 * becomes a HeadwayHttpConnection, which libsoup gets as a plain stream; each header block becomes a
 * HeadwayHttpRequest, which goes through the gate to its route before libsoup reads any body. */

/* What all requests together may have collected. */
#define BODIES_BYTES_MAX (64 * 1024 * 1024)

struct _HeadwayHttpServer
{
  GObject parent_instance;

  HeadwayBusTable *table; /* owned */
  HeadwayHttpSettings settings;
  SoupServer *soup;        /* owned */
  HeadwayStreamHub *hub;   /* owned */
  GPtrArray *listeners;    /* HeadwayHttpListener (owned) */
  GHashTable *connections; /* HeadwayHttpConnection (owned) → itself */
  GHashTable *users;       /* uid → number of its connections */
  guint tick_id;           /* while there are connections */
  gsize bodies_bytes;
  gboolean is_shut_down;
};

enum
{
  SIGNAL_DRAINED,
  N_SIGNALS
};

static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE (HeadwayHttpServer, headway_http_server, G_TYPE_OBJECT)

/* --- Connections ---------------------------------------------------------------------------- */

static guint
count_user (HeadwayHttpServer *self, guint32 uid, int change)
{
  gpointer key = GUINT_TO_POINTER (uid);
  guint n = GPOINTER_TO_UINT (g_hash_table_lookup (self->users, key));

  if (change == 0)
    return n;
  n = (guint) ((int) n + change);
  if (n > 0)
    g_hash_table_insert (self->users, key, GUINT_TO_POINTER (n));
  else
    g_hash_table_remove (self->users, key);
  return n;
}

/* TCP and Unix sockets have the cap each: whoever fills the one, without a token even, must not shut the
 * owner out of the other. */
static gboolean
has_room (HeadwayHttpServer *self, guint32 uid)
{
  guint n_tcp = count_user (self, HEADWAY_UID_NOBODY, 0);
  guint n_alike = uid == HEADWAY_UID_NOBODY ? n_tcp : g_hash_table_size (self->connections) - n_tcp;

  if (n_alike >= self->settings.max_connections)
    return FALSE;
  if (uid == HEADWAY_UID_NOBODY || uid == 0 || uid == (guint32) getuid () || self->settings.max_user_connections == 0)
    return TRUE;
  return count_user (self, uid, 0) < self->settings.max_user_connections;
}

static void
connection_closed (HeadwayHttpConnection *connection, HeadwayHttpServer *self)
{
  guint32 uid = headway_http_connection_get_uid (connection);

  g_signal_handlers_disconnect_by_data (connection, self);
  if (!g_hash_table_remove (self->connections, connection))
    return;
  count_user (self, uid, -1);
  if (g_hash_table_size (self->connections) > 0)
    return;
  g_clear_handle_id (&self->tick_id, g_source_remove);
  if (self->is_shut_down)
    g_signal_emit (self, signals[SIGNAL_DRAINED], 0);
}

/* A header block that libsoup has seen nothing of. */
static void
refuse_block (HeadwayHttpConnection *connection, guint status)
{
  const char *text = status == 431 ? "{\"error\":\"the header block is larger than 16384 bytes\"}"
                                   : "{\"error\":\"the request is malformed\",\"code\":\"invalid_request\"}";
  GString *answer = g_string_new (NULL);
  g_autofree char *date = headway_http_date ();
  int fd;

  g_string_printf (answer,
                   "HTTP/1.1 %u %s\r\n"
                   "Date: %s\r\n"
                   "Content-Type: application/json; charset=utf-8\r\n"
                   "Content-Length: %" G_GSIZE_FORMAT "\r\n"
                   "Connection: close\r\n\r\n%s",
                   status, headway_http_get_phrase (status), date, strlen (text), text);
  fd = headway_http_connection_take_fd (connection);
  if (fd >= 0)
    headway_http_farewell (fd, answer, headway_http_connection_released, g_object_ref (connection));
  else
    g_string_free (answer, TRUE);
}

/* A header block that is too large, or that libsoup could not parse. Who may not come in learns
 * nothing else. */
static void
connection_refused (HeadwayHttpConnection *connection, HeadwayHttpServer *self)
{
  SoupServerMessage *message = headway_http_connection_get_message (connection);
  HeadwayHttpRequest *request;
  guint status = headway_http_connection_get_refusal (connection);

  if (status != 0)
    {
      refuse_block (connection, status);
      return;
    }
  if (message == NULL)
    {
      headway_http_connection_end (connection);
      return;
    }
  status = soup_server_message_get_status (message);
  request = headway_http_request_ref (headway_http_request_new (self, connection, message));
  /* libsoup is not to write anything more. */
  request->is_body_complete = FALSE;
  if (request->method == NULL || headway_http_gate_pass (request))
    headway_http_request_answer_text (request, status >= 400 ? status : 400, "invalid_request", "the request is malformed");
  headway_http_request_unref (request);
}

static gboolean
tick (gpointer user_data)
{
  HeadwayHttpServer *self = user_data;
  gint64 now_us = g_get_monotonic_time ();
  GHashTableIter iter;
  gpointer connection;

  g_hash_table_iter_init (&iter, self->connections);
  while (g_hash_table_iter_next (&iter, &connection, NULL))
    {
      if (headway_http_connection_is_late (connection, now_us))
        headway_http_connection_end (connection);
    }
  return G_SOURCE_CONTINUE;
}

static void
accepted (HeadwayHttpListener *listener, int fd, guint32 uid, gpointer user_data)
{
  HeadwayHttpServer *self = user_data;
  const HeadwayHttpPlace *place = headway_http_listener_get_place (listener);
  g_autoptr (HeadwayHttpConnection) connection = NULL;
  g_autoptr (GSocketAddress) local = NULL;
  g_autoptr (GSocketAddress) remote = NULL;
  g_autoptr (GIOStream) stream = NULL;

  if (!self->is_shut_down && !has_room (self, uid))
    {
      headway_bus_table_add_security (self->table, HEADWAY_SECURITY_CONNECTION_LIMIT, NULL, uid, NULL, headway_clock_now ());
      close (fd);
      return;
    }
  if (self->is_shut_down)
    {
      close (fd);
      return;
    }
  connection = headway_http_connection_new (fd, place, uid);
  g_signal_connect (connection, "closed", G_CALLBACK (connection_closed), self);
  g_signal_connect (connection, "refused", G_CALLBACK (connection_refused), self);
  g_hash_table_add (self->connections, g_object_ref (connection));
  count_user (self, uid, 1);
  if (self->tick_id == 0)
    self->tick_id = g_timeout_add_seconds (1, tick, self);

  local = g_inet_socket_address_new_from_string ("127.0.0.1", place->port);
  remote = headway_http_connection_new_address (connection);
  stream = headway_http_connection_new_stream (connection);
  soup_server_accept_iostream (self->soup, stream, local, remote, NULL);
}

/* --- Requests ------------------------------------------------------------------------------- */

static HeadwayHttpConnection *
get_connection (SoupServerMessage *message)
{
  return headway_http_connection_from_address (soup_server_message_get_remote_address (message));
}

/* The first request of a connection starts when it is accepted, the others with their first byte. */
static void
request_started (SoupServer *soup, SoupServerMessage *message, HeadwayHttpServer *self)
{
  HeadwayHttpConnection *connection = get_connection (message);

  if (connection == NULL)
    return;
  headway_http_connection_set_message (connection, message);
  headway_http_connection_set_phase (connection, HEADWAY_HTTP_PHASE_HEADERS);
}

static void
request_ended (SoupServer *soup, SoupServerMessage *message, HeadwayHttpServer *self)
{
  HeadwayHttpConnection *connection = get_connection (message);

  if (connection == NULL)
    return;
  headway_http_connection_set_phase (connection, HEADWAY_HTTP_PHASE_IDLE);
  if (self->is_shut_down)
    headway_http_connection_finish (connection);
}

/* The header block is there, the body is not read yet. */
static void
got_header (SoupServer *soup, SoupServerMessage *message, const char *path, GHashTable *query, gpointer user_data)
{
  HeadwayHttpServer *self = user_data;
  HeadwayHttpConnection *connection = get_connection (message);
  HeadwayHttpRequest *request;
  SoupEncoding encoding;

  /* From nowhere we know of. */
  if (connection == NULL)
    {
      soup_server_message_set_status (message, SOUP_STATUS_FORBIDDEN, NULL);
      return;
    }
  encoding = soup_message_headers_get_encoding (soup_server_message_get_request_headers (message));
  headway_http_connection_begin_body (connection, encoding == SOUP_ENCODING_CHUNKED);
  request = headway_http_request_ref (headway_http_request_new (self, connection, message));
  if (self->is_shut_down)
    headway_http_request_answer_text (request, 503, "unavailable", "the server is stopping");
  else if (headway_http_gate_pass (request))
    headway_http_route (request);
  headway_http_request_unref (request);
}

static void
got_body (SoupServer *soup, SoupServerMessage *message, const char *path, GHashTable *query, gpointer user_data)
{
  HeadwayHttpRequest *request = headway_http_request_from_message (message);

  if (request != NULL)
    headway_http_request_body_done (request);
}

/* Whoever is answered soon, or now, is waited for. */
static void
stop_connection (HeadwayHttpConnection *connection)
{
  HeadwayHttpPhase phase = headway_http_connection_get_phase (connection);
  SoupServerMessage *message = headway_http_connection_get_message (connection);
  HeadwayHttpRequest *request = message != NULL ? headway_http_request_from_message (message) : NULL;

  if (phase == HEADWAY_HTTP_PHASE_IDLE || phase == HEADWAY_HTTP_PHASE_HEADERS)
    headway_http_connection_finish (connection);
  else if (request != NULL && headway_http_request_is_open (request))
    headway_http_request_stop (request);
  else if (phase == HEADWAY_HTTP_PHASE_STREAM)
    headway_http_connection_end (connection);
}

/* --- Life ----------------------------------------------------------------------------------- */

/* libsoup 3.2 keeps connections alive only while it has a listener of its own (trap S8): it gets one
 * that nobody can reach. */
static void
add_dead_listener (HeadwayHttpServer *self)
{
  g_autofree char *folder = g_dir_make_tmp ("headway-XXXXXX", NULL);
  g_autofree char *path = g_build_filename (folder != NULL ? folder : "/nonexistent", "s", NULL);
  g_autoptr (GSocketAddress) address = g_unix_socket_address_new (path);
  g_autoptr (GSocket) socket = g_socket_new (G_SOCKET_FAMILY_UNIX, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_DEFAULT, NULL);
  g_autoptr (GError) error = NULL;

  if (!g_socket_bind (socket, address, FALSE, &error) || !g_socket_listen (socket, &error) ||
      !soup_server_listen_socket (self->soup, socket, 0, &error))
    g_warning ("HTTP connections end after each answer: %s", error->message);
  g_unlink (path);
  if (folder != NULL)
    g_rmdir (folder);
}

static void
headway_http_server_dispose (GObject *object)
{
  HeadwayHttpServer *self = HEADWAY_HTTP_SERVER (object);
  GHashTableIter iter;
  gpointer connection;

  g_clear_handle_id (&self->tick_id, g_source_remove);
  g_ptr_array_set_size (self->listeners, 0);
  g_hash_table_iter_init (&iter, self->connections);
  while (g_hash_table_iter_next (&iter, &connection, NULL))
    g_signal_handlers_disconnect_by_data (connection, self);
  if (self->soup != NULL)
    {
      g_signal_handlers_disconnect_by_data (self->soup, self);
      soup_server_disconnect (self->soup);
    }
  g_clear_object (&self->soup);
  g_clear_object (&self->hub);
  g_hash_table_remove_all (self->connections);
  g_clear_object (&self->table);
  G_OBJECT_CLASS (headway_http_server_parent_class)->dispose (object);
}

static void
headway_http_server_finalize (GObject *object)
{
  HeadwayHttpServer *self = HEADWAY_HTTP_SERVER (object);

  g_ptr_array_unref (self->listeners);
  g_hash_table_unref (self->connections);
  g_hash_table_unref (self->users);
  headway_http_settings_clear (&self->settings);
  G_OBJECT_CLASS (headway_http_server_parent_class)->finalize (object);
}

static void
headway_http_server_class_init (HeadwayHttpServerClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->dispose = headway_http_server_dispose;
  object_class->finalize = headway_http_server_finalize;
  signals[SIGNAL_DRAINED] = g_signal_new ("drained", G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                          NULL, G_TYPE_NONE, 0);
}

static void
headway_http_server_init (HeadwayHttpServer *self)
{
  headway_http_settings_init (&self->settings);
  self->listeners = g_ptr_array_new_with_free_func (g_object_unref);
  self->connections = g_hash_table_new_full (NULL, NULL, g_object_unref, NULL);
  self->users = g_hash_table_new (NULL, NULL);

  /* An HTTP/2 connection cannot be stolen: libsoup would abort (trap S1). */
  g_unsetenv ("SOUP_SERVER_HTTP2");
  self->soup = soup_server_new ("raw-paths", TRUE, NULL);
  g_signal_connect (self->soup, "request-started", G_CALLBACK (request_started), self);
  g_signal_connect (self->soup, "request-finished", G_CALLBACK (request_ended), self);
  g_signal_connect (self->soup, "request-aborted", G_CALLBACK (request_ended), self);
  soup_server_add_early_handler (self->soup, NULL, got_header, self, NULL);
  soup_server_add_handler (self->soup, NULL, got_body, self, NULL);
  add_dead_listener (self);
}

static void
collect_metrics (HeadwayBusTable *table, HeadwayHttpServer *self)
{
  headway_metrics_set (headway_bus_table_get_metrics (table), HEADWAY_METRIC_CONNECTIONS + HEADWAY_TRANSPORT_HTTP,
                       headway_http_server_get_n_connections (self));
}

HeadwayHttpServer *
headway_http_server_new (HeadwayBusTable *table, HeadwayStreamHub *hub, const HeadwayHttpSettings *settings)
{
  HeadwayHttpServer *self = g_object_new (HEADWAY_TYPE_HTTP_SERVER, NULL);

  self->table = g_object_ref (table);
  self->hub = g_object_ref (hub);
  g_signal_connect_object (table, "collect-metrics", G_CALLBACK (collect_metrics), self, 0);
  headway_http_server_set_settings (self, settings);
  return self;
}

void
headway_http_server_set_settings (HeadwayHttpServer *self, const HeadwayHttpSettings *settings)
{
  HeadwayHttpSettings copy;

  headway_http_settings_copy (&copy, settings);
  headway_http_settings_clear (&self->settings);
  self->settings = copy;
}

/* --- Listening ------------------------------------------------------------------------------ */

static gboolean
start_listener (HeadwayHttpServer *self, HeadwayHttpListener *listener, GError **error)
{
  const HeadwayHttpPlace *place;

  if (listener == NULL)
    return FALSE;

  place = headway_http_listener_get_place (listener);
  if (!self->settings.needs_token && !place->is_unix && !place->is_loopback)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED,
                   "%s is reachable from outside: not without a token", headway_http_listener_get_uri (listener));
      g_object_unref (listener);
      return FALSE;
    }
  g_ptr_array_add (self->listeners, listener);
  headway_http_listener_start (listener, accepted, self);
  return TRUE;
}

gboolean
headway_http_server_listen_unix (HeadwayHttpServer *self, const char *path, GError **error)
{
  return start_listener (self, headway_http_listener_new_unix (path, error), error);
}

gboolean
headway_http_server_listen_tcp (HeadwayHttpServer *self, const char *address, GError **error)
{
  return start_listener (self, headway_http_listener_new_tcp (address, error), error);
}

gboolean
headway_http_server_listen_fd (HeadwayHttpServer *self, int fd, GError **error)
{
  return start_listener (self, headway_http_listener_new_fd (fd, error), error);
}

char **
headway_http_server_get_uris (HeadwayHttpServer *self)
{
  g_autoptr (GStrvBuilder) uris = g_strv_builder_new ();

  for (guint i = 0; i < self->listeners->len; i++)
    g_strv_builder_add (uris, headway_http_listener_get_uri (g_ptr_array_index (self->listeners, i)));
  return g_strv_builder_end (uris);
}

void
headway_http_server_shut_down (HeadwayHttpServer *self)
{
  g_autoptr (GList) connections = NULL;

  if (self->is_shut_down)
    return;

  self->is_shut_down = TRUE;
  g_ptr_array_set_size (self->listeners, 0);
  /* They may go while they are told. */
  connections = g_hash_table_get_keys (self->connections);
  g_list_foreach (connections, (GFunc) (void (*) (void)) g_object_ref, NULL);
  for (GList *at = connections; at != NULL; at = at->next)
    {
      g_autoptr (HeadwayHttpConnection) connection = at->data;

      stop_connection (connection);
    }
  if (g_hash_table_size (self->connections) == 0)
    g_signal_emit (self, signals[SIGNAL_DRAINED], 0);
}

/* --- What it is ----------------------------------------------------------------------------- */

gboolean
headway_http_server_is_shut_down (HeadwayHttpServer *self)
{
  return self->is_shut_down;
}

gboolean
headway_http_server_is_idle (HeadwayHttpServer *self)
{
  return g_hash_table_size (self->connections) == 0;
}

guint
headway_http_server_get_n_connections (HeadwayHttpServer *self)
{
  return g_hash_table_size (self->connections);
}

const HeadwayHttpSettings *
headway_http_server_get_settings (HeadwayHttpServer *self)
{
  return &self->settings;
}

HeadwayBusTable *
headway_http_server_get_table (HeadwayHttpServer *self)
{
  return self->table;
}

HeadwayStreamHub *
headway_http_server_get_hub (HeadwayHttpServer *self)
{
  return self->hub;
}

gboolean
headway_http_server_reserve (HeadwayHttpServer *self, gsize bytes)
{
  if (self->bodies_bytes + bytes > BODIES_BYTES_MAX)
    return FALSE;
  self->bodies_bytes += bytes;
  return TRUE;
}

void
headway_http_server_unreserve (HeadwayHttpServer *self, gsize bytes)
{
  self->bodies_bytes -= bytes;
}
