/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-server.h"
#include "stream/headway-stream-hub.h"
#include "wire/headway-clock.h"

#include <glib-unix.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* The engine and the HTTP side without D-Bus, settings or state: what the tests of this folder run
 * against. It prints one JSON line when it is ready, stops on SIGTERM as the daemon does, and on
 * SIGUSR1 prints a JSON line with its counts. */

typedef struct
{
  HeadwayBusTable *table;
  HeadwayStreamHub *hub;
  HeadwayHttpServer *server;
  GMainLoop *loop;
  gint64 drain_window_us;
  guint work_id;
} TestServer;

static gboolean
run_table (gpointer user_data)
{
  TestServer *self = user_data;

  if (headway_bus_table_run (self->table, headway_clock_now ()))
    return G_SOURCE_CONTINUE;
  self->work_id = 0;
  return G_SOURCE_REMOVE;
}

static void
work_pending (HeadwayBusTable *table, TestServer *self)
{
  if (self->work_id == 0)
    self->work_id = g_idle_add_full (G_PRIORITY_DEFAULT, run_table, self, NULL);
}

static gboolean
tick (gpointer user_data)
{
  TestServer *self = user_data;

  headway_bus_table_tick (self->table, headway_clock_now (), self->drain_window_us);
  return G_SOURCE_CONTINUE;
}

static gboolean
stop (gpointer user_data)
{
  TestServer *self = user_data;

  headway_http_server_shut_down (self->server);
  headway_bus_table_shut_down (self->table);
  if (headway_http_server_is_idle (self->server))
    g_main_loop_quit (self->loop);
  return G_SOURCE_REMOVE;
}

static void
collect_metrics (HeadwayBusTable *table, TestServer *self)
{
  headway_stream_hub_collect (self->hub, headway_bus_table_get_metrics (table));
}

static gboolean
print_counts (gpointer user_data)
{
  TestServer *self = user_data;
  const HeadwayStreamStats *stats = headway_stream_hub_get_stats (self->hub);

  printf ("{\"connections\":%u,\"streams\":%u,\"opened\":%" G_GUINT64_FORMAT ",\"framesBuilt\":%" G_GUINT64_FORMAT
          ",\"writes\":%" G_GUINT64_FORMAT ",\"blocked\":%" G_GUINT64_FORMAT,
          headway_http_server_get_n_connections (self->server),
          headway_stream_hub_get_n_streams (self->hub),
          stats->opened, stats->frames_built, stats->writes, stats->blocked);
  for (guint i = 0; i < HEADWAY_STREAM_N_CLOSE_REASONS; i++)
    printf (",\"%s\":%" G_GUINT64_FORMAT, headway_stream_close_reason_get_name ((HeadwayStreamCloseReason) i), stats->closed[i]);
  puts ("}");
  fflush (stdout);
  return G_SOURCE_CONTINUE;
}

static void
print_ready (TestServer *self)
{
  g_auto (GStrv) uris = headway_http_server_get_uris (self->server);
  g_autofree char *list = g_strjoinv ("\",\"", uris);

  printf ("{\"http\":[\"%s\"]}\n", list);
  fflush (stdout);
}

/* KEY=NUMBER, a setting of the engine. */
static gboolean
set_limit (HeadwayLimits *limits, const char *text)
{
  const struct
  {
    const char *key;
    guint64 *large;
    guint *small;
  } settings[] = {
    { "principal-bytes-per-second", &limits->principal_bytes_per_second, NULL },
    { "principal-events-per-second", &limits->principal_events_per_second, NULL },
    { "route-budget-bytes", &limits->route_budget_bytes, NULL },
    { "route-quantum-bytes", NULL, &limits->route_quantum_bytes },
    { "route-messages", NULL, &limits->route_messages },
    { "channel-capacity", NULL, &limits->bus.channel_capacity },
    { "ring-size", NULL, &limits->bus.ring_size },
  };
  g_auto (GStrv) parts = g_strsplit (text, "=", 2);

  for (guint i = 0; i < G_N_ELEMENTS (settings) && g_strv_length (parts) == 2; i++)
    {
      guint64 value = g_ascii_strtoull (parts[1], NULL, 10);

      if (strcmp (settings[i].key, parts[0]) != 0)
        continue;
      if (settings[i].large != NULL)
        *settings[i].large = value;
      else
        *settings[i].small = (guint) value;
      return TRUE;
    }
  return FALSE;
}

static gboolean
listen_all (TestServer *self, char **addresses, const char *path, GError **error)
{
  for (guint i = 0; addresses != NULL && addresses[i] != NULL; i++)
    {
      if (!headway_http_server_listen_tcp (self->server, addresses[i], error))
        return FALSE;
    }
  return path == NULL || headway_http_server_listen_unix (self->server, path, error);
}

