/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-service.h"

#include "dbus/headway-dbus-bus.h"
#include "dbus/headway-dbus-error.h"
#include "dbus/headway-dbus-manager.h"
#include "dbus/headway-dbus-names.h"
#include "dbus/headway-dbus-path.h"
#include "dbus/headway-dbus-publisher.h"
#include "dbus/headway-dbus-subscription.h"

#include <string.h>

struct _HeadwayDBusService
{
  GObject parent_instance;

  HeadwayDBusContext *context;       /* owned */
  HeadwayDBusManagerImpl *manager;   /* owned */
  GDBusObjectManagerServer *objects; /* owned */
  guint no_buses;                    /* subtree registration: paths without a bus */
  gboolean is_introspected;          /* by the question that comes next */
  GHashTable *buses;                 /* HeadwayBus (borrowed from the value) → HeadwayDBusBusImpl (owned) */
};

G_DEFINE_FINAL_TYPE (HeadwayDBusService, headway_dbus_service, G_TYPE_OBJECT)

static void
add_bus (HeadwayDBusService *self, HeadwayBus *bus)
{
  HeadwayDBusBusImpl *impl = headway_dbus_bus_impl_new (self->context, bus);
  g_autoptr (HeadwayDBusObjectSkeleton) object = headway_dbus_object_skeleton_new (headway_dbus_bus_impl_get_path (impl));

  headway_dbus_object_skeleton_set_bus (object, HEADWAY_DBUS_BUS (impl));
  g_dbus_object_manager_server_export (self->objects, G_DBUS_OBJECT_SKELETON (object));
  g_hash_table_insert (self->buses, bus, impl);
}

static void
remove_bus (HeadwayDBusService *self, HeadwayDBusBusImpl *impl)
{
  headway_dbus_bus_impl_end_fetches (impl);
  g_dbus_object_manager_server_unexport (self->objects, headway_dbus_bus_impl_get_path (impl));
}

static void
on_bus_added (HeadwayBusTable *table, HeadwayBus *bus, HeadwayDBusService *self)
{
  if (!g_hash_table_contains (self->buses, bus))
    add_bus (self, bus);
}

static void
on_bus_removed (HeadwayBusTable *table, HeadwayBus *bus, HeadwayDBusService *self)
{
  HeadwayDBusBusImpl *impl = g_hash_table_lookup (self->buses, bus);

  if (impl == NULL)
    return;
  remove_bus (self, impl);
  g_hash_table_remove (self->buses, bus);
}

static void
on_collect_metrics (HeadwayBusTable *table, HeadwayDBusService *self)
{
  headway_metrics_set (headway_bus_table_get_metrics (table), HEADWAY_METRIC_CONNECTIONS + HEADWAY_TRANSPORT_DBUS,
                       headway_dbus_service_get_n_peers (self));
}

/* --- Paths without a bus -------------------------------------------------------------------- */

/* Objects come first: a call gets here only if its path has none. For a call GDBus asks what is at the
 * path, for Introspect() first what is below: there it is told that nothing is, or every path would
 * show a bus. */

static char **
enumerate_none (GDBusConnection *connection, const char *sender, const char *path, gpointer user_data)
{
  ((HeadwayDBusService *) user_data)->is_introspected = TRUE;
  return g_new0 (char *, 1);
}

static GDBusInterfaceInfo **
introspect_none (GDBusConnection *connection, const char *sender, const char *path, const char *node, gpointer user_data)
{
  HeadwayDBusService *self = user_data;
  gboolean is_introspected = self->is_introspected;
  GDBusInterfaceInfo **infos;

  self->is_introspected = FALSE;
  if (node == NULL || is_introspected)
    return NULL;
  infos = g_new0 (GDBusInterfaceInfo *, 2);
  infos[0] = g_dbus_interface_info_ref (headway_dbus_bus_interface_info ());
  return infos;
}

/* In its turn. */
static void
refuse_none (GDBusConnection *connection,
             const char *sender,
             const char *path,
             const char *interface,
             const char *method,
             GVariant *parameters,
             GDBusMethodInvocation *invocation,
             gpointer user_data)
{
  g_autofree char *name = headway_dbus_path_to_bus (path);

  if (name != NULL)
    headway_dbus_error_refuse (invocation, HEADWAY_ERROR_NO_SUCH_BUS, "there is no bus \"%s\"", name);
  else
    headway_dbus_error_refuse (invocation, HEADWAY_ERROR_NO_SUCH_BUS, "there is no bus at %s", path);
}

static void
call_none (GDBusConnection *connection,
           const char *sender,
           const char *path,
           const char *interface,
           const char *method,
           GVariant *parameters,
           GDBusMethodInvocation *invocation,
           gpointer user_data)
{
  HeadwayDBusService *self = user_data;

  headway_dbus_peers_admit (self->context->peers, invocation, refuse_none, G_DBUS_INTERFACE_SKELETON (self->manager));
}

static const GDBusInterfaceVTable *
dispatch_none (GDBusConnection *connection,
               const char *sender,
               const char *path,
               const char *interface,
               const char *node,
               gpointer *out_user_data,
               gpointer user_data)
{
  /* Without a getter calls for properties come to call_none() too. */
  static const GDBusInterfaceVTable vtable = { call_none, NULL, NULL, { NULL } };

  *out_user_data = user_data;
  return node != NULL ? &vtable : NULL;
}

