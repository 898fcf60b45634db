/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-watcher.h"

#include "engine/headway-error.h"

#include <string.h>

/* The bus itself: batches (decisions.md 13), nested publishes, close. */

static void
test_properties (void)
{
  g_auto (TestBus) t = test_bus_new ((HeadwayBusOptions){ .ring_size = 7 }, "epoch-z", 41);
  g_autoptr (GPtrArray) list = NULL;
  g_autoptr (HeadwaySubscription) first = NULL;
  g_autoptr (HeadwaySubscription) second = NULL;
  g_autoptr (HeadwaySubscription) third = NULL;

  g_assert_cmpstr (headway_bus_get_name (t.bus), ==, "test");
  g_assert_cmpstr (headway_bus_get_epoch (t.bus), ==, "epoch-z");
  g_assert_cmpuint (headway_bus_get_options (t.bus)->ring_size, ==, 7);
  g_assert_cmpuint (headway_bus_get_last_id (t.bus), ==, 41);
  g_assert_cmpuint (headway_bus_get_creator (t.bus), ==, G_MAXUINT32);
  headway_bus_set_creator (t.bus, 1000);
  g_assert_cmpuint (headway_bus_get_creator (t.bus), ==, 1000);
  g_assert_true (headway_principal_is_system (headway_bus_get_system (t.bus)));

  first = test_live (&t, 0);
  second = test_live (&t, 0);
  third = test_live (&t, 0);
  headway_subscription_abort (first);
  list = headway_bus_list_subscriptions (t.bus);
  g_assert_cmpuint (list->len, ==, 2);
  g_assert_true (g_ptr_array_index (list, 0) == second);
  g_assert_true (g_ptr_array_index (list, 1) == third);
  g_assert_cmpuint (headway_subscription_get_number (second), ==, 2);
}

static void
test_subscription_properties (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 0);

  g_assert_true (headway_subscription_get_bus (subscription) == t.bus);
  g_assert_cmpint (headway_subscription_get_mode (subscription), ==, HEADWAY_MODE_STREAM);
  g_assert_true (headway_filter_is_empty (headway_subscription_get_filter (subscription)));
  g_assert_cmpstr (headway_subscription_get_owner (subscription), ==, "");
  g_assert_cmpuint (headway_subscription_get_uid (subscription), ==, G_MAXUINT32);
  g_assert_cmpstr (headway_subscription_get_sink_kind (subscription), ==, "none");
  headway_subscription_set_owner (subscription, ":1.7", 1000);
  headway_subscription_set_owner (subscription, headway_subscription_get_owner (subscription), 1001);
  headway_subscription_set_sink_kind (subscription, "dbus");
  g_assert_cmpstr (headway_subscription_get_owner (subscription), ==, ":1.7");
  g_assert_cmpuint (headway_subscription_get_uid (subscription), ==, 1001);
  g_assert_cmpstr (headway_subscription_get_sink_kind (subscription), ==, "dbus");
}

static void
test_last_used (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = NULL;

  headway_bus_touch (t.bus, test_instant (5));
  g_assert_cmpint (headway_bus_get_last_used_us (t.bus), ==, test_instant (5).monotonic_us);
  t.now = test_instant (10);
  test_pub (&t, 1);
  g_assert_cmpint (headway_bus_get_last_used_us (t.bus), ==, t.now.monotonic_us);
  t.now = test_instant (20);
  subscription = test_live (&t, 0);
  g_assert_cmpint (headway_bus_get_last_used_us (t.bus), ==, t.now.monotonic_us);
}

/* --- Batches -------------------------------------------------------------------------------- */

static void
test_batch_in_turns (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_auto (TestResult) small = { 0 };
  g_auto (TestResult) large = { 0 };
  g_auto (TestResult) behind = { 0 };

  headway_bus_publish (t.bus, test_batch (&t, 32, &small), t.now);
  g_assert_cmpuint (small.n_calls, ==, 1);
  headway_bus_publish (t.bus, test_batch (&t, 4096, &large), t.now);
  headway_bus_publish (t.bus, test_batch (&t, 1, &behind), t.now);
  g_assert_cmpuint (headway_bus_get_last_id (t.bus), ==, 64);
  for (guint turn = 2; turn < 4096 / 32; turn++)
    {
      g_assert_true (headway_bus_run (t.bus, t.now));
      g_assert_cmpuint (headway_bus_get_last_id (t.bus), ==, 32 + 32 * turn);
      g_assert_cmpuint (large.n_calls, ==, 0);
    }
  /* The last turn ends the batch, and the next one begins with what stood behind it. */
  g_assert_true (headway_bus_run (t.bus, t.now));
  g_assert_cmpuint (large.n_calls, ==, 1);
  g_assert_cmpuint (large.first_id, ==, 33);
  g_assert_cmpuint (behind.n_calls, ==, 0);
  g_assert_false (headway_bus_run (t.bus, t.now));
  g_assert_cmpuint (behind.first_id, ==, 4129);
  g_assert_cmpuint (headway_ring_get_length (headway_bus_get_ring (t.bus)), ==, 4129);
}

