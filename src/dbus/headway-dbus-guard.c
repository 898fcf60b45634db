/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-guard.h"

#include "dbus/headway-dbus-error.h"

static GQuark
guard_quark (void)
{
  return g_quark_from_static_string ("headway-dbus-guard");
}

static const HeadwayDBusGuard *
get_guard (gpointer skeleton)
{
  return g_type_get_qdata (G_OBJECT_TYPE (skeleton), guard_quark ());
}

static GDBusInterfaceVTable *
parent_vtable (gpointer skeleton)
{
  GDBusInterfaceSkeletonClass *parent = g_type_class_peek_parent (G_OBJECT_GET_CLASS (skeleton));

  return parent->get_vtable (skeleton);
}

/* In its turn, the caller is known. */
static void
dispatch (GDBusConnection *connection,
          const char *sender,
          const char *path,
          const char *interface,
          const char *method,
          GVariant *parameters,
          GDBusMethodInvocation *invocation,
          gpointer user_data)
{
  const HeadwayDBusGuard *guard = get_guard (user_data);
  GError *error = NULL;

  if (guard->check_sender != NULL && !guard->check_sender (user_data, sender, &error))
    headway_dbus_error_answer (invocation, error);
  else if (guard->answer == NULL || !guard->answer (user_data, invocation))
    parent_vtable (user_data)->method_call (connection, sender, path, interface, method, parameters, invocation, user_data);
}

static void
method_call (GDBusConnection *connection,
             const char *sender,
             const char *path,
             const char *interface,
             const char *method,
             GVariant *parameters,
             GDBusMethodInvocation *invocation,
             gpointer user_data)
{
  const HeadwayDBusGuard *guard = get_guard (user_data);
  gsize bytes_max = guard->get_bytes_max != NULL ? guard->get_bytes_max (method) : HEADWAY_DBUS_CALL_BYTES_MAX;

  if (!headway_dbus_context_answer_large (invocation, bytes_max))
    headway_dbus_peers_admit (guard->get_context (user_data)->peers, invocation, dispatch, user_data);
}

/* The raw getter is the one place that knows who asks; where it fails, GetAll leaves the property out. */
static GVariant *
get_property (GDBusConnection *connection,
              const char *sender,
              const char *path,
              const char *interface,
              const char *property,
              GError **error,
              gpointer user_data)
{
  const HeadwayDBusGuard *guard = get_guard (user_data);

  if (guard->check_sender != NULL && !guard->check_sender (user_data, sender, error))
    return NULL;
  return parent_vtable (user_data)->get_property (connection, sender, path, interface, property, error, user_data);
}

static GDBusInterfaceVTable *
get_vtable (GDBusInterfaceSkeleton *skeleton)
{
  static const GDBusInterfaceVTable vtable = { method_call, get_property, NULL, { NULL } };

  return (GDBusInterfaceVTable *) &vtable;
}

void
headway_dbus_guard_install (GDBusInterfaceSkeletonClass *klass, const HeadwayDBusGuard *guard)
{
  g_type_set_qdata (G_TYPE_FROM_CLASS (klass), guard_quark (), (gpointer) guard);
  klass->get_vtable = get_vtable;
}
