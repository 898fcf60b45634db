/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-route.h"

/* Cases 37 to 52 of the routing contract (4C); 45 as far as it is not void. */

static HeadwaySubscription *
live (TestBus *t)
{
  return test_broadcast (t, NULL, 0, FALSE);
}

static void
pub_on (TestBus *t, const char *topic, guint n)
{
  for (guint i = 0; i < n; i++)
    test_publish (t, test_event_at (t, NULL, topic, 40, FALSE));
}

/* Case 37. */
static void
test_capacity (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_auto (TestBus) hundred = TEST_BUS (.channel_capacity = 100);
  g_autoptr (HeadwaySubscription) reader = live (&hundred);

  g_assert_cmpuint (headway_bus_get_options (t.bus)->channel_capacity, ==, 1024);
  g_assert_cmpuint (headway_bus_get_subscriber_count (t.bus), ==, 0);
  test_pub (&hundred, 101);
  assert_route_take (&hundred, reader, 2, "gap(lagged,-,1,0,1..1) #2");
  g_assert_cmpuint (test_tally (&hundred, reader, 1000, 0).events, ==, 99);
}

/* Case 38. */
static void
test_outcome (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) first = NULL;
  g_autoptr (HeadwaySubscription) second = NULL;

  g_assert_cmpuint (test_pub_as (&t, NULL, 10, 1).subscriptions, ==, 0);
  first = live (&t);
  second = live (&t);
  g_assert_cmpuint (test_pub_as (&t, NULL, 10, 1).subscriptions, ==, 2);
  assert_route_take (&t, first, 9, "#2");
  assert_route_take (&t, second, 9, "#2");
}

/* Case 39. */
static void
test_nothing_from_before (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) reader = NULL;

  test_pub (&t, 3);
  reader = live (&t);
  g_assert_false (headway_subscription_is_ready (reader));
  assert_route_take (&t, reader, 9, "");
  test_pub (&t, 1);
  assert_route_take (&t, reader, 9, "#4");
}

/* Case 40. */
static void
test_lag (void)
{
  g_auto (TestBus) t = TEST_BUS (.channel_capacity = 2);
  g_autoptr (HeadwaySubscription) reader = live (&t);

  test_pub (&t, 5);
  g_assert_cmpuint (headway_subscription_get_queued (reader), ==, 5);
  g_assert_cmpuint (headway_subscription_get_lag (reader), ==, 5);
  assert_route_take (&t, reader, 9, "gap(lagged,-,3,0,1..3) #4 #5");
  assert_route_take (&t, reader, 9, "");
  g_assert_cmpuint (headway_subscription_drain_lagged (reader), ==, 3);
  g_assert_cmpuint (headway_subscription_drain_lagged (reader), ==, 0);
}

/* Case 41. */
static void
test_lag_each_burst (void)
{
  g_auto (TestBus) t = TEST_BUS (.channel_capacity = 2);
  g_autoptr (HeadwaySubscription) reader = live (&t);

  test_pub (&t, 4);
  assert_route_take (&t, reader, 9, "gap(lagged,-,2,0,1..2) #3 #4");
  test_pub (&t, 4);
  assert_route_take (&t, reader, 9, "gap(lagged,-,2,0,5..6) #7 #8");
}

/* Case 42. */
static void
test_window_is_exact (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) fits = live (&t);
  g_autoptr (HeadwaySubscription) lags = NULL;

  test_pub (&t, 1024);
  assert_route_take (&t, fits, 1, "#1");
  lags = live (&t);
  test_pub (&t, 1025);
  assert_route_take (&t, lags, 2, "gap(lagged,-,1,0,1025..1025) #1026");
}

/* decisions.md 33: what the ring holds bounds the window too. */
static void
test_window_of_a_small_ring (void)
{
  g_auto (TestBus) t = TEST_BUS (.ring_size = 3);
  g_autoptr (HeadwaySubscription) reader = live (&t);

  test_pub (&t, 5);
  assert_route_take (&t, reader, 9, "gap(lagged,-,2,0,1..2) #3 #4 #5");
  test_pub (&t, 1);
  test_seed (&t, 2);
  assert_route_take (&t, reader, 9, "gap(lagged,-,1,0,6..6)");
}

/* Case 43. */
static void
test_gap_agrees_with_the_count (void)
{
  g_auto (TestBus) t = TEST_BUS (.channel_capacity = 2);
  g_autoptr (HeadwaySubscription) reader = live (&t);
  TestTally tally;

  test_pub (&t, 7);
  tally = test_tally (&t, reader, 9, 0);
  g_assert_cmpuint (tally.gaps, ==, 1);
  g_assert_cmpuint (tally.lost, ==, headway_subscription_get_dropped (reader));
  g_assert_cmpuint (headway_subscription_get_gaps_told (reader), ==, 1);
}

