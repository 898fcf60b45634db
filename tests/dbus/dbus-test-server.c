/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-names.h"
#include "dbus/headway-dbus-service.h"
#include "handler/headway-handler-clock.h"
#include "wire/headway-clock.h"

#include <stdio.h>

/* The D-Bus side of headwayd alone: the engine's table, a store that can be told to stall, the
 * service, the name. What tests must be able to make happen or see is at TEST_PATH. It says "ready"
 * on stdout, and leaves when its standard input ends or the message bus goes. */

#define TEST_PATH "/test"

static const char test_xml[] =
  "<node><interface name='org.headway.Test'>"
  "<method name='ShutDown'/>"
  "<method name='ShutDownTable'/>"
  "<method name='IsIdle'><arg type='b' direction='out'/></method>"
  "<method name='PeerCount'><arg type='u' direction='out'/></method>"
  "<method name='CloseBus'><arg type='s' direction='in'/></method>"
  "<method name='StallIds'><arg type='b' direction='in'/></method>"
  "<method name='RefuseIds'/>"
  "<method name='SetRates'><arg type='t' direction='in'/><arg type='t' direction='in'/></method>"
  "<method name='SetRoute'><arg type='u' direction='in'/><arg type='u' direction='in'/>"
  "<arg type='u' direction='in'/><arg type='u' direction='in'/></method>"
  "<method name='SetStreamTimes'><arg type='u' direction='in'/><arg type='u' direction='in'/><arg type='u' direction='in'/></method>"
  "<method name='StreamCount'><arg type='u' direction='out'/></method>"
  "<method name='LingeringCount'><arg type='u' direction='out'/></method>"
  "<method name='SetHttpUris'><arg type='as' direction='in'/></method>"
  "</interface></node>";

/* --- The store ------------------------------------------------------------------------------ */

typedef struct
{
  HeadwayBus *bus; /* owned */
  guint64 up_to;
} Request;

struct _TestStore
{
  GObject parent_instance;
  HeadwayBusTable *table; /* borrowed: it owns self */
  gboolean is_stalled;
  GQueue requests; /* Request (owned) */
  guint answer;
};

#define TEST_TYPE_STORE (test_store_get_type ())
G_DECLARE_FINAL_TYPE (TestStore, test_store, TEST, STORE, GObject)

