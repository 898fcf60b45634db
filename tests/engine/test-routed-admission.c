/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-route.h"

#include "engine/headway-error.h"

/* Cases 61 to 76 of the routing contract (4E), but for 74, which is void, and the gates, which
 * test-gate.c has. */

#define MIB (1024 * 1024)

static HeadwaySubscription *
scoped (TestBus *t, HeadwayScopeKind kind, const char *principal, guint64 budget)
{
  HeadwaySubscribeOptions options = test_route_options (budget);

  options.scope = (HeadwayScope){ kind, test_principal (t, principal) };
  return test_subscribe (t, &options);
}

/* Case 61. */
static void
test_routes_are_copies (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  HeadwaySubscription *routes[5];

  for (guint i = 0; i < 5; i++)
    routes[i] = test_route (&t, 0);
  test_pub_as (&t, "a", 10, 10);
  g_assert_cmpuint (test_tally (&t, routes[0], 100, 0).events, ==, 10);
  for (guint i = 1; i < 5; i++)
    {
      g_assert_cmpuint (headway_subscription_get_queued (routes[i]), ==, 10);
      g_assert_cmpuint (test_tally (&t, routes[i], 100, 0).events, ==, 10);
    }
  for (guint i = 0; i < 5; i++)
    g_object_unref (routes[i]);
}

/* Case 62. */
static void
test_dropped_route_is_gone (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  HeadwaySubscription *route = test_route (&t, 0);

  g_assert_cmpuint (test_pub_as (&t, "a", 10, 1).subscriptions, ==, 1);
  g_object_unref (route);
  g_assert_cmpuint (headway_bus_get_subscriber_count (t.bus), ==, 0);
  g_assert_cmpuint (test_pub_as (&t, "a", 10, 1).subscriptions, ==, 0);
}

/* Case 63. */
static void
test_no_stealing (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) first = test_route (&t, 0);
  g_autoptr (HeadwaySubscription) second = test_route (&t, 0);

  test_pub_as (&t, "a", 10, 2);
  g_assert_cmpuint (headway_subscription_get_number (first), !=, headway_subscription_get_number (second));
  assert_route_take (&t, first, 10, "a#1 a#2");
  assert_route_take (&t, second, 10, "a#1 a#2");
}

/* Case 64; a drain of the engine has no bound but those given. */
static void
test_queues_on_demand (void)
{
  g_auto (TestBus) t = TEST_BUS (.ring_size = 1);
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);
  TestTally tally;

  test_pub_as (&t, "alice", 5, 200);
  g_assert_cmpuint (headway_subscription_get_active_principals (route), ==, 1);
  test_tally (&t, route, 1000, 0);
  for (guint i = 0; i < 5000; i++)
    {
      g_autofree char *name = g_strdup_printf ("p%u", i);
      test_pub_as (&t, name, 5, 1);
    }
  g_assert_cmpuint (headway_subscription_get_active_principals (route), ==, 5000);
  tally = test_tally (&t, route, 10000, MIB);
  g_assert_cmpuint (tally.events, ==, 5000);
  g_assert_cmpuint (tally.cost, ==, 25000);
  g_assert_cmpuint (headway_subscription_get_active_principals (route), ==, 0);
  g_assert_cmpuint (headway_subscription_get_queued_bytes (route), ==, 0);
}

/* Case 65. */
static void
test_scope_exact_and_all (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) exact = scoped (&t, HEADWAY_SCOPE_EXACT, "alice", 0);
  g_autoptr (HeadwaySubscription) all = test_route (&t, 0);

  test_pub_as (&t, "alice", 10, 7);
  test_pub_as (&t, "bob", 10, 4);
  test_pub_as (&t, NULL, 10, 1);
  g_assert_cmpuint (headway_subscription_get_active_principals (exact), ==, 1);
  g_assert_cmpuint (headway_subscription_get_active_principals (all), ==, 3);
  g_assert_cmpuint (test_tally (&t, exact, 100, 0).events, ==, 7);
  g_assert_cmpuint (test_tally (&t, all, 100, 0).events, ==, 12);
}