/* Case 44. */
static void
test_patterns (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) some = test_broadcast (&t, "astrid.cli.input", 0, FALSE);
  g_autoptr (HeadwaySubscription) all = live (&t);

  pub_on (&t, "astrid.telegram.input", 1);
  pub_on (&t, "astrid.cli.input", 1);
  assert_route_take (&t, some, 9, "#2");
  assert_route_take (&t, all, 9, "#1 #2");
}

/* Case 46: the waiting is the reader's. */
static void
test_wakes (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) reader = live (&t);
  TestRouteSink sink;

  test_route_sink_init (&sink, 0);
  g_assert_true (headway_subscription_attach (reader, &sink.base, NULL));
  assert_route_take (&t, reader, 1, "");
  test_pub (&t, 1);
  g_assert_cmpuint (sink.n_wakes, ==, 1);
  g_assert_true (headway_subscription_is_ready (reader));
  headway_subscription_detach (reader, &sink.base);
  test_route_sink_clear (&sink);
}

/* Case 47. */
static void
test_ten (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) reader = live (&t);

  test_pub (&t, 10);
  for (guint i = 1; i <= 10; i++)
    {
      g_autofree char *expected = g_strdup_printf ("#%u", i);
      assert_route_take (&t, reader, 1, expected);
    }
  assert_route_take (&t, reader, 1, "");
}

/* Case 48, as far as it is the engine's: what the counters of the metrics are fed with. */
static void
test_counters (void)
{
  g_auto (TestBus) t = TEST_BUS (.channel_capacity = 2);
  g_autoptr (HeadwaySubscription) reader = live (&t);

  test_pub (&t, 5);
  test_tally (&t, reader, 9, 0);
  g_assert_cmpuint (headway_bus_get_last_id (t.bus), ==, 5);
  g_assert_cmpuint (headway_subscription_get_dropped (reader), ==, 3);
  g_assert_cmpuint (headway_subscription_get_gaps_told (reader), ==, 1);
}

/* Case 49: 32 looks a turn; the first one waits, so that it has to look. */
static void
test_looks_are_bounded (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) reader = test_broadcast (&t, "a.b", 0, FALSE);

  pub_on (&t, "a.b", 1);
  pub_on (&t, "x.y", 100);
  pub_on (&t, "a.b", 1);
  for (guint i = 0; i < 4; i++)
    {
      static const char *const expected[] = { "#1", "", "", "#102" };
      g_autofree char *taken = test_route_take (&t, reader, 9);

      g_assert_cmpstr (taken, ==, expected[i]);
      g_assert_cmpint (headway_subscription_is_ready (reader), ==, i < 3);
    }
}

/* One that has kept up does not look at what it knows not to match. */
static void
test_skips_what_is_not_for_it (void)
{
  g_auto (TestBus) t = TEST_BUS (.channel_capacity = 10);
  g_autoptr (HeadwaySubscription) reader = test_broadcast (&t, "a.b", 0, FALSE);

  pub_on (&t, "x.y", 100);
  g_assert_false (headway_subscription_is_ready (reader));
  g_assert_cmpuint (headway_subscription_get_queued (reader), ==, 0);
  pub_on (&t, "a.b", 1);
  assert_route_take (&t, reader, 9, "#101");
}

/* Case 50. */
static void
test_only_the_slow_one_lags (void)
{
  g_auto (TestBus) t = TEST_BUS (.channel_capacity = 2);
  g_autoptr (HeadwaySubscription) slow = live (&t);
  g_autoptr (HeadwaySubscription) quick = live (&t);

  for (guint i = 1; i <= 5; i++)
    {
      g_autofree char *expected = g_strdup_printf ("#%u", i);

      test_pub (&t, 1);
      assert_route_take (&t, quick, 9, expected);
    }
  g_assert_cmpuint (headway_subscription_get_dropped (quick), ==, 0);
  assert_route_take (&t, slow, 9, "gap(lagged,-,3,0,1..3) #4 #5");
}

/* Case 51: the books of such a reader are an upper bound. */
static void
test_lag_counts_raw (void)
{
  g_auto (TestBus) t = TEST_BUS (.channel_capacity = 2);
  g_autoptr (HeadwaySubscription) reader = test_broadcast (&t, "a.b", 0, FALSE);
  g_autofree char *taken = NULL;

  pub_on (&t, "a.b", 1);
  pub_on (&t, "x.y", 4);
  pub_on (&t, "a.b", 1);
  taken = test_route_take (&t, reader, 9);
  g_assert_cmpstr (taken, ==, "gap(lagged,-,4,0,1..4,filtered) #6");
  g_assert_cmpuint (headway_subscription_drain_lagged (reader), ==, 4);
}

