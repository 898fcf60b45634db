/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-route.h"

#include "engine/headway-scheduler.h"

#include <string.h>

/* The deficit round robin by itself, and the bound of docs/fairness.md:
 *
 *   An event is sent at the latest in visit v = ceil (S / Q) of its queue, where S is the cost of what
 *   its own principal has waiting up to it, itself included, and Q is the quantum. Between two visits
 *   of its queue every other principal has one turn, and a turn adds Q to a deficit that is less than
 *   the largest event M of that principal. So each other principal gets less than
 *
 *     v * Q + M
 *
 *   bytes ahead of it, however much that principal sends and however many principals there are. */

#define QUEUES_MAX 20
#define NODES_MAX  64

typedef struct
{
  HeadwayScheduler scheduler;
  HeadwayPrincipalQueue queues[QUEUES_MAX];
  HeadwayQueueNode nodes[NODES_MAX];
  guint n_nodes;
} Ring;

static void
ring_init (Ring *ring)
{
  headway_scheduler_init (&ring->scheduler);
  ring->n_nodes = 0;
  for (guint i = 0; i < QUEUES_MAX; i++)
    headway_principal_queue_init (&ring->queues[i], NULL);
}

static void
ring_push (Ring *ring, guint queue, gsize cost)
{
  HeadwayQueueNode *node = &ring->nodes[ring->n_nodes++];

  g_assert_cmpuint (ring->n_nodes, <=, NODES_MAX);
  *node = (HeadwayQueueNode){ .cost = cost };
  headway_principal_queue_push (&ring->queues[queue], node);
  if (ring->queues[queue].fifo.length == 1)
    headway_scheduler_add (&ring->scheduler, &ring->queues[queue]);
}

/* The queues in the order in which a call serves them, as letters. */
static char *
ring_serve (Ring *ring, guint64 quantum, guint64 budget, guint max)
{
  GString *text = g_string_new (NULL);
  HeadwaySchedulerCall call;
  HeadwayPrincipalQueue *queue;

  headway_scheduler_begin (&ring->scheduler, &call, quantum, budget, 0, FALSE);
  while (text->len < max && (queue = headway_scheduler_next (&ring->scheduler, &call)) != NULL)
    {
      HeadwayQueueNode *node = headway_principal_queue_head (queue);

      g_assert_true (headway_scheduler_next (&ring->scheduler, &call) == queue);
      headway_principal_queue_remove (queue, node);
      headway_scheduler_emitted (&ring->scheduler, &call, node->cost);
      g_string_append_c (text, (char) ('A' + (queue - ring->queues)));
    }
  return g_string_free (text, FALSE);
}

static char *
ring_order (Ring *ring)
{
  GString *text = g_string_new (NULL);

  for (GList *link = ring->scheduler.ring.head; link != NULL; link = link->next)
    g_string_append_c (text, (char) ('A' + ((HeadwayPrincipalQueue *) link->data - ring->queues)));
  return g_string_free (text, FALSE);
}

#define assert_text(call, expected)          \
  G_STMT_START                               \
  {                                          \
    g_autofree char *text_ = (call);         \
    g_assert_cmpstr (text_, ==, (expected)); \
  }                                          \
  G_STMT_END

