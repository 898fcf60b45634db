/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-route.h"

/* Cases 77 to 95 of the routing contract (4F): who has to go, and what the reader is told. */

#define MIB (1024 * 1024)

static HeadwaySubscription *
fair_route (TestBus *t, guint64 budget)
{
  HeadwaySubscribeOptions options = test_route_options (budget);

  options.route.eviction = HEADWAY_EVICTION_FAIR;
  return test_subscribe (t, &options);
}

static guint64
losses (HeadwaySubscription *route, HeadwayGapReason reason)
{
  HeadwayRouteStats stats;
  guint64 sum = 0;

  headway_subscription_get_route_stats (route, &stats);
  for (guint i = 0; i < HEADWAY_N_PRINCIPAL_CLASSES; i++)
    sum += stats.losses[reason][i];
  return sum;
}

#define assert_outcome(outcome, n_admitted, n_refused, n_evicted) \
  G_STMT_START                                                    \
  {                                                               \
    HeadwayOutcome outcome_ = (outcome);                          \
    g_assert_cmpuint (outcome_.subscriptions, ==, (n_admitted));  \
    g_assert_cmpuint (outcome_.refused, ==, (n_refused));         \
    g_assert_cmpuint (outcome_.evicted, ==, (n_evicted));         \
  }                                                               \
  G_STMT_END

static void
assert_holds (HeadwaySubscription *route, guint principals, guint64 bytes)
{
  g_assert_cmpuint (headway_subscription_get_active_principals (route), ==, principals);
  g_assert_cmpuint (headway_subscription_get_queued_bytes (route), ==, bytes);
}

/* Case 77. */
static void
test_oversize (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 1024);

  assert_outcome (test_pub_as (&t, "alice", 4100, 1), 0, 1, 0);
  assert_holds (route, 0, 0);
  g_assert_cmpuint (losses (route, HEADWAY_GAP_OVERSIZE), ==, 1);
  assert_route_take (&t, route, 5, "gap(oversize,alice,1,4100,1..1)");
}

/* Case 78. */
static void
test_equality_fits (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 1000);

  assert_outcome (test_pub_as (&t, "a", 1000, 1), 1, 0, 0);
  assert_holds (route, 1, 1000);
  assert_outcome (test_pub_as (&t, "a", 4, 1), 1, 0, 1);
  assert_holds (route, 1, 4);
  assert_route_take (&t, route, 5, "gap(budget,a,1,1000,1..1) a#2");
}

/* Case 79: the topic counts. */
static void
test_default_budget (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);

  assert_outcome (test_pub_as (&t, "a", MIB + 3, 1), 0, 1, 0);
  assert_outcome (test_pub_as (&t, "a", MIB, 1), 1, 0, 0);
  assert_holds (route, 1, MIB);
}

/* Case 80. */
static void
test_terminator_survives (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 200704);

  test_pub_as (&t, "alice", 65551, 3);
  assert_outcome (test_pub_as (&t, "bob", 16408, 1), 1, 0, 1);
  assert_outcome (test_pub_as (&t, "alice", 65555, 1), 1, 0, 1);
  assert_holds (route, 2, 147514);
  assert_route_take (&t, route, 5, "bob#4 gap(budget,alice,2,131102,1..2) alice#3 alice#5");
}

/* Case 81: upstream evicts B at the second push. */
static void
test_oldest_is_by_arrival (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 10000);

  test_pub_as (&t, "A", 1000, 9);
  test_pub_as (&t, "B", 1000, 1);
  assert_outcome (test_pub_as (&t, "A", 1000, 9), 9, 0, 9);
  g_assert_cmpuint (headway_subscription_get_active_principals (route), ==, 2);
  assert_outcome (test_pub_as (&t, "A", 1000, 1), 1, 0, 1);
  g_assert_cmpuint (headway_subscription_get_active_principals (route), ==, 1);
  assert_route_take (&t, route, 2, "gap(budget,B,1,1000,10..10) gap(budget,A,9,9000,1..9)");
}