/* Small batches share the budget of a turn. */
static void
test_small_batches_share_a_turn (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  TestResult results[80] = { { 0 } };

  headway_bus_publish (t.bus, test_batch (&t, 40, &results[0]), t.now);
  for (guint i = 1; i < G_N_ELEMENTS (results); i++)
    headway_bus_publish (t.bus, test_batch (&t, 1, &results[i]), t.now);
  g_assert_cmpuint (headway_bus_get_last_id (t.bus), ==, 32);
  g_assert_true (headway_bus_run (t.bus, t.now));
  g_assert_cmpuint (headway_bus_get_last_id (t.bus), ==, 64);
  test_run (&t);
  for (guint i = 1; i < G_N_ELEMENTS (results); i++)
    g_assert_cmpuint (results[i].first_id, ==, 40 + i);
}

static void
test_batch_costs (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwayBatch) batch = test_batch (&t, 3, NULL);

  g_assert_cmpuint (headway_batch_get_count (batch), ==, 3);
  g_assert_cmpuint (headway_batch_get_cost (batch), ==, 3 * (1 + 3 + 21));
  g_assert_cmpuint (headway_batch_get_first_id (batch), ==, 0);
}

/* --- Nested in an answer -------------------------------------------------------------------- */

static void
on_done_publish (HeadwayBatch *batch, const GError *error, gpointer user_data)
{
  TestWatcher *self = user_data;

  g_assert_no_error (error);
  if (self->n_nested-- > 0)
    headway_bus_publish (self->bus, test_batch_on (self->bus, "next", on_done_publish, self), test_instant (0));
}

/* A publisher that goes on from its own answer does not grow the stack, and yields every 32 events. */
static void
test_publish_from_answer (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_auto (TestWatcher) w = test_watcher (&t);

  w.n_nested = 100000 / TEST_SLOWDOWN - 1;
  headway_bus_publish (t.bus, test_batch_on (t.bus, "next", on_done_publish, &w), t.now);
  g_assert_cmpuint (headway_bus_get_last_id (t.bus), ==, 32);
  test_run (&t);
  g_assert_cmpuint (headway_bus_get_last_id (t.bus), ==, 100000 / TEST_SLOWDOWN);
}

/* --- Closing -------------------------------------------------------------------------------- */

static void
test_close_begun (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_auto (TestResult) begun = { 0 };
  g_auto (TestResult) waiting = { 0 };
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 0);

  headway_bus_publish (t.bus, test_batch (&t, 100, &begun), t.now);
  headway_bus_publish (t.bus, test_batch (&t, 1, &waiting), t.now);
  headway_bus_close (t.bus);
  g_assert_no_error (begun.error);
  g_assert_cmpuint (begun.n_calls, ==, 1);
  g_assert_error (waiting.error, HEADWAY_ERROR, HEADWAY_ERROR_CLOSED);
  g_assert_cmpuint (headway_bus_get_last_id (t.bus), ==, 100);
  g_assert_false (headway_bus_run (t.bus, t.now));
  assert_reads (&t, subscription, "#1..#100 end");
}

static void
test_close_from_observer (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_auto (TestWatcher) w = test_watcher (&t);
  g_auto (TestResult) begun = { 0 };
  g_auto (TestResult) waiting = { 0 };
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 0);

  headway_bus_publish (t.bus, test_batch (&t, 40, &begun), t.now);
  headway_bus_publish (t.bus, test_batch (&t, 1, &waiting), t.now);
  w.must_close = TRUE;
  headway_bus_add_observer (t.bus, test_watcher_see, &w, NULL);
  headway_bus_run (t.bus, t.now);
  g_assert_true (headway_bus_is_closed (t.bus));
  g_assert_no_error (begun.error);
  g_assert_cmpuint (begun.first_id, ==, 1);
  g_assert_error (waiting.error, HEADWAY_ERROR, HEADWAY_ERROR_CLOSED);
  assert_reads (&t, subscription, "#1..#40 end");
}

