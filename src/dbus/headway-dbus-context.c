/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-context.h"

#include "dbus/headway-dbus-error.h"

HeadwayDBusContext *
headway_dbus_context_new (GDBusConnection *connection, HeadwayBusTable *table, HeadwayStreamHub *hub, gboolean is_session)
{
  HeadwayDBusContext *self = g_rc_box_new0 (HeadwayDBusContext);

  self->connection = g_object_ref (connection);
  self->table = g_object_ref (table);
  self->hub = g_object_ref (hub);
  self->peers = headway_dbus_peers_new (connection, is_session, headway_bus_table_get_principals (table));
  self->exports = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  self->subscriptions = g_hash_table_new_full (NULL, NULL, g_object_unref, NULL);
  g_queue_init (&self->publishers);
  self->caller = headway_handler_caller_new (connection);
  self->handlers = g_hash_table_new_full (NULL, NULL, g_object_unref, NULL);
  self->linger_ms = HEADWAY_DBUS_LINGER_MS;
  return self;
}

HeadwayDBusContext *
headway_dbus_context_ref (HeadwayDBusContext *self)
{
  return g_rc_box_acquire (self);
}

static void
context_clear (gpointer data)
{
  HeadwayDBusContext *self = data;

  g_clear_pointer (&self->outcome, g_variant_unref);
  g_hash_table_unref (self->subscriptions);
  g_hash_table_unref (self->handlers);
  headway_handler_caller_unref (self->caller);
  g_hash_table_unref (self->exports);
  g_object_unref (self->peers);
  g_object_unref (self->hub);
  g_object_unref (self->table);
  g_object_unref (self->connection);
}

void
headway_dbus_context_unref (HeadwayDBusContext *self)
{
  g_rc_box_release_full (self, context_clear);
}

gboolean
headway_dbus_context_export (HeadwayDBusContext *self, GDBusInterfaceSkeleton *skeleton, const char *path, GError **error)
{
  if (!g_dbus_interface_skeleton_export (skeleton, self->connection, path, error))
    return FALSE;
  g_hash_table_insert (self->exports, g_strdup (path), skeleton);
  return TRUE;
}

void
headway_dbus_context_unexport (HeadwayDBusContext *self, GDBusInterfaceSkeleton *skeleton)
{
  const char *path = g_dbus_interface_skeleton_get_object_path (skeleton);

  if (path == NULL)
    return;
  g_hash_table_remove (self->exports, path);
  g_dbus_interface_skeleton_unexport (skeleton);
}

gboolean
headway_dbus_context_answer_large (GDBusMethodInvocation *invocation, gsize bytes_max)
{
  gsize bytes = g_variant_get_size (g_dbus_method_invocation_get_parameters (invocation));
  GError *error = NULL;

  if (bytes <= bytes_max)
    return FALSE;
  headway_set_error_with_limit (&error, HEADWAY_ERROR_TOO_LARGE, (gint64) bytes_max,
                                "the call of %s has %" G_GSIZE_FORMAT " bytes, at most %" G_GSIZE_FORMAT " are allowed",
                                g_dbus_method_invocation_get_method_name (invocation), bytes, bytes_max);
  headway_dbus_error_answer (invocation, error);
  return TRUE;
}

gboolean
headway_dbus_context_answer_shut_down (HeadwayDBusContext *self, GDBusMethodInvocation *invocation)
{
  if (!self->is_shut_down)
    return FALSE;
  headway_dbus_error_refuse (invocation, HEADWAY_ERROR_UNAVAILABLE, "headwayd is stopping");
  return TRUE;
}