/* Case 82. */
static void
test_fair_spares_the_quiet (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = fair_route (&t, 10000);

  test_pub_as (&t, "A", 1000, 9);
  test_pub_as (&t, "B", 1000, 1);
  assert_outcome (test_pub_as (&t, "A", 1000, 12), 12, 0, 12);
  assert_holds (route, 2, 10000);
  assert_route_take (&t, route, 1000,
                     "gap(budget,A,12,12000,1..13) A#14 A#15 A#16 A#17 B#10 A#18 A#19 A#20 A#21 A#22");
}

/* Case 83: upstream keeps A2 and loses B3. */
static void
test_heads_do_not_become_young (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 4000);

  test_pub_as (&t, "A", 1000, 2);
  test_pub_as (&t, "B", 1000, 1);
  assert_route_take (&t, route, 1, "A#1");
  assert_outcome (test_pub_as (&t, "C", 1000, 3), 3, 0, 1);
  assert_holds (route, 2, 4000);
  assert_route_take (&t, route, 10, "gap(budget,A,1,1000,2..2) B#3 C#4 C#5 C#6");
}

/* Case 84: upstream holds 5000 queues. */
static void
test_many_principals_few_queues (void)
{
  g_auto (TestBus) t = TEST_BUS (.ring_size = 1);
  g_autoptr (HeadwaySubscription) route = test_route (&t, 10000);

  for (guint i = 0; i < 5000; i++)
    {
      g_autofree char *name = g_strdup_printf ("p%u", i);
      test_pub_as (&t, name, 1000, 1);
    }
  assert_holds (route, 10, 10000);
  g_assert_cmpuint (losses (route, HEADWAY_GAP_BUDGET), ==, 4990);
  assert_route_take (&t, route, 2, "gap(budget,-,4990,4990000,1..4990) p4990#4991");
}

/* Case 85. */
static void
test_thousand_tiny (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);

  test_pub_as (&t, "a", 4, 1000);
  g_assert_cmpuint (headway_subscription_get_queued (route), ==, 1000);
  g_assert_cmpuint (headway_subscription_get_dropped (route), ==, 0);
}

/* Case 86. */
static void
test_principal_cap_default (void)
{
  g_auto (TestBus) t = TEST_BUS (.ring_size = 1);
  g_autoptr (HeadwaySubscription) route = test_route (&t, HEADWAY_ID_MAX);

  test_publish (&t, test_event_at (&t, "a", "t.oldest", 9, FALSE));
  assert_outcome (test_pub_as (&t, "a", 5, 16384), 16384, 0, 1);
  assert_holds (route, 1, 81920);
  g_assert_cmpuint (headway_subscription_get_queued (route), ==, 16384);
  assert_route_take (&t, route, 2, "gap(count_cap,a,1,9,1..1) a#2");
}

/* Case 87. */
static void
test_principal_cap_configured (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  HeadwaySubscribeOptions options = test_route_options (0);
  g_autoptr (HeadwaySubscription) route = NULL;

  options.route.principal_messages = 256;
  route = test_subscribe (&t, &options);
  assert_outcome (test_pub_as (&t, "a", 5, 256), 256, 0, 0);
  assert_outcome (test_pub_as (&t, "a", 5, 1), 1, 0, 1);
  g_assert_cmpuint (headway_subscription_get_queued (route), ==, 256);
  assert_route_take (&t, route, 2, "gap(count_cap,a,1,5,1..1) a#2");
}

static guint
first_eviction (guint messages)
{
  g_auto (TestBus) t = TEST_BUS (.ring_size = 1);
  HeadwaySubscribeOptions options = test_route_options (0);
  g_autoptr (HeadwaySubscription) route = NULL;
  char *names[100];
  guint n = 0;
  HeadwayOutcome outcome;

  options.route.messages = messages;
  route = test_subscribe (&t, &options);
  for (guint i = 0; i < 100; i++)
    names[i] = g_strdup_printf ("p%u", i);
  do
    outcome = test_pub_as (&t, names[n++ % 100], 5, 1);
  while (outcome.evicted == 0);
  g_assert_cmpuint (outcome.evicted, ==, 1);
  if (messages == G_MAXUINT)
    g_assert_cmpuint (headway_subscription_get_queued_bytes (route), ==, 1048575);
  for (guint i = 0; i < 100; i++)
    g_free (names[i]);
  return n;
}

