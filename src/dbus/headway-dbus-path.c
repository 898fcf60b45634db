/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-path.h"

#include "dbus/headway-dbus-names.h"

char *
headway_dbus_path_encode (const char *prefix, const char *label)
{
  g_autoptr (GString) path = g_string_new (prefix);

  if (*label == '\0')
    g_string_append_c (path, '_');
  for (const char *at = label; *at != '\0'; at++)
    {
      if (g_ascii_isalpha (*at) || (at > label && g_ascii_isdigit (*at)))
        g_string_append_c (path, *at);
      else
        g_string_append_printf (path, "_%02x", (guchar) *at);
    }
  return g_string_free (g_steal_pointer (&path), FALSE);
}

char *
headway_dbus_path_of_bus (const char *name)
{
  return headway_dbus_path_encode (HEADWAY_DBUS_BUS_PREFIX, name);
}

char *
headway_dbus_path_of_subscription (guint number)
{
  return g_strdup_printf (HEADWAY_DBUS_SUBSCRIPTION_PREFIX "%u", number);
}
