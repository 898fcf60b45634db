/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-bus.h"

#include <string.h>

/* Cases of sse-contract.md 6, C (replay and cursor), and that a take is bounded. */

/* Ring 3, pub 5: the ring holds 3, 4, 5 and the next id is 6. */
static TestBus
bus_345 (void)
{
  TestBus t = TEST_BUS (.ring_size = 3);

  test_pub (&t, 5);
  return t;
}

/* --- C. Replay and cursor ------------------------------------------------------------------- */

static void
test_case_30 (void)
{
  g_auto (TestBus) t = bus_345 ();
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 0);

  g_assert_cmpint (headway_subscription_get_state (subscription), ==, HEADWAY_STATE_LIVE);
  g_assert_false (headway_subscription_is_ready (subscription));
  assert_reads (&t, subscription, "open");
}

static void
test_case_31 (void)
{
  g_auto (TestBus) t = bus_345 ();
  g_autoptr (HeadwaySubscription) subscription = test_from (&t, 0);

  g_assert_cmpint (headway_subscription_get_state (subscription), ==, HEADWAY_STATE_REPLAYING);
  assert_reads (&t, subscription, "resync(ring_evicted,0,3) #3 #4 #5 rc(3,5) open");
  g_assert_cmpint (headway_subscription_get_state (subscription), ==, HEADWAY_STATE_LIVE);
}

static void
test_case_32 (void)
{
  g_auto (TestBus) t = bus_345 ();

  assert_from (&t, 1, NULL, "resync(ring_evicted,1,3) #3 #4 #5 rc(3,5) open");
}

static void
test_case_33 (void)
{
  g_auto (TestBus) t = bus_345 ();

  assert_from (&t, 2, NULL, "#3 #4 #5 rc(3,5) open");
}

static void
test_case_34 (void)
{
  g_auto (TestBus) t = bus_345 ();

  assert_from (&t, 3, NULL, "#4 #5 rc(2,5) open");
}

static void
test_case_35 (void)
{
  g_auto (TestBus) t = bus_345 ();

  assert_from (&t, 5, NULL, "rc(0) open");
}

static void
test_case_36 (void)
{
  g_auto (TestBus) t = bus_345 ();

  assert_from (&t, 6, NULL, "resync(epoch_reset,6,3) #3 #4 #5 rc(3,5) open");
}

static void
test_case_37 (void)
{
  g_auto (TestBus) t = bus_345 ();

  assert_from (&t, HEADWAY_ID_MAX, NULL, "resync(epoch_reset,9007199254740991,3) #3 #4 #5 rc(3,5) open");
}

static void
test_case_38 (void)
{
  g_auto (TestBus) t = TEST_BUS (.ring_size = 1);

  test_pub (&t, 5);
  assert_from (&t, 4, NULL, "#5 rc(1,5) open");
  assert_from (&t, 3, NULL, "resync(ring_evicted,3,5) #5 rc(1,5) open");
}

static void
test_case_39 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = NULL;

  assert_from (&t, 0, NULL, "rc(0) open");
  subscription = test_from (&t, 1);
  assert_reads (&t, subscription, "resync(epoch_reset,1,1) rc(0) open");
  test_pub (&t, 1);
  assert_reads (&t, subscription, "#1 open");
}

static void
test_case_40 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);

  test_pub (&t, 8001);
  assert_from (&t, 0, NULL, "resync(ring_evicted,0,2) #2..#8001 rc(8000,8001) open");
}

static HeadwaySubscription *
from_zero_with_cap (TestBus *t, guint max_queued)
{
  HeadwaySubscribeOptions options;

  headway_subscribe_options_init (&options);
  options.max_queued = max_queued;
  options.cursor.is_set = TRUE;
  return test_subscribe (t, &options);
}

static void
test_case_41 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = NULL;

  test_pub (&t, 10);
  subscription = from_zero_with_cap (&t, 2);
  assert_reads (&t, subscription, "#1..#10 rc(10,10) open");
  test_pub (&t, 1);
  assert_reads (&t, subscription, "#11 open");
}