/* Case 88. */
static void
test_route_cap (void)
{
  g_assert_cmpuint (first_eviction (G_MAXUINT), ==, 209716);
  g_assert_cmpuint (first_eviction (65536), ==, 65537);
}

/* Case 89. */
static void
test_several_evictions (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 1000);

  test_pub_as (&t, "a", 100, 10);
  assert_outcome (test_pub_as (&t, "a", 950, 1), 1, 0, 10);
  assert_holds (route, 1, 950);
  assert_route_take (&t, route, 10, "gap(budget,a,10,1000,1..10) a#11");

  test_pub_as (&t, "a", 100, 9);
  test_pub_as (&t, "a", 50, 1);
  assert_outcome (test_pub_as (&t, "a", 950, 1), 1, 0, 9);
  assert_route_take (&t, route, 10, "gap(budget,a,9,900,12..20) a#21 a#22");
}

/* Case 90. */
static void
test_own_queue_is_made_anew (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 1000);

  test_pub_as (&t, "A", 400, 2);
  test_pub_as (&t, "B", 100, 1);
  assert_route_take (&t, route, 1, "A#1");
  /* A is in turn, with 3696 left; its queue goes, and comes back behind B's. */
  assert_outcome (test_pub_as (&t, "A", 900, 1), 1, 0, 1);
  assert_route_take (&t, route, 10, "gap(budget,A,1,400,2..2) B#3 A#4");
}

/* Case 92. */
static void
test_overflow_queue (void)
{
  g_auto (TestBus) t = TEST_BUS (.ring_size = 1);
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);

  for (guint i = 0; i < 10000; i++)
    {
      g_autofree char *name = g_strdup_printf ("p%u", i);
      test_pub_as (&t, name, 10, 1);
    }
  test_pub_as (&t, "x", 10, 1);
  test_pub_as (&t, "y", 10, 1);
  test_pub_as (&t, "x", 10, 1);
  g_assert_cmpuint (headway_subscription_get_active_principals (route), ==, 10001);
  /* x stays where its older events are, although there is room for a queue of its own now. */
  assert_route_take (&t, route, 1, "p0#1");
  test_pub_as (&t, "x", 10, 1);
  g_assert_cmpuint (headway_subscription_get_active_principals (route), ==, 10000);
  g_assert_cmpuint (test_tally (&t, route, 9999, 0).events, ==, 9999);
  assert_route_take (&t, route, 10, "x#10001 y#10002 x#10003 x#10004");
  test_pub_as (&t, "x", 10, 1);
  assert_route_take (&t, route, 10, "x#10005");
}

/* Case 93. */
static void
test_final_survives_a_flood (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 1000);

  test_pub_as (&t, "alice", 100, 1);
  test_pub_final (&t, "alice", 100);
  test_pub_as (&t, "bob", 100, 30);
  assert_route_take (&t, route, 3, "gap(budget,alice,1,100,1..1) alice#2 gap(budget,bob,21,2100,3..23)");
}

static void
test_final_within_an_eighth (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 1000);

  /* 125 are spared; the next 4 are not. */
  test_pub_final (&t, "alice", 100);
  test_pub_final (&t, "alice", 25);
  test_pub_final (&t, "alice", 4);
  test_pub_as (&t, "bob", 875, 1);
  assert_route_take (&t, route, 10, "alice#1 alice#2 gap(budget,alice,1,4,3..3) bob#4");
}

static void
test_final_goes_when_nothing_else_is_left (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 1000);

  test_pub_final (&t, "alice", 100);
  assert_outcome (test_pub_as (&t, "bob", 950, 1), 1, 0, 1);
  assert_route_take (&t, route, 10, "gap(budget,alice,1,100,1..1) bob#2");
}

