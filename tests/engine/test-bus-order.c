/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-watcher.h"

#include <string.h>

/* Order and observers: cases 53 to 60 of routing.md 4D. */

static void
test_case_53 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_auto (TestWatcher) w = test_watcher (&t);
  g_autoptr (HeadwayBus) other = g_object_ref (t.bus);

  headway_bus_add_observer (t.bus, test_watcher_see, &w, NULL);
  headway_bus_publish (other, test_batch_on (other, "a", NULL, NULL), t.now);
  g_assert_cmpstr (w.seen->str, ==, "a:1");
}

static void
on_done_note (HeadwayBatch *batch, const GError *error, gpointer user_data)
{
  g_string_append (user_data, " done");
}

static void
on_event_second_publisher (HeadwayBus *bus, HeadwayEvent *event, HeadwayInstant now, gpointer user_data)
{
  GString *order = user_data;

  g_string_append_printf (order, " begin:%" G_GUINT64_FORMAT, headway_event_get_id (event));
  if (headway_event_get_id (event) == 1)
    headway_bus_publish (bus, test_batch_on (bus, "second", on_done_note, order), test_instant (0));
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
  headway_bus_publish (t.bus, test_batch_on (t.bus, "first", on_done_note, order), t.now);
  g_assert_cmpstr (order->str, ==, " begin:1 end:1 done begin:2 end:2 done");
}

static void
test_case_55 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_auto (TestWatcher) w = test_watcher (&t);

  w.n_nested = 1;
  headway_bus_add_observer (t.bus, test_watcher_see, &w, NULL);
  headway_bus_publish (t.bus, test_batch_on (t.bus, "outer", NULL, NULL), t.now);
  g_assert_cmpstr (w.seen->str, ==, "outer:1 inner:2");
}

static void
test_case_56 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_auto (TestWatcher) w = test_watcher (&t);
  g_auto (TestWatcher) later = test_watcher (&t);
  g_autoptr (HeadwaySubscription) live = test_live (&t, 0);
  g_autoptr (HeadwaySubscription) inner = test_filtered (&t, "inner", NULL);
  g_autoptr (HeadwaySubscription) replayed = NULL;
  TestSink sink;
  g_autofree char *got = NULL;

  test_sink_init (&sink, G_MAXUINT);
  headway_subscription_attach (live, &sink.base, NULL);
  w.n_nested = 2;
  headway_bus_add_observer (t.bus, test_watcher_see, &w, NULL);
  headway_bus_add_observer (t.bus, test_watcher_see, &later, NULL);
  headway_bus_publish (t.bus, test_batch_on (t.bus, "outer", NULL, NULL), t.now);
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

  headway_bus_publish (bus, test_batch_on (bus, "last-words", NULL, NULL), test_instant (0));
}

static void
on_event_remove_self (HeadwayBus *bus, HeadwayEvent *event, HeadwayInstant now, gpointer user_data)
{
  headway_bus_remove_observer (bus, 1);
}

static void
test_case_57 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_auto (TestWatcher) w = test_watcher (&t);
  guint observer;

  /* Removes itself while it is told, and its destroy function publishes. */
  observer = headway_bus_add_observer (t.bus, on_event_remove_self, t.bus, publish_last_words);
  g_assert_cmpuint (observer, ==, 1);
  headway_bus_add_observer (t.bus, test_watcher_see, &w, NULL);
  headway_bus_publish (t.bus, test_batch_on (t.bus, "a", NULL, NULL), t.now);
  headway_bus_publish (t.bus, test_batch_on (t.bus, "b", NULL, NULL), t.now);
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
  g_auto (TestWatcher) first = test_watcher (&t);
  g_auto (TestWatcher) second = test_watcher (&t);

  headway_bus_add_observer (t.bus, test_watcher_see, &first, NULL);
  first.to_remove = headway_bus_add_observer (t.bus, test_watcher_see, &second, NULL);
  test_pub (&t, 2);
  g_assert_cmpstr (first.seen->str, ==, "foo:1 foo:2");
  g_assert_cmpstr (second.seen->str, ==, "");
}

static void
on_event_add_many (HeadwayBus *bus, HeadwayEvent *event, HeadwayInstant now, gpointer user_data)
{
  if (headway_event_get_id (event) == 1)
    for (guint i = 0; i < 50; i++)
      headway_bus_add_observer (bus, test_watcher_see, user_data, NULL);
}

static void
test_observer_adds (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_auto (TestWatcher) w = test_watcher (&t);

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
    headway_bus_add_observer (t.bus, test_watcher_see, &n_destroyed, count_destroy);
  headway_bus_remove_observer (t.bus, 2);
  g_assert_cmpuint (n_destroyed, ==, 1);
  test_bus_clear (&t);
  g_assert_cmpuint (n_destroyed, ==, 3);
}

/* As an interleaving: eight publishers in turn, each tenth publish with one nested in it. */
static void
on_event_nest (HeadwayBus *bus, HeadwayEvent *event, HeadwayInstant now, gpointer user_data)
{
  guint *n_left = user_data;

  if (headway_event_get_id (event) % 10 != 0 || *n_left == 0)
    return;
  --*n_left;
  headway_bus_publish (bus, test_batch_on (bus, "p.nested", NULL, NULL), test_instant (0));
}

static void
test_case_58 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = test_filtered (&t, "p.*", NULL);
  g_autofree char *got = NULL;
  g_autofree char *expected = NULL;
  guint n_left = 8000 / TEST_SLOWDOWN;
  TestSink sink;

  test_sink_init (&sink, G_MAXUINT);
  headway_subscription_attach (subscription, &sink.base, NULL);
  headway_bus_add_observer (t.bus, on_event_nest, &n_left, NULL);
  for (guint i = 0; i < 8 * 9000 / TEST_SLOWDOWN; i++)
    {
      g_autofree char *topic = g_strdup_printf ("p.%u", i % 8);
      headway_bus_publish (t.bus, test_batch_on (t.bus, topic, NULL, NULL), t.now);
    }
  while (n_left-- > 0)
    headway_bus_publish (t.bus, test_batch_on (t.bus, "p.rest", NULL, NULL), t.now);
  got = test_sink_end (&sink);
  expected = g_strdup_printf ("#1..#%u", 80000 / TEST_SLOWDOWN);
  g_assert_cmpstr (got, ==, expected);
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
on_event_tally (HeadwayBus *bus, HeadwayEvent *event, HeadwayInstant now, gpointer user_data)
{
  ++*(guint64 *) user_data;
}

static void
test_case_60 (void)
{
  g_auto (TestBus) t = TEST_BUS (.ring_size = 1024);
  g_autoptr (HeadwaySubscription) subscription = test_from (&t, 0);
  const guint lag = 100000 / TEST_SLOWDOWN;
  guint64 tally = 0;

  headway_bus_add_observer (t.bus, on_event_tally, &tally, NULL);
  test_pub (&t, lag + 1024);
  g_assert_cmpuint (tally, ==, lag + 1024);
  g_assert_cmpuint (headway_ring_get_first_id (headway_bus_get_ring (t.bus)), ==, lag + 1);
  assert_reads (&t, subscription,
                "rc(0) #1..#192 warn(192,256,192,12948," BC ",frames) #193..#256 "
                "evict(queue_overflow,257,256,256,17300," BC ") end");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
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
  return g_test_run ();
}
