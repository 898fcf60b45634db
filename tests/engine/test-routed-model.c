/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-model.h"
#include "headway-test-route.h"

#include "engine/headway-route.h"

#include <string.h>

/* The randomised model test of routing.md 3.9: every operation is done by the route and by naive
 * lists, everything that comes out is compared, and after each step the books of the route balance.
 * Sanitizers see a tenth of it. */

#if defined(__SANITIZE_ADDRESS__)
#define OPERATIONS 100000
#else
#define OPERATIONS 1000000
#endif

#define PRINCIPALS 8
#define ITEMS      32

typedef struct
{
  TestBus bus;
  HeadwaySubscription *reader; /* its books count what is taken */
  HeadwayPrincipal *principals[PRINCIPALS];
  HeadwayRoute route;
  Model model;
  GRand *random;
  guint64 last_id;
  guint64 resume_id;
  guint64 admitted;
  guint64 delivered;
  guint64 told;
  guint64 cost_max;
  guint64 quantum_max;
  guint64 last_of[PRINCIPALS];
} Run;

static int
number_of (Run *run, const HeadwayPrincipal *principal)
{
  for (int i = 0; i < PRINCIPALS; i++)
    if (run->principals[i] == principal)
      return i;
  return -1;
}

/* --- Invariants ----------------------------------------------------------------------------- */

static guint64
gap_count (const HeadwayGap *gap)
{
  return gap != NULL ? gap->count : 0;
}

static void
check_queue (Run *run, HeadwayPrincipalQueue *queue, guint64 *untold)
{
  HeadwayRoute *route = &run->route;
  guint64 bytes = 0, spared = 0, lost = gap_count (queue->gap), last = 0;
  GList *ordinary = NULL;

  g_assert_cmpuint (queue->fifo.length, >, 0);
  g_assert_true ((queue == route->overflow) == (queue->principal == NULL));
  for (GList *link = queue->fifo.head; link != NULL; link = link->next)
    {
      HeadwayQueueNode *node = link->data;

      g_assert_true (node->queue == queue);
      g_assert_true (headway_route_lookup (route, headway_event_get_principal (node->event)) == queue);
      g_assert_cmpuint (node->cost, ==, headway_event_get_cost (node->event));
      g_assert_cmpuint (headway_event_get_id (node->event), >, last);
      last = headway_event_get_id (node->event);
      bytes += node->cost;
      spared += node->is_spared ? node->cost : 0;
      lost += gap_count (node->gap);
      if (!node->is_spared && ordinary == NULL)
        ordinary = link;
    }
  g_assert_cmpuint (queue->bytes, ==, bytes);
  g_assert_cmpuint (queue->spared_bytes, ==, spared);
  g_assert_true (queue->ordinary == ordinary);
  g_assert_cmpuint (queue->untold, ==, lost);
  g_assert_cmpuint (queue->deficit, <, run->cost_max + run->quantum_max);
  *untold += lost;
}

static void
check_lists (Run *run)
{
  HeadwayRoute *route = &run->route;
  const GQueue *lists[] = { &route->ordinary, &route->spared };
  guint64 last = 0;

  g_assert_cmpuint (route->ordinary.length + route->spared.length, ==, route->count);
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++, last = 0)
    for (GList *link = lists[i]->head; link != NULL; link = link->next)
      {
        HeadwayQueueNode *node = link->data;

        g_assert_cmpint (node->is_spared, ==, i == 1);
        g_assert_cmpuint (node->place.id, >, last);
        last = node->place.id;
      }
  for (GList *link = route->low_water.places.head; link != NULL; link = link->next)
    {
      g_assert_cmpuint (((HeadwayPlace *) link->data)->id, >, last);
      last = ((HeadwayPlace *) link->data)->id;
    }
}

static void
check_route (Run *run)
{
  HeadwayRoute *route = &run->route;
  guint64 bytes = 0, untold = gap_count (route->gap);
  guint count = 0;

  for (GList *link = route->scheduler.ring.head; link != NULL; link = link->next)
    {
      HeadwayPrincipalQueue *queue = link->data;

      check_queue (run, queue, &untold);
      bytes += queue->bytes;
      count += queue->fifo.length;
    }
  g_assert_cmpuint (route->queues.length + (route->overflow != NULL ? 1 : 0), ==, route->scheduler.ring.length);
  g_assert_cmpuint (route->bytes, ==, bytes);
  g_assert_cmpuint (route->bytes, <=, route->options.budget_bytes);
  g_assert_cmpuint (route->count, ==, count);
  g_assert_cmpint (route->bytes == 0, ==, route->scheduler.ring.length == 0);
  g_assert_cmpuint (run->admitted, ==, run->delivered + run->told + untold + route->count);
  g_assert_cmpuint (route->lost, ==, run->told + untold);
  check_lists (run);
}

