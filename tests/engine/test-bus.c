/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-bus.h"

#include "engine/headway-error.h"

#include <string.h>

/* The bus itself: batches (docs/decisions.md 13), order and observers (docs/routing.md 4D), close. */

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

/* --- Observers (routing.md 4D) --------------------------------------------------------------- */

typedef struct
{
  GString *seen;      /* owned */
  HeadwayBus *bus;    /* borrowed */
  guint n_nested;     /* publishes to make from inside */
  guint to_remove;    /* an observer to remove from inside */
  gboolean must_close;
  TestResult result;
} Watcher;

static HeadwayBatch *
batch_on (HeadwayBus *bus, const char *topic, HeadwayBatchDone done, gpointer user_data)
{
  HeadwayBatch *batch = headway_batch_new (1, done, user_data);

  headway_batch_add (batch, test_event_on (headway_bus_get_system (bus), topic, NULL));
  return batch;
}

static void
on_event (HeadwayBus *bus, HeadwayEvent *event, gpointer user_data)
{
  Watcher *self = user_data;

  g_string_append_printf (self->seen, "%s%s:%" G_GUINT64_FORMAT, self->seen->len > 0 ? " " : "",
                          headway_event_get_topic (event), headway_event_get_id (event));
  for (; self->n_nested > 0; self->n_nested--)
    headway_bus_publish (bus, batch_on (bus, "inner", NULL, NULL), test_instant (0));
  if (self->to_remove > 0)
    headway_bus_remove_observer (bus, self->to_remove);
  self->to_remove = 0;
  if (self->must_close)
    headway_bus_close (bus);
}

static Watcher
watcher (TestBus *t)
{
  return (Watcher){ .seen = g_string_new (NULL), .bus = t->bus };
}

static void
watcher_clear (Watcher *self)
{
  g_string_free (self->seen, TRUE);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Watcher, watcher_clear)

static void
test_case_53 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_auto (Watcher) w = watcher (&t);
  g_autoptr (HeadwayBus) other = g_object_ref (t.bus);

  headway_bus_add_observer (t.bus, on_event, &w, NULL);
  headway_bus_publish (other, batch_on (other, "a", NULL, NULL), t.now);
  g_assert_cmpstr (w.seen->str, ==, "a:1");
}

static void
on_done_note (HeadwayBatch *batch, const GError *error, gpointer user_data)
{
  g_string_append (user_data, " done");
}

static void
on_event_second_publisher (HeadwayBus *bus, HeadwayEvent *event, gpointer user_data)
{
  GString *order = user_data;

  g_string_append_printf (order, " begin:%" G_GUINT64_FORMAT, headway_event_get_id (event));
  if (headway_event_get_id (event) == 1)
    headway_bus_publish (bus, batch_on (bus, "second", on_done_note, order), test_instant (0));
  g_string_append_printf (order, " end:%" G_GUINT64_FORMAT, headway_event_get_id (event));
}

/* As an interleaving: a second publish while the first is inside an observer does not complete, nor
 * begin, before the first has ended. */
static void
test_case_54 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (GString) order = g_string_new (NULL);

  headway_bus_add_observer (t.bus, on_event_second_publisher, order, NULL);
  headway_bus_publish (t.bus, batch_on (t.bus, "first", on_done_note, order), t.now);
  g_assert_cmpstr (order->str, ==, " begin:1 end:1 done begin:2 end:2 done");
}

static void
test_case_55 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_auto (Watcher) w = watcher (&t);

  w.n_nested = 1;
  headway_bus_add_observer (t.bus, on_event, &w, NULL);
  headway_bus_publish (t.bus, batch_on (t.bus, "outer", NULL, NULL), t.now);
  g_assert_cmpstr (w.seen->str, ==, "outer:1 inner:2");
}

static void
test_case_56 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_auto (Watcher) w = watcher (&t);
  g_auto (Watcher) later = watcher (&t);
  g_autoptr (HeadwaySubscription) live = test_live (&t, 0);
  g_autoptr (HeadwaySubscription) inner = test_filtered (&t, "inner", NULL);
  g_autoptr (HeadwaySubscription) replayed = NULL;
  TestSink sink;
  g_autofree char *got = NULL;

  test_sink_init (&sink, G_MAXUINT);
  headway_subscription_attach (live, &sink.base, NULL);
  w.n_nested = 2;
  headway_bus_add_observer (t.bus, on_event, &w, NULL);
  headway_bus_add_observer (t.bus, on_event, &later, NULL);
  headway_bus_publish (t.bus, batch_on (t.bus, "outer", NULL, NULL), t.now);
  replayed = test_from (&t, 0);
  g_assert_cmpstr (w.seen->str, ==, "outer:1 inner:2 inner:3");
  g_assert_cmpstr (later.seen->str, ==, "outer:1 inner:2 inner:3");
  got = test_sink_end (&sink);
  g_assert_cmpstr (got, ==, "#1 #2 #3");
  assert_reads (&t, inner, "#2 #3 open");
  assert_reads (&t, replayed, "#1 #2 #3 rc(3,3) open");
  test_sink_clear (&sink);
}