/* Case 66. */
static void
test_scope_does_not_wake (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = scoped (&t, HEADWAY_SCOPE_EXACT, "alice", 0);
  TestRouteSink sink;

  test_route_sink_init (&sink, 5);
  g_assert_true (headway_subscription_attach (route, &sink.base, NULL));
  g_assert_cmpuint (test_pub_as (&t, "bob", 10, 50).subscriptions, ==, 0);
  g_assert_cmpuint (sink.n_wakes + sink.n_puts, ==, 0);
  g_assert_false (headway_subscription_is_ready (route));
  g_assert_cmpuint (headway_subscription_get_active_principals (route), ==, 0);
  headway_subscription_detach (route, &sink.base);
  test_route_sink_clear (&sink);
}

/* Case 67. */
static void
test_scope_protects_the_budget (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = scoped (&t, HEADWAY_SCOPE_EXACT, "alice", 3 * 65536 + 4096);

  test_pub_as (&t, "alice", 65536, 1);
  test_pub_as (&t, "bob", 65536, 100);
  g_assert_cmpuint (headway_subscription_get_queued_bytes (route), ==, 65536);
  assert_route_take (&t, route, 10, "alice#1");
}

/* Case 68. */
static void
test_scope_and_system (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) both = scoped (&t, HEADWAY_SCOPE_PRINCIPAL_OR_SYSTEM, "alice", 0);
  g_autoptr (HeadwaySubscription) alice = scoped (&t, HEADWAY_SCOPE_EXACT, "alice", 0);
  g_autoptr (HeadwaySubscription) system = scoped (&t, HEADWAY_SCOPE_EXACT, NULL, 0);

  test_pub_as (&t, "alice", 10, 1);
  test_pub_as (&t, "bob", 10, 1);
  test_pub_as (&t, NULL, 10, 1);
  assert_route_take (&t, both, 10, "alice#1 #3");
  assert_route_take (&t, alice, 10, "alice#1");
  assert_route_take (&t, system, 10, "#3");
}

/* Case 73. */
static void
test_scope_of_waiters (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) alice = scoped (&t, HEADWAY_SCOPE_EXACT, "alice", 0);
  g_autoptr (HeadwaySubscription) bob = scoped (&t, HEADWAY_SCOPE_EXACT, "bob", 0);

  test_pub_as (&t, "bob", 10, 1);
  test_pub_as (&t, "alice", 10, 2);
  assert_route_take (&t, alice, 10, "alice#2 alice#3");
  assert_route_take (&t, bob, 10, "bob#1");
}

/* Case 75. */
static void
test_empty_name_is_nobody (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (GError) error = NULL;

  g_assert_null (headway_principal_table_intern (t.principals, "", &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_PRINCIPAL);
}

/* Case 76. */
static void
test_two_patterns_one_event (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwayFilter) filter = test_filter ("a.* *.x", NULL);
  HeadwaySubscribeOptions options = test_route_options (0);
  g_autoptr (HeadwaySubscription) route = NULL;

  options.filter = filter;
  route = test_subscribe (&t, &options);
  test_publish (&t, test_event_at (&t, "p", "a.x", 10, FALSE));
  test_publish (&t, test_event_at (&t, "p", "b.y", 10, FALSE));
  assert_route_take (&t, route, 10, "p#1");
}

/* decisions.md 2: whatever the scope, everybody is told of the end. */
static void
test_session_closed_passes (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = scoped (&t, HEADWAY_SCOPE_EXACT, "alice", 0);

  test_pub_as (&t, "bob", 10, 1);
  headway_bus_close_session (t.bus, t.now);
  assert_route_take (&t, route, 10, "closed");
  g_assert_true (headway_subscription_is_finished (route));
}

