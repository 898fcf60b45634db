/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-route.h"

/* Cases 53 to 60 of the routing contract (4D), those of decisions.md 34 as interleavings of
 * publishers on the one thread that owns the engine, and 159 and 160: what a reader may resume from. */

static GString *
observed_text (void)
{
  return g_string_new (NULL);
}

static void
note (HeadwayBus *bus, HeadwayEvent *event, HeadwayInstant now, gpointer user_data)
{
  test_route_append (user_data, event);
}

/* Case 53: the bus is one, whoever holds it. */
static void
test_observer_sees_every_handle (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwayBus) other = g_object_ref (t.bus);
  g_autoptr (GString) seen = observed_text ();
  guint id = headway_bus_add_observer (t.bus, note, seen, NULL);

  headway_bus_publish (other, test_batch (&t, 1, NULL), t.now);
  g_assert_cmpstr (seen->str, ==, "#1");
  headway_bus_remove_observer (t.bus, id);
}

typedef struct
{
  TestBus *t;
  GString *seen;
  guint nest; /* how many events an observer publishes while it is told of one */
} Nested;

static void
publish_nested (HeadwayBus *bus, HeadwayEvent *event, HeadwayInstant now, gpointer user_data)
{
  Nested *nested = user_data;

  if (nested->nest > 0)
    {
      nested->nest--;
      test_pub_as (nested->t, "inner", 10, 1);
    }
  test_route_append (nested->seen, event);
}

/* Case 54: what is published while an observer holds the first one up comes behind it. */
static void
test_second_waits_for_first (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);
  g_autoptr (GString) seen = observed_text ();
  Nested nested = { &t, seen, 1 };
  guint id = headway_bus_add_observer (t.bus, publish_nested, &nested, NULL);

  test_pub_as (&t, "outer", 10, 1);
  test_run (&t);
  g_assert_cmpstr (seen->str, ==, "outer#1 inner#2");
  assert_route_take (&t, route, 10, "outer#1 inner#2");
  headway_bus_remove_observer (t.bus, id);
}

/* Cases 55 and 56: upstream's route shows 2, 1. */
static void
test_nested_publish_in_order (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) ring = test_broadcast (&t, NULL, 0, FALSE);
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);
  g_autoptr (GString) seen = observed_text ();
  Nested nested = { &t, seen, 3 };
  guint id = headway_bus_add_observer (t.bus, publish_nested, &nested, NULL);

  test_pub_as (&t, "outer", 10, 1);
  test_run (&t);
  g_assert_cmpstr (seen->str, ==, "outer#1 inner#2 inner#3 inner#4");
  assert_route_take (&t, ring, 10, "outer#1 inner#2 inner#3 inner#4");
  assert_route_take (&t, route, 10, "outer#1 inner#2 inner#3 inner#4");
  headway_bus_remove_observer (t.bus, id);
}

typedef struct
{
  TestBus *t;
  guint id;
  guint told;
} Leaver;

static void
leave (HeadwayBus *bus, HeadwayEvent *event, HeadwayInstant now, gpointer user_data)
{
  Leaver *leaver = user_data;

  leaver->told++;
  headway_bus_remove_observer (bus, leaver->id);
}

static void
publish_at_the_end (gpointer user_data)
{
  test_pub_as (((Leaver *) user_data)->t, "last", 10, 1);
}

/* Case 57. */
static void
test_observer_leaves_while_told (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);
  Leaver leaver = { .t = &t };

  leaver.id = headway_bus_add_observer (t.bus, leave, &leaver, publish_at_the_end);
  test_pub_as (&t, "a", 10, 1);
  test_run (&t);
  test_pub_as (&t, "a", 10, 1);
  g_assert_cmpuint (leaver.told, ==, 1);
  assert_route_take (&t, route, 10, "a#1 a#3 last#2");
}

/* Case 58: eight publishers with batches of their own, interleaved, one principal. */
static void
test_eight_publishers (void)
{
  enum
  {
    PUBLISHERS = 8,
    EACH = 10000,
    BATCH = 100
  };
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);
  guint64 last = 0, delivered = 0, lost = 0;
  HeadwayDelivery deliveries[64];

  for (guint i = 0; i < EACH / BATCH; i++)
    {
      for (guint k = 0; k < PUBLISHERS; k++)
        headway_bus_publish (t.bus, test_batch (&t, BATCH, NULL), t.now);
      while (headway_bus_run (t.bus, t.now) || headway_subscription_is_ready (route))
        {
          guint n = headway_subscription_take (route, t.now, 64, G_MAXSIZE, deliveries);

          for (guint k = 0; k < n; k++)
            {
              guint64 id = headway_event_get_id (deliveries[k].event);

              g_assert_true (id == 0 || id > last);
              last = MAX (last, id);
              delivered += id > 0 ? 1 : 0;
              headway_event_unref (deliveries[k].event);
            }
        }
    }
  lost = headway_subscription_get_dropped (route);
  g_assert_cmpuint (delivered + lost, ==, PUBLISHERS * EACH);
  g_assert_cmpuint (headway_bus_get_last_id (t.bus), ==, PUBLISHERS * EACH);
}