static HeadwayStreamHub *
new_hub (const HeadwayHttpSettings *settings)
{
  HeadwayStreamHub *hub = headway_stream_hub_new ();

  headway_stream_hub_set_times (hub, settings->heartbeat_ms, settings->writer_idle_timeout_ms, settings->drain_window_ms);
  return hub;
}

int
main (int argc, char **argv)
{
  g_auto (HeadwayHttpSettings) settings = { 0 };
  g_auto (GStrv) addresses = NULL;
  g_auto (GStrv) origins = NULL;
  g_auto (GStrv) sets = NULL;
  g_autofree char *path = NULL;
  g_autofree char *token = NULL;
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);
  g_autoptr (GError) error = NULL;
  TestServer self = { 0 };
  HeadwayLimits limits;
  struct rlimit files = { 20000, 20000 };
  int max_connections = 1024, max_subscribers = 64, heartbeat_ms = 15000, idle_ms = 60000, drain_ms = 5000;
  gint64 event_max = 1024 * 1024;
  gboolean is_system = FALSE, no_create = FALSE;
  const GOptionEntry entries[] = {
    { "address", 0, 0, G_OPTION_ARG_STRING_ARRAY, &addresses, "TCP listener", "HOST:PORT" },
    { "socket", 0, 0, G_OPTION_ARG_FILENAME, &path, "Unix listener", "PATH" },
    { "auth", 0, 0, G_OPTION_ARG_STRING, &token, "token that TCP needs", "TOKEN" },
    { "origin", 0, 0, G_OPTION_ARG_STRING_ARRAY, &origins, "allowed origin", "ORIGIN" },
    { "max-connections", 0, 0, G_OPTION_ARG_INT, &max_connections, NULL, "N" },
    { "max-subscribers", 0, 0, G_OPTION_ARG_INT, &max_subscribers, NULL, "N" },
    { "heartbeat-ms", 0, 0, G_OPTION_ARG_INT, &heartbeat_ms, NULL, "N" },
    { "writer-idle-timeout-ms", 0, 0, G_OPTION_ARG_INT, &idle_ms, NULL, "N" },
    { "drain-window-ms", 0, 0, G_OPTION_ARG_INT, &drain_ms, NULL, "N" },
    { "event-max-bytes", 0, 0, G_OPTION_ARG_INT64, &event_max, NULL, "N" },
    { "set", 0, 0, G_OPTION_ARG_STRING_ARRAY, &sets, "setting of the engine", "KEY=NUMBER" },
    { "system", 0, 0, G_OPTION_ARG_NONE, &is_system, "other users may come by Unix socket", NULL },
    { "no-auto-create", 0, 0, G_OPTION_ARG_NONE, &no_create, NULL, NULL },
    G_OPTION_ENTRY_NULL
  };

  g_option_context_add_main_entries (context, entries, NULL);
  if (!g_option_context_parse (context, &argc, &argv, &error))
    {
      g_printerr ("%s\n", error->message);
      return 2;
    }
  setrlimit (RLIMIT_NOFILE, &files);

  headway_http_settings_init (&settings);
  settings.allowed_origins = g_steal_pointer (&origins);
  settings.needs_token = token != NULL;
  settings.token = g_steal_pointer (&token);
  settings.is_session = !is_system;
  settings.max_connections = (guint) max_connections;
  settings.heartbeat_ms = (guint) heartbeat_ms;
  settings.writer_idle_timeout_ms = (guint) idle_ms;
  settings.drain_window_ms = (guint) drain_ms;
  self.drain_window_us = drain_ms * G_GINT64_CONSTANT (1000);

  self.table = headway_bus_table_new (NULL);
  headway_limits_init (&limits);
  limits.bus.max_subscribers = (guint) max_subscribers;
  limits.auto_create_buses = !no_create;
  limits.event_max_bytes = (guint64) event_max;
  for (guint i = 0; sets != NULL && sets[i] != NULL; i++)
    g_assert (set_limit (&limits, sets[i]));
  *headway_bus_table_get_limits (self.table) = limits;
  g_signal_connect (self.table, "work-pending", G_CALLBACK (work_pending), &self);
  g_signal_connect (self.table, "collect-metrics", G_CALLBACK (collect_metrics), &self);
  self.loop = g_main_loop_new (NULL, FALSE);
  self.hub = new_hub (&settings);
  self.server = headway_http_server_new (self.table, self.hub, &settings);
  g_signal_connect_swapped (self.server, "drained", G_CALLBACK (g_main_loop_quit), self.loop);
  if (!listen_all (&self, addresses, path, &error))
    {
      g_printerr ("%s\n", error->message);
      return 1;
    }
  g_unix_signal_add (SIGTERM, stop, &self);
  g_unix_signal_add (SIGUSR1, print_counts, &self);
  g_timeout_add (250, tick, &self);
  print_ready (&self);
  g_main_loop_run (self.loop);

  g_clear_object (&self.server);
  g_clear_object (&self.hub);
  g_clear_object (&self.table);
  g_main_loop_unref (self.loop);
  return 0;
}