static void
test_final_is_spared_by_the_cap (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  HeadwaySubscribeOptions options = test_route_options (1000);
  g_autoptr (HeadwaySubscription) route = NULL;

  options.route.principal_messages = 2;
  route = test_subscribe (&t, &options);
  test_pub_final (&t, "a", 10);
  test_pub_as (&t, "a", 10, 3);
  assert_route_take (&t, route, 10, "a#1 gap(count_cap,a,2,20,2..3) a#4");
}

/* Case 94. */
static void
test_gap_in_its_place (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 800);

  test_pub_as (&t, "bob", 100, 4);
  assert_route_take (&t, route, 4, "bob#1 bob#2 bob#3 bob#4");
  test_pub_as (&t, "alice", 100, 4);
  test_pub_as (&t, "bob", 100, 4);
  test_pub_as (&t, "bob", 300, 1);
  assert_route_take (&t, route, 2, "gap(budget,alice,3,300,5..7) alice#8");
  assert_route_take (&t, route, 10, "bob#9 bob#10 bob#11 bob#12 bob#13");
}

/* Case 95. */
static void
test_gap_of_one_who_is_gone (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 1000);
  g_autoptr (GArray) stats = NULL;
  TestRouteSink sink;

  test_route_sink_init (&sink, 0);
  g_assert_true (headway_subscription_attach (route, &sink.base, NULL));
  test_pub_as (&t, "alice", 1001, 1);
  g_assert_cmpuint (sink.n_wakes, ==, 1);
  g_assert_true (headway_subscription_is_ready (route));
  stats = headway_subscription_list_principals (route);
  g_assert_cmpuint (stats->len, ==, 1);
  g_assert_cmpuint (g_array_index (stats, HeadwayPrincipalStat, 0).lost, ==, 1);
  g_assert_cmpuint (headway_subscription_drain_lagged (route), ==, 1);
  g_assert_cmpuint (headway_subscription_drain_lagged (route), ==, 0);
  assert_route_take (&t, route, 10, "gap(oversize,alice,1,1001,1..1)");
  g_assert_false (headway_subscription_is_ready (route));
  headway_subscription_detach (route, &sink.base);
  test_route_sink_clear (&sink);
}

/* --- decisions.md 28: where a record hangs -------------------------------------------------- */

static void
test_gap_behind_the_last (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 1000);

  test_pub_as (&t, "a", 100, 1);
  test_pub_as (&t, "a", 1001, 1);
  test_pub_as (&t, "b", 100, 1);
  /* Told when the queue is gone, before anything else. */
  assert_route_take (&t, route, 10, "a#1 gap(oversize,a,1,1001,2..2) b#3");
}

static void
test_gap_moves_to_the_next_event (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 1000);

  test_pub_as (&t, "a", 100, 1);
  test_pub_as (&t, "a", 1001, 2);
  test_pub_as (&t, "a", 100, 1);
  assert_route_take (&t, route, 1, "a#1");
  assert_route_take (&t, route, 1, "gap(oversize,a,2,2002,2..3)");
  assert_route_take (&t, route, 1, "a#4");
}

/* The reason is that of the first loss, in time. */
static void
test_reason_of_the_first (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 1000);

  test_pub_as (&t, "a", 100, 1);
  test_pub_as (&t, "a", 1001, 1);
  test_pub_as (&t, "a", 100, 1);
  test_pub_as (&t, "b", 900, 1);
  assert_route_take (&t, route, 10, "gap(oversize,a,2,1101,1..2) a#3 b#4");

  test_pub_as (&t, "a", 100, 1);
  test_pub_as (&t, "a", 1001, 1);
  test_pub_as (&t, "a", 100, 1);
  test_pub_as (&t, "b", 1000, 1);
  assert_route_take (&t, route, 10, "gap(oversize,a,3,1201,5..7) b#8");
}

