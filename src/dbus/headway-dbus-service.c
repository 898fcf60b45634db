/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-service.h"

#include "dbus/headway-dbus-bus.h"
#include "dbus/headway-dbus-error.h"
#include "dbus/headway-dbus-manager.h"
#include "dbus/headway-dbus-names.h"
#include "dbus/headway-dbus-publisher.h"
#include "dbus/headway-dbus-standard.h"
#include "dbus/headway-dbus-subscription.h"

struct _HeadwayDBusService
{
  GObject parent_instance;

  HeadwayDBusContext *context;       /* owned */
  HeadwayDBusManagerImpl *manager;   /* owned */
  GDBusObjectManagerServer *objects; /* owned */
  HeadwayDBusStandard *standard;     /* owned */
  char *spared_path;                 /* owned, nullable */
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

  if (!headway_dbus_context_export (self->context, G_DBUS_INTERFACE_SKELETON (self->manager), HEADWAY_DBUS_PATH, error))
    return FALSE;
  self->objects = g_dbus_object_manager_server_new (HEADWAY_DBUS_PATH);
  for (guint i = 0; i < buses->len; i++)
    add_bus (self, g_ptr_array_index (buses, i));
  self->standard = headway_dbus_standard_new (self->context, self->objects, self->spared_path, error);
  if (self->standard == NULL)
    return FALSE;
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

void
headway_dbus_service_spare_path (HeadwayDBusService *self, const char *path)
{
  g_autofree char *old = self->spared_path;

  self->spared_path = g_strdup (path);
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
      headway_dbus_context_unexport (self->context, G_DBUS_INTERFACE_SKELETON (self->manager));
    }
  g_clear_object (&self->standard);
  g_clear_object (&self->objects);
  g_clear_object (&self->manager);
  g_clear_pointer (&self->context, headway_dbus_context_unref);
  G_OBJECT_CLASS (headway_dbus_service_parent_class)->dispose (object);
}

static void
headway_dbus_service_finalize (GObject *object)
{
  HeadwayDBusService *self = HEADWAY_DBUS_SERVICE (object);

  g_hash_table_unref (self->buses);
  g_free (self->spared_path);
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
