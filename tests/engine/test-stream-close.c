/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-bus.h"

#include "engine/headway-error.h"

#include <malloc.h>
#include <string.h>

/* Cases of sse-contract.md 6, F (limits, abort, close), and that nothing leaks. */

#define N_CYCLES (1000000 / TEST_SLOWDOWN)

static void
test_case_60 (void)
{
  g_auto (TestBus) t = TEST_BUS (.max_subscribers = 2);
  g_autoptr (HeadwaySubscription) a = test_live (&t, 0);
  g_autoptr (HeadwaySubscription) b = test_live (&t, 0);
  g_autoptr (HeadwaySubscription) c = NULL;
  g_autoptr (GError) error = NULL;
  HeadwaySubscribeOptions options;

  headway_subscribe_options_init (&options);
  g_assert_null (headway_bus_subscribe (t.bus, &options, t.now, &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_SUBSCRIBER_LIMIT);
  g_assert_cmpint (headway_error_get_details (error)->limit, ==, 2);
  g_assert_nonnull (strstr (error->message, "2"));
  g_assert_cmpuint (headway_bus_get_subscriber_count (t.bus), ==, 2);
  headway_subscription_abort (a);
  c = test_live (&t, 0);
  g_assert_cmpuint (headway_bus_get_subscriber_count (t.bus), ==, 2);
}

static void
test_case_61 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 0);

  test_pub (&t, 2);
  headway_subscription_abort (subscription);
  g_assert_cmpuint (headway_bus_get_subscriber_count (t.bus), ==, 0);
  g_assert_cmpint (headway_subscription_get_state (subscription), ==, HEADWAY_STATE_ENDED);
  assert_reads (&t, subscription, "end");
  g_assert_cmpuint (headway_subscription_get_dropped (subscription), ==, 2);
  headway_subscription_abort (subscription);
  test_pub (&t, 1);
  assert_reads (&t, subscription, "end");
}

/* Also in the middle of a replay, with the snapshot still to come. */
static void
test_case_62 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) live = test_live (&t, 0);
  g_autoptr (HeadwaySubscription) replaying = NULL;
  HeadwaySubscribeOptions options;

  headway_subscription_abort (live);
  g_assert_cmpuint (headway_bus_get_subscriber_count (t.bus), ==, 0);
  assert_reads (&t, live, "end");

  test_pub (&t, 3);
  headway_subscribe_options_init (&options);
  options.cursor.is_set = TRUE;
  options.wants_snapshot = TRUE;
  replaying = test_subscribe (&t, &options);
  assert_take (&t, replaying, 1, "#1");
  headway_subscription_abort (replaying);
  g_assert_cmpuint (headway_bus_get_subscriber_count (t.bus), ==, 0);
  assert_reads (&t, replaying, "end");
}

static void
test_case_63 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) before = test_live (&t, 0);
  g_autoptr (HeadwaySubscription) replaying = NULL;
  g_autoptr (HeadwaySubscription) after = NULL;
  g_autoptr (HeadwaySubscription) after_with_cursor = NULL;

  test_pub (&t, 2);
  replaying = test_from (&t, 0);
  headway_bus_close (t.bus);
  headway_bus_close (t.bus);
  g_assert_true (headway_bus_is_closed (t.bus));
  g_assert_cmpuint (headway_bus_get_subscriber_count (t.bus), ==, 0);
  g_assert_false (headway_subscription_is_finished (before));
  after = test_live (&t, 0);
  after_with_cursor = test_from (&t, 0);
  g_assert_cmpuint (headway_bus_get_subscriber_count (t.bus), ==, 0);
  assert_reads (&t, before, "#1 #2 end");
  assert_reads (&t, replaying, "#1 #2 rc(2,2) end");
  assert_reads (&t, after, "end");
  assert_reads (&t, after_with_cursor, "end");
  headway_bus_close (t.bus);
}