static void
publish_last_words (gpointer user_data)
{
  HeadwayBus *bus = user_data;

  headway_bus_publish (bus, batch_on (bus, "last-words", NULL, NULL), test_instant (0));
}

static void
on_event_remove_self (HeadwayBus *bus, HeadwayEvent *event, gpointer user_data)
{
  headway_bus_remove_observer (bus, 1);
}

static void
test_case_57 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_auto (Watcher) w = watcher (&t);
  guint observer;

  /* Removes itself while it is told, and its destroy function publishes. */
  observer = headway_bus_add_observer (t.bus, on_event_remove_self, t.bus, publish_last_words);
  g_assert_cmpuint (observer, ==, 1);
  headway_bus_add_observer (t.bus, on_event, &w, NULL);
  headway_bus_publish (t.bus, batch_on (t.bus, "a", NULL, NULL), t.now);
  headway_bus_publish (t.bus, batch_on (t.bus, "b", NULL, NULL), t.now);
  g_assert_cmpstr (w.seen->str, ==, "a:1 last-words:2 b:3");
  headway_bus_remove_observer (t.bus, observer);
  headway_bus_remove_observer (t.bus, 99);

  /* Removed from outside. */
  observer = headway_bus_add_observer (t.bus, on_event_remove_self, t.bus, publish_last_words);
  headway_bus_remove_observer (t.bus, observer);
  g_assert_cmpstr (w.seen->str, ==, "a:1 last-words:2 b:3 last-words:4");
}

static void
test_observer_removes_another (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_auto (Watcher) first = watcher (&t);
  g_auto (Watcher) second = watcher (&t);

  headway_bus_add_observer (t.bus, on_event, &first, NULL);
  first.to_remove = headway_bus_add_observer (t.bus, on_event, &second, NULL);
  test_pub (&t, 2);
  g_assert_cmpstr (first.seen->str, ==, "foo:1 foo:2");
  g_assert_cmpstr (second.seen->str, ==, "");
}

static void
on_event_add_many (HeadwayBus *bus, HeadwayEvent *event, gpointer user_data)
{
  if (headway_event_get_id (event) == 1)
    for (guint i = 0; i < 50; i++)
      headway_bus_add_observer (bus, on_event, user_data, NULL);
}

static void
test_observer_adds (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_auto (Watcher) w = watcher (&t);

  headway_bus_add_observer (t.bus, on_event_add_many, &w, NULL);
  test_pub (&t, 1);
  g_assert_cmpstr (w.seen->str, ==, "");
  test_pub (&t, 1);
  g_assert_cmpuint (w.seen->len, ==, 50 * strlen ("foo:2 ") - 1);
}

static void
count_destroy (gpointer user_data)
{
  ++*(guint *) user_data;
}

static void
test_observers_go_with_the_bus (void)
{
  TestBus t = TEST_BUS (0);
  guint n_destroyed = 0;

  for (guint i = 0; i < 3; i++)
    headway_bus_add_observer (t.bus, on_event, &n_destroyed, count_destroy);
  headway_bus_remove_observer (t.bus, 2);
  g_assert_cmpuint (n_destroyed, ==, 1);
  test_bus_clear (&t);
  g_assert_cmpuint (n_destroyed, ==, 3);
}

/* As an interleaving: eight publishers in turn, each tenth publish with one nested in it. */
static void
on_event_nest (HeadwayBus *bus, HeadwayEvent *event, gpointer user_data)
{
  guint *n_left = user_data;

  if (headway_event_get_id (event) % 10 != 0 || *n_left == 0)
    return;
  --*n_left;
  headway_bus_publish (bus, batch_on (bus, "p.nested", NULL, NULL), test_instant (0));
}

static void
test_case_58 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = test_filtered (&t, "p.*", NULL);
  g_autofree char *got = NULL;
  guint n_left = 8000;
  TestSink sink;

  test_sink_init (&sink, G_MAXUINT);
  headway_subscription_attach (subscription, &sink.base, NULL);
  headway_bus_add_observer (t.bus, on_event_nest, &n_left, NULL);
  for (guint i = 0; i < 8 * 9000; i++)
    {
      g_autofree char *topic = g_strdup_printf ("p.%u", i % 8);
      headway_bus_publish (t.bus, batch_on (t.bus, topic, NULL, NULL), t.now);
    }
  while (n_left-- > 0)
    headway_bus_publish (t.bus, batch_on (t.bus, "p.rest", NULL, NULL), t.now);
  got = test_sink_end (&sink);
  g_assert_cmpstr (got, ==, "#1..#80000");
  test_sink_clear (&sink);
}

static void
test_case_59 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = NULL;

  /* Subscribing, leaving and notices take no id. */
  for (guint i = 1; i <= 10; i++)
    {
      g_clear_object (&subscription);
      subscription = test_live (&t, 1);
      test_pub (&t, 1);
      g_assert_cmpuint (headway_bus_get_last_id (t.bus), ==, i);
    }
}