static gboolean
export_no_buses (HeadwayDBusService *self, GError **error)
{
  static const GDBusSubtreeVTable vtable = { enumerate_none, introspect_none, dispatch_none, { NULL } };
  g_autofree char *path = g_strndup (HEADWAY_DBUS_BUS_PREFIX, strlen (HEADWAY_DBUS_BUS_PREFIX) - 1);

  self->no_buses = g_dbus_connection_register_subtree (self->context->connection, path, &vtable,
                                                       G_DBUS_SUBTREE_FLAGS_DISPATCH_TO_UNENUMERATED_NODES, self, NULL,
                                                       error);
  return self->no_buses != 0;
}

/* -------------------------------------------------------------------------------------------- */

HeadwayDBusService *
headway_dbus_service_new (GDBusConnection *connection,
                          HeadwayBusTable *table,
                          HeadwayStreamHub *hub,
                          const HeadwayDBusServiceInfo *info)
{
  HeadwayDBusService *self = g_object_new (HEADWAY_DBUS_TYPE_SERVICE, NULL);

  self->context = headway_dbus_context_new (connection, table, hub, info->is_session);
  self->manager = headway_dbus_manager_impl_new (self->context, info);
  return self;
}

gboolean
headway_dbus_service_export (HeadwayDBusService *self, GError **error)
{
  g_autoptr (GPtrArray) buses = headway_bus_table_list (self->context->table);

  g_return_val_if_fail (self->objects == NULL, FALSE);

  if (!g_dbus_interface_skeleton_export (G_DBUS_INTERFACE_SKELETON (self->manager), self->context->connection,
                                         HEADWAY_DBUS_PATH, error) ||
      !export_no_buses (self, error))
    return FALSE;
  self->objects = g_dbus_object_manager_server_new (HEADWAY_DBUS_PATH);
  for (guint i = 0; i < buses->len; i++)
    add_bus (self, g_ptr_array_index (buses, i));
  g_dbus_object_manager_server_set_connection (self->objects, self->context->connection);
  g_signal_connect_object (self->context->table, "bus-added", G_CALLBACK (on_bus_added), self, 0);
  g_signal_connect_object (self->context->table, "bus-removed", G_CALLBACK (on_bus_removed), self, 0);
  g_signal_connect_object (self->context->table, "collect-metrics", G_CALLBACK (on_collect_metrics), self, 0);
  return TRUE;
}

void
headway_dbus_service_set_http_uris (HeadwayDBusService *self, const char *const *uris)
{
  headway_dbus_manager_impl_set_http_uris (self->manager, uris);
}

gboolean
headway_dbus_service_is_idle (HeadwayDBusService *self)
{
  return headway_dbus_peers_is_idle (self->context->peers);
}

void
headway_dbus_service_shut_down (HeadwayDBusService *self)
{
  g_autoptr (GList) subscriptions = NULL;
  GHashTableIter iter;
  gpointer impl;

  self->context->is_shut_down = TRUE;
  g_hash_table_iter_init (&iter, self->buses);
  while (g_hash_table_iter_next (&iter, NULL, &impl))
    headway_dbus_bus_impl_end_fetches (impl);
  /* A list: an answer of Closed takes its subscription out of the table. */
  subscriptions = g_hash_table_get_keys (self->context->subscriptions);
  for (GList *at = subscriptions; at != NULL; at = at->next)
    headway_dbus_subscription_impl_end_receive (at->data);
  headway_dbus_publisher_stop_all (self->context);
  headway_dbus_peers_end_held (self->context->peers);
}

void
headway_dbus_service_set_linger_ms (HeadwayDBusService *self, guint linger_ms)
{
  self->context->linger_ms = linger_ms;
}

guint
headway_dbus_service_get_n_peers (HeadwayDBusService *self)
{
  return headway_dbus_peers_get_size (self->context->peers);
}

guint
headway_dbus_service_get_n_publishers (HeadwayDBusService *self)
{
  return self->context->publishers.length;
}

static void
headway_dbus_service_dispose (GObject *object)
{
  HeadwayDBusService *self = HEADWAY_DBUS_SERVICE (object);
  GHashTableIter iter;
  gpointer impl;

  if (self->context != NULL)
    {
      self->context->is_shut_down = TRUE;
      headway_dbus_publisher_close_all (self->context);
      /* Ends their subscriptions, handlers and pending calls, which hold the context. */
      headway_dbus_peers_clear (self->context->peers);
      headway_handler_caller_stop (self->context->caller);
      g_hash_table_iter_init (&iter, self->buses);
      while (g_hash_table_iter_next (&iter, NULL, &impl))
        remove_bus (self, impl);
      g_hash_table_remove_all (self->buses);
      if (self->objects != NULL)
        g_dbus_interface_skeleton_unexport (G_DBUS_INTERFACE_SKELETON (self->manager));
    }
  if (self->no_buses != 0)
    g_dbus_connection_unregister_subtree (self->context->connection, self->no_buses);
  self->no_buses = 0;
  g_clear_object (&self->objects);
  g_clear_object (&self->manager);
  g_clear_pointer (&self->context, headway_dbus_context_unref);
  G_OBJECT_CLASS (headway_dbus_service_parent_class)->dispose (object);
}

static void
headway_dbus_service_finalize (GObject *object)
{
  g_hash_table_unref (HEADWAY_DBUS_SERVICE (object)->buses);
  G_OBJECT_CLASS (headway_dbus_service_parent_class)->finalize (object);
}

static void
headway_dbus_service_class_init (HeadwayDBusServiceClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->dispose = headway_dbus_service_dispose;
  object_class->finalize = headway_dbus_service_finalize;
  headway_dbus_error_register ();
}

static void
headway_dbus_service_init (HeadwayDBusService *self)
{
  self->buses = g_hash_table_new_full (NULL, NULL, NULL, g_object_unref);
}
