/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-bus.h"

#include "engine/headway-error.h"

#include <string.h>

/* Cases of sse-contract.md 6, B (live delivery, caps, warning). */

static void
test_case_9 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) a = test_live (&t, 0);
  g_autoptr (HeadwaySubscription) b = test_live (&t, 0);

  test_pub (&t, 2);
  assert_reads (&t, a, "#1 #2 open");
  assert_reads (&t, b, "#1 #2 open");
}

static void
test_case_10 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 0);

  test_pub (&t, 1);
  assert_reads (&t, subscription, "#1 open");
}

static void
test_case_11 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 16);
  g_autofree char *got = NULL;
  TestSink sink;

  test_sink_init (&sink, G_MAXUINT);
  g_assert_true (headway_subscription_attach (subscription, &sink.base, NULL));
  test_pub (&t, 10000);
  got = test_sink_end (&sink);
  g_assert_cmpstr (got, ==, "#1..#10000");
  assert_reads (&t, subscription, "open");
  headway_subscription_detach (subscription, &sink.base);
  test_sink_clear (&sink);
}

static void
test_case_12 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 2);

  test_pub (&t, 3);
  g_assert_cmpuint (headway_bus_get_subscriber_count (t.bus), ==, 0);
  g_assert_cmpint (headway_subscription_get_state (subscription), ==, HEADWAY_STATE_EVICTED);
  assert_reads (&t, subscription,
                "#1 #2 warn(2,2,2,132," BC ",frames) evict(queue_overflow,3,2,2,132," BC ") end");
}

static void
test_case_13 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 8);

  test_pub (&t, 7);
  assert_reads (&t, subscription, "#1..#6 warn(6,8,6,396," BC ",frames) #7 open");
}

static void
test_case_14 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 16);

  test_pub (&t, 17);
  assert_reads (&t, subscription,
                "#1..#12 warn(12,16,12,795," BC ",frames) #13..#16 evict(queue_overflow,17,16,16,1063," BC ") end");
}

static void
test_case_15 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 17);

  test_pub (&t, 18);
  assert_reads (&t, subscription,
                "#1..#13 warn(13,17,13,862," BC ",frames) #14..#17 evict(queue_overflow,18,17,17,1130," BC ") end");
}

static void
test_case_16 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 0);

  test_pub (&t, 257);
  assert_reads (&t, subscription,
                "#1..#192 warn(192,256,192,12948," BC ",frames) #193..#256 "
                "evict(queue_overflow,257,256,256,17300," BC ") end");
}

static void
test_case_17 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 2);
  HeadwayDelivery deliveries[8];
  guint n;

  test_pub (&t, 3);
  n = headway_subscription_take (subscription, t.now, G_N_ELEMENTS (deliveries), G_MAXSIZE, deliveries);
  g_assert_cmpuint (n, ==, 4);
  for (guint i = 0; i < n; i++)
    {
      g_autoptr (HeadwayEvent) event = deliveries[i].event;
      g_autofree char *envelope = test_dup_envelope (event, NULL);

      g_assert_cmpuint (headway_event_get_id (event), ==, i < 2 ? i + 1 : 0);
      g_assert_cmpuint (deliveries[i].resume_id, ==, i < 2 ? i + 1 : 0);
      g_assert_cmpint (strstr (envelope, "\"id\":") == NULL, ==, i >= 2);
    }
  g_assert_cmpuint (headway_subscription_get_last_delivered_id (subscription), ==, 2);
}

static void
test_case_18 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) slow = test_live (&t, 2);
  g_autoptr (HeadwaySubscription) sibling = test_live (&t, 0);

  g_assert_cmpuint (headway_bus_get_subscriber_count (t.bus), ==, 2);
  test_pub (&t, 3);
  g_assert_cmpuint (headway_bus_get_subscriber_count (t.bus), ==, 1);
  test_pub (&t, 2);
  assert_reads (&t, sibling, "#1..#5 open");
}

static void
test_case_19 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 8);

  test_pub (&t, 6);
  assert_take (&t, subscription, 4, "#1..#4");
  test_pub (&t, 5);
  assert_reads (&t, subscription,
                "#5 #6 warn(6,8,6,396," BC ",frames) #7..#10 warn(6,8,10,397," BC ",frames) #11 open");
}

static void
test_case_20 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 8);

  test_pub (&t, 6);
  assert_take (&t, subscription, 5, "#1..#5");
  test_pub (&t, 5);
  assert_reads (&t, subscription,
                "#6 warn(6,8,6,396," BC ",frames) #7..#11 warn(6,8,11,398," BC ",frames) open");
}

static void
test_case_21 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 8);

  test_pub (&t, 6);
  assert_take (&t, subscription, 3, "#1 #2 #3");
  test_pub (&t, 3);
  assert_reads (&t, subscription, "#4 #5 #6 warn(6,8,6,396," BC ",frames) #7 #8 #9 open");
}