static void
test_case_42 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = NULL;

  test_pub (&t, 5);
  subscription = from_zero_with_cap (&t, 2);
  test_pub (&t, 3);
  assert_reads (&t, subscription,
                "#1..#5 rc(5,5) #6 #7 warn(2,2,7,132," BC ",frames) evict(queue_overflow,8,2,2,132," BC ") end");
}

static void
test_case_43 (void)
{
  g_auto (TestBus) t = TEST_BUS (.max_queued_bytes = 64);
  g_autoptr (HeadwaySubscription) subscription = NULL;

  for (guint i = 0; i < 3; i++)
    test_pub_chars (&t, 512);
  subscription = test_from (&t, 0);
  assert_reads (&t, subscription, "#1 #2 #3 rc(3,3) open");
  test_pub_chars (&t, 512);
  assert_reads (&t, subscription, "#4 warn(1,256,4,579,64,bytes) open");
}

static void
on_event_subscribe (HeadwayBus *bus, HeadwayEvent *event, HeadwayInstant now, gpointer user_data)
{
  HeadwaySubscription **subscription = user_data;
  HeadwaySubscribeOptions options;

  if (*subscription != NULL)
    return;
  headway_subscribe_options_init (&options);
  options.cursor = (HeadwayCursor){ .is_set = TRUE, .last_event_id = headway_event_get_id (event) - 1 };
  *subscription = headway_bus_subscribe (bus, &options, test_instant (0), NULL);
}

static void
assert_every_id_once (const char *script, guint64 first, guint64 last)
{
  g_auto (GStrv) words = g_strsplit (script, " ", -1);
  guint64 next = first;

  for (guint i = 0; words[i] != NULL; i++)
    {
      const char *range = strstr (words[i], "..#");

      if (words[i][0] != '#')
        continue;
      g_assert_cmpuint (g_ascii_strtoull (words[i] + 1, NULL, 10), ==, next);
      next = range != NULL ? g_ascii_strtoull (range + 3, NULL, 10) + 1 : next + 1;
    }
  g_assert_cmpuint (next, ==, last + 1);
}

/* One thread owns the engine (decisions.md 34): the race is a subscribe at any point of a publish,
 * between dispatches of a batch and from inside an event that is being published. */
static void
test_case_44 (void)
{
  g_auto (TestBus) t = TEST_BUS (.ring_size = 100);

  for (guint i = 0; i < 100000 / TEST_SLOWDOWN; i++)
    {
      g_autoptr (HeadwaySubscription) subscription = NULL;
      g_autofree char *got = NULL;
      guint64 first = headway_bus_get_last_id (t.bus) + 1;
      guint before = i % 3;
      guint after = i % 4;

      test_pub (&t, before);
      if (i % 2 == 0)
        subscription = test_from (&t, first - 1);
      else
        {
          guint observer = headway_bus_add_observer (t.bus, on_event_subscribe, &subscription, NULL);
          test_pub (&t, 1);
          headway_bus_remove_observer (t.bus, observer);
          g_assert_nonnull (subscription);
        }
      test_pub (&t, after);
      got = test_take_all (&t, subscription);
      assert_every_id_once (got, i % 2 == 0 ? first : first + before, headway_bus_get_last_id (t.bus));
    }
}

static void
test_case_44_batch (void)
{
  g_auto (TestBus) t = TEST_BUS (0);

  for (guint turn = 0; turn < 4; turn++)
    {
      g_autoptr (HeadwaySubscription) subscription = NULL;
      g_autofree char *expected = NULL;
      guint first = (guint) headway_bus_get_last_id (t.bus) + 1;
      guint n = 32 * (turn + 1);

      headway_bus_publish (t.bus, test_batch (&t, 200, NULL), t.now);
      for (guint i = 0; i < turn; i++)
        headway_bus_run (t.bus, t.now);
      subscription = test_from (&t, first - 1);
      test_run (&t);
      expected = g_strdup_printf ("#%u..#%u rc(%u,%u) #%u..#%u open",
                                  first, first + n - 1, n, first + n - 1, first + n, first + 199);
      assert_reads (&t, subscription, expected);
    }
}

