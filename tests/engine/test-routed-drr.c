/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-route.h"

/* Cases 96 to 119 of the routing contract (4G): in which order a route is read. */

#define MIB (1024 * 1024)

/* A word for each event of a take, without its id: "A B B". */
static char *
names (TestBus *t, HeadwaySubscription *route, guint n, guint64 budget)
{
  g_autofree HeadwayDelivery *deliveries = g_new (HeadwayDelivery, n);
  GString *text = g_string_new (NULL);
  guint taken = headway_subscription_drain (route, t->now, budget, n, G_MAXSIZE, deliveries);

  for (guint i = 0; i < taken; i++)
    {
      HeadwayPrincipal *principal = headway_event_get_principal (deliveries[i].event);

      g_string_append_printf (text, "%s%s", i > 0 ? " " : "", headway_principal_get_name (principal));
      headway_event_unref (deliveries[i].event);
    }
  assert_books (route);
  return g_string_free (text, FALSE);
}

static void
assert_empty (HeadwaySubscription *route)
{
  g_assert_cmpuint (headway_subscription_get_active_principals (route), ==, 0);
  g_assert_cmpuint (headway_subscription_get_queued (route), ==, 0);
  g_assert_cmpuint (headway_subscription_get_queued_bytes (route), ==, 0);
  g_assert_false (headway_subscription_is_ready (route));
}

/* Case 96. */
static void
test_pop_then_drain (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);

  test_pub_as (&t, "alice", 10, 3);
  assert_route_take (&t, route, 1, "alice#1");
  assert_route_drain (&t, route, MIB, "alice#2 alice#3");
  assert_empty (route);
}

/* Case 97. */
static void
test_pops_alternate (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);

  test_pub_as (&t, "alice", 10, 1);
  test_pub_as (&t, "bob", 10, 1);
  assert_route_take (&t, route, 1, "alice#1");
  assert_route_take (&t, route, 1, "bob#2");
  assert_route_take (&t, route, 1, "");
}

/* Case 98. */
static void
test_drain_takes_all (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);

  test_pub_as (&t, "alice", 10, 2);
  test_pub_as (&t, "bob", 10, 2);
  assert_route_drain (&t, route, MIB, "alice#1 alice#2 bob#3 bob#4");
}

/* Case 99. */
static void
test_quantum_holds_two (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 33792);
  HeadwayOutcome outcome = { 0 };
  TestTally tally;

  for (guint i = 0; i < 4; i++)
    {
      HeadwayOutcome one = test_pub_as (&t, i % 2 == 0 ? "a" : "b", 8203, 1);
      outcome.evicted += one.evicted;
    }
  g_assert_cmpuint (outcome.evicted, ==, 0);
  g_assert_cmpuint (headway_subscription_get_queued_bytes (route), ==, 32812);
  assert_route_drain (&t, route, 33792, "a#1 a#3 b#2 b#4");
  tally = test_tally (&t, route, 10, 33792);
  g_assert_cmpuint (tally.events, ==, 0);
}

/* Case 101: upstream serves A until it is empty. */
static void
test_small_drains_share (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);
  g_autoptr (GString) order = g_string_new (NULL);

  test_pub_as (&t, "A", 600, 20);
  test_pub_as (&t, "B", 600, 20);
  for (guint i = 0; i < 40; i++)
    {
      g_autofree char *one = names (&t, route, 10, 1000);
      g_string_append (order, one);
    }
  g_assert_cmpstr (order->str, ==, "AAAAAABBBBBBAAAAAAABBBBBBBAAAAAAABBBBBBB");
  assert_empty (route);
}

/* Case 102: upstream returns nothing for ever. */
static void
test_head_larger_than_budget (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);

  test_pub_as (&t, "A", 600, 1);
  assert_route_drain (&t, route, 500, "A#1");
}

/* Case 103: upstream needs two calls. */
static void
test_head_larger_than_quantum (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);
  TestTally tally;

  for (guint i = 0; i < 255; i++)
    {
      g_autofree char *name = g_strdup_printf ("p%u", i);
      test_pub_as (&t, name, 100, 1);
    }
  test_pub_as (&t, "large", 500000, 1);
  tally = test_tally (&t, route, 1024, MIB);
  g_assert_cmpuint (tally.events, ==, 256);
  g_assert_cmpuint (tally.cost, ==, 525500);
}