/* Case 59, without the half that is void. */
static void
test_ids_begin_at_one (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);

  test_pub_as (&t, "a", 10, 3);
  assert_route_take (&t, route, 9, "a#1 a#2 a#3");
}

/* Case 60. */
static void
tally (HeadwayBus *bus, HeadwayEvent *event, HeadwayInstant now, gpointer user_data)
{
  ++*(guint *) user_data;
}

static void
test_observer_misses_nothing (void)
{
  g_auto (TestBus) t = TEST_BUS (.ring_size = 1024, .channel_capacity = 1024);
  g_autoptr (HeadwaySubscription) ring = test_broadcast (&t, NULL, 0, FALSE);
  guint n = 0;
  guint id = headway_bus_add_observer (t.bus, tally, &n, NULL);

  test_pub (&t, 101024);
  g_assert_cmpuint (n, ==, 101024);
  assert_route_take (&t, ring, 1, "gap(lagged,-,100000,0,1..100000)");
  headway_bus_remove_observer (t.bus, id);
}

/* --- Resume ids ----------------------------------------------------------------------------- */

static HeadwaySubscription *
resume (TestBus *t, guint64 cursor)
{
  HeadwaySubscribeOptions options = test_route_options (0);

  options.cursor = (HeadwayCursor){ .is_set = TRUE, .last_event_id = cursor };
  return test_subscribe (t, &options);
}

/* Case 159. */
static void
test_resume_id_is_the_low_water_mark (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);
  g_autoptr (HeadwaySubscription) again = NULL;

  test_pub_as (&t, "alice", 5000, 2);
  test_pub_as (&t, "bob", 100, 1);
  assert_route_resume (&t, route, 1, "bob#3@0");
  again = resume (&t, 0);
  assert_route_resume (&t, again, 10, "alice#1@1 alice#2@2 bob#3@3 rc(3)");
  assert_route_resume (&t, route, 2, "alice#1@1 alice#2@3");
}

/* Case 160. */
static void
test_resume_id_waits_for_the_gap (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 5200);
  g_autoptr (HeadwaySubscription) again = NULL;

  test_pub_as (&t, "alice", 5000, 2);
  test_pub_as (&t, "bob", 100, 1);
  assert_route_resume (&t, route, 1, "gap(budget,alice,1,5000,1..1)");
  assert_route_resume (&t, route, 1, "bob#3@1");
  again = resume (&t, 1);
  assert_route_resume (&t, again, 10, "alice#2@2 bob#3@3 rc(2)");
}

static void
test_resume_id_is_held_back (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 10100);

  test_pub_as (&t, "alice", 5000, 2);
  test_pub_as (&t, "bob", 100, 1);
  test_pub_as (&t, "bob", 100, 1);
  /* The gap of alice 1 hangs on alice 2, which is blocked by its deficit. */
  assert_route_resume (&t, route, 2, "bob#3@0 bob#4@0");
  assert_route_resume (&t, route, 2, "gap(budget,alice,1,5000,1..1) alice#2@4");
}

/* decisions.md 22: replay first, then what has waited behind it. */
static void
test_replay_before_routing (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = NULL;
  HeadwaySubscribeOptions options = test_route_options (1000);

  test_pub_as (&t, "alice", 900, 3);
  options.cursor = (HeadwayCursor){ .is_set = TRUE, .last_event_id = 1 };
  options.wants_snapshot = TRUE;
  route = test_subscribe (&t, &options);
  g_assert_cmpint (headway_subscription_get_state (route), ==, HEADWAY_STATE_REPLAYING);
  /* They count at once, and lose at once. */
  test_pub_as (&t, "bob", 600, 2);
  g_assert_cmpuint (headway_subscription_get_dropped (route), ==, 1);
  g_assert_cmpuint (headway_subscription_get_queued (route), ==, 1);
  assert_route_resume (&t, route, 10, "alice#2@2 alice#3@3 rc(2) snapshot gap(budget,bob,1,600,4..4) bob#5@5");
  g_assert_cmpint (headway_subscription_get_state (route), ==, HEADWAY_STATE_LIVE);
}