static void
on_event_tally (HeadwayBus *bus, HeadwayEvent *event, gpointer user_data)
{
  ++*(guint64 *) user_data;
}

static void
test_case_60 (void)
{
  g_auto (TestBus) t = TEST_BUS (.ring_size = 1024);
  g_autoptr (HeadwaySubscription) subscription = test_from (&t, 0);
  guint64 tally = 0;

  headway_bus_add_observer (t.bus, on_event_tally, &tally, NULL);
  test_pub (&t, 101024);
  g_assert_cmpuint (tally, ==, 101024);
  g_assert_cmpuint (headway_ring_get_first_id (headway_bus_get_ring (t.bus)), ==, 100001);
  assert_reads (&t, subscription,
                "rc(0) #1..#192 warn(192,256,192,12948," BC ",frames) #193..#256 "
                "evict(queue_overflow,257,256,256,17300," BC ") end");
}

/* --- Nested in an answer -------------------------------------------------------------------- */

static void
on_done_publish (HeadwayBatch *batch, const GError *error, gpointer user_data)
{
  Watcher *self = user_data;

  g_assert_no_error (error);
  if (self->n_nested-- > 0)
    headway_bus_publish (self->bus, batch_on (self->bus, "next", on_done_publish, self), test_instant (0));
}

/* A publisher that goes on from its own answer does not grow the stack, and yields every 32 events. */
static void
test_publish_from_answer (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_auto (Watcher) w = watcher (&t);

  w.n_nested = 99999;
  headway_bus_publish (t.bus, batch_on (t.bus, "next", on_done_publish, &w), t.now);
  g_assert_cmpuint (headway_bus_get_last_id (t.bus), ==, 32);
  test_run (&t);
  g_assert_cmpuint (headway_bus_get_last_id (t.bus), ==, 100000);
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
  g_auto (Watcher) w = watcher (&t);
  g_auto (TestResult) begun = { 0 };
  g_auto (TestResult) waiting = { 0 };
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 0);

  headway_bus_publish (t.bus, test_batch (&t, 40, &begun), t.now);
  headway_bus_publish (t.bus, test_batch (&t, 1, &waiting), t.now);
  w.must_close = TRUE;
  headway_bus_add_observer (t.bus, on_event, &w, NULL);
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
  headway_bus_publish (user_data, batch_on (user_data, "late", NULL, NULL), test_instant (0));
}

/* A publisher that closes the bus from the answer that the bus is closing. */
static void
test_close_from_answer (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 0);

  headway_bus_publish (t.bus, test_batch (&t, 40, NULL), t.now);
  headway_bus_publish (t.bus, batch_on (t.bus, "waiting", on_done_close, t.bus), t.now);
  headway_bus_publish (t.bus, batch_on (t.bus, "waiting", on_done_close, t.bus), t.now);
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

static void
add_observer_tests (void)
{
  g_test_add_func ("/bus/order/case-53-observer-sees-every-handle", test_case_53);
  g_test_add_func ("/bus/order/case-54-second-publish-waits", test_case_54);
  g_test_add_func ("/bus/order/case-55-nested-publish", test_case_55);
  g_test_add_func ("/bus/order/case-56-nested-publish-in-order-for-readers", test_case_56);
  g_test_add_func ("/bus/order/case-57-observer-removes-itself", test_case_57);
  g_test_add_func ("/bus/order/case-58-eight-publishers", test_case_58);
  g_test_add_func ("/bus/order/case-59-only-events-take-ids", test_case_59);
  g_test_add_func ("/bus/order/case-60-tally-of-an-observer", test_case_60);
  g_test_add_func ("/bus/observers/one-removes-another", test_observer_removes_another);
  g_test_add_func ("/bus/observers/one-adds-others", test_observer_adds);
  g_test_add_func ("/bus/observers/go-with-the-bus", test_observers_go_with_the_bus);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, G_TEST_OPTION_ISOLATE_DIRS, NULL);
  g_test_add_func ("/bus/properties", test_properties);
  g_test_add_func ("/bus/subscription-properties", test_subscription_properties);
  g_test_add_func ("/bus/last-used", test_last_used);
  g_test_add_func ("/bus/batch/32-a-turn-others-behind", test_batch_in_turns);
  g_test_add_func ("/bus/batch/small-ones-share-a-turn", test_small_batches_share_a_turn);
  g_test_add_func ("/bus/batch/costs", test_batch_costs);
  add_observer_tests ();
  g_test_add_func ("/bus/batch/publish-from-the-answer", test_publish_from_answer);
  g_test_add_func ("/bus/close/begun-batch-to-its-end", test_close_begun);
  g_test_add_func ("/bus/close/from-an-observer", test_close_from_observer);
  g_test_add_func ("/bus/close/from-an-answer", test_close_from_answer);
  g_test_add_func ("/bus/close/overtakes-session-end", test_close_overtakes_session_end);
  g_test_add_func ("/bus/filter/patterns-and-types", test_filters);
  g_test_add_func ("/bus/snapshot/refused", test_snapshot_refused);
  return g_test_run ();
}