/* Case 104. */
static void
test_starved_rounds (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);
  TestTally tally;

  for (guint i = 1; i <= 20; i++)
    {
      g_autofree char *name = g_strdup_printf ("p%u", i);
      test_pub_as (&t, name, 9000, 1);
    }
  tally = test_tally (&t, route, 1024, 65536);
  g_assert_cmpuint (tally.events, ==, 7);
  g_assert_cmpuint (tally.cost, ==, 63000);
  g_assert_cmpuint (headway_subscription_get_starved (route), ==, 40);
  assert_route_take (&t, route, 1, "p8#8");
}

/* Case 105. */
static void
test_suspended_begins (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);

  test_pub_as (&t, "A", 600, 2);
  test_pub_as (&t, "B", 100, 1);
  assert_route_drain (&t, route, 700, "A#1 B#3");
  assert_route_drain (&t, route, 700, "A#2");
}

/* Case 106: upstream alternates A and B. */
static void
test_pop_is_fair_in_bytes (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);
  g_autofree char *order = NULL;

  test_pub_as (&t, "A", 100000, 3);
  test_pub_as (&t, "B", 100, 3);
  order = names (&t, route, 10, G_MAXUINT64);
  g_assert_cmpstr (order, ==, "B B B A A A");
}

static void
assert_pops (gsize cost, guint n, const char *expected)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);
  g_autoptr (GString) order = g_string_new (NULL);

  test_pub_as (&t, "A", cost, n);
  test_pub_as (&t, "B", cost, n);
  for (guint i = 0; i < 2 * n; i++)
    {
      g_autofree char *one = names (&t, route, 1, G_MAXUINT64);
      g_string_append (order, one);
    }
  g_assert_cmpstr (order->str, ==, expected);
}

/* Case 107. */
static void
test_pop_many_in_a_quantum (void)
{
  assert_pops (100, 3, "AAABBB");
}

static void
test_pop_one_in_a_quantum (void)
{
  assert_pops (3000, 6, "ABABAABBABAB");
}

/* Case 108. */
static void
test_pop_long_run (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);
  gint64 bytes[2] = { 0, 0 };

  for (guint i = 0; i < 2000; i++)
    {
      HeadwayDelivery delivery;

      while (headway_subscription_get_queued (route) < 200)
        {
          test_pub_as (&t, "A", 1000, 1);
          test_pub_as (&t, "B", 100, 10);
        }
      g_assert_cmpuint (headway_subscription_take (route, t.now, 1, G_MAXSIZE, &delivery), ==, 1);
      bytes[headway_event_get_principal (delivery.event) == test_principal (&t, "A") ? 0 : 1] +=
        headway_event_get_cost (delivery.event);
      headway_event_unref (delivery.event);
      g_assert_cmpint (ABS (bytes[0] - bytes[1]), <, 1000 + 4096);
    }
  g_assert_cmpint (bytes[0], ==, 184000);
  g_assert_cmpint (bytes[1], ==, 181600);
}

/* Case 109. */
static void
test_deficit_ends_with_the_queue (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);

  /* 4000 of the quantum are left when A runs empty; with them 8000 would fit at once. */
  test_pub_as (&t, "A", 96, 1);
  assert_route_take (&t, route, 1, "A#1");
  test_pub_as (&t, "A", 8000, 1);
  test_pub_as (&t, "B", 4000, 1);
  assert_route_take (&t, route, 2, "B#3 A#2");
  g_assert_cmpuint (headway_subscription_get_starved (route), ==, 1);
}

/* Case 111. */
static void
test_starved_by_deficit_only (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);

  test_pub_as (&t, "A", 600, 2);
  test_pub_as (&t, "B", 600, 2);
  assert_route_drain (&t, route, 1000, "A#1");
  g_assert_cmpuint (headway_subscription_get_starved (route), ==, 0);
  assert_route_drain (&t, route, MIB, "A#2 B#3 B#4");
  test_pub_as (&t, "A", 5000, 1);
  assert_route_take (&t, route, 1, "A#5");
  g_assert_cmpuint (headway_subscription_get_starved (route), ==, 1);
}

/* Case 112; a drain of 0 never reaches the engine. */
static void
test_empty (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);

  assert_route_drain (&t, route, 1, "");
  assert_route_drain (&t, route, MIB, "");
  assert_route_take (&t, route, 5, "");
}

