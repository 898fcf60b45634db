/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-route.h"

#include "engine/headway-error.h"

/* Gates, with cases 69 to 72 of the routing contract. */

static HeadwaySubscription *
behind (TestBus *t, HeadwayGate *gate, HeadwayMode mode)
{
  HeadwaySubscribeOptions options = test_route_options (0);

  options.mode = mode;
  options.gate = gate;
  return test_subscribe (t, &options);
}

static void
open_gate (HeadwayGate *gate)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (headway_gate_open (gate, &error));
  g_assert_no_error (error);
}

/* Case 69, in every mode. */
static void
test_staged (gconstpointer mode)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwayGate) gate = headway_gate_new ("g");
  g_autoptr (HeadwaySubscription) reader = behind (&t, gate, GPOINTER_TO_INT (mode));
  TestRouteSink sink;

  test_route_sink_init (&sink, 0);
  g_assert_true (headway_subscription_attach (reader, &sink.base, NULL));
  g_assert_cmpuint (test_pub_as (&t, "a", 10, 1).subscriptions, ==, 0);
  g_assert_cmpuint (sink.n_wakes, ==, 0);
  g_assert_false (headway_subscription_is_ready (reader));
  g_assert_cmpuint (headway_subscription_get_active_principals (reader), ==, 0);
  open_gate (gate);
  g_assert_cmpuint (test_pub_as (&t, "a", 10, 1).subscriptions, ==, 1);
  assert_route_take (&t, reader, 9, "a#2");
  headway_subscription_detach (reader, &sink.base);
  test_route_sink_clear (&sink);
}

/* Case 70. */
static void
test_one_gate_two_routes (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwayGate) gate = headway_gate_new ("g");
  g_autoptr (HeadwaySubscription) first = behind (&t, gate, HEADWAY_MODE_ROUTED);
  g_autoptr (HeadwaySubscription) second = behind (&t, gate, HEADWAY_MODE_ROUTED);

  open_gate (gate);
  test_pub_as (&t, "a", 10, 1);
  assert_route_take (&t, first, 9, "a#1");
  assert_route_take (&t, second, 9, "a#1");
}

typedef struct
{
  HeadwayGate *from;
  HeadwayGate *to;
  guint64 at;
} Swap;

static void
swap_inside (HeadwayBus *bus, HeadwayEvent *event, HeadwayInstant now, gpointer user_data)
{
  Swap *swap = user_data;

  if (headway_event_get_id (event) == swap->at)
    g_assert_true (headway_gate_swap (swap->from, swap->to, NULL));
}

/* Case 71: whenever the swap falls, even while an event is being published, each event is in exactly
 * one of the two. */
static void
test_swap (gconstpointer mode)
{
  for (guint64 at = 1; at <= 12; at++)
    {
      g_auto (TestBus) t = TEST_BUS ();
      g_autoptr (HeadwayGate) old = headway_gate_new ("old");
      g_autoptr (HeadwayGate) new = headway_gate_new ("new");
      g_autoptr (HeadwaySubscription) before = behind (&t, old, GPOINTER_TO_INT (mode));
      g_autoptr (HeadwaySubscription) after = behind (&t, new, GPOINTER_TO_INT (mode));
      Swap swap = { old, new, at };
      guint id = headway_bus_add_observer (t.bus, swap_inside, &swap, NULL);

      open_gate (old);
      for (guint i = 0; i < 10; i++)
        g_assert_cmpuint (test_pub_as (&t, "a", 10, 1).subscriptions, ==, 1);
      g_assert_cmpuint (test_tally (&t, before, 99, 0).events, ==, MIN (at - 1, 10));
      g_assert_cmpuint (test_tally (&t, after, 99, 0).events, ==, 10 - MIN (at - 1, 10));
      headway_bus_remove_observer (t.bus, id);
    }
}