static void
test_case_22 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 8);

  test_pub (&t, 6);
  assert_take (&t, subscription, 7, "#1..#6 warn(6,8,6,396," BC ",frames)");
  test_pub (&t, 8);
  assert_reads (&t, subscription, "#7..#12 warn(6,8,12,399," BC ",frames) #13 #14 open");
}

static void
test_case_23 (void)
{
  g_auto (TestBus) t = TEST_BUS (.max_queued_bytes = 1200);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 4);

  for (guint i = 0; i < 3; i++)
    test_pub_chars (&t, 300);
  assert_reads (&t, subscription, "#1 #2 #3 warn(3,4,3,1101,1200,frames_and_bytes) open");
}

static void
test_case_24 (void)
{
  g_auto (TestBus) t = TEST_BUS (.max_queued_bytes = 1200);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 100);

  test_pub_chars (&t, 1000);
  test_pub_chars (&t, 1000);
  assert_reads (&t, subscription,
                "#1 warn(1,100,1,1067,1200,bytes) evict(queue_bytes_overflow,2,1,100,1067,1200,1067) end");
}

static void
test_case_25 (void)
{
  g_auto (TestBus) t = TEST_BUS (.max_queued_bytes = 256);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 100);

  test_pub_chars (&t, 1024);
  g_assert_cmpuint (headway_subscription_get_queued_bytes (subscription), ==, 1091);
  test_pub_data (&t, "\"tail\"");
  assert_reads (&t, subscription,
                "#1 warn(1,100,1,1091,256,bytes) evict(queue_bytes_overflow,2,1,100,1091,256,71) end");
}

static void
test_case_26 (void)
{
  g_auto (TestBus) fits = TEST_BUS (.max_queued_bytes = 132);
  g_auto (TestBus) tight = TEST_BUS (.max_queued_bytes = 131);
  g_autoptr (HeadwaySubscription) a = test_live (&fits, 100);
  g_autoptr (HeadwaySubscription) b = test_live (&tight, 100);

  test_pub (&fits, 2);
  assert_reads (&fits, a, "#1 #2 warn(2,100,2,132,132,bytes) open");
  test_pub (&tight, 2);
  assert_reads (&tight, b, "#1 evict(queue_bytes_overflow,2,1,100,66,131,66) end");
}

/* Byte cap 880, 75 % is 660, 37.5 % is 330: with five of 66 bytes left, a publish sees 396. */
static void
test_case_27 (void)
{
  g_auto (TestBus) t = TEST_BUS (.max_queued_bytes = 880);
  g_autoptr (HeadwaySubscription) frames = test_live (&t, 8);
  g_autoptr (HeadwaySubscription) bytes = test_live (&t, 100);

  for (guint i = 0; i < 3; i++)
    test_pub_chars (&t, 171);
  assert_take (&t, bytes, 4, "#1 #2 #3 warn(3,100,3,714,880,bytes)");
  assert_take (&t, frames, 4, "#1 #2 #3 warn(3,8,3,714,880,bytes)");
  test_pub_chars (&t, 265); /* 332 bytes alone: frames would re-arm, bytes do not */
  test_pub_chars (&t, 265);
  assert_take (&t, bytes, 2, "#4 #5");
  assert_take (&t, frames, 2, "#4 #5");
  test_pub_chars (&t, 263); /* 330 bytes: both are at or under the line */
  test_pub_chars (&t, 263);
  assert_reads (&t, bytes, "#6 #7 warn(2,100,7,660,880,bytes) open");
  assert_reads (&t, frames, "#6 #7 warn(2,8,7,660,880,bytes) open");
}

static void
test_case_28 (void)
{
  static const guint64 bad[] = { 0, G_MAXUINT64, G_GUINT64_CONSTANT (1) << 53 };
  const HeadwayBusOptionSpec *spec = headway_bus_option_specs ();
  HeadwayLimits limits;

  headway_limits_init (&limits);
  while (g_strcmp0 (spec->key, "max-queued-bytes") != 0)
    spec++;
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr (GError) error = NULL;
      g_assert_false (headway_bus_options_set (&limits.bus, spec, bad[i], &error));
      g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION);
    }
  g_assert_cmpuint (limits.bus.max_queued_bytes, ==, 2097152);
  g_assert_true (headway_bus_options_set (&limits.bus, spec, HEADWAY_ID_MAX, NULL));
  g_assert_true (headway_bus_options_set (&limits.bus, spec, 1, NULL));
}

static void
test_case_29 (void)
{
  g_auto (TestBus) t = TEST_BUS (.max_subscribers = 1);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 2);
  g_autoptr (HeadwaySubscription) next = NULL;

  test_pub (&t, 3);
  g_assert_cmpuint (headway_bus_get_subscriber_count (t.bus), ==, 0);
  next = test_live (&t, 0);
  headway_subscription_abort (subscription);
  g_assert_cmpint (headway_subscription_get_state (subscription), ==, HEADWAY_STATE_EVICTED);
  g_assert_cmpuint (headway_bus_get_subscriber_count (t.bus), ==, 1);
  assert_reads (&t, subscription, "end");
}

