/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What Headway is called on the message bus (dbus-api.md). */
#define HEADWAY_DBUS_NAME                "org.headway.Headway1"
#define HEADWAY_DBUS_ERROR_PREFIX        "org.headway.Headway1.Error."
#define HEADWAY_DBUS_PATH                "/org/headway/Headway1"
#define HEADWAY_DBUS_BUS_PREFIX          "/org/headway/Headway1/bus/"
#define HEADWAY_DBUS_HANDLER_PREFIX      "/org/headway/Headway1/handler/"
#define HEADWAY_DBUS_SUBSCRIPTION_PREFIX "/org/headway/Headway1/subscription/"

#define HEADWAY_DBUS_SUBSCRIPTION_INTERFACE "org.headway.Headway1.Subscription"

#define HEADWAY_DBUS_PROPERTIES_INTERFACE     "org.freedesktop.DBus.Properties"
#define HEADWAY_DBUS_OBJECT_MANAGER_INTERFACE "org.freedesktop.DBus.ObjectManager"

/* The message bus itself. */
#define HEADWAY_DBUS_DRIVER_NAME      "org.freedesktop.DBus"
#define HEADWAY_DBUS_DRIVER_PATH      "/org/freedesktop/DBus"
#define HEADWAY_DBUS_DRIVER_INTERFACE "org.freedesktop.DBus"
