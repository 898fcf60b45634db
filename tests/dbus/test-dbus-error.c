/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-error.h"

static void
test_names (void)
{
  headway_dbus_error_register ();
  headway_dbus_error_register ();
  for (int code = 0; code < HEADWAY_N_ERRORS; code++)
    {
      g_autoptr (GError) error = g_error_new (HEADWAY_ERROR, code, "why");
      g_autoptr (GError) back = NULL;
      g_autofree char *name = g_dbus_error_encode_gerror (error);
      g_autofree char *expected = g_strconcat ("org.headway.Headway1.Error.", headway_error_get_name (code), NULL);

      g_assert_cmpstr (name, ==, expected);
      back = g_dbus_error_new_for_dbus_error (name, "why");
      g_assert_error (back, HEADWAY_ERROR, code);
      /* The engine's error: with room for its details. */
      g_assert_nonnull (headway_error_get_details (back));
      g_assert_cmpint (headway_error_get_details (back)->position, ==, -1);
    }
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/dbus/error/every-code-has-its-name", test_names);
  return g_test_run ();
}
