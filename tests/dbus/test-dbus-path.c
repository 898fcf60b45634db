/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-path.h"

#include <gio/gio.h>

typedef struct
{
  const char *label;
  const char *path;
} Case;

static void
test_table (void)
{
  /* As sd_bus_path_encode() writes them. */
  static const Case cases[] = {
    { "", "/p/_" },
    { "a", "/p/a" },
    { "aZ09", "/p/aZ09" },
    { "0", "/p/_30" },
    { "1x1", "/p/_31x1" },
    { "x1", "/p/x1" },
    { "99", "/p/_399" },
    { "_", "/p/_5f" },
    { "__", "/p/_5f_5f" },
    { "a.b", "/p/a_2eb" },
    { "a-b_c~d", "/p/a_2db_5fc_7ed" },
    { "foo.service", "/p/foo_2eservice" },
    { "/", "/p/_2f" },
    { "\xc3\xa4", "/p/_c3_a4" },
    { "\x01\x7f\xff", "/p/_01_7f_ff" },
    { "@[`{:", "/p/_40_5b_60_7b_3a" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *path = headway_dbus_path_encode ("/p/", cases[i].label);

      g_assert_cmpstr (path, ==, cases[i].path);
      g_assert_true (g_variant_is_object_path (path));
    }
}

static void
test_every_byte (void)
{
  for (guint byte = 1; byte < 256; byte++)
    {
      const char label[] = { 'x', (char) byte, '\0' };
      g_autofree char *path = headway_dbus_path_encode ("/p/", label);
      g_autofree char *expected = g_ascii_isalnum (byte) ? g_strdup_printf ("/p/x%c", byte)
                                                         : g_strdup_printf ("/p/x_%02x", byte);

      g_assert_cmpstr (path, ==, expected);
      g_assert_true (g_variant_is_object_path (path));
    }
}

static void
test_paths (void)
{
  g_autofree char *bus = headway_dbus_path_of_bus ("my.bus");
  g_autofree char *subscription = headway_dbus_path_of_subscription (G_MAXUINT);

  g_assert_cmpstr (bus, ==, "/org/headway/Headway1/bus/my_2ebus");
  g_assert_cmpstr (subscription, ==, "/org/headway/Headway1/subscription/4294967295");
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/dbus/path/table-of-sd-bus", test_table);
  g_test_add_func ("/dbus/path/every-byte", test_every_byte);
  g_test_add_func ("/dbus/path/of-buses-and-subscriptions", test_paths);
  return g_test_run ();
}
