/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "daemon/headway-daemon.h"

#include "access/headway-token.h"
#include "daemon/headway-journal.h"
#include "daemon/headway-name-holder.h"
#include "daemon/headway-service-manager.h"
#include "daemon/headway-settings.h"
#include "daemon/headway-state-store.h"
#include "daemon/headway-storm-watch.h"
#include "dbus/headway-dbus-names.h"
#include "dbus/headway-dbus-service.h"
#include "handler/headway-handler-clock.h"
#include "http/headway-http-server.h"
#include "stream/headway-stream-hub.h"
#include "wire/headway-capabilities.h"
#include "wire/headway-clock.h"

#include <glib/gi18n.h>
#include <glib/gstdio.h>
#include <json-glib/json-glib.h>
#include <errno.h>
#include <stdio.h>

#define REPLACE_WAIT_US     (10 * G_USEC_PER_SEC)
#define DEFAULT_CONFIG_FILE "/etc/headway/headway.conf"

struct _HeadwayDaemon
{
  GObject parent_instance;

  const HeadwayDaemonOptions *options; /* borrowed, outlives self */
  HeadwaySettings *settings;           /* owned */
  HeadwayStateStore *store;            /* owned */
  HeadwayBusTable *table;              /* owned */
  HeadwayStormWatch *storms;           /* owned */
  HeadwayHandlerClock *handler_clock;  /* owned */
  HeadwayStreamHub *hub;               /* owned: of all streams */
  HeadwayHttpServer *http;             /* owned, nullable: --no-http */
  HeadwayHttpSettings http_settings;   /* its strings are owned */
  GDBusConnection *connection;         /* owned */
  HeadwayDBusService *service;         /* owned */
  HeadwayNameHolder *holder;           /* owned, nullable: while --replace takes over */
  GMainLoop *loop;                     /* owned */
  char *token_file;                    /* owned, nullable: no token is asked for */
  guint owner_id;
  guint run_id;
  guint tick_id;
  gint64 idle_since_us;
  gint64 stop_us; /* 0: it does not stop */
  int status;
  gboolean has_name;
  gboolean has_lost_name; /* after it had it */
};

G_DEFINE_FINAL_TYPE (HeadwayDaemon, headway_daemon, G_TYPE_OBJECT)

static void
headway_daemon_dispose (GObject *object)
{
  HeadwayDaemon *self = HEADWAY_DAEMON (object);

  /* On an open connection GLib would release the name, which is another's by now, and complain. */
  if (self->has_lost_name)
    g_dbus_connection_close_sync (self->connection, NULL, NULL);
  g_clear_handle_id (&self->owner_id, g_bus_unown_name);
  g_clear_handle_id (&self->run_id, g_source_remove);
  g_clear_handle_id (&self->tick_id, g_source_remove);
  g_clear_object (&self->holder);
  g_clear_object (&self->service);
  g_clear_object (&self->http);
  g_clear_object (&self->hub);
  g_clear_pointer (&self->handler_clock, headway_handler_clock_free);
  g_clear_pointer (&self->storms, headway_storm_watch_free);
  g_clear_object (&self->table);
  g_clear_object (&self->store);
  g_clear_object (&self->settings);
  g_clear_object (&self->connection);
  G_OBJECT_CLASS (headway_daemon_parent_class)->dispose (object);
}

static void
headway_daemon_finalize (GObject *object)
{
  HeadwayDaemon *self = HEADWAY_DAEMON (object);

  headway_http_settings_clear (&self->http_settings);
  g_main_loop_unref (self->loop);
  g_free (self->token_file);
  G_OBJECT_CLASS (headway_daemon_parent_class)->finalize (object);
}

static void
headway_daemon_class_init (HeadwayDaemonClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->dispose = headway_daemon_dispose;
  object_class->finalize = headway_daemon_finalize;
}

static void
headway_daemon_init (HeadwayDaemon *self)
{
  self->loop = g_main_loop_new (NULL, FALSE);
  headway_http_settings_init (&self->http_settings);
}

HeadwayDaemon *
headway_daemon_new (const HeadwayDaemonOptions *options)
{
  HeadwayDaemon *self = g_object_new (HEADWAY_TYPE_DAEMON, NULL);

  self->options = options;
  return self;
}

/* --- Settings ------------------------------------------------------------------------------- */

