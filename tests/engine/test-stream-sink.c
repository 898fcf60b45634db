/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-bus.h"

#include "engine/headway-error.h"

/* A sink that can take gets offers directly (decisions.md 20). */

static void
assert_got (TestSink *sink, const char *expected)
{
  g_autofree char *got = test_sink_end (sink);

  g_assert_cmpstr (got, ==, expected);
}

static void
attach (HeadwaySubscription *subscription, TestSink *sink, guint room)
{
  g_autoptr (GError) error = NULL;

  test_sink_init (sink, room);
  g_assert_true (headway_subscription_attach (subscription, &sink->base, &error));
  g_assert_no_error (error);
}

static void
test_put (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_auto (TestResult) result = { 0 };
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 0);
  TestSink sink;

  attach (subscription, &sink, 2);
  headway_bus_publish (t.bus, test_batch (&t, 3, &result), t.now);
  assert_got (&sink, "#1 #2");
  g_assert_cmpuint (sink.n_wakes, ==, 1);
  g_assert_cmpuint (result.outcome.subscriptions, ==, 3);
  g_assert_cmpuint (headway_subscription_get_delivered (subscription), ==, 2);
  g_assert_cmpuint (headway_subscription_get_last_delivered_id (subscription), ==, 2);
  g_assert_cmpuint (headway_subscription_get_queued (subscription), ==, 1);
  g_assert_cmpuint (headway_subscription_get_queued_bytes (subscription), ==, 66);
  assert_books (subscription);
  assert_reads (&t, subscription, "#3 open");
  test_sink_clear (&sink);
}

/* What waits comes first: a sink with room again is not offered what would overtake it. */
static void
test_order (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 0);
  TestSink sink;

  attach (subscription, &sink, 1);
  test_pub (&t, 2);
  sink.room = 10;
  test_pub (&t, 1);
  assert_got (&sink, "#1");
  assert_reads (&t, subscription, "#2 #3 open");
  test_pub (&t, 1);
  assert_got (&sink, "#4");
  test_sink_clear (&sink);
}

/* A notice that waits holds offers back too. */
static void
test_order_behind_notice (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 1);
  TestSink sink;

  attach (subscription, &sink, 0);
  test_pub (&t, 1);
  assert_take (&t, subscription, 1, "#1");
  sink.room = 10;
  test_pub (&t, 1);
  assert_got (&sink, "");
  assert_reads (&t, subscription, "warn(1,1,1,66," BC ",frames) #2 open");
  test_sink_clear (&sink);
}

static void
test_replay_first (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = NULL;
  TestSink sink;

  test_pub (&t, 2);
  subscription = test_from (&t, 0);
  attach (subscription, &sink, G_MAXUINT);
  test_pub (&t, 1);
  assert_got (&sink, "");
  assert_take (&t, subscription, 2, "#1 #2");
  test_pub (&t, 1);
  assert_got (&sink, "");
  assert_reads (&t, subscription, "rc(2,2) #3 #4 open");
  test_pub (&t, 1);
  assert_got (&sink, "#5");
  test_sink_clear (&sink);
}

static void
test_publish_many (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_auto (TestResult) result = { 0 };
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 16);
  TestSink sink;
  guint turns = 1;

  attach (subscription, &sink, HEADWAY_DISPATCH_EVENTS);
  headway_bus_publish (t.bus, test_batch (&t, 4096, &result), t.now);
  /* The sink flushes once in each turn of the loop. */
  for (sink.room = HEADWAY_DISPATCH_EVENTS; headway_bus_run (t.bus, t.now); turns++)
    sink.room = HEADWAY_DISPATCH_EVENTS;
  g_assert_cmpuint (turns + 1, ==, 4096 / 32);
  g_assert_cmpuint (result.n_calls, ==, 1);
  g_assert_cmpuint (result.outcome.subscriptions, ==, 4096);
  assert_got (&sink, "#1..#4096");
  g_assert_cmpuint (sink.n_wakes, ==, 0);
  assert_reads (&t, subscription, "open");
  test_sink_clear (&sink);
}

