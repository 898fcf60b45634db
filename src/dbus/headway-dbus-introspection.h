/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/**
 * HeadwayDBusIntrospection:
 *
 * The answer of Introspect() for one object path, while it is put together: the interfaces of the object
 * there, if there is one, and what is directly below. Plain, on the stack.
 */
typedef struct
{
  const char *path;     /* borrowed */
  GString *interfaces;  /* owned */
  GHashTable *children; /* owned: names (owned) */
} HeadwayDBusIntrospection;

void headway_dbus_introspection_init (HeadwayDBusIntrospection *self, const char *path);
/* The object has it; the first one brings the standard ones along. */
void headway_dbus_introspection_add_interface (HeadwayDBusIntrospection *self, GDBusInterfaceInfo *info);
/* The object has org.freedesktop.DBus.ObjectManager. */
void headway_dbus_introspection_add_object_manager (HeadwayDBusIntrospection *self);
/* There is an object at @path, anywhere. */
void headway_dbus_introspection_add_object (HeadwayDBusIntrospection *self, const char *path);
/* Returns: (transfer full): the XML; children in the order of their names. Clears @self. */
char *headway_dbus_introspection_end (HeadwayDBusIntrospection *self);

G_END_DECLS