static void
test_case_64 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  HeadwaySubscription *subscription = test_live (&t, 0);
  HeadwaySubscription *unread = subscription;
  HeadwayBus *bus = t.bus;

  g_object_add_weak_pointer (G_OBJECT (unread), (gpointer *) &unread);
  g_object_add_weak_pointer (G_OBJECT (bus), (gpointer *) &bus);
  test_pub (&t, 2);
  headway_bus_close (t.bus);
  g_object_unref (t.bus);
  t.bus = NULL;
  /* The subscription keeps the bus, whose ring it may still have to read. */
  g_assert_nonnull (bus);
  g_object_unref (subscription);
  g_assert_null (unread);
  g_assert_null (bus);
}

static void
test_case_65 (void)
{
  g_auto (TestBus) t = TEST_BUS (.ring_size = 100);
  g_autoptr (HeadwayFilter) filter = test_filter ("a.* b", NULL);
  HeadwaySubscribeOptions options;
  gsize before = 0;
  gsize after;

  test_pub (&t, 10);
  headway_subscribe_options_init (&options);
  for (guint i = 0; i < N_CYCLES; i++)
    {
      HeadwaySubscription *subscription;

      if (i == N_CYCLES / 10)
        before = mallinfo2 ().uordblks;
      options.filter = i % 2 == 0 ? filter : NULL;
      options.cursor.is_set = i % 3 == 0;
      options.wants_snapshot = i % 5 == 0;
      subscription = headway_bus_subscribe (t.bus, &options, t.now, NULL);
      if (i % 7 == 0)
        test_pub (&t, 1);
      headway_subscription_abort (subscription);
      g_object_unref (subscription);
    }
  after = mallinfo2 ().uordblks;
  g_assert_cmpuint (headway_bus_get_subscriber_count (t.bus), ==, 0);
  g_assert_cmpuint (after, <=, before + 64 * 1024);
  g_assert_cmpuint (G_OBJECT (t.bus)->ref_count, ==, 1);
}

/* Whoever goes first, the last one frees everything: a bus with subscriptions that hold events,
 * notices, snapshots, in each state. */
static void
test_nothing_leaks (void)
{
  for (guint i = 0; i < 16; i++)
    {
      TestBus t = TEST_BUS (.ring_size = 4);
      HeadwayBus *bus = t.bus;
      HeadwaySubscription *live = test_live (&t, i % 2 == 0 ? 2 : 0);
      HeadwaySubscription *replaying;
      HeadwaySubscribeOptions options;

      headway_subscribe_options_init (&options);
      options.cursor = (HeadwayCursor){ .is_set = TRUE, .last_event_id = i % 4 };
      options.wants_snapshot = TRUE;
      test_pub (&t, 5);
      replaying = test_subscribe (&t, &options);
      test_pub (&t, 2);
      g_object_add_weak_pointer (G_OBJECT (live), (gpointer *) &live);
      g_object_add_weak_pointer (G_OBJECT (replaying), (gpointer *) &replaying);
      g_object_add_weak_pointer (G_OBJECT (bus), (gpointer *) &bus);
      if ((i & 2) != 0)
        headway_bus_close (t.bus);
      if ((i & 4) != 0)
        test_bus_clear (&t);
      if ((i & 8) != 0)
        headway_subscription_abort (replaying);
      g_object_unref (live);
      g_object_unref (replaying);
      test_bus_clear (&t);
      g_assert_null (live);
      g_assert_null (replaying);
      g_assert_null (bus);
    }
}

/* Principals that only events name go with the last of these. */
static void
test_events_hold_principals (void)
{
  g_auto (TestBus) t = TEST_BUS (.ring_size = 2);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 0);
  HeadwayPrincipal *principal = headway_principal_table_intern (t.principals, "uid:1", NULL);
  HeadwayBatch *batch = headway_batch_new (1, NULL, NULL);

  headway_batch_add (batch, test_event (principal, "1"));
  headway_principal_unref (principal);
  headway_bus_publish (t.bus, batch, t.now);
  test_pub (&t, 2);
  g_assert_cmpuint (headway_principal_table_size (t.principals), ==, 1);
  assert_reads (&t, subscription, "#1 #2 #3 open");
  g_assert_cmpuint (headway_principal_table_size (t.principals), ==, 0);
}