static void
on_done_close (HeadwayBatch *batch, const GError *error, gpointer user_data)
{
  headway_bus_close (user_data);
  headway_bus_run (user_data, test_instant (0));
  headway_bus_publish (user_data, test_batch_on (user_data, "late", NULL, NULL), test_instant (0));
}

/* A publisher that closes the bus from the answer that the bus is closing. */
static void
test_close_from_answer (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 0);

  headway_bus_publish (t.bus, test_batch (&t, 40, NULL), t.now);
  headway_bus_publish (t.bus, test_batch_on (t.bus, "waiting", on_done_close, t.bus), t.now);
  headway_bus_publish (t.bus, test_batch_on (t.bus, "waiting", on_done_close, t.bus), t.now);
  headway_bus_close (t.bus);
  g_assert_true (headway_bus_is_closed (t.bus));
  assert_reads (&t, subscription, "#1..#40 end");
  headway_bus_close (t.bus);
}

static void
test_close_overtakes_session_end (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 0);

  headway_bus_publish (t.bus, test_batch (&t, 100, NULL), t.now);
  headway_bus_close_session (t.bus, t.now);
  headway_bus_close (t.bus);
  g_assert_true (headway_bus_is_closed (t.bus));
  assert_reads (&t, subscription, "#1..#100 end");
}

/* --- Filters -------------------------------------------------------------------------------- */

static void
test_filters (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) several = test_filtered (&t, "a.b a.* *.b a.b", NULL);
  g_autoptr (HeadwaySubscription) types = test_filtered (&t, NULL, "x y");
  g_autoptr (HeadwaySubscription) both = test_filtered (&t, "a.b c", "x");
  g_autoptr (HeadwaySubscription) all = test_live (&t, 0);

  test_pub_on (&t, "a.b", "x");
  test_pub_on (&t, "a.b", "z");
  test_pub_on (&t, "a.c.d", "y");
  test_pub_on (&t, "c", "x");
  test_pub_on (&t, "d", NULL);
  assert_reads (&t, several, "#1 #2 #3 open");
  assert_reads (&t, types, "#1 #3 #4 open");
  assert_reads (&t, both, "#1 #4 open");
  assert_reads (&t, all, "#1..#5 open");
  g_assert_cmpuint (headway_subscription_get_admitted (several), ==, 3);
  g_clear_object (&several);
  test_pub_on (&t, "a.b", "x");
  assert_reads (&t, both, "#6 open");
}

/* --- Snapshot ------------------------------------------------------------------------------- */

static void
test_snapshot_refused (void)
{
  static const char *const bad[] = { "[]", "1", "null", "\"a\"", "{", "{}x", "" };
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (GError) error = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr (GError) invalid = NULL;
      g_assert_false (headway_bus_set_snapshot (t.bus, bad[i], strlen (bad[i]), 100, &invalid));
      g_assert_error (invalid, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_DATA);
    }
  g_assert_true (headway_bus_set_snapshot (t.bus, "{\"a\":1}", 7, 7, &error));
  g_assert_no_error (error);
  g_assert_false (headway_bus_set_snapshot (t.bus, "{\"a\":12}", 8, 7, &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_TOO_LARGE);
  g_assert_cmpint (headway_error_get_details (error)->limit, ==, 7);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/bus/properties", test_properties);
  g_test_add_func ("/bus/subscription-properties", test_subscription_properties);
  g_test_add_func ("/bus/last-used", test_last_used);
  g_test_add_func ("/bus/batch/32-a-turn-others-behind", test_batch_in_turns);
  g_test_add_func ("/bus/batch/small-ones-share-a-turn", test_small_batches_share_a_turn);
  g_test_add_func ("/bus/batch/costs", test_batch_costs);
  g_test_add_func ("/bus/batch/publish-from-the-answer", test_publish_from_answer);
  g_test_add_func ("/bus/close/begun-batch-to-its-end", test_close_begun);
  g_test_add_func ("/bus/close/from-an-observer", test_close_from_observer);
  g_test_add_func ("/bus/close/from-an-answer", test_close_from_answer);
  g_test_add_func ("/bus/close/overtakes-session-end", test_close_overtakes_session_end);
  g_test_add_func ("/bus/filter/patterns-and-types", test_filters);
  g_test_add_func ("/bus/snapshot/refused", test_snapshot_refused);
  return g_test_run ();
}