static void test_store_iface_init (HeadwayBusStoreInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (TestStore, test_store, G_TYPE_OBJECT, G_IMPLEMENT_INTERFACE (HEADWAY_TYPE_BUS_STORE, test_store_iface_init))

static gboolean
on_answer (gpointer user_data)
{
  TestStore *self = user_data;
  Request *request;

  self->answer = 0;
  while (!self->is_stalled && (request = g_queue_pop_head (&self->requests)) != NULL)
    {
      headway_bus_table_ids_granted (self->table, request->bus, request->up_to, headway_clock_now ());
      g_object_unref (request->bus);
      g_free (request);
    }
  return G_SOURCE_REMOVE;
}

static void
test_store_answer (TestStore *self)
{
  if (self->answer == 0)
    self->answer = g_idle_add (on_answer, self);
}

static void
test_store_refuse (TestStore *self)
{
  Request *request;

  while ((request = g_queue_pop_head (&self->requests)) != NULL)
    {
      headway_bus_table_ids_refused (self->table, request->bus, "the test says so");
      g_object_unref (request->bus);
      g_free (request);
    }
}

static guint64
get_mark (HeadwayBusStore *store, const char *name)
{
  return 0;
}

static void
reserve (HeadwayBusStore *store, HeadwayBus *bus, guint64 up_to)
{
  TestStore *self = TEST_STORE (store);
  Request *request = g_new (Request, 1);

  *request = (Request){ g_object_ref (bus), up_to };
  g_queue_push_tail (&self->requests, request);
  test_store_answer (self);
}

static void
forget (HeadwayBusStore *store, HeadwayBus *bus)
{
}

static void
test_store_iface_init (HeadwayBusStoreInterface *iface)
{
  iface->get_mark = get_mark;
  iface->reserve = reserve;
  iface->forget = forget;
}

static void
test_store_dispose (GObject *object)
{
  TestStore *self = TEST_STORE (object);
  Request *request;

  g_clear_handle_id (&self->answer, g_source_remove);
  while ((request = g_queue_pop_head (&self->requests)) != NULL)
    {
      g_object_unref (request->bus);
      g_free (request);
    }
  G_OBJECT_CLASS (test_store_parent_class)->dispose (object);
}

static void
test_store_class_init (TestStoreClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = test_store_dispose;
}

static void
test_store_init (TestStore *self)
{
  g_queue_init (&self->requests);
}

/* --- The program ---------------------------------------------------------------------------- */

typedef struct
{
  GMainLoop *loop;
  HeadwayBusTable *table;
  HeadwayStreamHub *hub;
  HeadwayDBusService *service;
  TestStore *store;
  guint work;
} Server;

static gboolean
on_work (gpointer user_data)
{
  Server *self = user_data;

  if (headway_bus_table_run (self->table, headway_clock_now ()))
    return G_SOURCE_CONTINUE;
  self->work = 0;
  return G_SOURCE_REMOVE;
}

static void
on_work_pending (HeadwayBusTable *table, Server *self)
{
  if (self->work == 0)
    self->work = g_idle_add_full (G_PRIORITY_DEFAULT, on_work, self, NULL);
}

static void
on_collect_metrics (HeadwayBusTable *table, Server *self)
{
  headway_stream_hub_collect (self->hub, headway_bus_table_get_metrics (table));
}

static gboolean
on_tick (gpointer user_data)
{
  Server *self = user_data;

  headway_bus_table_tick (self->table, headway_clock_now (), 5 * G_USEC_PER_SEC);
  return G_SOURCE_CONTINUE;
}

static GVariant *
run_test_method (Server *self, const char *method, GVariant *parameters)
{
  g_autoptr (GError) error = NULL;

  if (g_str_equal (method, "ShutDown"))
    headway_dbus_service_shut_down (self->service);
  else if (g_str_equal (method, "ShutDownTable"))
    headway_bus_table_shut_down (self->table);
  else if (g_str_equal (method, "IsIdle"))
    return g_variant_new ("(b)", headway_dbus_service_is_idle (self->service));
  else if (g_str_equal (method, "PeerCount"))
    return g_variant_new ("(u)", headway_dbus_service_get_n_peers (self->service));
  else if (g_str_equal (method, "CloseBus"))
    {
      const char *name;
      g_variant_get (parameters, "(&s)", &name);
      headway_bus_close (headway_bus_table_lookup (self->table, name, &error));
    }
  else if (g_str_equal (method, "StallIds"))
    {
      g_variant_get (parameters, "(b)", &self->store->is_stalled);
      test_store_answer (self->store);
    }
  else if (g_str_equal (method, "SetRates"))
    {
      HeadwayLimits *limits = headway_bus_table_get_limits (self->table);
      g_variant_get (parameters, "(tt)", &limits->principal_bytes_per_second, &limits->principal_events_per_second);
    }
  else if (g_str_equal (method, "SetRoute"))
    {
      HeadwayLimits *limits = headway_bus_table_get_limits (self->table);
      g_variant_get (parameters, "(uuuu)", &limits->route_quantum_bytes, &limits->route_principal_messages,
                     &limits->route_messages, &limits->route_principals);
    }
  else if (g_str_equal (method, "SetStreamTimes"))
    {
      guint heartbeat_ms, idle_ms, drain_ms;
      g_variant_get (parameters, "(uuu)", &heartbeat_ms, &idle_ms, &drain_ms);
      headway_stream_hub_set_times (self->hub, heartbeat_ms, idle_ms, drain_ms);
    }
  else if (g_str_equal (method, "StreamCount"))
    return g_variant_new ("(u)", headway_stream_hub_get_n_streams (self->hub));
  else if (g_str_equal (method, "LingeringCount"))
    return g_variant_new ("(u)", headway_stream_hub_get_n_lingering (self->hub));
  else if (g_str_equal (method, "RefuseIds"))
    test_store_refuse (self->store);
  else if (g_str_equal (method, "SetHttpUris"))
    {
      g_autofree const char **uris = NULL;
      g_variant_get (parameters, "(^a&s)", &uris);
      headway_dbus_service_set_http_uris (self->service, uris);
    }
  return NULL;
}

static void
on_test_call (GDBusConnection *connection,
              const char *sender,
              const char *path,
              const char *interface,
              const char *method,
              GVariant *parameters,
              GDBusMethodInvocation *invocation,
              gpointer user_data)
{
  g_dbus_method_invocation_return_value (invocation, run_test_method (user_data, method, parameters));
}

static gboolean
on_stdin (GIOChannel *channel, GIOCondition condition, gpointer user_data)
{
  g_main_loop_quit (((Server *) user_data)->loop);
  return G_SOURCE_REMOVE;
}

static void
on_name_acquired (GDBusConnection *connection, const char *name, gpointer user_data)
{
  g_print ("ready\n");
  fflush (stdout);
}

static void
export_test_object (Server *self, GDBusConnection *connection)
{
  static const GDBusInterfaceVTable vtable = { .method_call = on_test_call };
  g_autoptr (GDBusNodeInfo) info = g_dbus_node_info_new_for_xml (test_xml, NULL);

  g_dbus_connection_register_object (connection, TEST_PATH, info->interfaces[0], &vtable, self, NULL, NULL);
}

static void
run (GDBusConnection *connection, gboolean is_session, int linger_ms, int max_buses, gboolean auto_create)
{
  static const char *const capabilities[] = { "health", "session_events", NULL };
  static const char *const uris[] = { "http://127.0.0.1:1", NULL };
  const HeadwayDBusServiceInfo info = { "0.1.0", capabilities, uris, "/run/token", is_session };
  g_autoptr (TestStore) store = g_object_new (TEST_TYPE_STORE, NULL);
  g_autoptr (HeadwayBusTable) table = headway_bus_table_new (HEADWAY_BUS_STORE (store));
  g_autoptr (HeadwayStreamHub) hub = headway_stream_hub_new ();
  g_autoptr (HeadwayDBusService) service = headway_dbus_service_new (connection, table, hub, &info);
  g_autoptr (HeadwayHandlerClock) clock = headway_handler_clock_new (headway_bus_table_get_dispatcher (table));
  g_autoptr (GMainLoop) loop = g_main_loop_new (NULL, FALSE);
  g_autoptr (GIOChannel) channel = g_io_channel_unix_new (0);
  g_autoptr (GError) error = NULL;
  Server self = { loop, table, hub, service, store, 0 };
  guint tick = g_timeout_add (20, on_tick, &self);
  guint name;

  store->table = table;
  headway_bus_table_get_limits (table)->max_buses = max_buses;
  headway_bus_table_get_limits (table)->auto_create_buses = auto_create;
  /* Tests are in a hurry; those of the rates set some. */
  headway_bus_table_get_limits (table)->principal_bytes_per_second = 0;
  headway_bus_table_get_limits (table)->principal_events_per_second = 0;
  headway_bus_table_get_limits (table)->uid_bytes_per_second = 0;
  headway_bus_table_get_limits (table)->uid_events_per_second = 0;
  headway_stream_hub_set_times (hub, 15000, 60000, 5000);
  g_signal_connect (table, "work-pending", G_CALLBACK (on_work_pending), &self);
  g_signal_connect (table, "collect-metrics", G_CALLBACK (on_collect_metrics), &self);
  if (linger_ms > 0)
    headway_dbus_service_set_linger_ms (service, linger_ms);
  headway_dbus_service_spare_path (service, TEST_PATH);
  if (!headway_dbus_service_export (service, &error))
    g_assert_no_error (error);
  export_test_object (&self, connection);
  name = g_bus_own_name_on_connection (connection, HEADWAY_DBUS_NAME, G_BUS_NAME_OWNER_FLAGS_NONE,
                                       on_name_acquired, NULL, NULL, NULL);
  g_io_add_watch (channel, G_IO_IN | G_IO_HUP, on_stdin, &self);
  g_signal_connect_swapped (connection, "closed", G_CALLBACK (g_main_loop_quit), loop);
  g_main_loop_run (loop);

  g_signal_handlers_disconnect_by_func (connection, g_main_loop_quit, loop);
  g_bus_unown_name (name);
  g_source_remove (tick);
  g_clear_handle_id (&self.work, g_source_remove);
}

int
main (int argc, char *argv[])
{
  gboolean is_system = FALSE;
  gboolean no_auto_create = FALSE;
  int linger_ms = 0;
  int max_buses = 1024;
  const GOptionEntry entries[] = {
    { "system", 0, 0, G_OPTION_ARG_NONE, &is_system, "Rules of a system instance", NULL },
    { "no-auto-create", 0, 0, G_OPTION_ARG_NONE, &no_auto_create, "GetBus creates nothing", NULL },
    { "linger-ms", 0, 0, G_OPTION_ARG_INT, &linger_ms, "Life of an ended subscription", "MS" },
    { "max-buses", 0, 0, G_OPTION_ARG_INT, &max_buses, "Buses at a time", "N" },
    { NULL },
  };
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);
  g_autoptr (GDBusConnection) connection = NULL;
  g_autoptr (GError) error = NULL;

  g_option_context_add_main_entries (context, entries, NULL);
  if (g_option_context_parse (context, &argc, &argv, &error))
    connection = g_bus_get_sync (G_BUS_TYPE_SESSION, NULL, &error);
  if (connection == NULL)
    {
      g_printerr ("%s\n", error->message);
      return 1;
    }
  g_dbus_connection_set_exit_on_close (connection, FALSE);
  run (connection, !is_system, linger_ms, max_buses, !no_auto_create);
  return 0;
}
