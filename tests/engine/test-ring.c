/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-bus.h"

#include "engine/headway-ring.h"

#include <string.h>

typedef struct
{
  HeadwayPrincipalTable *table;
  HeadwayRing *ring;
  guint64 last_id;
} Fixture;

static void
set_up (Fixture *f, guint max_events, guint64 max_bytes)
{
  f->table = headway_principal_table_new ();
  f->ring = headway_ring_new (max_events, max_bytes);
}

static void
tear_down (Fixture *f)
{
  g_clear_pointer (&f->ring, headway_ring_free);
  g_clear_pointer (&f->table, headway_principal_table_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

/* Appends an event of @size bytes; at least 66 and those of its id beyond the first digit. */
static void
append (Fixture *f, gsize size)
{
  g_autofree char *id = g_strdup_printf ("%" G_GUINT64_FORMAT, ++f->last_id);
  gsize fixed = 65 + strlen (id) - 1;
  g_autofree char *data = size > fixed + 1 ? test_string (size - fixed - 2) : g_strdup ("1");
  g_autoptr (HeadwayEvent) event = test_event (headway_principal_table_get_system (f->table), data);

  headway_event_set_id (event, f->last_id);
  if (size > 0)
    g_assert_cmpuint (headway_event_get_size (event), ==, size);
  headway_ring_append (f->ring, event);
}

static void
assert_ring (Fixture *f, guint64 first, guint64 last)
{
  g_assert_cmpuint (headway_ring_get_first_id (f->ring), ==, first);
  g_assert_cmpuint (headway_ring_get_last_id (f->ring), ==, last);
  g_assert_cmpuint (headway_ring_get_length (f->ring), ==, first > 0 ? last - first + 1 : 0);
  if (first > 0)
    g_assert_null (headway_ring_lookup (f->ring, first - 1));
  g_assert_null (headway_ring_lookup (f->ring, last + 1));
  for (guint64 id = first; id > 0 && id <= last; id++)
    g_assert_cmpuint (headway_event_get_id (headway_ring_lookup (f->ring, id)), ==, id);
}

static void
test_empty (void)
{
  g_auto (Fixture) f = { 0 };

  set_up (&f, 3, 1000);
  assert_ring (&f, 0, 0);
  g_assert_null (headway_ring_lookup (f.ring, 0));
  g_assert_null (headway_ring_lookup (f.ring, G_MAXUINT64));
  g_assert_cmpuint (headway_ring_get_bytes (f.ring), ==, 0);
}

static void
test_count (void)
{
  for (guint max = 1; max <= 40; max++)
    {
      g_auto (Fixture) f = { 0 };

      set_up (&f, max, G_MAXUINT64);
      for (guint64 id = 1; id <= 100; id++)
        {
          append (&f, 0);
          assert_ring (&f, id > max ? id - max + 1 : 1, id);
        }
    }
}

static void
test_bytes (void)
{
  g_auto (Fixture) f = { 0 };

  set_up (&f, 100, 300);
  append (&f, 100);
  append (&f, 100);
  append (&f, 100);
  g_assert_cmpuint (headway_ring_get_bytes (f.ring), ==, 300);
  assert_ring (&f, 1, 3);
  append (&f, 68); /* 368: the first one goes */
  g_assert_cmpuint (headway_ring_get_bytes (f.ring), ==, 268);
  assert_ring (&f, 2, 4);
  append (&f, 133); /* 401: one more is enough only down to 301 */
  assert_ring (&f, 4, 5);
  g_assert_cmpuint (headway_ring_get_bytes (f.ring), ==, 201);
  append (&f, 300); /* equality fits */
  assert_ring (&f, 6, 6);
  append (&f, 301); /* one is always kept */
  assert_ring (&f, 7, 7);
  g_assert_cmpuint (headway_ring_get_bytes (f.ring), ==, 301);
  append (&f, 70);
  assert_ring (&f, 8, 8);
}

static void
test_clear (void)
{
  g_auto (Fixture) f = { 0 };

  set_up (&f, 5, G_MAXUINT64);
  for (guint i = 0; i < 7; i++)
    append (&f, 0);
  headway_ring_clear (f.ring);
  assert_ring (&f, 0, 0);
  g_assert_cmpuint (headway_ring_get_bytes (f.ring), ==, 0);
  f.last_id = 1000;
  append (&f, 0);
  append (&f, 0);
  assert_ring (&f, 1001, 1002);
}

static void
test_releases (void)
{
  g_auto (Fixture) f = { 0 };
  HeadwayPrincipal *principal;
  HeadwayEvent *event;

  set_up (&f, 1, G_MAXUINT64);
  principal = headway_principal_table_intern (f.table, "a", NULL);
  event = test_event (principal, "1");
  headway_principal_unref (principal);
  headway_event_set_id (event, 1);
  headway_ring_append (f.ring, event);
  headway_event_unref (event);
  g_assert_cmpuint (headway_principal_table_size (f.table), ==, 1);
  f.last_id = 1;
  append (&f, 0);
  g_assert_cmpuint (headway_principal_table_size (f.table), ==, 0);
}

static void
test_largest_ids (void)
{
  g_auto (Fixture) f = { 0 };

  set_up (&f, 20, G_MAXUINT64);
  f.last_id = HEADWAY_ID_MAX - 50;
  for (guint i = 0; i < 50; i++)
    append (&f, 0);
  assert_ring (&f, HEADWAY_ID_MAX - 19, HEADWAY_ID_MAX);
}

static void
test_million (void)
{
  g_auto (Fixture) f = { 0 };
  g_autoptr (HeadwayPrincipal) system = NULL;

  set_up (&f, 300000 / TEST_SLOWDOWN, G_MAXUINT64);
  system = headway_principal_ref (headway_principal_table_get_system (f.table));
  for (guint64 id = 1; id <= 400000 / TEST_SLOWDOWN; id++)
    {
      g_autoptr (HeadwayEvent) event = test_event (system, "1");
      headway_event_set_id (event, id);
      headway_ring_append (f.ring, event);
    }
  g_assert_cmpuint (headway_ring_get_first_id (f.ring), ==, 100000 / TEST_SLOWDOWN + 1);
  g_assert_cmpuint (headway_ring_get_length (f.ring), ==, 300000 / TEST_SLOWDOWN);
  g_assert_cmpuint (headway_event_get_id (headway_ring_lookup (f.ring, 222220 / TEST_SLOWDOWN)), ==, 222220 / TEST_SLOWDOWN);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/ring/empty", test_empty);
  g_test_add_func ("/ring/bounded-by-count", test_count);
  g_test_add_func ("/ring/bounded-by-bytes", test_bytes);
  g_test_add_func ("/ring/clear", test_clear);
  g_test_add_func ("/ring/lets-go-of-what-it-drops", test_releases);
  g_test_add_func ("/ring/largest-ids", test_largest_ids);
  g_test_add_func ("/ring/long", test_million);
  return g_test_run ();
}