static void
check_model (Run *run)
{
  g_assert_cmpuint (run->route.bytes, ==, model_bytes (&run->model));
  g_assert_cmpuint (run->route.lost, ==, run->model.lost);
  g_assert_cmpuint (headway_route_get_low_water (&run->route, run->last_id), ==,
                    model_low_water (&run->model, run->last_id));
  g_assert_cmpuint (run->route.scheduler.ring.length, ==, run->model.ring->len);
  for (guint i = 0; i < run->model.ring->len; i++)
    {
      const ModelQueue *expected = g_ptr_array_index (run->model.ring, i);
      HeadwayPrincipalQueue *queue = g_list_nth_data (run->route.scheduler.ring.head, i);

      g_assert_cmpint (number_of (run, queue->principal), ==, expected->principal);
      g_assert_cmpuint (queue->deficit, ==, expected->deficit);
      g_assert_cmpint (queue->is_in_turn, ==, expected->is_in_turn);
    }
}

/* --- Operations ----------------------------------------------------------------------------- */

static gsize
random_cost (Run *run)
{
  switch (g_rand_int_range (run->random, 0, 12))
    {
    case 0:
      return g_rand_int_range (run->random, 4, (gint) MIN (run->route.options.budget_bytes * 5 / 4, 20000));
    case 1:
    case 2:
      return g_rand_int_range (run->random, 4, 1000);
    default:
      return g_rand_int_range (run->random, 4, 120);
    }
}

static void
offer (Run *run)
{
  static char digits[20001];
  int principal = MIN (g_rand_int_range (run->random, 0, PRINCIPALS), g_rand_int_range (run->random, 0, PRINCIPALS));
  gsize cost = random_cost (run);
  HeadwayPublication publication = {
    .topic = "t.x",
    .type = "message",
    .principal = run->principals[principal],
    .data = digits,
    .data_length = cost - 3,
    .is_final = g_rand_int_range (run->random, 0, 15) == 0,
    .is_valid_json = TRUE,
  };
  g_autoptr (HeadwayEvent) event = NULL;
  HeadwayOffer given;
  ModelOffer expected;

  if (digits[0] == '\0')
    memset (digits, '1', sizeof digits - 1);
  event = headway_event_new (&publication, HEADWAY_EVENT_CEILING, run->bus.now, NULL);
  headway_event_set_id (event, ++run->last_id);
  run->admitted++;
  run->cost_max = MAX (run->cost_max, cost);
  given = headway_route_offer (&run->route, event);
  expected = model_offer (&run->model, run->last_id, principal, cost, publication.is_final);
  g_assert_cmpint (given.is_admitted, ==, expected.is_admitted);
  g_assert_cmpint (given.is_refused, ==, !expected.is_admitted);
  g_assert_cmpuint (given.n_evicted, ==, expected.evicted);
}

static void
compare_gap (Run *run, HeadwayEvent *told, const ModelGap *gap)
{
  HeadwayGap expected = {
    .place.id = gap->first,
    .last_id = gap->last,
    .count = gap->count,
    .bytes = gap->bytes,
    .principal = gap->principal >= 0 ? run->principals[gap->principal] : NULL,
    .reason = gap->reason,
  };
  g_autoptr (HeadwayEvent) event = headway_gap_to_event (&expected, headway_bus_get_system (run->bus.bus), run->bus.now);
  gsize length, expected_length;
  const char *data = headway_event_get_data (told, &length);
  const char *expected_data = headway_event_get_data (event, &expected_length);

  g_assert_cmpmem (data, length, expected_data, expected_length);
  run->told += gap->count;
}

static void
compare_event (Run *run, const HeadwayDelivery *delivery, const ModelItem *item)
{
  int principal = number_of (run, headway_event_get_principal (delivery->event));

  g_assert_cmpuint (headway_event_get_id (delivery->event), ==, item->id);
  g_assert_cmpuint (delivery->resume_id, ==, item->resume_id);
  g_assert_cmpuint (delivery->resume_id, >=, run->resume_id);
  g_assert_cmpuint (item->id, >, run->last_of[principal]);
  run->resume_id = delivery->resume_id;
  run->last_of[principal] = item->id;
  run->delivered++;
}