static void
test_case_45 (void)
{
  g_auto (TestBus) t = TEST_BUS (.ring_size = 10);
  g_autoptr (HeadwaySubscription) subscription = NULL;

  test_pub (&t, 10);
  subscription = test_from (&t, 0);
  assert_take (&t, subscription, 2, "#1 #2");
  test_pub (&t, 5);
  assert_reads (&t, subscription, "resync(ring_evicted,2,6) #6..#10 rc(7,10) #11..#15 open");
}

/* decisions.md 22: nothing is said where nothing is missing; past H the live events go on. */
static void
test_overtaken_edges (void)
{
  g_auto (TestBus) t = TEST_BUS (.ring_size = 4);
  g_autoptr (HeadwaySubscription) exact = NULL;
  g_autoptr (HeadwaySubscription) beyond = NULL;
  g_autoptr (HeadwaySubscription) unread = NULL;
  g_autoptr (HeadwaySubscription) twice = NULL;

  test_pub (&t, 4);
  exact = test_from (&t, 0);
  beyond = test_from (&t, 0);
  unread = test_from (&t, 0);
  assert_take (&t, exact, 2, "#1 #2");
  assert_take (&t, beyond, 1, "#1");
  test_pub (&t, 2);
  assert_reads (&t, exact, "#3 #4 rc(4,4) #5 #6 open");
  test_pub (&t, 7);
  assert_reads (&t, beyond, "resync(ring_evicted,1,5) rc(1,1) #5..#13 open");
  assert_reads (&t, unread, "resync(ring_evicted,0,5) rc(0) #5..#13 open");

  twice = test_from (&t, 9);
  assert_take (&t, twice, 1, "#10");
  test_pub (&t, 2);
  assert_take (&t, twice, 2, "resync(ring_evicted,10,12) #12");
  test_pub (&t, 2);
  assert_reads (&t, twice, "resync(ring_evicted,12,14) rc(2,12) #14..#17 open");
}

/* What an opening resync promises is the id that comes next, also when the ring went on before it
 * was read: not two resyncs in a row. */
static void
test_opening_overtaken (void)
{
  g_auto (TestBus) t = bus_345 ();
  g_autoptr (HeadwaySubscription) evicted = test_from (&t, 0);
  g_autoptr (HeadwaySubscription) reset = test_from_epoch (&t, 4, "dead");
  g_autoptr (HeadwaySubscription) gone = test_from (&t, 0);

  test_pub (&t, 1);
  assert_reads (&t, evicted, "resync(ring_evicted,0,4) #4 #5 rc(2,5) #6 open");
  assert_reads (&t, reset, "resync(epoch_reset,4,4,epoch_mismatch) #4 #5 rc(2,5) #6 open");
  test_pub (&t, 3);
  assert_reads (&t, gone, "resync(ring_evicted,0,6) rc(0) #6..#9 open");
}

/* --- Filters -------------------------------------------------------------------------------- */

static HeadwaySubscription *
filtered_from (TestBus *t, guint64 cursor, const char *patterns, const char *types)
{
  g_autoptr (HeadwayFilter) filter = test_filter (patterns, types);
  HeadwaySubscribeOptions options;

  headway_subscribe_options_init (&options);
  options.filter = filter;
  options.cursor = (HeadwayCursor){ .is_set = TRUE, .last_event_id = cursor };
  return test_subscribe (t, &options);
}