static void
test_drain_has_an_event_too (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 1000);
  HeadwayDelivery deliveries[2];

  test_pub_as (&t, "a", 600, 2);
  g_assert_cmpuint (headway_subscription_drain (route, t.now, 1, 2, 1, deliveries), ==, 2);
  g_assert_true (headway_event_is_synthetic (deliveries[0].event));
  g_assert_cmpuint (headway_event_get_id (deliveries[1].event), ==, 2);
  headway_event_unref (deliveries[0].event);
  headway_event_unref (deliveries[1].event);
}

/* --- decisions.md 30: fair ------------------------------------------------------------------ */

/* The share counts the one who comes in; only those above it pay, heaviest first. */
static void
test_fair_heaviest_first (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = fair_route (&t, 1000);

  test_pub_as (&t, "A", 100, 4);
  test_pub_as (&t, "B", 100, 5);
  test_pub_as (&t, "C", 100, 1);
  assert_outcome (test_pub_as (&t, "D", 100, 1), 1, 0, 1);
  /* Of equals the older head. */
  assert_outcome (test_pub_as (&t, "D", 100, 1), 1, 0, 1);
  assert_route_take (&t, route, 2, "gap(budget,A,1,100,1..1) A#2");
  assert_route_take (&t, route, 3, "A#3 A#4 gap(budget,B,1,100,5..5)");
}

static void
test_fair_only_the_incoming (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = fair_route (&t, 1000);

  test_pub_as (&t, "A", 100, 4);
  test_pub_as (&t, "B", 100, 4);
  assert_outcome (test_pub_as (&t, "C", 50, 1), 1, 0, 0);
  /* The share is 333: A and B pay, the heaviest first, until C fits or they are within it. */
  assert_outcome (test_pub_as (&t, "C", 350, 1), 1, 0, 2);
  assert_holds (route, 3, 1000);
  /* Nobody else is above it: C pays, with what it had or, where that is not enough, with the new one alone. */
  assert_outcome (test_pub_as (&t, "C", 450, 1), 0, 1, 0);
  assert_holds (route, 3, 1000);
  assert_outcome (test_pub_as (&t, "C", 300, 1), 1, 0, 2);
  /* C's queue was empty for a moment, so the route tells of it. */
  assert_route_take (&t, route, 100,
                     "gap(budget,C,3,850,9..11) gap(budget,A,1,100,1..1) A#2 A#3 A#4 "
                     "gap(budget,B,1,100,5..5) B#6 B#7 B#8 C#12");
}

static void
test_fair_shares_bind_before_final (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = fair_route (&t, 1000);

  test_pub_final (&t, "A", 100);
  test_pub_as (&t, "A", 100, 6);
  test_pub_as (&t, "B", 100, 3);
  assert_outcome (test_pub_as (&t, "A", 100, 3), 3, 0, 3);
  assert_route_take (&t, route, 3, "A#1 gap(budget,A,3,300,2..4) A#5");
}

static void
test_fair_count_cap (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  HeadwaySubscribeOptions options = test_route_options (0);
  g_autoptr (HeadwaySubscription) route = NULL;

  options.route.eviction = HEADWAY_EVICTION_FAIR;
  options.route.messages = 10;
  route = test_subscribe (&t, &options);
  test_pub_as (&t, "B", 100, 1);
  assert_outcome (test_pub_as (&t, "A", 4, 30), 30, 0, 21);
  g_assert_cmpuint (headway_subscription_get_queued (route), ==, 10);
  assert_route_take (&t, route, 2, "B#1 gap(count_cap,A,21,84,2..22)");
}

