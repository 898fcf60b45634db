/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "cli/headway-cli.h"

G_BEGIN_DECLS

#define HEADWAY_CLI_DBUS_NAME              "org.headway.Headway1"
#define HEADWAY_CLI_DBUS_PATH              "/org/headway/Headway1"
#define HEADWAY_CLI_DBUS_BUS_FOLDER        HEADWAY_CLI_DBUS_PATH "/bus/"
#define HEADWAY_CLI_MANAGER_INTERFACE      "org.headway.Headway1.Manager"
#define HEADWAY_CLI_BUS_INTERFACE          "org.headway.Headway1.Bus"
#define HEADWAY_CLI_SUBSCRIPTION_INTERFACE "org.headway.Headway1.Subscription"
#define HEADWAY_CLI_PROPERTIES_INTERFACE   "org.freedesktop.DBus.Properties"
#define HEADWAY_CLI_OBJECTS_INTERFACE      "org.freedesktop.DBus.ObjectManager"

/* The daemon answers Receive after 20 s at the latest. */
#define HEADWAY_CLI_CALL_TIMEOUT_MS 60000

GDBusConnection *headway_cli_connection_open (HeadwayCli *cli,
                                              GError **error);
char *headway_cli_connection_get_bus_path (const char *name);
GVariant *headway_cli_connection_call_manager (GDBusConnection *connection,
                                               const char *method,
                                               GVariant *parameters,
                                               const char *reply_type,
                                               GError **error);
GVariant *headway_cli_connection_call_bus (GDBusConnection *connection,
                                           const char *bus_name,
                                           const char *interface,
                                           const char *method,
                                           GVariant *parameters,
                                           const char *reply_type,
                                           GError **error);
char *headway_cli_connection_get_bus (GDBusConnection *connection,
                                      const char *name,
                                      GError **error);

G_END_DECLS
