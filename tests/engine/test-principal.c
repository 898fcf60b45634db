/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-principal.h"

#include "engine/headway-error.h"

static HeadwayPrincipal *
intern (HeadwayPrincipalTable *table, const char *name)
{
  g_autoptr (GError) error = NULL;
  HeadwayPrincipal *principal = headway_principal_table_intern (table, name, &error);

  g_assert_no_error (error);
  g_assert_cmpstr (headway_principal_get_name (principal), ==, name);
  return principal;
}

static void
test_same_pointer (void)
{
  g_autoptr (HeadwayPrincipalTable) table = headway_principal_table_new ();
  g_autoptr (HeadwayPrincipal) a = intern (table, "uid:1000");
  g_autoptr (HeadwayPrincipal) again = intern (table, "uid:1000");
  g_autoptr (HeadwayPrincipal) other = intern (table, "uid:1001");

  g_assert_true (a == again);
  g_assert_true (a != other);
  g_assert_cmpuint (headway_principal_table_size (table), ==, 2);
}

static void
test_classes (void)
{
  static const struct
  {
    const char *name;
    HeadwayPrincipalClass class;
  } cases[] = {
    { "agent.a", HEADWAY_PRINCIPAL_AGENT },
    { "agent:a", HEADWAY_PRINCIPAL_AGENT },
    { "agent.", HEADWAY_PRINCIPAL_AGENT },
    { "agent", HEADWAY_PRINCIPAL_USER },
    { "agents.a", HEADWAY_PRINCIPAL_USER },
    { "Agent.a", HEADWAY_PRINCIPAL_USER },
    { "uid:0", HEADWAY_PRINCIPAL_USER },
    { "system", HEADWAY_PRINCIPAL_USER },
  };
  g_autoptr (HeadwayPrincipalTable) table = headway_principal_table_new ();
  HeadwayPrincipal *system = headway_principal_table_get_system (table);

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (HeadwayPrincipal) principal = intern (table, cases[i].name);
      g_assert_cmpint (headway_principal_get_class (principal), ==, cases[i].class);
      g_assert_false (headway_principal_is_system (principal));
    }
  g_assert_cmpstr (headway_principal_get_name (system), ==, "");
  g_assert_cmpint (headway_principal_get_class (system), ==, HEADWAY_PRINCIPAL_SYSTEM);
  g_assert_true (headway_principal_is_system (system));
}

static void
test_refused (void)
{
  static const char *const bad[] = { "", "a b", "\xc3\xa9", "a\n", "a#b" };
  g_autoptr (HeadwayPrincipalTable) table = headway_principal_table_new ();
  g_autofree char *longest = g_strnfill (128, 'a');
  g_autofree char *too_long = g_strnfill (129, 'a');
  g_autoptr (HeadwayPrincipal) principal = intern (table, longest);
  g_autoptr (GError) error = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr (GError) refused = NULL;
      g_assert_null (headway_principal_table_intern (table, bad[i], &refused));
      g_assert_error (refused, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_PRINCIPAL);
    }
  g_assert_null (headway_principal_table_intern (table, too_long, &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_PRINCIPAL);
  g_assert_cmpuint (headway_principal_table_size (table), ==, 1);
}

static void
test_forgotten (void)
{
  g_autoptr (HeadwayPrincipalTable) table = headway_principal_table_new ();
  HeadwayPrincipal *principal = intern (table, "a");

  headway_principal_ref (principal);
  headway_principal_unref (principal);
  g_assert_cmpuint (headway_principal_table_size (table), ==, 1);
  headway_principal_unref (principal);
  g_assert_cmpuint (headway_principal_table_size (table), ==, 0);
  for (guint i = 0; i < 10000; i++)
    {
      g_autofree char *name = g_strdup_printf ("uid:%u", i);
      headway_principal_unref (intern (table, name));
    }
  g_assert_cmpuint (headway_principal_table_size (table), ==, 0);
}

static void
test_outlives_table (void)
{
  HeadwayPrincipalTable *table = headway_principal_table_new ();
  HeadwayPrincipal *principal = intern (table, "a");
  HeadwayPrincipal *system = headway_principal_ref (headway_principal_table_get_system (table));

  headway_principal_table_unref (headway_principal_table_ref (table));
  headway_principal_table_unref (table);
  g_assert_cmpstr (headway_principal_get_name (principal), ==, "a");
  g_assert_true (headway_principal_is_system (system));
  headway_principal_unref (principal);
  headway_principal_unref (system);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/principal/intern/same-name-same-pointer", test_same_pointer);
  g_test_add_func ("/principal/intern/classes", test_classes);
  g_test_add_func ("/principal/intern/refused", test_refused);
  g_test_add_func ("/principal/table/forgets-who-is-gone", test_forgotten);
  g_test_add_func ("/principal/table/principals-outlive-it", test_outlives_table);
  return g_test_run ();
}
