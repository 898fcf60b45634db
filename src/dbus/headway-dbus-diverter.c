/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-diverter.h"

#include "dbus/headway-dbus-names.h"
#include "headway-dbus-generated.h"

#include <string.h>

/* Names and values of properties are shorter, and none of ours can be written. */
#define ARGUMENTS_MAX 4096
/* Paths of ours are shorter. */
#define PATH_MAX_LENGTH 1024

/* What both threads know; it lives until the worker thread has left the filter. */
typedef struct
{
  GMutex lock;
  GHashTable *loads;    /* owned: unique name (owned) → Load (owned) */
  GHashTable *methods;  /* owned: `interface.member` (owned) → signature of its arguments (owned); not changed */
  GHashTable *standard; /* owned: the same of the standard interfaces → the method of HEADWAY_DBUS_DIVERTED_INTERFACE */
  char *spared_path;    /* owned, nullable */
} Shared;

/* What one sender has on its way. */
typedef struct
{
  guint calls;
  GArray *refused; /* owned, nullable: guint32: serials of calls that are to be refused */
} Load;

struct _HeadwayDBusDiverter
{
  GDBusConnection *connection; /* owned */
  guint filter;
  Shared *shared; /* owned, reference-counted */
};

/* Where which of our interfaces is; a path that ends in a slash stands for all objects directly below. */
static const struct
{
  GDBusInterfaceInfo *(*get_info) (void);
  const char *path;
} places[] = {
  { headway_dbus_manager_interface_info, HEADWAY_DBUS_PATH },
  { headway_dbus_bus_interface_info, HEADWAY_DBUS_BUS_PREFIX },
  { headway_dbus_subscription_interface_info, HEADWAY_DBUS_SUBSCRIPTION_PREFIX },
  { headway_dbus_handler_registration_interface_info, HEADWAY_DBUS_HANDLER_PREFIX },
};

static const char *const standard_methods[][2] = {
  { HEADWAY_DBUS_PROPERTIES_INTERFACE ".Get", "Get" },
  { HEADWAY_DBUS_PROPERTIES_INTERFACE ".GetAll", "GetAll" },
  { HEADWAY_DBUS_PROPERTIES_INTERFACE ".Set", "Set" },
  { "org.freedesktop.DBus.Introspectable.Introspect", "Introspect" },
  { "org.freedesktop.DBus.Peer.Ping", "Ping" },
  { "org.freedesktop.DBus.Peer.GetMachineId", "GetMachineId" },
  { HEADWAY_DBUS_OBJECT_MANAGER_INTERFACE ".GetManagedObjects", "GetManagedObjects" },
};

static void
add_methods (GHashTable *methods, GDBusInterfaceInfo *info)
{
  for (guint i = 0; info->methods[i] != NULL; i++)
    {
      GDBusMethodInfo *method = info->methods[i];
      GString *signature = g_string_new (NULL);

      for (guint j = 0; method->in_args != NULL && method->in_args[j] != NULL; j++)
        g_string_append (signature, method->in_args[j]->signature);
      g_hash_table_insert (methods, g_strconcat (info->name, ".", method->name, NULL), g_string_free (signature, FALSE));
    }
}

static void
load_free (gpointer data)
{
  Load *load = data;

  g_clear_pointer (&load->refused, g_array_unref);
  g_free (load);
}

static Shared *
shared_new (const char *spared_path)
{
  Shared *self = g_atomic_rc_box_new0 (Shared);

  g_mutex_init (&self->lock);
  self->loads = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, load_free);
  self->methods = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  self->standard = g_hash_table_new (g_str_hash, g_str_equal);
  self->spared_path = g_strdup (spared_path);
  for (guint i = 0; i < G_N_ELEMENTS (places); i++)
    add_methods (self->methods, places[i].get_info ());
  for (guint i = 0; i < G_N_ELEMENTS (standard_methods); i++)
    g_hash_table_insert (self->standard, (char *) standard_methods[i][0], (char *) standard_methods[i][1]);
  return self;
}

static void
shared_clear (gpointer data)
{
  Shared *self = data;

  g_hash_table_unref (self->loads);
  g_hash_table_unref (self->methods);
  g_hash_table_unref (self->standard);
  g_free (self->spared_path);
  g_mutex_clear (&self->lock);
}

static void
shared_unref (gpointer data)
{
  g_atomic_rc_box_release_full (data, shared_clear);
}

/* --- In the worker thread ------------------------------------------------------------------- */

static gboolean
is_at (const char *path, const char *place)
{
  gsize length = strlen (place);

  if (place[length - 1] != '/')
    return g_str_equal (path, place);
  return g_str_has_prefix (path, place) && path[length] != '\0' && strchr (path + length, '/') == NULL;
}