static void
test_replay_through_scope (void)
{
  g_auto (TestBus) t = TEST_BUS (.replay_budget_bytes = 300);
  g_autoptr (HeadwaySubscription) route = NULL;
  HeadwaySubscribeOptions options = test_route_options (1000);

  test_pub_as (&t, "alice", 10, 1);
  test_pub_as (&t, "bob", 900, 40);
  test_pub_as (&t, "alice", 10, 1);
  options.cursor = (HeadwayCursor){ .is_set = TRUE, .last_event_id = 0 };
  options.scope = (HeadwayScope){ HEADWAY_SCOPE_EXACT, test_principal (&t, "alice") };
  route = test_subscribe (&t, &options);
  /* bob's 40 cost no budget, but one turn looks at no more than 32 of them. */
  assert_route_take (&t, route, 10, "alice#1");
  assert_route_take (&t, route, 10, "alice#42 rc(2)");
}

static void
test_drain_covers_the_replay (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = NULL;

  test_pub_as (&t, "a", 100, 3);
  route = resume (&t, 0);
  test_pub_as (&t, "a", 100, 3);
  assert_route_drain (&t, route, 250, "a#1 a#2");
  assert_route_drain (&t, route, 250, "a#3 rc(3) a#4");
  assert_route_drain (&t, route, 250, "a#5 a#6");
}

/* Frame ids never decrease, and nothing up to one is missing (routing.md 3.2). */
static void
test_random_resume_ids (void)
{
  g_auto (TestBus) t = TEST_BUS (.ring_size = 1);
  g_autoptr (HeadwaySubscription) route = test_route (&t, 8000);
  g_autoptr (GRand) random = g_rand_new_with_seed (159);
  guint64 delivered = 0, last = 0;

  for (guint i = 0; i < 20000; i++)
    {
      g_autofree char *name = g_strdup_printf ("p%d", g_rand_int_range (random, 0, 5));
      HeadwayDelivery delivery;

      if (g_rand_int_range (random, 0, 20) == 0)
        test_pub_final (&t, name, g_rand_int_range (random, 4, 900));
      else
        test_pub_as (&t, name, g_rand_int_range (random, 4, 9000), 1);
      for (guint k = g_rand_int_range (random, 0, 3); k > 0; k--)
        if (headway_subscription_take (route, t.now, 1, G_MAXSIZE, &delivery) == 1)
          {
            if (!headway_event_is_synthetic (delivery.event))
              {
                g_assert_cmpuint (delivery.resume_id, >=, last);
                last = delivery.resume_id;
                delivered++;
              }
            headway_event_unref (delivery.event);
          }
    }
  g_assert_cmpuint (delivered, ==, headway_subscription_get_delivered (route));
  g_assert_cmpuint (headway_subscription_get_last_delivered_id (route), ==, last);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/routed/order/053-observer-sees-every-handle", test_observer_sees_every_handle);
  g_test_add_func ("/routed/order/054-second-waits-for-first", test_second_waits_for_first);
  g_test_add_func ("/routed/order/055-056-nested-publish-in-order", test_nested_publish_in_order);
  g_test_add_func ("/routed/order/057-observer-leaves-while-told", test_observer_leaves_while_told);
  g_test_add_func ("/routed/order/058-eight-publishers", test_eight_publishers);
  g_test_add_func ("/routed/order/059-ids-begin-at-one", test_ids_begin_at_one);
  g_test_add_func ("/routed/order/060-observer-misses-nothing", test_observer_misses_nothing);
  g_test_add_func ("/routed/resume/159-low-water-mark", test_resume_id_is_the_low_water_mark);
  g_test_add_func ("/routed/resume/160-waits-for-the-gap", test_resume_id_waits_for_the_gap);
  g_test_add_func ("/routed/resume/held-back-by-an-untold-gap", test_resume_id_is_held_back);
  g_test_add_func ("/routed/resume/random-ids-never-decrease", test_random_resume_ids);
  g_test_add_func ("/routed/replay/before-routing", test_replay_before_routing);
  g_test_add_func ("/routed/replay/through-scope", test_replay_through_scope);
  g_test_add_func ("/routed/replay/drain-covers-it", test_drain_covers_the_replay);
  return g_test_run ();
}
