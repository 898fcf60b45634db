/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-route.h"

#include "engine/headway-gap.h"

#include <string.h>

/* The record of a loss, how two become one, and the event that tells of it (decisions.md 28). */

static HeadwayEvent *
event_with_id (TestBus *t, const char *principal, gsize cost, guint64 id)
{
  HeadwayEvent *event = test_event_of (t, principal, cost, FALSE);

  headway_event_set_id (event, id);
  return event;
}

static void
assert_told (TestBus *t, const HeadwayGap *gap, const char *expected)
{
  g_autoptr (HeadwayEvent) event = headway_gap_to_event (gap, headway_bus_get_system (t->bus), t->now);
  gsize length;
  const char *data = headway_event_get_data (event, &length);
  g_autofree char *text = g_strndup (data, length);

  g_assert_cmpstr (headway_event_get_type (event), ==, "gap");
  g_assert_true (headway_event_is_synthetic (event));
  g_assert_cmpuint (headway_event_get_id (event), ==, 0);
  g_assert_cmpuint (headway_event_get_cost (event), ==, length);
  g_assert_cmpuint (headway_event_get_size (event), <=, HEADWAY_NOTICE_SIZE_MAX);
  g_assert_cmpstr (text, ==, expected);
}

static void
test_one (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwayEvent) event = event_with_id (&t, "alice", 100, 7);
  g_autoptr (HeadwayGap) gap = headway_gap_new (HEADWAY_GAP_BUDGET, event, 9);

  assert_told (&t, gap, "{\"reason\":\"budget\",\"principal\":\"alice\",\"count\":1,\"bytes\":100,\"firstId\":7,\"lastId\":7}");
}

static void
test_add (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwayEvent) first = event_with_id (&t, "alice", 100, 7);
  g_autoptr (HeadwayEvent) second = event_with_id (&t, "alice", 50, 9);
  g_autoptr (HeadwayEvent) third = event_with_id (&t, "bob", 50, 8);
  g_autoptr (HeadwayGap) gap = headway_gap_new (HEADWAY_GAP_COUNT_CAP, first, 9);

  headway_gap_add (gap, second);
  assert_told (&t, gap, "{\"reason\":\"count_cap\",\"principal\":\"alice\",\"count\":2,\"bytes\":150,\"firstId\":7,\"lastId\":9}");
  headway_gap_add (gap, third);
  assert_told (&t, gap, "{\"reason\":\"count_cap\",\"count\":3,\"bytes\":200,\"firstId\":7,\"lastId\":9}");
}

static void
test_system_has_no_name (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwayEvent) event = event_with_id (&t, NULL, 100, 7);
  g_autoptr (HeadwayGap) gap = headway_gap_new (HEADWAY_GAP_OVERSIZE, event, 7);

  assert_told (&t, gap, "{\"reason\":\"oversize\",\"count\":1,\"bytes\":100,\"firstId\":7,\"lastId\":7}");
}

static void
test_absorb (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwayEvent) first = event_with_id (&t, "alice", 100, 7);
  g_autoptr (HeadwayEvent) second = event_with_id (&t, "alice", 50, 9);
  g_autoptr (HeadwayGap) younger = headway_gap_new (HEADWAY_GAP_BUDGET, first, 20);
  g_autoptr (HeadwayGap) older = headway_gap_new (HEADWAY_GAP_OVERSIZE, second, 9);
  g_autoptr (HeadwayGap) same = headway_gap_new (HEADWAY_GAP_COUNT_CAP, second, 9);

  headway_gap_absorb (younger, older);
  assert_told (&t, younger, "{\"reason\":\"oversize\",\"principal\":\"alice\",\"count\":2,\"bytes\":150,\"firstId\":7,\"lastId\":9}");
  headway_gap_absorb (younger, same);
  g_assert_cmpint (younger->reason, ==, HEADWAY_GAP_OVERSIZE);
  g_assert_cmpuint (younger->count, ==, 3);
}

static void
test_longest (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  char name[HEADWAY_PRINCIPAL_MAX + 1] = { 0 };
  g_autoptr (HeadwayEvent) event = NULL;
  g_autoptr (HeadwayGap) gap = NULL;
  g_autoptr (HeadwayEvent) told = NULL;

  memset (name, 'p', HEADWAY_PRINCIPAL_MAX);
  event = event_with_id (&t, name, 100, HEADWAY_ID_MAX);
  gap = headway_gap_new (HEADWAY_GAP_COUNT_CAP, event, 1);
  gap->count = gap->bytes = G_MAXUINT64;
  gap->is_filtered = TRUE;
  told = headway_gap_to_event (gap, headway_bus_get_system (t.bus), t.now);
  g_assert_cmpuint (headway_event_get_size (told), <=, HEADWAY_NOTICE_SIZE_MAX);
}

static void
test_reasons (void)
{
  static const char *const names[] = { "budget", "count_cap", "oversize", "lagged", "full" };

  for (guint i = 0; i < HEADWAY_N_GAP_REASONS; i++)
    g_assert_cmpstr (headway_gap_reason_get_name (i), ==, names[i]);
}

/* The places behind the resume id stay in order whatever is lost. */
static void
test_low_water (void)
{
  HeadwayLowWater marks;
  HeadwayPlace events[3], gap;

  headway_low_water_init (&marks);
  g_assert_cmpuint (headway_low_water_get (&marks, 41), ==, 41);
  for (guint i = 0; i < 3; i++)
    headway_low_water_append (&marks, &events[i], 10 * (i + 1));
  g_assert_cmpuint (headway_low_water_get (&marks, 41), ==, 9);
  headway_low_water_remove (&marks, &events[0]);
  g_assert_cmpuint (headway_low_water_get (&marks, 41), ==, 19);
  headway_low_water_insert_at (&marks, &gap, &events[1]);
  headway_low_water_remove (&marks, &events[1]);
  g_assert_cmpuint (gap.id, ==, 20);
  g_assert_cmpuint (headway_low_water_get (&marks, 41), ==, 19);
  headway_low_water_remove (&marks, &gap);
  g_assert_cmpuint (headway_low_water_get (&marks, 41), ==, 29);
  headway_low_water_remove (&marks, &events[2]);
  g_assert_cmpuint (headway_low_water_get (&marks, 41), ==, 41);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/gap/one-loss", test_one);
  g_test_add_func ("/gap/counts-and-names", test_add);
  g_test_add_func ("/gap/system-has-no-name", test_system_has_no_name);
  g_test_add_func ("/gap/two-become-one", test_absorb);
  g_test_add_func ("/gap/longest-fits-a-notice", test_longest);
  g_test_add_func ("/gap/reasons-are-a-closed-set", test_reasons);
  g_test_add_func ("/gap/low-water-mark", test_low_water);
  return g_test_run ();
}
