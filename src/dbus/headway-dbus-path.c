/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-path.h"

#include "dbus/headway-dbus-names.h"

#include <string.h>

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
headway_dbus_path_to_bus (const char *path)
{
  g_autoptr (GString) name = g_string_new (NULL);
  g_autofree char *again = NULL;

  if (!g_str_has_prefix (path, HEADWAY_DBUS_BUS_PREFIX))
    return NULL;
  for (const char *at = path + strlen (HEADWAY_DBUS_BUS_PREFIX); *at != '\0'; at++)
    {
      if (*at == '_' && g_ascii_isxdigit (at[1]) && g_ascii_isxdigit (at[2]))
        {
          g_string_append_c (name, (char) (g_ascii_xdigit_value (at[1]) * 16 + g_ascii_xdigit_value (at[2])));
          at += 2;
        }
      else if (*at != '_')
        g_string_append_c (name, *at);
    }
  /* What is written otherwise than we write it is no object of ours. */
  again = headway_dbus_path_of_bus (name->str);
  return g_str_equal (again, path) ? g_string_free (g_steal_pointer (&name), FALSE) : NULL;
}

char *
headway_dbus_path_of_subscription (guint number)
{
  return g_strdup_printf (HEADWAY_DBUS_SUBSCRIPTION_PREFIX "%u", number);
}