static void
test_filtered_replay (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) topics = NULL;
  g_autoptr (HeadwaySubscription) types = NULL;
  g_autoptr (HeadwaySubscription) both = NULL;
  g_autoptr (HeadwaySubscription) nothing = NULL;

  for (guint i = 0; i < 4; i++)
    test_pub_on (&t, i % 2 == 0 ? "a.b" : "a.c", i < 2 ? "foo" : "bar");
  topics = filtered_from (&t, 0, "a.b", NULL);
  types = filtered_from (&t, 0, NULL, "bar");
  both = filtered_from (&t, 0, "*.c a.*", "foo baz");
  nothing = filtered_from (&t, 0, "z", NULL);
  test_pub_on (&t, "a.b", "bar");
  assert_reads (&t, topics, "#1 #3 rc(2,3,filtered) #5 open");
  assert_reads (&t, types, "#3 #4 rc(2,4,filtered) #5 open");
  assert_reads (&t, both, "#1 #2 rc(2,2,filtered) open");
  assert_reads (&t, nothing, "rc(0,filtered) open");
}

/* A take looks at a bounded number of events that do not match (32), then comes back. */
static void
test_filtered_in_turns (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = NULL;

  for (guint i = 0; i < 100; i++)
    test_pub_on (&t, "other", NULL);
  test_pub_on (&t, "mine", NULL);
  subscription = filtered_from (&t, 0, "mine", NULL);
  for (guint i = 0; i < 3; i++)
    {
      assert_take (&t, subscription, 10, "");
      g_assert_true (headway_subscription_is_ready (subscription));
    }
  assert_take (&t, subscription, 1, "#101");
  assert_reads (&t, subscription, "rc(1,101,filtered) open");
}

static void
test_max_bytes (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = NULL;
  HeadwayDelivery deliveries[10];

  test_pub (&t, 5);
  subscription = test_from (&t, 0);
  for (guint i = 0; i < 2; i++)
    {
      guint n = headway_subscription_take (subscription, t.now, 10, 66 * 2, deliveries);
      g_assert_cmpuint (n, ==, 2);
      headway_event_unref (deliveries[0].event);
      headway_event_unref (deliveries[1].event);
    }
  /* The first one whatever its size. */
  g_assert_cmpuint (headway_subscription_take (subscription, t.now, 10, 1, deliveries), ==, 1);
  headway_event_unref (deliveries[0].event);
  assert_reads (&t, subscription, "rc(5,5) open");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/stream/replay/case-30-no-cursor", test_case_30);
  g_test_add_func ("/stream/replay/case-31-cursor-0", test_case_31);
  g_test_add_func ("/stream/replay/case-32-cursor-1", test_case_32);
  g_test_add_func ("/stream/replay/case-33-cursor-at-the-boundary", test_case_33);
  g_test_add_func ("/stream/replay/case-34-cursor-3", test_case_34);
  g_test_add_func ("/stream/replay/case-35-caught-up", test_case_35);
  g_test_add_func ("/stream/replay/case-36-cursor-ahead", test_case_36);
  g_test_add_func ("/stream/replay/case-37-largest-cursor-in-full", test_case_37);
  g_test_add_func ("/stream/replay/case-38-ring-of-one", test_case_38);
  g_test_add_func ("/stream/replay/case-39-virgin-bus", test_case_39);
  g_test_add_func ("/stream/replay/case-40-full-ring", test_case_40);
  g_test_add_func ("/stream/replay/case-41-replay-is-outside-the-cap", test_case_41);
  g_test_add_func ("/stream/replay/case-42-live-counts-at-once", test_case_42);
  g_test_add_func ("/stream/replay/case-43-replay-is-outside-the-byte-cap", test_case_43);
  g_test_add_func ("/stream/replay/case-44-subscribe-at-any-moment", test_case_44);
  g_test_add_func ("/stream/replay/case-44-subscribe-within-a-batch", test_case_44_batch);
  g_test_add_func ("/stream/replay/case-45-overtaken", test_case_45);
  g_test_add_func ("/stream/replay/overtaken-at-the-edges", test_overtaken_edges);
  g_test_add_func ("/stream/replay/opening-resync-overtaken", test_opening_overtaken);
  g_test_add_func ("/stream/filter/replay-and-live", test_filtered_replay);
  g_test_add_func ("/stream/filter/looks-in-turns", test_filtered_in_turns);
  g_test_add_func ("/stream/take/max-bytes", test_max_bytes);
  return g_test_run ();
}