static void
test_refused_options (void)
{
  static const guint bad_caps[] = { 0, 65537, G_MAXUINT };
  g_auto (TestBus) t = TEST_BUS (0);
  HeadwaySubscribeOptions options;

  for (guint i = 0; i < G_N_ELEMENTS (bad_caps); i++)
    {
      g_autoptr (GError) error = NULL;
      headway_subscribe_options_init (&options);
      options.max_queued = bad_caps[i];
      g_assert_null (headway_bus_subscribe (t.bus, &options, t.now, &error));
      g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION);
    }
  headway_subscribe_options_init (&options);
  options.max_queued = 65536;
  g_object_unref (test_subscribe (&t, &options));
  g_assert_cmpuint (headway_bus_get_subscriber_count (t.bus), ==, 0);
}

/* The last event passes every filter; what a reader has not read yet comes before it. */
static void
test_session_closed (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) all = test_live (&t, 0);
  g_autoptr (HeadwaySubscription) topic = test_filtered (&t, "other", NULL);
  g_autoptr (HeadwaySubscription) type = test_filtered (&t, NULL, "other");
  g_auto (TestResult) result = { 0 };
  g_autofree char *envelope = NULL;

  test_pub (&t, 2);
  headway_bus_close_session (t.bus, t.now);
  headway_bus_close_session (t.bus, t.now);
  g_assert_true (headway_bus_is_closed (t.bus));
  headway_bus_publish (t.bus, test_batch (&t, 1, &result), t.now);
  g_assert_error (result.error, HEADWAY_ERROR, HEADWAY_ERROR_CLOSED);
  assert_reads (&t, all, "#1 #2 closed end");
  assert_reads (&t, topic, "closed end");
  assert_reads (&t, type, "closed end");
  g_assert_cmpuint (headway_bus_get_last_id (t.bus), ==, 3);
  envelope = test_dup_envelope (headway_ring_lookup (headway_bus_get_ring (t.bus), 3), NULL);
  g_assert_cmpstr (envelope, ==,
                   "{\"id\":3,\"v\":1,\"type\":\"session_closed\",\"data\":{\"sessionId\":\"test\",\"reason\":\"closed\"},"
                   "\"_meta\":{\"serverTimestamp\":1700000000000}}");
}

/* A replay passes it on through any filter too: once somebody evicted comes back in time. */
static void
test_session_closed_replayed (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = NULL;
  g_autoptr (HeadwayFilter) filter = test_filter ("other", "other");
  HeadwaySubscribeOptions options;

  test_pub (&t, 40);
  headway_bus_publish (t.bus, test_batch (&t, 100, NULL), t.now);
  headway_bus_close_session (t.bus, t.now);
  g_assert_false (headway_bus_is_closed (t.bus));
  g_assert_true (headway_bus_is_closing (t.bus));
  headway_subscribe_options_init (&options);
  options.filter = filter;
  options.cursor.is_set = TRUE;
  subscription = test_subscribe (&t, &options);
  test_run (&t);
  g_assert_true (headway_bus_is_closed (t.bus));
  g_assert_cmpuint (headway_bus_get_last_id (t.bus), ==, 141);
  assert_reads (&t, subscription, "rc(0,filtered) closed end");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/stream/limit/case-60-third-of-two", test_case_60);
  g_test_add_func ("/stream/abort/case-61-drops-what-waits", test_case_61);
  g_test_add_func ("/stream/abort/case-62-before-reading", test_case_62);
  g_test_add_func ("/stream/close/case-63-drains", test_case_63);
  g_test_add_func ("/stream/close/case-64-never-read", test_case_64);
  g_test_add_func ("/stream/abort/case-65-constant-memory", test_case_65);
  g_test_add_func ("/stream/close/nothing-leaks", test_nothing_leaks);
  g_test_add_func ("/stream/close/principals-go-with-their-events", test_events_hold_principals);
  g_test_add_func ("/stream/limit/refused-options", test_refused_options);
  g_test_add_func ("/stream/close/session-closed-passes-filters", test_session_closed);
  g_test_add_func ("/stream/close/session-closed-comes-last", test_session_closed_replayed);
  return g_test_run ();
}