/* Case 100. */
static void
test_quantum (void)
{
  static const struct
  {
    guint64 budget;
    guint n;
    guint64 quantum;
  } cases[] = {
    { 1048576, 1, 1048576 },
    { 1048576, 2, 524288 },
    { 1048576, 255, 4112 },
    { 1048576, 256, 4096 },
    { 1048576, 257, 4096 },
    { 1048576, 5000, 4096 },
    { 65536, 17, 4096 },
    { 1000, 1, 4096 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      HeadwayScheduler scheduler;

      headway_scheduler_init (&scheduler);
      scheduler.ring.length = cases[i].n;
      g_assert_cmpuint (headway_scheduler_drain_quantum (&scheduler, 4096, cases[i].budget), ==, cases[i].quantum);
    }
}

/* Case 110: upstream reaches 409 600. */
static void
test_blocked_drains_add_nothing (void)
{
  Ring ring;

  ring_init (&ring);
  for (guint i = 0; i < 3; i++)
    ring_push (&ring, i, 5000);
  /* As if a small event had taken most of the budget: the others are suspended, or have no deficit. */
  for (guint i = 0; i < 100; i++)
    {
      HeadwaySchedulerCall call;

      headway_scheduler_begin (&ring.scheduler, &call, 4096, 1000, 900, TRUE);
      g_assert_null (headway_scheduler_next (&ring.scheduler, &call));
      for (guint k = 0; k < 3; k++)
        g_assert_cmpuint (ring.queues[k].deficit, <=, 5000 + 4096);
    }
  assert_text (ring_serve (&ring, 4096, G_MAXUINT64, 10), "ABC");
}

/* decisions.md 27: with A suspended, B's turn ended, C suspended, the next order is A C B. */
static void
test_order_after_suspension (void)
{
  Ring ring;

  ring_init (&ring);
  ring_push (&ring, 3, 10);
  ring_push (&ring, 0, 200);
  ring_push (&ring, 1, 900);
  ring_push (&ring, 2, 200);
  /* D goes out; A and C do not fit the 90 that are left; B's head exceeds its deficit twice. */
  assert_text (ring_serve (&ring, 300, 100, 10), "D");
  assert_text (ring_order (&ring), "ACB");
  g_assert_true (ring.queues[0].is_in_turn);
  g_assert_false (ring.queues[1].is_in_turn);
  g_assert_true (ring.queues[2].is_in_turn);
  assert_text (ring_serve (&ring, 300, G_MAXUINT64, 10), "ACB");
}

static void
test_turn_is_kept (void)
{
  Ring ring;

  ring_init (&ring);
  for (guint i = 0; i < 4; i++)
    {
      ring_push (&ring, 0, 100);
      ring_push (&ring, 1, 100);
    }
  assert_text (ring_serve (&ring, 300, G_MAXUINT64, 2), "AA");
  assert_text (ring_order (&ring), "AB");
  /* No second quantum: one of A is left in this turn. */
  assert_text (ring_serve (&ring, 300, G_MAXUINT64, 4), "ABBB");
}

static void
test_budget_reached_in_turn (void)
{
  Ring ring;

  ring_init (&ring);
  for (guint i = 0; i < 4; i++)
    {
      ring_push (&ring, 0, 100);
      ring_push (&ring, 1, 100);
    }
  assert_text (ring_serve (&ring, 300, 200, 10), "AA");
  assert_text (ring_order (&ring), "AB");
  assert_text (ring_serve (&ring, 300, 300, 10), "ABB");
  assert_text (ring_order (&ring), "BA");
}

static void
test_first_is_always_sent (void)
{
  Ring ring;

  ring_init (&ring);
  ring_push (&ring, 0, 100000);
  ring_push (&ring, 1, 100);
  assert_text (ring_serve (&ring, 4096, 1, 10), "B");
  assert_text (ring_serve (&ring, 4096, 1, 10), "A");
  assert_text (ring_serve (&ring, 4096, 1, 10), "");
}

/* --- The bound ------------------------------------------------------------------------------ */

#define SENDERS 12
#define QUANTUM 4096

typedef struct
{
  guint64 served[SENDERS]; /* of everybody when it came */
  guint64 own;             /* S */
} Mark;

static guint
sender_of (HeadwayEvent *event)
{
  return (guint) (headway_principal_get_name (headway_event_get_principal (event))[0] - 'a');
}

static gsize
random_cost (GRand *random, guint sender)
{
  if (sender == 0)
    return g_rand_int_range (random, 4, 60000);
  if (sender == 1)
    return g_rand_int_range (random, 3000, 5000);
  return g_rand_int_range (random, 4, 600);
}

static void
check_bound (HeadwayEvent *event, Mark *mark, const guint64 *served, const gsize *largest)
{
  guint64 visits = (mark->own + QUANTUM - 1) / QUANTUM;

  for (guint i = 0; i < SENDERS; i++)
    if (i != sender_of (event))
      g_assert_cmpuint (served[i] - mark->served[i], <, visits * QUANTUM + largest[i]);
}

/* @n: how many each reading takes at most, as Receive, a stream and a signal window do. */
static void
go_bound (guint seed, guint n)
{
  g_auto (TestBus) t = TEST_BUS (.ring_size = 1);
  g_autoptr (HeadwaySubscription) route = test_route (&t, HEADWAY_ID_MAX);
  g_autoptr (GRand) random = g_rand_new_with_seed (seed);
  g_autoptr (GHashTable) marks = g_hash_table_new_full (g_direct_hash, g_direct_equal, NULL, g_free);
  guint64 served[SENDERS] = { 0 }, queued[SENDERS] = { 0 };
  gsize largest[SENDERS] = { 0 };

  for (guint i = 0; i < 30000; i++)
    {
      guint sender = (guint) MIN (g_rand_int_range (random, 0, SENDERS), g_rand_int_range (random, 0, SENDERS));
      char name[2] = { (char) ('a' + sender), '\0' };
      gsize cost = random_cost (random, sender);
      HeadwayDelivery deliveries[8];
      guint taken = 0;
      Mark mark;

      if (headway_subscription_get_queued (route) < 400)
        {
          queued[sender] += cost;
          largest[sender] = MAX (largest[sender], cost);
          mark.own = queued[sender];
          memcpy (mark.served, served, sizeof served);
          test_pub_as (&t, name, cost, 1);
          g_hash_table_insert (marks, GUINT_TO_POINTER ((guint) headway_bus_get_last_id (t.bus)),
                               g_memdup2 (&mark, sizeof mark));
        }
      if (g_rand_int_range (random, 0, 4) != 0)
        taken = headway_subscription_take (route, t.now, n, G_MAXSIZE, deliveries);
      for (guint k = 0; k < taken; k++)
        {
          HeadwayEvent *event = deliveries[k].event;
          gpointer key = GUINT_TO_POINTER ((guint) headway_event_get_id (event));

          check_bound (event, g_hash_table_lookup (marks, key), served, largest);
          g_hash_table_remove (marks, key);
          served[sender_of (event)] += headway_event_get_cost (event);
          queued[sender_of (event)] -= headway_event_get_cost (event);
          headway_event_unref (event);
        }
    }
}

static void
test_bound (void)
{
  go_bound (1, 1);
  go_bound (2, 3);
  go_bound (3, 8);
}

/* How close it comes: one small event behind a flood of large ones waits for one turn of the flood. */
static void
test_bound_is_tight (void)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) route = test_route (&t, 0);

  test_pub_as (&t, "flood", 2049, 100);
  assert_route_take (&t, route, 1, "flood#1");
  test_pub_as (&t, "quiet", 100, 1);
  /* 2047 of the turn are left: too few. */
  assert_route_take (&t, route, 1, "quiet#101");
  test_pub_as (&t, "quiet", 100, 1);
  /* 2047 + 4096 hold two: 4098 bytes, less than 4096 + 2049. */
  assert_route_take (&t, route, 3, "flood#2 flood#3 quiet#102");
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/scheduler/100-quantum-of-a-drain", test_quantum);
  g_test_add_func ("/scheduler/110-blocked-drains-add-nothing", test_blocked_drains_add_nothing);
  g_test_add_func ("/scheduler/order-after-suspension", test_order_after_suspension);
  g_test_add_func ("/scheduler/turn-is-kept-between-calls", test_turn_is_kept);
  g_test_add_func ("/scheduler/budget-reached-in-turn", test_budget_reached_in_turn);
  g_test_add_func ("/scheduler/first-is-always-sent", test_first_is_always_sent);
  g_test_add_func ("/scheduler/nobody-gets-more-ahead-than-the-bound", test_bound);
  g_test_add_func ("/scheduler/bound-is-tight", test_bound_is_tight);
  return g_test_run ();
}