/* A scope belongs to `routed`. */
static void
test_scope_outside_routed (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  HeadwaySubscribeOptions options = test_route_options (0);
  g_autoptr (GError) error = NULL;

  options.mode = HEADWAY_MODE_BROADCAST;
  options.scope = (HeadwayScope){ HEADWAY_SCOPE_EXACT, test_principal (&t, "alice") };
  g_assert_null (headway_bus_subscribe (t.bus, &options, t.now, &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION);
}

static void
test_budget_of_nothing (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  HeadwaySubscribeOptions options = test_route_options (0);
  g_autoptr (GError) error = NULL;

  options.route.budget_bytes = 0;
  g_assert_null (headway_bus_subscribe (t.bus, &options, t.now, &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION);
}

/* --- A reader that takes straight from the publish (decisions.md 20) ------------------------ */

static void
test_hand_over (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 100);
  TestRouteSink sink;

  test_route_sink_init (&sink, 3);
  g_assert_true (headway_subscription_attach (route, &sink.base, NULL));
  test_pub_as (&t, "a", 10, 1);
  test_pub_as (&t, "b", 10, 2);
  g_assert_cmpstr (sink.text->str, ==, "a#1@1 b#2@2 b#3@3");
  g_assert_cmpuint (headway_subscription_get_queued (route), ==, 0);
  /* From now on they wait, and those that wait come first. */
  test_pub_as (&t, "a", 10, 1);
  sink.room = 1;
  test_pub_as (&t, "b", 10, 1);
  g_assert_cmpuint (sink.n_wakes, ==, 2);
  g_assert_cmpuint (headway_subscription_get_queued (route), ==, 2);
  assert_route_take (&t, route, 10, "a#4 b#5");
  test_pub_as (&t, "a", 10, 1);
  g_assert_cmpuint (sink.n_puts, ==, 4);
  headway_subscription_detach (route, &sink.base);
  test_route_sink_clear (&sink);
}

static void
test_no_hand_over_past_a_gap (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 100);
  TestRouteSink sink;

  test_route_sink_init (&sink, 9);
  g_assert_true (headway_subscription_attach (route, &sink.base, NULL));
  test_pub_as (&t, "a", 101, 1);
  test_pub_as (&t, "b", 10, 1);
  g_assert_cmpuint (sink.n_puts, ==, 0);
  assert_route_take (&t, route, 10, "gap(oversize,a,1,101,1..1) b#2");
  headway_subscription_detach (route, &sink.base);
  test_route_sink_clear (&sink);
}

/* --- Its end -------------------------------------------------------------------------------- */

static void
test_abort_drops (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 100);

  test_pub_as (&t, "a", 40, 4);
  test_pub_as (&t, "b", 40, 1);
  headway_subscription_abort (route);
  g_assert_true (headway_subscription_is_finished (route));
  g_assert_cmpuint (headway_subscription_get_dropped (route), ==, 5);
  assert_books (route);
}

static void
test_evict_idle (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);

  test_pub_as (&t, "a", 10, 2);
  headway_subscription_evict_idle (route, 1000, 900);
  test_pub_as (&t, "a", 10, 5);
  /* The resume id is what this reader was offered, not where the bus is now. */
  assert_route_resume (&t, route, 10, "a#1@1 a#2@2 evict(writer_idle_timeout,2)");
  g_assert_cmpint (headway_subscription_get_state (route), ==, HEADWAY_STATE_EVICTED);
  g_assert_true (headway_subscription_is_finished (route));
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/routed/admission/061-routes-are-copies", test_routes_are_copies);
  g_test_add_func ("/routed/admission/062-dropped-route-is-gone", test_dropped_route_is_gone);
  g_test_add_func ("/routed/admission/063-no-stealing", test_no_stealing);
  g_test_add_func ("/routed/admission/064-queues-on-demand", test_queues_on_demand);
  g_test_add_func ("/routed/admission/065-scope-exact-and-all", test_scope_exact_and_all);
  g_test_add_func ("/routed/admission/066-scope-does-not-wake", test_scope_does_not_wake);
  g_test_add_func ("/routed/admission/067-scope-protects-the-budget", test_scope_protects_the_budget);
  g_test_add_func ("/routed/admission/068-scope-and-system", test_scope_and_system);
  g_test_add_func ("/routed/admission/073-waiters-do-not-steal", test_scope_of_waiters);
  g_test_add_func ("/routed/admission/075-empty-name-is-nobody", test_empty_name_is_nobody);
  g_test_add_func ("/routed/admission/076-two-patterns-one-event", test_two_patterns_one_event);
  g_test_add_func ("/routed/admission/session-closed-passes-every-scope", test_session_closed_passes);
  g_test_add_func ("/routed/admission/scope-needs-routed", test_scope_outside_routed);
  g_test_add_func ("/routed/admission/budget-begins-at-one", test_budget_of_nothing);
  g_test_add_func ("/routed/sink/hands-over-while-nothing-waits", test_hand_over);
  g_test_add_func ("/routed/sink/not-past-a-gap", test_no_hand_over_past_a_gap);
  g_test_add_func ("/routed/end/abort-drops-and-counts", test_abort_drops);
  g_test_add_func ("/routed/end/idle-writer-reads-out", test_evict_idle);
  return g_test_run ();
}