/* --- Beyond the cases ----------------------------------------------------------------------- */

/* An eviction says what was lost and what came last (sse-contract.md 5.10). */
static void
test_last_delivered (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 2);
  g_autofree char *last = NULL;
  g_autoptr (HeadwayEvent) event = NULL;
  gsize length;
  const char *data;

  test_pub (&t, 2);
  assert_take (&t, subscription, 1, "#1");
  test_pub (&t, 2);
  assert_take (&t, subscription, 3, "#2 warn(2,2,2,132," BC ",frames) #3");
  event = test_take_event (&t, subscription);
  data = headway_event_get_data (event, &length);
  last = test_member (data, length, "lastDeliveredId");
  g_assert_cmpstr (last, ==, "3");
  g_assert_cmpuint (headway_subscription_get_dropped (subscription), ==, 1);
}

static void
test_stuck_writer (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 0);

  test_pub (&t, 2);
  headway_subscription_evict_idle (subscription, 1000, 900);
  headway_subscription_evict_idle (subscription, 2000, 900);
  g_assert_cmpuint (headway_bus_get_subscriber_count (t.bus), ==, 0);
  test_pub (&t, 1);
  assert_reads (&t, subscription, "#1 #2 evict(writer_idle_timeout,writer_idle_timeout,1000,900) end");
}

static void
test_outcome (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_auto (TestResult) result = { 0 };
  g_autoptr (HeadwaySubscription) full = test_live (&t, 1);
  g_autoptr (HeadwaySubscription) roomy = test_live (&t, 0);
  g_autoptr (HeadwaySubscription) other = test_filtered (&t, "bar", NULL);

  test_pub (&t, 1);
  headway_bus_publish (t.bus, test_batch (&t, 1, &result), t.now);
  g_assert_cmpuint (result.outcome.subscriptions, ==, 1);
  g_assert_cmpuint (result.outcome.refused, ==, 1);
  g_assert_cmpuint (result.outcome.evicted, ==, 0);
}

/* Memory is given back when a queue runs empty; a long queue keeps its order while it grows. */
static void
test_long_queue (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 1000);

  for (guint i = 0; i < 10; i++)
    {
      g_autofree char *expected = g_strdup_printf ("#%u..#%u open", i * 700 + 1, i * 700 + 700);
      test_pub (&t, 700);
      assert_reads (&t, subscription, expected);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/stream/live/case-9-two-subscribers", test_case_9);
  g_test_add_func ("/stream/live/case-10-publish-before-the-first-read", test_case_10);
  g_test_add_func ("/stream/live/case-11-waiting-reader-is-never-warned", test_case_11);
  g_test_add_func ("/stream/evict/case-12-cap-two", test_case_12);
  g_test_add_func ("/stream/warn/case-13-one-warning-only", test_case_13);
  g_test_add_func ("/stream/evict/case-14-cap-16", test_case_14);
  g_test_add_func ("/stream/evict/case-15-cap-17", test_case_15);
  g_test_add_func ("/stream/evict/case-16-default-cap", test_case_16);
  g_test_add_func ("/stream/evict/case-17-notices-have-no-id", test_case_17);
  g_test_add_func ("/stream/evict/case-18-sibling-is-not-touched", test_case_18);
  g_test_add_func ("/stream/warn/case-19-rearmed-at-three", test_case_19);
  g_test_add_func ("/stream/warn/case-20-rearmed-at-two", test_case_20);
  g_test_add_func ("/stream/warn/case-21-latched-at-four", test_case_21);
  g_test_add_func ("/stream/warn/case-22-forced-entries-count-for-nothing", test_case_22);
  g_test_add_func ("/stream/bytes/case-23-frames-and-bytes", test_case_23);
  g_test_add_func ("/stream/bytes/case-24-overflow", test_case_24);
  g_test_add_func ("/stream/bytes/case-25-oversized-on-an-empty-queue", test_case_25);
  g_test_add_func ("/stream/bytes/case-26-equality-fits", test_case_26);
  g_test_add_func ("/stream/bytes/case-27-rearms-with-both-measures", test_case_27);
  g_test_add_func ("/stream/bytes/case-28-cap-out-of-range", test_case_28);
  g_test_add_func ("/stream/evict/case-29-slot-is-free-at-once", test_case_29);
  g_test_add_func ("/stream/evict/says-what-came-last", test_last_delivered);
  g_test_add_func ("/stream/evict/stuck-writer-once", test_stuck_writer);
  g_test_add_func ("/stream/evict/outcome-says-refused", test_outcome);
  g_test_add_func ("/stream/live/long-queue-keeps-its-order", test_long_queue);
  return g_test_run ();
}