/* Case 52. */
static void
test_end (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  HeadwaySubscription *first = live (&t);
  g_autoptr (HeadwaySubscription) second = live (&t);

  g_object_unref (first);
  g_assert_cmpuint (test_pub_as (&t, NULL, 10, 1).subscriptions, ==, 1);
  headway_bus_close_session (t.bus, t.now);
  g_assert_false (headway_subscription_is_finished (second));
  assert_route_take (&t, second, 9, "#1 closed");
  g_assert_true (headway_subscription_is_finished (second));
}

/* decisions.md 22 and 33: behind a replay, judged only behind H. */
static void
test_replay_then_window (void)
{
  g_auto (TestBus) t = TEST_BUS (.channel_capacity = 2);
  g_autoptr (HeadwaySubscription) reader = NULL;

  test_pub (&t, 5);
  reader = test_broadcast (&t, NULL, 0, TRUE);
  test_pub (&t, 5);
  assert_route_take (&t, reader, 20, "#1 #2 #3 #4 #5 rc(5) gap(lagged,-,3,0,6..8) #9 #10");
}

static void
test_hand_over (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) reader = live (&t);
  TestRouteSink sink;

  test_route_sink_init (&sink, 2);
  g_assert_true (headway_subscription_attach (reader, &sink.base, NULL));
  test_pub (&t, 3);
  g_assert_cmpstr (sink.text->str, ==, "#1@1 #2@2");
  sink.room = 1;
  test_pub (&t, 1);
  g_assert_cmpuint (sink.n_wakes, ==, 2);
  assert_route_take (&t, reader, 9, "#3 #4");
  test_pub (&t, 1);
  g_assert_cmpstr (sink.text->str, ==, "#1@1 #2@2 #5@5");
  headway_subscription_detach (reader, &sink.base);
  test_route_sink_clear (&sink);
}

static void
test_drain_by_cost (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) reader = live (&t);

  test_pub_as (&t, "a", 100, 4);
  assert_route_drain (&t, reader, 10, "a#1");
  assert_route_drain (&t, reader, 200, "a#2 a#3");
  assert_route_drain (&t, reader, 199, "a#4");
}

static void
test_evict_and_abort (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) idle = live (&t);
  g_autoptr (HeadwaySubscription) aborted = live (&t);

  test_pub (&t, 2);
  headway_subscription_evict_idle (idle, 1000, 900);
  headway_subscription_abort (aborted);
  test_pub (&t, 2);
  assert_route_take (&t, idle, 9, "#1 #2 evict(writer_idle_timeout,2)");
  g_assert_true (headway_subscription_is_finished (idle));
  g_assert_true (headway_subscription_is_finished (aborted));
  assert_books (aborted);
  g_assert_cmpuint (headway_subscription_get_dropped (aborted), ==, 2);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/broadcast/037-capacity-is-exact", test_capacity);
  g_test_add_func ("/broadcast/038-outcome-counts-readers", test_outcome);
  g_test_add_func ("/broadcast/039-nothing-from-before", test_nothing_from_before);
  g_test_add_func ("/broadcast/040-lag-is-told", test_lag);
  g_test_add_func ("/broadcast/041-each-burst-by-itself", test_lag_each_burst);
  g_test_add_func ("/broadcast/042-window-is-exact", test_window_is_exact);
  g_test_add_func ("/broadcast/043-gap-agrees-with-the-count", test_gap_agrees_with_the_count);
  g_test_add_func ("/broadcast/044-patterns", test_patterns);
  g_test_add_func ("/broadcast/046-publish-wakes", test_wakes);
  g_test_add_func ("/broadcast/047-ten-then-none", test_ten);
  g_test_add_func ("/broadcast/048-counters-of-the-metrics", test_counters);
  g_test_add_func ("/broadcast/049-looks-are-bounded", test_looks_are_bounded);
  g_test_add_func ("/broadcast/050-only-the-slow-one-lags", test_only_the_slow_one_lags);
  g_test_add_func ("/broadcast/051-lag-counts-raw-ids", test_lag_counts_raw);
  g_test_add_func ("/broadcast/052-end", test_end);
  g_test_add_func ("/broadcast/window-of-a-small-ring", test_window_of_a_small_ring);
  g_test_add_func ("/broadcast/skips-what-is-not-for-it", test_skips_what_is_not_for_it);
  g_test_add_func ("/broadcast/replay-then-window", test_replay_then_window);
  g_test_add_func ("/broadcast/sink-is-handed-events", test_hand_over);
  g_test_add_func ("/broadcast/drain-by-cost", test_drain_by_cost);
  g_test_add_func ("/broadcast/evict-and-abort", test_evict_and_abort);
  return g_test_run ();
}