/* 37.5 % of 2 is under 1: only a hand-over, which counts as size 0, re-arms so small a cap. */
static void
test_rearm (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 2);
  TestSink sink;

  attach (subscription, &sink, 0);
  test_pub (&t, 2);
  assert_reads (&t, subscription, "#1 #2 warn(2,2,2,132," BC ",frames) open");
  test_pub (&t, 2);
  assert_reads (&t, subscription, "#3 #4 open");
  sink.room = 1;
  test_pub (&t, 3);
  assert_got (&sink, "#5");
  assert_reads (&t, subscription, "#6 #7 warn(2,2,7,132," BC ",frames) open");
  test_sink_clear (&sink);
}

static void
test_one_reader (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 0);
  g_autoptr (GError) error = NULL;
  TestSink first, second;

  attach (subscription, &first, 10);
  test_sink_init (&second, 10);
  g_assert_false (headway_subscription_attach (subscription, &second.base, &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_BUSY);
  headway_subscription_detach (subscription, &second.base);
  test_pub (&t, 1);
  assert_got (&first, "#1");
  headway_subscription_detach (subscription, &first.base);
  g_assert_true (headway_subscription_attach (subscription, &second.base, NULL));
  test_pub (&t, 1);
  assert_got (&first, "");
  assert_got (&second, "#2");
  test_sink_clear (&first);
  test_sink_clear (&second);
}

static void
test_wakes (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) evicted = test_live (&t, 1);
  g_autoptr (HeadwaySubscription) closed = test_live (&t, 0);
  g_autoptr (HeadwaySubscription) aborted = test_live (&t, 0);
  TestSink sinks[3];

  attach (evicted, &sinks[0], 0);
  attach (closed, &sinks[1], 10);
  attach (aborted, &sinks[2], 10);
  test_pub (&t, 1);
  g_assert_cmpuint (sinks[0].n_wakes, ==, 1);
  test_pub (&t, 1);
  g_assert_cmpuint (sinks[0].n_wakes, ==, 2);
  g_assert_cmpint (headway_subscription_get_state (evicted), ==, HEADWAY_STATE_EVICTED);
  /* Who leaves knows it. */
  headway_subscription_abort (aborted);
  g_assert_cmpuint (sinks[2].n_wakes, ==, 0);
  g_assert_cmpuint (sinks[1].n_wakes, ==, 0);
  headway_bus_close (t.bus);
  g_assert_cmpuint (sinks[1].n_wakes, ==, 1);
  g_assert_cmpuint (sinks[0].n_wakes, ==, 2);
  for (guint i = 0; i < 3; i++)
    test_sink_clear (&sinks[i]);
}

/* The id behind which an eviction says the reader stands counts what it took directly. */
static void
test_evicted_after_put (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 1);
  TestSink sink;

  attach (subscription, &sink, 3);
  test_pub (&t, 5);
  assert_got (&sink, "#1 #2 #3");
  g_assert_cmpuint (headway_subscription_get_last_delivered_id (subscription), ==, 3);
  assert_reads (&t, subscription, "#4 warn(1,1,4,66," BC ",frames) evict(queue_overflow,5,1,1,66," BC ") end");
  test_sink_clear (&sink);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/stream/sink/gets-offers-directly", test_put);
  g_test_add_func ("/stream/sink/keeps-the-order", test_order);
  g_test_add_func ("/stream/sink/keeps-the-order-behind-a-notice", test_order_behind_notice);
  g_test_add_func ("/stream/sink/replay-comes-first", test_replay_first);
  g_test_add_func ("/stream/sink/publish-many-evicts-nobody", test_publish_many);
  g_test_add_func ("/stream/sink/hand-over-rearms", test_rearm);
  g_test_add_func ("/stream/sink/one-reader", test_one_reader);
  g_test_add_func ("/stream/sink/wakes", test_wakes);
  g_test_add_func ("/stream/sink/evicted-after-hand-over", test_evicted_after_put);
  return g_test_run ();
}
