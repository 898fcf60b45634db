/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "daemon/headway-name-holder.h"

#include "dbus/headway-dbus-names.h"

/* org.freedesktop.DBus.RequestName */
#define ALLOW_REPLACEMENT 1
#define REPLACE_EXISTING  2
#define DO_NOT_QUEUE      4

struct _HeadwayNameHolder
{
  GObject parent_instance;

  GDBusConnection *connection; /* owned */
};

G_DEFINE_FINAL_TYPE (HeadwayNameHolder, headway_name_holder, G_TYPE_OBJECT)

/* Calls that came before the name went on stand before this answer: so all of them are answered. */
static void
say_goodbye (GDBusConnection *connection)
{
  g_autoptr (GVariant) reply = g_dbus_connection_call_sync (connection, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                                            "org.freedesktop.DBus", "GetId", NULL, NULL,
                                                            G_DBUS_CALL_FLAGS_NONE, -1, NULL, NULL);

  if (reply != NULL)
    g_dbus_connection_flush_sync (connection, NULL, NULL);
  g_dbus_connection_close_sync (connection, NULL, NULL);
}

static void
headway_name_holder_dispose (GObject *object)
{
  HeadwayNameHolder *self = HEADWAY_NAME_HOLDER (object);

  if (self->connection != NULL)
    say_goodbye (self->connection);
  g_clear_object (&self->connection);
  G_OBJECT_CLASS (headway_name_holder_parent_class)->dispose (object);
}

static void
headway_name_holder_class_init (HeadwayNameHolderClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = headway_name_holder_dispose;
}

static void
headway_name_holder_init (HeadwayNameHolder *self)
{
}

/* Runs in GDBus's worker thread: touches nothing but its arguments. */
static GDBusMessage *
on_message (GDBusConnection *connection, GDBusMessage *message, gboolean is_incoming, gpointer user_data)
{
  g_autoptr (GDBusMessage) owned = message;
  g_autoptr (GDBusMessage) reply = NULL;

  if (!is_incoming || g_dbus_message_get_message_type (message) != G_DBUS_MESSAGE_TYPE_METHOD_CALL)
    return g_steal_pointer (&owned);
  if ((g_dbus_message_get_flags (message) & G_DBUS_MESSAGE_FLAGS_NO_REPLY_EXPECTED) != 0)
    return NULL;
  reply = g_dbus_message_new_method_error_literal (message, HEADWAY_DBUS_ERROR_PREFIX "Unavailable",
                                                   "headwayd is being replaced, try again");
  g_dbus_connection_send_message (connection, reply, G_DBUS_SEND_MESSAGE_FLAGS_NONE, NULL, NULL);
  return NULL;
}

HeadwayNameHolder *
headway_name_holder_new (const char *address, const char *name, GError **error)
{
  g_autoptr (HeadwayNameHolder) self = g_object_new (HEADWAY_TYPE_NAME_HOLDER, NULL);
  g_autoptr (GVariant) reply = NULL;

  self->connection = g_dbus_connection_new_for_address_sync (
    address,
    G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT | G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION,
    NULL, NULL, error);
  if (self->connection == NULL)
    return NULL;
  g_dbus_connection_add_filter (self->connection, on_message, NULL, NULL);
  reply = g_dbus_connection_call_sync (self->connection, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                       "org.freedesktop.DBus", "RequestName",
                                       g_variant_new ("(su)", name, ALLOW_REPLACEMENT | REPLACE_EXISTING | DO_NOT_QUEUE),
                                       G_VARIANT_TYPE ("(u)"), G_DBUS_CALL_FLAGS_NONE, -1, NULL, error);
  return reply != NULL ? g_steal_pointer (&self) : NULL;
}
