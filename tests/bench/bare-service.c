/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include <gio/gio.h>
#include <stdlib.h>

/* bare-service ADDRESS: the least that a GDBus service must do, for Headway to be measured against. It
 * answers Publish; sends what was published as a plain unicast signal to each who called Subscribe; and,
 * for who calls Drive, calls HandleEvent of an object of his as fast as it answers. */

#define NAME "org.headway.Bench"
#define PATH "/org/headway/Bench"

static const char xml[] =
  "<node><interface name='" NAME "'>"
  "<method name='Publish'><arg type='s' direction='in'/><arg type='s' direction='in'/><arg type='a{sv}' direction='in'/>"
  "<arg type='t' direction='out'/><arg type='a{sv}' direction='out'/></method>"
  "<method name='Subscribe'/>"
  "<method name='Drive'><arg type='o' direction='in'/><arg type='u' direction='in'/><arg type='u' direction='in'/></method>"
  "<signal name='Event'><arg type='s'/></signal>"
  "</interface></node>";

typedef struct
{
  GDBusConnection *connection;
  GPtrArray *subscribers; /* owned bus names */
  guint64 last_id;
} BareService;

/* Whose object is called, one call after the other. */
typedef struct
{
  BareService *service;
  char *name;
  char *path;
  char *data;
} Drive;

static void
publish (BareService *self, GVariant *parameters, GDBusMethodInvocation *invocation)
{
  GVariantDict outcome;

  if (self->subscribers->len > 0)
    {
      g_autoptr (GVariant) data = g_variant_get_child_value (parameters, 1);
      g_autoptr (GVariant) event = g_variant_ref_sink (g_variant_new_tuple (&data, 1));

      for (guint i = 0; i < self->subscribers->len; i++)
        g_dbus_connection_emit_signal (self->connection, g_ptr_array_index (self->subscribers, i), PATH, NAME, "Event", event, NULL);
    }
  g_variant_dict_init (&outcome, NULL);
  g_variant_dict_insert (&outcome, "subscriptions", "u", self->subscribers->len);
  g_variant_dict_insert (&outcome, "refused", "u", 0);
  g_variant_dict_insert (&outcome, "evicted", "u", 0);
  g_dbus_method_invocation_return_value (invocation, g_variant_new ("(t@a{sv})", ++self->last_id, g_variant_dict_end (&outcome)));
}

static void drive_on (Drive *drive);

static void
drive_answered (GObject *source, GAsyncResult *result, gpointer user_data)
{
  Drive *drive = user_data;
  g_autoptr (GVariant) answer = g_dbus_connection_call_finish (G_DBUS_CONNECTION (source), result, NULL);

  if (answer != NULL)
    {
      drive_on (drive);
      return;
    }
  g_free (drive->name);
  g_free (drive->path);
  g_free (drive->data);
  g_free (drive);
}

/* The arguments that Headway calls a handler with. */
static void
drive_on (Drive *drive)
{
  GVariantDict extra, context;

  g_variant_dict_init (&extra, NULL);
  g_variant_dict_init (&context, NULL);
  g_variant_dict_insert (&context, "phase", "s", "post");
  g_dbus_connection_call (drive->service->connection, drive->name, drive->path, "org.headway.Headway1.Handler", "HandleEvent",
                          g_variant_new ("((tsssxs@a{sv})@a{sv})", ++drive->service->last_id, "t", "t", "p0", G_GINT64_CONSTANT (0),
                                         drive->data, g_variant_dict_end (&extra), g_variant_dict_end (&context)),
                          G_VARIANT_TYPE ("(ssa{sv})"), G_DBUS_CALL_FLAGS_NO_AUTO_START, -1, NULL, drive_answered, drive);
}

static void
start_driving (BareService *self, const char *sender, GVariant *parameters)
{
  const char *path;
  guint window, bytes;

  g_variant_get (parameters, "(&ouu)", &path, &window, &bytes);
  for (guint i = 0; i < window; i++)
    {
      Drive *drive = g_new0 (Drive, 1);

      drive->service = self;
      drive->name = g_strdup (sender);
      drive->path = g_strdup (path);
      drive->data = g_strnfill (bytes, '1');
      drive_on (drive);
    }
}

static void
on_call (GDBusConnection *connection,
         const char *sender,
         const char *object_path,
         const char *interface_name,
         const char *method,
         GVariant *parameters,
         GDBusMethodInvocation *invocation,
         gpointer user_data)
{
  BareService *self = user_data;

  if (g_str_equal (method, "Publish"))
    {
      publish (self, parameters, invocation);
      return;
    }
  if (g_str_equal (method, "Subscribe"))
    g_ptr_array_add (self->subscribers, g_strdup (sender));
  else
    start_driving (self, sender, parameters);
  g_dbus_method_invocation_return_value (invocation, NULL);
}

static void
on_name (GDBusConnection *connection, const char *name, gpointer user_data)
{
  g_print ("ready\n");
}

int
main (int argc, char **argv)
{
  static const GDBusInterfaceVTable vtable = { on_call, NULL, NULL, { NULL } };
  g_autoptr (GDBusNodeInfo) node = g_dbus_node_info_new_for_xml (xml, NULL);
  g_autoptr (GMainLoop) loop = g_main_loop_new (NULL, FALSE);
  g_autoptr (GError) error = NULL;
  BareService self = { .subscribers = g_ptr_array_new_with_free_func (g_free) };

  if (argc == 2)
    self.connection = g_dbus_connection_new_for_address_sync (
      argv[1], G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT | G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION, NULL, NULL, &error);
  if (self.connection == NULL ||
      g_dbus_connection_register_object (self.connection, PATH, node->interfaces[0], &vtable, &self, NULL, &error) == 0)
    {
      g_printerr ("bare-service: %s\n", error != NULL ? error->message : "usage: bare-service ADDRESS");
      return EXIT_FAILURE;
    }
  g_bus_own_name_on_connection (self.connection, NAME, G_BUS_NAME_OWNER_FLAGS_NONE, on_name, NULL, NULL, NULL);
  g_main_loop_run (loop);
  return EXIT_SUCCESS;
}