/* TRUE: it reaches a method of ours, on an object of ours or where one could be. */
static gboolean
is_ours (Shared *self, GDBusMessage *message, const char *full_name)
{
  const char *interface = g_dbus_message_get_interface (message);
  const char *path = g_dbus_message_get_path (message);
  const char *signature = g_hash_table_lookup (self->methods, full_name);

  if (g_strcmp0 (path, self->spared_path) == 0)
    return TRUE;
  if (signature == NULL || !g_str_equal (signature, g_dbus_message_get_signature (message)))
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (places); i++)
    if (g_str_equal (places[i].get_info ()->name, interface))
      return is_at (path, places[i].path);
  return FALSE;
}

/* Returns: (transfer full): what @message becomes. */
static GDBusMessage *
divert (Shared *self, GDBusMessage *message, const char *full_name)
{
  const char *method = g_hash_table_lookup (self->standard, full_name);
  const char *interface = g_dbus_message_get_interface (message);
  g_autofree char *path = g_strndup (g_dbus_message_get_path (message), PATH_MAX_LENGTH);
  GVariant *arguments = g_dbus_message_get_body (message);
  GDBusMessage *diverted = g_dbus_message_new_method_call (NULL, HEADWAY_DBUS_DIVERTED_PATH, HEADWAY_DBUS_DIVERTED_INTERFACE,
                                                           method != NULL ? method : "Refuse");

  if (arguments == NULL || g_variant_get_size (arguments) > ARGUMENTS_MAX)
    arguments = g_variant_new_tuple (NULL, 0);
  g_dbus_message_set_sender (diverted, g_dbus_message_get_sender (message));
  g_dbus_message_set_serial (diverted, g_dbus_message_get_serial (message));
  g_dbus_message_set_flags (diverted, g_dbus_message_get_flags (message));
  g_dbus_message_set_body (diverted, g_variant_new ("(sssv)", path, interface != NULL ? interface : "",
                                                    g_dbus_message_get_member (message), arguments));
  return diverted;
}

/* FALSE: it is one too many, and is remembered as such. */
static gboolean
take_place (Shared *self, GDBusMessage *message)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  const char *sender = g_dbus_message_get_sender (message);
  guint32 serial = g_dbus_message_get_serial (message);
  Load *load = g_hash_table_lookup (self->loads, sender);

  if (load == NULL)
    {
      load = g_new0 (Load, 1);
      g_hash_table_insert (self->loads, g_strdup (sender), load);
    }
  if (load->calls < HEADWAY_DBUS_DIVERTED_MAX)
    {
      load->calls++;
      return TRUE;
    }
  if ((g_dbus_message_get_flags (message) & G_DBUS_MESSAGE_FLAGS_NO_REPLY_EXPECTED) != 0)
    return FALSE;
  if (load->refused == NULL)
    load->refused = g_array_new (FALSE, FALSE, sizeof serial);
  if (load->refused->len < HEADWAY_DBUS_REFUSED_MAX)
    g_array_append_val (load->refused, serial);
  return FALSE;
}

static GDBusMessage *
on_message (GDBusConnection *connection, GDBusMessage *message, gboolean is_incoming, gpointer user_data)
{
  g_autoptr (GDBusMessage) owned = message;
  g_autofree char *full_name = NULL;
  Shared *self = user_data;
  const char *interface;

  if (!is_incoming || g_dbus_message_get_message_type (message) != G_DBUS_MESSAGE_TYPE_METHOD_CALL ||
      g_dbus_message_get_sender (message) == NULL)
    return g_steal_pointer (&owned);
  interface = g_dbus_message_get_interface (message);
  full_name = g_strconcat (interface != NULL ? interface : "", ".", g_dbus_message_get_member (message), NULL);
  if (is_ours (self, message, full_name))
    return g_steal_pointer (&owned);
  return take_place (self, message) ? divert (self, message, full_name) : NULL;
}

/* --- In the main thread --------------------------------------------------------------------- */

HeadwayDBusDiverter *
headway_dbus_diverter_new (GDBusConnection *connection, const char *spared_path)
{
  HeadwayDBusDiverter *self = g_new0 (HeadwayDBusDiverter, 1);

  self->connection = g_object_ref (connection);
  self->shared = shared_new (spared_path);
  self->filter = g_dbus_connection_add_filter (connection, on_message, g_atomic_rc_box_acquire (self->shared), shared_unref);
  return self;
}

void
headway_dbus_diverter_free (HeadwayDBusDiverter *self)
{
  g_dbus_connection_remove_filter (self->connection, self->filter);
  g_object_unref (self->connection);
  shared_unref (self->shared);
  g_free (self);
}

GArray *
headway_dbus_diverter_arrived (HeadwayDBusDiverter *self, const char *sender)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->shared->lock);
  Load *load = g_hash_table_lookup (self->shared->loads, sender);
  GArray *refused;

  g_return_val_if_fail (load != NULL, NULL);

  refused = g_steal_pointer (&load->refused);
  if (--load->calls == 0)
    g_hash_table_remove (self->shared->loads, sender);
  return refused;
}