/* Case 113: the waiting is up to the reader; the engine wakes it, and only for something. */
static void
test_wakes (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);
  TestRouteSink sink;

  test_route_sink_init (&sink, 0);
  g_assert_true (headway_subscription_attach (route, &sink.base, NULL));
  g_assert_cmpuint (sink.n_wakes, ==, 0);
  test_pub_as (&t, "A", 10, 1);
  g_assert_cmpuint (sink.n_wakes, ==, 1);
  assert_route_take (&t, route, 1, "A#1");
  headway_subscription_detach (route, &sink.base);
  test_route_sink_clear (&sink);
}

/* Case 114: a wake-up for nothing changes nothing; the deadline is the reader's. */
static void
test_spurious_wake (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);

  g_assert_false (headway_subscription_is_ready (route));
  assert_route_take (&t, route, 1, "");
  g_assert_false (headway_subscription_is_ready (route));
}

/* Case 115: ready is a level, not a permit. */
static void
test_ready_is_a_level (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);

  test_pub_as (&t, "A", 10, 3);
  for (guint i = 1; i <= 3; i++)
    {
      g_autofree char *expected = g_strdup_printf ("A#%u", i);

      g_assert_true (headway_subscription_is_ready (route));
      assert_route_take (&t, route, 1, expected);
    }
  g_assert_false (headway_subscription_is_ready (route));
}

/* Case 116. */
static void
test_random_mix_keeps_order (void)
{
  g_auto (TestBus) t = TEST_BUS (.ring_size = 1);
  g_autoptr (HeadwaySubscription) route = test_route (&t, 20000);
  g_autoptr (GRand) random = g_rand_new_with_seed (116);
  guint64 last[8] = { 0 };
  HeadwayDelivery deliveries[16];

  for (guint i = 0; i < 20000; i++)
    {
      g_autofree char *name = g_strdup_printf ("p%d", g_rand_int_range (random, 0, 8));
      guint n;

      test_pub_as (&t, name, g_rand_int_range (random, 4, 3000), 1);
      if (g_rand_int_range (random, 0, 3) == 0)
        continue;
      n = headway_subscription_drain (route, t.now, g_rand_boolean (random) ? G_MAXUINT64 : (guint64) g_rand_int_range (random, 1, 9000),
                                      g_rand_int_range (random, 1, 4), G_MAXSIZE, deliveries);
      for (guint k = 0; k < n; k++)
        {
          HeadwayEvent *event = deliveries[k].event;

          if (!headway_event_is_synthetic (event))
            {
              guint p = headway_principal_get_name (headway_event_get_principal (event))[1] - '0';

              g_assert_cmpuint (headway_event_get_id (event), >, last[p]);
              last[p] = headway_event_get_id (event);
            }
          headway_event_unref (event);
        }
      assert_books (route);
    }
}

/* Case 117. */
static void
test_thousand_principals (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);
  g_autofree HeadwayDelivery *deliveries = g_new (HeadwayDelivery, 1024);

  for (guint i = 0; i < 1000; i++)
    {
      g_autofree char *name = g_strdup_printf ("p%u", i);
      test_pub_as (&t, name, 10, 1);
    }
  g_assert_cmpuint (headway_subscription_drain (route, t.now, MIB, 1024, G_MAXSIZE, deliveries), ==, 1000);
  for (guint i = 0; i < 1000; i++)
    {
      g_hash_table_add (seen, headway_event_get_principal (deliveries[i].event));
      headway_event_unref (deliveries[i].event);
    }
  g_assert_cmpuint (g_hash_table_size (seen), ==, 1000);
  assert_empty (route);
}

/* Case 118: upstream returns nothing, with 300 dead queues. */
static void
test_nothing_dead_in_the_ring (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);
  HeadwayOutcome outcome;

  for (guint i = 0; i < 300; i++)
    {
      g_autofree char *name = g_strdup_printf ("p%u", i);
      test_pub_as (&t, name, 100, 1);
    }
  outcome = test_pub_as (&t, "large", MIB, 1);
  g_assert_cmpuint (outcome.evicted, ==, 300);
  g_assert_cmpuint (headway_subscription_get_active_principals (route), ==, 1);
  assert_route_drain (&t, route, MIB, "gap(budget,-,300,30000,1..300) large#301");
  assert_empty (route);
}

/* Case 119: between two visits of one queue every other one sends less than its largest event and a
 * quantum, however often it runs empty and comes back. */