static void
apply_settings (HeadwayDaemon *self)
{
  HeadwayHttpSettings *http = &self->http_settings;

  headway_settings_get_limits (self->settings, headway_bus_table_get_limits (self->table));
  g_strfreev (http->allowed_origins);
  http->allowed_origins = headway_settings_get_strv (self->settings, "http-allowed-origins");
  http->max_connections = headway_settings_get_uint (self->settings, "http-max-connections");
  http->heartbeat_ms = headway_settings_get_uint (self->settings, "heartbeat-ms");
  http->writer_idle_timeout_ms = headway_settings_get_uint (self->settings, "writer-idle-timeout-ms");
  http->drain_window_ms = headway_settings_get_uint (self->settings, "drain-window-ms");
  if (http->writer_idle_timeout_ms > 0 &&
      (http->heartbeat_ms == 0 || http->heartbeat_ms >= http->writer_idle_timeout_ms))
    g_warning ("writer-idle-timeout-ms (%u) is not above heartbeat-ms (%u): quiet readers are cut off",
               http->writer_idle_timeout_ms, http->heartbeat_ms);
  headway_stream_hub_set_times (self->hub, http->heartbeat_ms, http->writer_idle_timeout_ms, http->drain_window_ms);
  if (self->http != NULL)
    headway_http_server_set_settings (self->http, http);
}

static void
log_limits (HeadwayDaemon *self)
{
  const HeadwayLimits *limits = headway_bus_table_get_limits (self->table);

  g_message ("limits: %u buses, rings of %u events and %" G_GUINT64_FORMAT " bytes, %u subscribers a bus, "
             "%" G_GUINT64_FORMAT " bytes an event",
             limits->max_buses, limits->bus.ring_size, limits->bus.ring_max_bytes,
             limits->bus.max_subscribers, limits->event_max_bytes);
}

/* --- The engine's turns --------------------------------------------------------------------- */

static gboolean
on_run (gpointer user_data)
{
  HeadwayDaemon *self = user_data;

  if (headway_bus_table_run (self->table, headway_clock_now ()))
    return G_SOURCE_CONTINUE;
  self->run_id = 0;
  return G_SOURCE_REMOVE;
}

static void
on_work_pending (HeadwayBusTable *table, HeadwayDaemon *self)
{
  if (self->run_id == 0)
    self->run_id = g_idle_add_full (G_PRIORITY_DEFAULT, on_run, self, NULL);
}

static void
on_security_report (HeadwayBusTable *table, const HeadwaySecurityReport *report, HeadwayDaemon *self)
{
  headway_journal_write_security (report);
}

static void
on_collect_metrics (HeadwayBusTable *table, HeadwayDaemon *self)
{
  headway_stream_hub_collect (self->hub, headway_bus_table_get_metrics (table));
}

static gboolean
has_events (HeadwayDaemon *self)
{
  g_autoptr (GPtrArray) buses = headway_bus_table_list (self->table);

  for (guint i = 0; i < buses->len; i++)
    if (headway_ring_get_length (headway_bus_get_ring (g_ptr_array_index (buses, i))) > 0)
      return TRUE;
  return FALSE;
}

/* decisions.md 8: only while nobody is there and no ring would be lost. */
static gboolean
is_idle (HeadwayDaemon *self)
{
  return headway_dbus_service_is_idle (self->service) &&
         (self->http == NULL || headway_http_server_is_idle (self->http)) &&
         headway_stream_hub_get_n_streams (self->hub) == 0 && !has_events (self);
}

static void
check_idle (HeadwayDaemon *self, HeadwayInstant now)
{
  if (self->options->idle_exit_seconds == 0)
    return;
  if (!is_idle (self))
    self->idle_since_us = now.monotonic_us;
  else if (now.monotonic_us - self->idle_since_us >= self->options->idle_exit_seconds * (gint64) G_USEC_PER_SEC)
    headway_daemon_stop (self);
}

static gboolean
has_drained (HeadwayDaemon *self)
{
  return headway_bus_table_is_drained (self->table) && headway_stream_hub_get_n_streams (self->hub) == 0 &&
         (self->http == NULL || headway_http_server_is_idle (self->http)) &&
         (self->service == NULL || headway_dbus_service_get_n_publishers (self->service) == 0);
}

static void
check_stopped (HeadwayDaemon *self, HeadwayInstant now)
{
  if (has_drained (self) || now.monotonic_us >= self->stop_us)
    g_main_loop_quit (self->loop);
}

static gboolean
on_tick (gpointer user_data)
{
  HeadwayDaemon *self = user_data;
  HeadwayInstant now = headway_clock_now ();

  if (self->stop_us > 0)
    {
      check_stopped (self, now);
      return G_SOURCE_CONTINUE;
    }
  headway_storm_watch_tick (self->storms, now);
  headway_bus_table_tick (self->table, now, self->http_settings.drain_window_ms * (gint64) 1000);
  check_idle (self, now);
  return G_SOURCE_CONTINUE;
}

/* --- Start ---------------------------------------------------------------------------------- */

