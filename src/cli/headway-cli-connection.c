/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-connection.h"

#include "cli/headway-cli-error.h"

#include <glib/gi18n.h>

static GDBusConnection *
open_connection (HeadwayCli *cli,
                 GError **error)
{
  const GDBusConnectionFlags flags = G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT | G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION;

  if (cli->bus_address != NULL)
    return g_dbus_connection_new_for_address_sync (cli->bus_address, flags, NULL, NULL, error);
  return g_bus_get_sync (cli->use_system ? G_BUS_TYPE_SYSTEM : G_BUS_TYPE_SESSION, NULL, error);
}

/**
 * headway_cli_connection_open:
 * @cli: the global options
 * @error: return location
 *
 * Connects to the message bus that was asked for.
 *
 * Returns: (transfer full): a connection that does not end the program when it closes, or
 *   NULL with an error of HEADWAY_CLI_ERROR
 */
GDBusConnection *
headway_cli_connection_open (HeadwayCli *cli,
                             GError **error)
{
  g_autoptr (GError) local_error = NULL;
  GDBusConnection *connection = open_connection (cli, &local_error);

  if (connection == NULL)
    {
      g_set_error (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_FAILED, _ ("cannot connect to the message bus: %s"), local_error->message);
      return NULL;
    }
  g_dbus_connection_set_exit_on_close (connection, FALSE);
  return connection;
}

/**
 * headway_cli_connection_get_bus_path:
 * @name: name of a bus
 *
 * Computes the object path as sd_bus_path_encode() does (decisions.md 7), so that asking for a
 * bus does not create it.
 *
 * Returns: (transfer full): the path
 */
char *
headway_cli_connection_get_bus_path (const char *name)
{
  GString *path = g_string_new (HEADWAY_CLI_DBUS_BUS_FOLDER);

  if (*name == '\0')
    g_string_append_c (path, '_');
  for (const char *p = name; *p != '\0'; p++)
    {
      if (g_ascii_isalpha (*p) || (p > name && g_ascii_isdigit (*p)))
        g_string_append_c (path, *p);
      else
        g_string_append_printf (path, "_%02x", (guint) (guchar) *p);
    }
  return g_string_free (path, FALSE);
}

static GVariant *
call (GDBusConnection *connection,
      const char *path,
      const char *interface,
      const char *method,
      GVariant *parameters,
      const char *reply_type,
      const char *bus_name,
      GError **error)
{
  g_autoptr (GError) local_error = NULL;
  GVariant *reply;

  reply = g_dbus_connection_call_sync (connection, HEADWAY_CLI_DBUS_NAME, path, interface, method, parameters, G_VARIANT_TYPE (reply_type),
                                       G_DBUS_CALL_FLAGS_NONE, HEADWAY_CLI_CALL_TIMEOUT_MS, NULL, &local_error);
  if (reply == NULL)
    g_propagate_error (error, headway_cli_error_from_dbus (local_error, bus_name));
  return reply;
}

/**
 * headway_cli_connection_call_manager:
 * @connection: a connection
 * @method: a method of the Manager interface
 * @parameters: (transfer floating): its arguments
 * @reply_type: type of the answer, such as "(o)"
 * @error: return location
 *
 * Calls the daemon and waits. The daemon is started if the message bus can do that.
 *
 * Returns: (transfer full): the answer, or NULL with an error of HEADWAY_CLI_ERROR
 */
GVariant *
headway_cli_connection_call_manager (GDBusConnection *connection,
                                     const char *method,
                                     GVariant *parameters,
                                     const char *reply_type,
                                     GError **error)
{
  return call (connection, HEADWAY_CLI_DBUS_PATH, HEADWAY_CLI_MANAGER_INTERFACE, method, parameters, reply_type, NULL, error);
}

/**
 * headway_cli_connection_call_bus:
 * @connection: a connection
 * @bus_name: name of a bus, which is not created
 * @interface: an interface of its object
 * @method: a method of it
 * @parameters: (nullable) (transfer floating): its arguments
 * @reply_type: type of the answer
 * @error: return location
 *
 * Calls the object of a bus and waits.
 *
 * Returns: (transfer full): the answer, or NULL with an error of HEADWAY_CLI_ERROR, among them
 *   NO_SUCH_BUS
 */
GVariant *
headway_cli_connection_call_bus (GDBusConnection *connection,
                                 const char *bus_name,
                                 const char *interface,
                                 const char *method,
                                 GVariant *parameters,
                                 const char *reply_type,
                                 GError **error)
{
  g_autofree char *path = headway_cli_connection_get_bus_path (bus_name);

  return call (connection, path, interface, method, parameters, reply_type, bus_name, error);
}

/**
 * headway_cli_connection_get_bus:
 * @connection: a connection
 * @name: name of a bus
 * @error: return location
 *
 * Asks for a bus, which creates it where the daemon's settings allow that.
 *
 * Returns: (transfer full): its object path, or NULL with an error of HEADWAY_CLI_ERROR
 */
char *
headway_cli_connection_get_bus (GDBusConnection *connection,
                                const char *name,
                                GError **error)
{
  g_autoptr (GVariant) reply = NULL;
  char *path;

  reply = headway_cli_connection_call_manager (connection, "GetBus", g_variant_new ("(s)", name), "(o)", error);
  if (reply == NULL)
    return NULL;
  g_variant_get (reply, "(o)", &path);
  return path;
}