static void
test_refilling_gains_nothing (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);
  guint64 served = 0;
  HeadwayDelivery delivery;

  for (guint i = 0; i < 99; i++)
    {
      g_autofree char *name = g_strdup_printf ("p%u", i);
      test_pub_as (&t, name, 500, 9);
    }
  test_pub_as (&t, "victim", 500, 1);
  for (;;)
    {
      const char *name;

      g_assert_cmpuint (headway_subscription_take (route, t.now, 1, G_MAXSIZE, &delivery), ==, 1);
      name = headway_principal_get_name (headway_event_get_principal (delivery.event));
      if (g_str_equal (name, "victim"))
        break;
      served += headway_event_get_cost (delivery.event);
      test_pub_as (&t, name, 500, 1);
      headway_event_unref (delivery.event);
    }
  headway_event_unref (delivery.event);
  g_assert_cmpuint (served, <=, 99 * 4096);
}

/* decisions.md 12: the bounds of a reply; the one in turn stands in front afterwards. */
static void
test_reply_bounds (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);
  HeadwayDelivery deliveries[4];

  test_pub_as (&t, "A", 1000, 3);
  test_pub_as (&t, "B", 10, 1);
  /* The first is taken whatever its size. */
  g_assert_cmpuint (headway_subscription_take (route, t.now, 4, 1, deliveries), ==, 1);
  headway_event_unref (deliveries[0].event);
  g_assert_cmpuint (headway_subscription_drain (route, t.now, MIB, 4, 1500, deliveries), ==, 1);
  headway_event_unref (deliveries[0].event);
  assert_route_take (&t, route, 10, "A#3 B#4");
}

/* decisions.md 27: "A C B". */
static void
test_back_of_the_ring (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);

  test_pub_as (&t, "X", 100, 1);
  test_pub_as (&t, "A", 2000, 1);
  test_pub_as (&t, "B", 9000, 1);
  test_pub_as (&t, "C", 2000, 1);
  /* A does not fit what is left and is suspended, B's turn ends, C is suspended, until B is too. */
  assert_route_drain (&t, route, 1000, "X#1");
  assert_route_take (&t, route, 3, "A#2 C#4 B#3");
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/routed/drr/096-pop-then-drain-loses-nothing", test_pop_then_drain);
  g_test_add_func ("/routed/drr/097-pops-give-one-each", test_pops_alternate);
  g_test_add_func ("/routed/drr/098-drain-takes-all", test_drain_takes_all);
  g_test_add_func ("/routed/drr/099-quantum-holds-two", test_quantum_holds_two);
  g_test_add_func ("/routed/drr/101-small-drains-share", test_small_drains_share);
  g_test_add_func ("/routed/drr/102-head-larger-than-budget", test_head_larger_than_budget);
  g_test_add_func ("/routed/drr/103-head-larger-than-quantum", test_head_larger_than_quantum);
  g_test_add_func ("/routed/drr/104-starved-rounds-go-on", test_starved_rounds);
  g_test_add_func ("/routed/drr/105-suspended-begins-the-next-call", test_suspended_begins);
  g_test_add_func ("/routed/drr/106-pop-is-fair-in-bytes", test_pop_is_fair_in_bytes);
  g_test_add_func ("/routed/drr/107a-pop-many-in-a-quantum", test_pop_many_in_a_quantum);
  g_test_add_func ("/routed/drr/107b-pop-one-in-a-quantum", test_pop_one_in_a_quantum);
  g_test_add_func ("/routed/drr/108-pop-long-run", test_pop_long_run);
  g_test_add_func ("/routed/drr/109-deficit-ends-with-the-queue", test_deficit_ends_with_the_queue);
  g_test_add_func ("/routed/drr/111-starved-by-deficit-only", test_starved_by_deficit_only);
  g_test_add_func ("/routed/drr/112-empty-route-gives-nothing", test_empty);
  g_test_add_func ("/routed/drr/113-publish-wakes-the-reader", test_wakes);
  g_test_add_func ("/routed/drr/114-spurious-wake-changes-nothing", test_spurious_wake);
  g_test_add_func ("/routed/drr/115-ready-is-a-level", test_ready_is_a_level);
  g_test_add_func ("/routed/drr/116-random-mix-keeps-order", test_random_mix_keeps_order);
  g_test_add_func ("/routed/drr/117-thousand-principals-in-one-drain", test_thousand_principals);
  g_test_add_func ("/routed/drr/118-nothing-dead-in-the-ring", test_nothing_dead_in_the_ring);
  g_test_add_func ("/routed/drr/119-refilling-gains-nothing", test_refilling_gains_nothing);
  g_test_add_func ("/routed/drr/reply-bounds-keep-the-turn", test_reply_bounds);
  g_test_add_func ("/routed/drr/back-is-the-back-at-that-moment", test_back_of_the_ring);
  return g_test_run ();
}