/* decisions.md 25. */
static void
test_list_principals (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 1000);
  g_autoptr (GArray) stats = NULL;
  HeadwayPrincipalStat *first;

  test_pub_as (&t, "A", 100, 4);
  test_pub_as (&t, NULL, 700, 1);
  stats = headway_subscription_list_principals (route);
  g_assert_cmpuint (stats->len, ==, 2);
  first = &g_array_index (stats, HeadwayPrincipalStat, 0);
  g_assert_true (headway_principal_is_system (first[0].principal));
  g_assert_cmpuint (first[0].bytes, ==, 700);
  g_assert_cmpuint (first[0].oldest_id, ==, 5);
  g_assert_cmpuint (first[1].events, ==, 3);
  g_assert_cmpuint (first[1].bytes, ==, 300);
  g_assert_cmpuint (first[1].lost, ==, 1);
  g_assert_cmpuint (first[1].oldest_id, ==, 2);
  assert_route_take (&t, route, 1, "gap(budget,A,1,100,1..1)");
  g_array_unref (stats);
  stats = headway_subscription_list_principals (route);
  g_assert_cmpuint (g_array_index (stats, HeadwayPrincipalStat, 1).lost, ==, 0);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/routed/eviction/077-oversize-is-refused", test_oversize);
  g_test_add_func ("/routed/eviction/078-equality-fits", test_equality_fits);
  g_test_add_func ("/routed/eviction/079-topic-counts", test_default_budget);
  g_test_add_func ("/routed/eviction/080-terminator-survives", test_terminator_survives);
  g_test_add_func ("/routed/eviction/081-oldest-is-by-arrival", test_oldest_is_by_arrival);
  g_test_add_func ("/routed/eviction/082-fair-spares-the-quiet", test_fair_spares_the_quiet);
  g_test_add_func ("/routed/eviction/083-heads-do-not-become-young", test_heads_do_not_become_young);
  g_test_add_func ("/routed/eviction/084-many-principals-few-queues", test_many_principals_few_queues);
  g_test_add_func ("/routed/eviction/085-thousand-tiny-events", test_thousand_tiny);
  g_test_add_func ("/routed/eviction/086-principal-cap-default", test_principal_cap_default);
  g_test_add_func ("/routed/eviction/087-principal-cap-configured", test_principal_cap_configured);
  g_test_add_func ("/routed/eviction/088-route-cap", test_route_cap);
  g_test_add_func ("/routed/eviction/089-several-evictions-for-one", test_several_evictions);
  g_test_add_func ("/routed/eviction/090-own-queue-is-made-anew", test_own_queue_is_made_anew);
  g_test_add_func ("/routed/eviction/092-overflow-queue-keeps-order", test_overflow_queue);
  g_test_add_func ("/routed/eviction/093a-final-survives-a-flood", test_final_survives_a_flood);
  g_test_add_func ("/routed/eviction/093b-final-within-an-eighth", test_final_within_an_eighth);
  g_test_add_func ("/routed/eviction/093c-final-goes-when-nothing-else-is-left", test_final_goes_when_nothing_else_is_left);
  g_test_add_func ("/routed/eviction/093d-final-is-spared-by-the-cap", test_final_is_spared_by_the_cap);
  g_test_add_func ("/routed/eviction/094-gap-in-its-place", test_gap_in_its_place);
  g_test_add_func ("/routed/eviction/095-gap-of-one-who-is-gone", test_gap_of_one_who_is_gone);
  g_test_add_func ("/routed/gap/hangs-behind-the-last", test_gap_behind_the_last);
  g_test_add_func ("/routed/gap/moves-to-the-next-event", test_gap_moves_to_the_next_event);
  g_test_add_func ("/routed/gap/reason-of-the-first-loss", test_reason_of_the_first);
  g_test_add_func ("/routed/gap/drain-has-an-event-too", test_drain_has_an_event_too);
  g_test_add_func ("/routed/fair/heaviest-first", test_fair_heaviest_first);
  g_test_add_func ("/routed/fair/only-the-incoming", test_fair_only_the_incoming);
  g_test_add_func ("/routed/fair/shares-bind-before-final", test_fair_shares_bind_before_final);
  g_test_add_func ("/routed/fair/count-cap", test_fair_count_cap);
  g_test_add_func ("/routed/list-principals/heaviest-first", test_list_principals);
  return g_test_run ();
}
