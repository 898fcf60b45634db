/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-seen.h"

static void
test_remembers_in_any_order (void)
{
  g_autoptr (HeadwayCliSeen) seen = headway_cli_seen_new (10);

  g_assert_false (headway_cli_seen_contains (seen, 5));
  headway_cli_seen_add (seen, 5);
  headway_cli_seen_add (seen, 9);
  headway_cli_seen_add (seen, 2);
  headway_cli_seen_add (seen, 5);
  g_assert_cmpuint (headway_cli_seen_get_n_ids (seen), ==, 3);
  for (guint64 id = 0; id < 12; id++)
    g_assert_cmpint (headway_cli_seen_contains (seen, id), ==, id == 2 || id == 5 || id == 9);
}

static void
test_forgets_up_to_the_low_water_mark (void)
{
  g_autoptr (HeadwayCliSeen) seen = headway_cli_seen_new (10);

  headway_cli_seen_forget_up_to (seen, 3);
  headway_cli_seen_add (seen, 2);
  headway_cli_seen_add (seen, 5);
  headway_cli_seen_add (seen, 6);
  headway_cli_seen_forget_up_to (seen, 5);
  g_assert_cmpuint (headway_cli_seen_get_n_ids (seen), ==, 1);
  g_assert_false (headway_cli_seen_contains (seen, 5));
  g_assert_true (headway_cli_seen_contains (seen, 6));
  headway_cli_seen_forget_up_to (seen, G_MAXUINT64);
  g_assert_cmpuint (headway_cli_seen_get_n_ids (seen), ==, 0);
  headway_cli_seen_add (seen, 1);
  headway_cli_seen_clear (seen);
  g_assert_false (headway_cli_seen_contains (seen, 1));
}

static void
test_is_bounded (void)
{
  g_autoptr (HeadwayCliSeen) seen = headway_cli_seen_new (3);

  for (guint64 id = 1; id <= 100; id++)
    {
      headway_cli_seen_add (seen, id);
      g_assert_cmpuint (headway_cli_seen_get_n_ids (seen), ==, MIN (id, 3));
    }
  g_assert_false (headway_cli_seen_contains (seen, 97));
  g_assert_true (headway_cli_seen_contains (seen, 98));
  g_assert_true (headway_cli_seen_contains (seen, 100));
}

static void
test_agrees_with_a_table (void)
{
  g_autoptr (HeadwayCliSeen) seen = headway_cli_seen_new (1000);
  g_autoptr (GHashTable) model = g_hash_table_new (NULL, NULL);
  guint64 mark = 0;

  for (guint i = 0; i < 20000; i++)
    {
      guint64 id = mark + 1 + g_test_rand_int_range (0, 200);

      headway_cli_seen_add (seen, id);
      g_hash_table_add (model, GSIZE_TO_POINTER ((gsize) id));
      if (g_test_rand_int_range (0, 4) == 0)
        {
          guint64 next = mark + (guint64) g_test_rand_int_range (0, 20);

          for (; mark < next; mark++)
            g_hash_table_remove (model, GSIZE_TO_POINTER ((gsize) mark + 1));
          headway_cli_seen_forget_up_to (seen, mark);
        }
      id = mark + (guint64) g_test_rand_int_range (0, 220);
      g_assert_cmpint (headway_cli_seen_contains (seen, id), ==, g_hash_table_contains (model, GSIZE_TO_POINTER ((gsize) id)));
      g_assert_cmpuint (headway_cli_seen_get_n_ids (seen), ==, g_hash_table_size (model));
    }
}

int
main (int argc,
      char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/cli/seen/remembers-in-any-order", test_remembers_in_any_order);
  g_test_add_func ("/cli/seen/forgets-up-to-the-low-water-mark", test_forgets_up_to_the_low_water_mark);
  g_test_add_func ("/cli/seen/is-bounded", test_is_bounded);
  g_test_add_func ("/cli/seen/agrees-with-a-table", test_agrees_with_a_table);
  return g_test_run ();
}
