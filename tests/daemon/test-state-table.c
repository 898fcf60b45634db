/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "daemon/headway-state-table.h"

#include <string.h>

#define NOW_US G_GINT64_CONSTANT (1790000000000000)

static HeadwayStateRecord *
record (const char *name, guint64 mark)
{
  HeadwayLimits limits;

  headway_limits_init (&limits);
  limits.bus.ring_size = 77;
  return headway_state_record_new (name, "an-epoch", 1000, mark, &limits.bus);
}

static HeadwayStateTable *
sample (void)
{
  HeadwayStateTable *table = headway_state_table_new ();

  headway_state_table_put (table, record ("alpha", 10000));
  headway_state_table_put (table, record ("beta.~-_", 9007199254740991));
  headway_state_table_put (table, record ("gone", 5));
  headway_state_table_close (table, "gone", 42);
  return table;
}

static GBytes *
sample_bytes (void)
{
  g_autoptr (HeadwayStateTable) table = sample ();

  return headway_state_table_to_bytes (table);
}

static void
test_round_trip (void)
{
  g_autoptr (GBytes) bytes = sample_bytes ();
  g_autofree char *damage = NULL;
  g_autoptr (HeadwayStateTable) table = headway_state_table_load (bytes, NOW_US, &damage);
  HeadwayStateRecord *alpha = headway_state_table_lookup (table, "alpha");

  g_assert_null (damage);
  g_assert_nonnull (alpha);
  g_assert_cmpuint (alpha->mark, ==, 10000);
  g_assert_cmpuint (alpha->creator, ==, 1000);
  g_assert_cmpuint (alpha->options.ring_size, ==, 77);
  g_assert_cmpstr (alpha->epoch, ==, "an-epoch");
  g_assert_cmpuint (headway_state_table_get_mark (table, "beta.~-_"), ==, 9007199254740991);
  g_assert_null (headway_state_table_lookup (table, "gone"));
  g_assert_cmpuint (headway_state_table_get_mark (table, "gone"), ==, 42);
  g_assert_cmpuint (headway_state_table_get_mark (table, "never"), ==, 0);
}

static void
test_closed_bus_comes_back (void)
{
  g_autoptr (HeadwayStateTable) table = sample ();

  headway_state_table_put (table, record ("gone", 10042));
  g_assert_cmpuint (headway_state_table_get_mark (table, "gone"), ==, 10042);
  headway_state_table_close (table, "gone", 100);
  headway_state_table_close (table, "gone", 101);
  g_assert_cmpuint (headway_state_table_get_mark (table, "gone"), ==, 101);
}

static void
test_marks_fold_into_floor (void)
{
  g_autoptr (HeadwayStateTable) table = headway_state_table_new ();

  for (guint i = 1; i <= 4098; i++)
    {
      g_autofree char *name = g_strdup_printf ("bus%u", i);
      headway_state_table_close (table, name, 1000 + i);
    }
  g_assert_cmpuint (table->floor, ==, 1002);
  g_assert_cmpuint (headway_state_table_get_mark (table, "bus1"), ==, 1002);
  g_assert_cmpuint (headway_state_table_get_mark (table, "bus3"), ==, 1003);
}

static void
test_missing_file_is_damage (void)
{
  g_autofree char *damage = NULL;
  g_autoptr (HeadwayStateTable) table = headway_state_table_load (NULL, NOW_US, &damage);

  g_assert_nonnull (damage);
  g_assert_cmpuint (headway_state_table_get_mark (table, "any"), ==, NOW_US);
}

/* Whatever one byte is damaged, nothing that can be read is lower than it was, and what cannot be
 * read starts above the clock. */
static void
test_every_damaged_byte_is_found (void)
{
  g_autoptr (GBytes) bytes = sample_bytes ();
  gsize length;
  const char *text = g_bytes_get_data (bytes, &length);

  for (gsize i = 0; i < length; i++)
    for (guint flip = 1; flip < 256; flip <<= 3)
      {
        g_autofree char *copy = g_memdup2 (text, length);
        g_autoptr (GBytes) damaged = NULL;
        g_autoptr (HeadwayStateTable) table = NULL;
        g_autofree char *damage = NULL;

        copy[i] ^= (char) flip;
        damaged = g_bytes_new (copy, length);
        table = headway_state_table_load (damaged, NOW_US, &damage);
        g_assert_nonnull (damage);
        g_assert_cmpuint (headway_state_table_get_mark (table, "alpha"), >=, 10000);
        g_assert_cmpuint (headway_state_table_get_mark (table, "gone"), >=, 42);
        g_assert_cmpuint (headway_state_table_get_mark (table, "new"), >=, NOW_US);
      }
}

static void
test_every_cut_is_found (void)
{
  g_autoptr (GBytes) bytes = sample_bytes ();
  gsize length = g_bytes_get_size (bytes);

  /* The last line feed alone is no loss. */
  for (gsize n = 0; n < length - 1; n++)
    {
      g_autoptr (GBytes) cut = g_bytes_new_from_bytes (bytes, 0, n);
      g_autofree char *damage = NULL;
      g_autoptr (HeadwayStateTable) table = headway_state_table_load (cut, NOW_US, &damage);

      g_assert_nonnull (damage);
      g_assert_cmpuint (headway_state_table_get_mark (table, "alpha"), >=, 10000);
      g_assert_cmpuint (headway_state_table_get_mark (table, "new"), >=, NOW_US);
    }
}

static void
test_floor_never_passes_the_largest_id (void)
{
  g_autofree char *damage = NULL;
  g_autoptr (HeadwayStateTable) table = headway_state_table_load (NULL, G_MAXINT64, &damage);

  g_assert_cmpuint (table->floor, ==, HEADWAY_ID_MAX);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, G_TEST_OPTION_ISOLATE_DIRS, NULL);

  g_test_add_func ("/state-table/round-trip", test_round_trip);
  g_test_add_func ("/state-table/closed-bus-comes-back", test_closed_bus_comes_back);
  g_test_add_func ("/state-table/oldest-marks-fold-into-the-floor", test_marks_fold_into_floor);
  g_test_add_func ("/state-table/missing-file-in-a-used-folder-is-damage", test_missing_file_is_damage);
  g_test_add_func ("/state-table/every-damaged-byte-is-found", test_every_damaged_byte_is_found);
  g_test_add_func ("/state-table/every-cut-is-found", test_every_cut_is_found);
  g_test_add_func ("/state-table/floor-never-passes-the-largest-id", test_floor_never_passes_the_largest_id);

  return g_test_run ();
}