/* Case 72. */
static void
test_retired_is_readable (gconstpointer mode)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwayGate) gate = headway_gate_new ("g");
  g_autoptr (HeadwaySubscription) reader = behind (&t, gate, GPOINTER_TO_INT (mode));

  open_gate (gate);
  test_pub_as (&t, "a", 10, 1);
  headway_gate_retire (gate);
  g_assert_cmpuint (test_pub_as (&t, "a", 10, 1).subscriptions, ==, 0);
  assert_route_take (&t, reader, 9, "a#1");
  g_assert_false (headway_subscription_is_ready (reader));
  g_assert_cmpuint (headway_subscription_get_dropped (reader), ==, 0);
}

static void
test_states_go_forward (void)
{
  g_autoptr (HeadwayGate) gate = headway_gate_new ("g");
  g_autoptr (HeadwayGate) other = headway_gate_new ("h");
  g_autoptr (GError) error = NULL;

  g_assert_cmpint (headway_gate_get_state (gate), ==, HEADWAY_GATE_STAGED);
  open_gate (gate);
  open_gate (gate);
  headway_gate_retire (gate);
  headway_gate_retire (gate);
  g_assert_false (headway_gate_open (gate, &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION);
  g_clear_error (&error);
  /* A swap that is refused changes nothing. */
  open_gate (other);
  g_assert_false (headway_gate_swap (other, gate, &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION);
  g_clear_error (&error);
  g_assert_true (headway_gate_is_open (other));
  g_assert_false (headway_gate_swap (other, other, &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION);
  g_assert_true (headway_gate_is_open (other));
}

/* decisions.md 24: private to the caller, and no longer than its subscriptions. */
static void
test_table (void)
{
  g_autoptr (HeadwayGateTable) table = headway_gate_table_new ();
  g_autoptr (HeadwayGate) gate = headway_gate_table_ensure (table, ":1.5", "set-a", NULL);
  g_autoptr (HeadwayGate) same = headway_gate_table_ensure (table, ":1.5", "set-a", NULL);
  g_autoptr (HeadwayGate) other = headway_gate_table_ensure (table, ":1.6", "set-a", NULL);
  g_autoptr (GError) error = NULL;

  g_assert_true (gate == same);
  g_assert_true (gate != other);
  g_assert_cmpstr (headway_gate_get_name (gate), ==, "set-a");
  g_assert_true (headway_gate_table_lookup (table, ":1.5", "set-a", NULL) == gate);
  g_assert_cmpuint (headway_gate_table_size (table), ==, 2);
  g_clear_pointer (&same, headway_gate_unref);
  g_clear_pointer (&gate, headway_gate_unref);
  g_assert_cmpuint (headway_gate_table_size (table), ==, 1);
  g_assert_null (headway_gate_table_lookup (table, ":1.5", "set-a", &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION);
  g_clear_error (&error);
  g_assert_null (headway_gate_table_ensure (table, ":1.5", "not a name", &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION);
  /* A gate may outlive its table. */
  g_clear_pointer (&table, headway_gate_table_free);
  open_gate (other);
}

int
main (int argc, char *argv[])
{
  static const struct
  {
    const char *name;
    HeadwayMode mode;
  } modes[] = {
    { "stream", HEADWAY_MODE_STREAM },
    { "routed", HEADWAY_MODE_ROUTED },
    { "broadcast", HEADWAY_MODE_BROADCAST },
  };

  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (modes); i++)
    {
      g_autofree char *staged = g_strconcat ("/gate/069-staged-admits-nothing/", modes[i].name, NULL);
      g_autofree char *swap = g_strconcat ("/gate/071-swap-loses-and-doubles-nothing/", modes[i].name, NULL);
      g_autofree char *retired = g_strconcat ("/gate/072-retired-is-readable/", modes[i].name, NULL);

      g_test_add_data_func (staged, GINT_TO_POINTER (modes[i].mode), test_staged);
      g_test_add_data_func (swap, GINT_TO_POINTER (modes[i].mode), test_swap);
      g_test_add_data_func (retired, GINT_TO_POINTER (modes[i].mode), test_retired_is_readable);
    }
  g_test_add_func ("/gate/070-one-gate-two-routes", test_one_gate_two_routes);
  g_test_add_func ("/gate/states-go-forward", test_states_go_forward);
  g_test_add_func ("/gate/table-keeps-owners-apart", test_table);
  return g_test_run ();
}