static void
take (Run *run)
{
  HeadwayDelivery deliveries[ITEMS];
  guint64 budget = g_rand_boolean (run->random) ? G_MAXUINT64 : (guint64) g_rand_int_range (run->random, 1, 3000);
  HeadwayTake call = {
    .subscription = run->reader,
    .now = run->bus.now,
    .deliveries = deliveries,
    .max_events = g_rand_int_range (run->random, 1, g_rand_boolean (run->random) ? 4 : ITEMS),
    .max_bytes = G_MAXSIZE,
    .max_cost = budget,
  };
  g_autoptr (GArray) items = g_array_new (FALSE, FALSE, sizeof (ModelItem));

  if (budget < G_MAXUINT64)
    run->quantum_max = MAX (run->quantum_max, budget);
  headway_route_take (&run->route, &call, run->last_id);
  model_take (&run->model, budget, call.max_events, run->last_id, items);
  g_assert_cmpuint (call.n, ==, items->len);
  for (guint i = 0; i < call.n; i++)
    {
      const ModelItem *item = &g_array_index (items, ModelItem, i);

      g_assert_cmpint (headway_event_is_synthetic (deliveries[i].event), ==, item->gap.count > 0);
      if (item->gap.count > 0)
        compare_gap (run, deliveries[i].event, &item->gap);
      else
        compare_event (run, &deliveries[i], item);
      headway_event_unref (deliveries[i].event);
    }
}

static void
run_init (Run *run, const HeadwayRouteOptions *options, guint seed)
{
  *run = (Run){ .bus = TEST_BUS (), .random = g_rand_new_with_seed (seed), .quantum_max = options->quantum_bytes };
  run->reader = test_route (&run->bus, 0);
  for (guint i = 0; i < PRINCIPALS; i++)
    {
      g_autofree char *name = g_strdup_printf ("%sp%u", i % 3 == 0 ? "agent." : "", i);
      run->principals[i] = test_principal (&run->bus, i == 5 ? NULL : name);
    }
  headway_route_init (&run->route, options);
  model_init (&run->model, options);
}

static void
run_clear (Run *run)
{
  headway_route_clear (&run->route);
  model_clear (&run->model);
  g_rand_free (run->random);
  g_object_unref (run->reader);
  test_bus_clear (&run->bus);
}

/* Phases of more offers than takes and the other way round, so that it is now full, now empty. */
static void
go (const HeadwayRouteOptions *options, guint seed, guint operations)
{
  Run run;
  guint share = 50;

  run_init (&run, options, seed);
  for (guint i = 0; i < operations; i++)
    {
      if (i % 500 == 0)
        share = (guint) g_rand_int_range (run.random, 30, 98);
      if ((guint) g_rand_int_range (run.random, 0, 100) < share)
        offer (&run);
      else
        take (&run);
      check_model (&run);
      if (i % 16 == 0)
        check_route (&run);
    }
  check_route (&run);
  run_clear (&run);
}

static HeadwayRouteOptions
small (HeadwayEviction eviction)
{
  return (HeadwayRouteOptions){
    .eviction = eviction,
    .budget_bytes = 3000,
    .quantum_bytes = 256,
    .principal_messages = 1000,
    .messages = 1000,
    .principals = 100,
  };
}

static void
test_oldest (void)
{
  HeadwayRouteOptions options = small (HEADWAY_EVICTION_OLDEST);

  go (&options, 1, OPERATIONS);
}

static void
test_fair (void)
{
  HeadwayRouteOptions options = small (HEADWAY_EVICTION_FAIR);

  go (&options, 2, OPERATIONS / 2);
}

static void
test_caps (void)
{
  for (guint seed = 3; seed < 9; seed++)
    {
      HeadwayRouteOptions options = small (seed % 2 == 0 ? HEADWAY_EVICTION_FAIR : HEADWAY_EVICTION_OLDEST);

      options.principal_messages = seed % 3 == 0 ? 1 : 5;
      options.messages = seed == 8 ? 1 : 18;
      options.principals = seed % 4 + 1;
      go (&options, seed, OPERATIONS / 12);
    }
}

static void
test_tight_budget (void)
{
  HeadwayRouteOptions options = small (HEADWAY_EVICTION_FAIR);

  options.budget_bytes = 60;
  options.quantum_bytes = 1;
  go (&options, 11, OPERATIONS / 10);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/routed/model/091-116-oldest", test_oldest);
  g_test_add_func ("/routed/model/fair", test_fair);
  g_test_add_func ("/routed/model/caps-and-overflow", test_caps);
  g_test_add_func ("/routed/model/tight-budget", test_tight_budget);
  return g_test_run ();
}
