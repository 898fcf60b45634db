/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-introspection.h"

#include <string.h>

/* As GDBus says it. */
static const char head[] =
  "<!DOCTYPE node PUBLIC \"-//freedesktop//DTD D-BUS Object Introspection 1.0//EN\"\n"
  "                      \"http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd\">\n"
  "<!-- GDBus -->\n"
  "<node>\n";

static const char standard_interfaces[] =
  "  <interface name=\"org.freedesktop.DBus.Properties\">\n"
  "    <method name=\"Get\">\n"
  "      <arg type=\"s\" name=\"interface_name\" direction=\"in\"/>\n"
  "      <arg type=\"s\" name=\"property_name\" direction=\"in\"/>\n"
  "      <arg type=\"v\" name=\"value\" direction=\"out\"/>\n"
  "    </method>\n"
  "    <method name=\"GetAll\">\n"
  "      <arg type=\"s\" name=\"interface_name\" direction=\"in\"/>\n"
  "      <arg type=\"a{sv}\" name=\"properties\" direction=\"out\"/>\n"
  "    </method>\n"
  "    <method name=\"Set\">\n"
  "      <arg type=\"s\" name=\"interface_name\" direction=\"in\"/>\n"
  "      <arg type=\"s\" name=\"property_name\" direction=\"in\"/>\n"
  "      <arg type=\"v\" name=\"value\" direction=\"in\"/>\n"
  "    </method>\n"
  "    <signal name=\"PropertiesChanged\">\n"
  "      <arg type=\"s\" name=\"interface_name\"/>\n"
  "      <arg type=\"a{sv}\" name=\"changed_properties\"/>\n"
  "      <arg type=\"as\" name=\"invalidated_properties\"/>\n"
  "    </signal>\n"
  "  </interface>\n"
  "  <interface name=\"org.freedesktop.DBus.Introspectable\">\n"
  "    <method name=\"Introspect\">\n"
  "      <arg type=\"s\" name=\"xml_data\" direction=\"out\"/>\n"
  "    </method>\n"
  "  </interface>\n"
  "  <interface name=\"org.freedesktop.DBus.Peer\">\n"
  "    <method name=\"Ping\"/>\n"
  "    <method name=\"GetMachineId\">\n"
  "      <arg type=\"s\" name=\"machine_uuid\" direction=\"out\"/>\n"
  "    </method>\n"
  "  </interface>\n";

static const char object_manager[] =
  "  <interface name=\"org.freedesktop.DBus.ObjectManager\">\n"
  "    <method name=\"GetManagedObjects\">\n"
  "      <arg type=\"a{oa{sa{sv}}}\" name=\"object_paths_interfaces_and_properties\" direction=\"out\"/>\n"
  "    </method>\n"
  "    <signal name=\"InterfacesAdded\">\n"
  "      <arg type=\"o\" name=\"object_path\"/>\n"
  "      <arg type=\"a{sa{sv}}\" name=\"interfaces_and_properties\"/>\n"
  "    </signal>\n"
  "    <signal name=\"InterfacesRemoved\">\n"
  "      <arg type=\"o\" name=\"object_path\"/>\n"
  "      <arg type=\"as\" name=\"interfaces\"/>\n"
  "    </signal>\n"
  "  </interface>\n";

void
headway_dbus_introspection_init (HeadwayDBusIntrospection *self, const char *path)
{
  *self = (HeadwayDBusIntrospection){
    .path = path,
    .interfaces = g_string_new (NULL),
    .children = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
  };
}

static void
add_standard (HeadwayDBusIntrospection *self)
{
  if (self->interfaces->len == 0)
    g_string_append (self->interfaces, standard_interfaces);
}

void
headway_dbus_introspection_add_interface (HeadwayDBusIntrospection *self, GDBusInterfaceInfo *info)
{
  add_standard (self);
  g_dbus_interface_info_generate_xml (info, 2, self->interfaces);
}

void
headway_dbus_introspection_add_object_manager (HeadwayDBusIntrospection *self)
{
  add_standard (self);
  g_string_append (self->interfaces, object_manager);
}

void
headway_dbus_introspection_add_object (HeadwayDBusIntrospection *self, const char *path)
{
  gsize length = g_str_equal (self->path, "/") ? 0 : strlen (self->path);
  const char *name = path + length + 1;

  if (strncmp (path, self->path, length) != 0 || path[length] != '/' || *name == '\0')
    return;
  g_hash_table_add (self->children, g_strndup (name, strcspn (name, "/")));
}

char *
headway_dbus_introspection_end (HeadwayDBusIntrospection *self)
{
  g_autoptr (GList) names = g_list_sort (g_hash_table_get_keys (self->children), (GCompareFunc) strcmp);
  GString *xml = g_string_new (head);

  g_string_append_len (xml, self->interfaces->str, (gssize) self->interfaces->len);
  for (GList *at = names; at != NULL; at = at->next)
    g_string_append_printf (xml, "  <node name=\"%s\"/>\n", (const char *) at->data);
  g_string_append (xml, "</node>\n");
  g_string_free (self->interfaces, TRUE);
  g_hash_table_unref (self->children);
  return g_string_free (xml, FALSE);
}