static gboolean
open_bus (HeadwayDaemon *self, GError **error)
{
  GBusType type = self->options->is_system ? G_BUS_TYPE_SYSTEM : G_BUS_TYPE_SESSION;
  g_autofree char *address = self->options->bus_address != NULL
                               ? g_strdup (self->options->bus_address)
                               : g_dbus_address_get_for_bus_sync (type, NULL, error);

  if (address == NULL)
    return FALSE;
  if (self->options->may_replace)
    {
      self->holder = headway_name_holder_new (address, HEADWAY_DBUS_NAME, error);
      if (self->holder == NULL)
        return FALSE;
    }
  self->connection = g_dbus_connection_new_for_address_sync (
    address,
    G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT | G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION,
    NULL, NULL, error);
  return self->connection != NULL;
}

static gboolean
open_state (HeadwayDaemon *self, GError **error)
{
  gint64 wait_us = self->options->may_replace ? REPLACE_WAIT_US : 0;

  self->store = headway_state_store_open (self->options->state_dir, wait_us, error);
  if (self->store == NULL)
    return FALSE;
  self->table = headway_bus_table_new (HEADWAY_BUS_STORE (self->store));
  self->storms = headway_storm_watch_new (self->table);
  self->handler_clock = headway_handler_clock_new (headway_bus_table_get_dispatcher (self->table));
  self->hub = headway_stream_hub_new ();
  g_signal_connect_object (self->table, "work-pending", G_CALLBACK (on_work_pending), self, 0);
  g_signal_connect_object (self->table, "security-report", G_CALLBACK (on_security_report), self, 0);
  g_signal_connect_object (self->table, "collect-metrics", G_CALLBACK (on_collect_metrics), self, 0);
  return TRUE;
}

/* A token that is there already stays, so that clients come through a restart. */
static gboolean
make_token (HeadwayDaemon *self, GError **error)
{
  HeadwayHttpSettings *http = &self->http_settings;

  http->needs_token = self->options->has_auth;
  if (!http->needs_token)
    return TRUE;
  self->token_file = g_build_filename (self->options->runtime_dir, "token", NULL);
  http->token = headway_token_load (self->token_file, NULL);
  if (http->token != NULL)
    return TRUE;
  http->token = headway_token_generate (error);
  return http->token != NULL && headway_token_save (self->token_file, http->token, error);
}

static gboolean
listen_on_addresses (HeadwayDaemon *self, GError **error)
{
  g_auto (GStrv) configured = headway_settings_get_strv (self->settings, "http-addresses");
  char **addresses = self->options->http_addresses != NULL ? self->options->http_addresses : configured;

  for (guint i = 0; addresses[i] != NULL; i++)
    if (!headway_http_server_listen_tcp (self->http, addresses[i], error))
      return FALSE;
  return TRUE;
}

static gboolean
open_http (HeadwayDaemon *self, GError **error)
{
  g_autoptr (GArray) sockets = NULL;

  if (!self->options->has_http)
    return TRUE;
  if (g_mkdir_with_parents (self->options->runtime_dir, 0700) < 0)
    {
      int code = errno;
      g_set_error (error, G_IO_ERROR, g_io_error_from_errno (code), _ ("cannot use the runtime directory %s: %s"),
                   self->options->runtime_dir, g_strerror (code));
      return FALSE;
    }
  if (!make_token (self, error))
    return FALSE;
  self->http_settings.is_session = !self->options->is_system;
  self->http = headway_http_server_new (self->table, self->hub, &self->http_settings);

  sockets = headway_service_manager_take_sockets ();
  for (guint i = 0; i < sockets->len; i++)
    if (!headway_http_server_listen_fd (self->http, g_array_index (sockets, int, i), error))
      return FALSE;
  if (sockets->len > 0)
    return TRUE;
  return headway_http_server_listen_unix (self->http, self->options->http_socket, error) &&
         listen_on_addresses (self, error);
}

static gboolean
open_service (HeadwayDaemon *self, GError **error)
{
  g_auto (GStrv) uris = self->http != NULL ? headway_http_server_get_uris (self->http) : NULL;
  g_auto (GStrv) features = headway_capabilities_list (self->http_settings.writer_idle_timeout_ms > 0);
  HeadwayDBusServiceInfo info = {
    .version = PACKAGE_VERSION,
    .capabilities = (const char *const *) features,
    .http_uris = (const char *const *) uris,
    .http_token_file = self->token_file,
    .is_session = !self->options->is_system,
  };

  self->service = headway_dbus_service_new (self->connection, self->table, self->hub, &info);
  return headway_dbus_service_export (self->service, error);
}

gboolean
headway_daemon_start (HeadwayDaemon *self, GError **error)
{
  const char *default_file = self->options->is_system ? DEFAULT_CONFIG_FILE : NULL;

  self->settings = headway_settings_new (self->options->config_file, default_file, error);
  if (self->settings == NULL || !open_bus (self, error) || !open_state (self, error))
    return FALSE;
  apply_settings (self);
  /* Before any listener and before the name, so that nobody finds a bus missing (decisions.md 3). */
  headway_state_store_restore (self->store, self->table);
  if (!open_http (self, error) || !open_service (self, error))
    return FALSE;
  log_limits (self);
  g_signal_connect_object (self->settings, "changed", G_CALLBACK (apply_settings), self, G_CONNECT_SWAPPED);
  return TRUE;
}

/* --- The name ------------------------------------------------------------------------------- */

static void
append_uris (JsonBuilder *builder, char **uris)
{
  json_builder_set_member_name (builder, "http");
  json_builder_begin_array (builder);
  for (guint i = 0; uris != NULL && uris[i] != NULL; i++)
    json_builder_add_string_value (builder, uris[i]);
  json_builder_end_array (builder);
}

static void
print_ready_line (HeadwayDaemon *self)
{
  g_autoptr (JsonBuilder) builder = json_builder_new ();
  g_autoptr (JsonNode) root = NULL;
  g_auto (GStrv) uris = self->http != NULL ? headway_http_server_get_uris (self->http) : NULL;
  g_autofree char *line = NULL;

  json_builder_begin_object (builder);
  json_builder_set_member_name (builder, "dbus");
  json_builder_add_string_value (builder, HEADWAY_DBUS_NAME);
  append_uris (builder, uris);
  if (self->token_file != NULL)
    {
      json_builder_set_member_name (builder, "tokenFile");
      json_builder_add_string_value (builder, self->token_file);
    }
  json_builder_end_object (builder);
  root = json_builder_get_root (builder);
  line = json_to_string (root, FALSE);
  g_print ("%s\n", line);
  fflush (stdout);
}

static void
on_name_acquired (GDBusConnection *connection, const char *name, gpointer user_data)
{
  HeadwayDaemon *self = user_data;

  self->has_name = TRUE;
  g_clear_object (&self->holder);
  print_ready_line (self);
  headway_service_manager_notify ("READY=1");
}

static void
on_name_lost (GDBusConnection *connection, const char *name, gpointer user_data)
{
  HeadwayDaemon *self = user_data;

  if (!self->has_name)
    {
      g_printerr (_ ("headwayd: the name %s is taken by a running instance; --replace takes it over\n"), name);
      self->status = 1;
    }
  self->has_lost_name = self->has_name;
  if (self->has_name && self->stop_us == 0)
    g_message ("the name %s is lost, stopping", name);
  headway_daemon_stop (self);
}

int
headway_daemon_run (HeadwayDaemon *self)
{
  GBusNameOwnerFlags flags = G_BUS_NAME_OWNER_FLAGS_ALLOW_REPLACEMENT | G_BUS_NAME_OWNER_FLAGS_DO_NOT_QUEUE;
  g_autoptr (GError) error = NULL;

  if (self->holder != NULL)
    flags |= G_BUS_NAME_OWNER_FLAGS_REPLACE;
  self->idle_since_us = g_get_monotonic_time ();
  self->tick_id = g_timeout_add_seconds (1, on_tick, self);
  self->owner_id = g_bus_own_name_on_connection (self->connection, HEADWAY_DBUS_NAME, flags,
                                                 on_name_acquired, on_name_lost, self, NULL);
  g_main_loop_run (self->loop);

  /* Answers that are still on their way to callers would go with the process. */
  if (!g_dbus_connection_is_closed (self->connection))
    g_dbus_connection_flush_sync (self->connection, NULL, NULL);
  if (!headway_state_store_close (self->store, &error))
    g_warning ("the exact marks could not be written, the reserved ones hold: %s", error->message);
  return self->status;
}

void
headway_daemon_stop (HeadwayDaemon *self)
{
  HeadwayInstant now = headway_clock_now ();

  if (self->stop_us > 0)
    return;
  self->stop_us = now.monotonic_us + self->http_settings.drain_window_ms * (gint64) 1000;
  headway_service_manager_notify ("STOPPING=1");
  if (self->service != NULL)
    headway_dbus_service_shut_down (self->service);
  if (self->http != NULL)
    headway_http_server_shut_down (self->http);
  if (self->table != NULL)
    headway_bus_table_shut_down (self->table);
  g_clear_handle_id (&self->tick_id, g_source_remove);
  self->tick_id = g_timeout_add (20, on_tick, self);
}
