/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-bus.h"

#include <string.h>

/* Cases of sse-contract.md 6, D (epoch) and E (seeding and budget), and the snapshot. */

/* --- D. Epoch ------------------------------------------------------------------------------- */

static void
test_case_46 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  const char *epoch = headway_bus_get_epoch (t.bus);

  g_assert_cmpstr (epoch, ==, "epoch-a");
  test_pub (&t, 3);
  g_assert_true (headway_bus_get_epoch (t.bus) == epoch);
  headway_bus_close (t.bus);
  g_assert_cmpstr (headway_bus_get_epoch (t.bus), ==, "epoch-a");
}

static TestBus
bus_123 (void)
{
  TestBus t = TEST_BUS (.ring_size = 10);

  test_pub (&t, 3);
  return t;
}

static void
test_case_47 (void)
{
  g_auto (TestBus) t = bus_123 ();

  assert_from (&t, 2, "dead", "resync(epoch_reset,2,1,epoch_mismatch) #1 #2 #3 rc(3,3) open");
}

static void
test_case_48 (void)
{
  g_auto (TestBus) t = bus_123 ();

  assert_from (&t, 9, "dead", "resync(epoch_reset,9,1,epoch_mismatch) #1 #2 #3 rc(3,3) open");
  assert_from (&t, 9, "epoch-a", "resync(epoch_reset,9,1) #1 #2 #3 rc(3,3) open");
  assert_from (&t, 2, "EPOCH-A", "resync(epoch_reset,2,1,epoch_mismatch) #1 #2 #3 rc(3,3) open");
}

static void
test_case_49 (void)
{
  g_auto (TestBus) t = bus_123 ();

  assert_from (&t, 1, "epoch-a", "#2 #3 rc(2,3) open");
}

static void
test_case_50 (void)
{
  g_auto (TestBus) t = bus_123 ();
  HeadwaySubscribeOptions options;
  g_autoptr (HeadwaySubscription) subscription = NULL;

  headway_subscribe_options_init (&options);
  options.cursor.epoch = "dead";
  subscription = test_subscribe (&t, &options);
  assert_reads (&t, subscription, "open");
}

static void
test_case_51 (void)
{
  g_auto (TestBus) t = test_bus_new ((HeadwayBusOptions){ 0 }, "epoch-b", 10000);

  assert_from (&t, 50, NULL, "resync(seeded_replay_not_in_ring,50,10001) rc(0) open");
  assert_from (&t, 50, "epoch-a", "resync(epoch_reset,50,10001,epoch_mismatch) rc(0) open");
  assert_from (&t, 10000, NULL, "rc(0) open");
  test_pub (&t, 3);
  assert_from (&t, 50, NULL, "resync(ring_evicted,50,10001) #10001 #10002 #10003 rc(3,10003) open");
  assert_from (&t, 50, "epoch-a", "resync(epoch_reset,50,10001,epoch_mismatch) #10001 #10002 #10003 rc(3,10003) open");
}

/* Three rounds of a client that keeps its cursor and takes the new epoch at once, as the published
 * one does, and breaks on the event that it gets again. */
static void
test_case_52 (void)
{
  static const char *const epochs[] = { "epoch-a", "epoch-b", "epoch-c" };
  guint64 cursor = 0;
  guint64 mark = 0;

  for (guint round = 0; round < G_N_ELEMENTS (epochs); round++)
    {
      g_auto (TestBus) t = test_bus_new ((HeadwayBusOptions){ 0 }, epochs[round], mark);
      g_autoptr (HeadwaySubscription) subscription = NULL;

      test_pub (&t, 10);
      subscription = test_from_epoch (&t, cursor, epochs[round]);
      while (headway_subscription_is_ready (subscription))
        g_free (test_take (&t, subscription, 5));
      g_assert_cmpuint (headway_subscription_get_delivered (subscription), ==, 10);
      cursor = headway_subscription_get_last_delivered_id (subscription) - 1;
      g_assert_cmpuint (cursor, ==, mark + 9);
      mark += 10000;
    }
}

/* --- E. Seeding and budget ------------------------------------------------------------------ */

static void
test_case_53 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);

  test_seed (&t, 2);
  assert_from (&t, 0, NULL, "resync(seeded_replay_not_in_ring,0,3) rc(0) open");
  assert_from (&t, 1, NULL, "resync(seeded_replay_not_in_ring,1,3) rc(0) open");
  assert_from (&t, 2, NULL, "rc(0) open");
  assert_from (&t, 3, NULL, "resync(epoch_reset,3,3) rc(0) open");
}

static void
test_case_54 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);

  test_seed (&t, 2);
  test_pub (&t, 1);
  assert_from (&t, 0, NULL, "resync(ring_evicted,0,3) #3 rc(1,3) open");
  assert_from (&t, 2, NULL, "#3 rc(1,3) open");
  assert_from (&t, 3, NULL, "rc(0) open");
}

static void
test_case_55 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);

  test_pub (&t, 2);
  test_seed (&t, 1);
  g_assert_cmpuint (headway_ring_get_length (headway_bus_get_ring (t.bus)), ==, 0);
  assert_from (&t, 1, NULL, "resync(seeded_replay_not_in_ring,1,4) rc(0) open");
}

static void
pub_chars (TestBus *t, guint n_events, guint n_chars)
{
  for (guint i = 0; i < n_events; i++)
    test_pub_chars (t, n_chars);
}

static void
test_case_56 (void)
{
  g_auto (TestBus) t = TEST_BUS (.replay_budget_bytes = 400);
  g_autoptr (HeadwaySubscription) subscription = NULL;

  pub_chars (&t, 5, 100);
  subscription = test_from (&t, 0);
  test_pub (&t, 1);
  assert_reads (&t, subscription, "#1 #2 resync(replay_budget_exceeded,2,3) rc(2,2) #6 open");
}

static void
test_case_57 (void)
{
  g_auto (TestBus) t = TEST_BUS (.replay_budget_bytes = 10);

  pub_chars (&t, 1, 100);
  assert_from (&t, 0, NULL, "#1 rc(1,1) open");
  pub_chars (&t, 1, 100);
  assert_from (&t, 0, NULL, "#1 resync(replay_budget_exceeded,1,2) rc(1,1) open");
}

static void
test_case_58 (void)
{
  g_auto (TestBus) t = TEST_BUS (.ring_size = 3, .replay_budget_bytes = 140);

  test_pub (&t, 5);
  assert_from (&t, 0, NULL,
               "resync(ring_evicted,0,3) #3 #4 resync(replay_budget_exceeded,4,5) rc(2,4) open");
}

static void
test_budget_equality (void)
{
  g_auto (TestBus) fits = TEST_BUS (.replay_budget_bytes = 132);
  g_auto (TestBus) tight = TEST_BUS (.replay_budget_bytes = 131);

  test_pub (&fits, 3);
  test_pub (&tight, 3);
  assert_from (&fits, 0, NULL, "#1 #2 resync(replay_budget_exceeded,2,3) rc(2,2) open");
  assert_from (&tight, 0, NULL, "#1 resync(replay_budget_exceeded,1,2) rc(1,1) open");
}

static void
test_case_59_parity (void)
{
  g_auto (TestBus) t = TEST_BUS (.replay_budget_bytes = 8388608);

  pub_chars (&t, 300, 40000);
  assert_from (&t, 0, NULL, "#1..#209 resync(replay_budget_exceeded,209,210) rc(209,209) open");
}

static void
test_case_59_ours (void)
{
  g_auto (TestBus) t = TEST_BUS (0);

  pub_chars (&t, 300, 40000);
  assert_from (&t, 0, NULL, "#1..#300 rc(300,300) open");
}

/* --- Snapshot (decisions.md 39) ------------------------------------------------------------- */

static HeadwaySubscription *
with_snapshot (TestBus *t, gboolean has_cursor, guint64 cursor)
{
  HeadwaySubscribeOptions options;

  headway_subscribe_options_init (&options);
  options.wants_snapshot = TRUE;
  options.cursor = (HeadwayCursor){ .is_set = has_cursor, .last_event_id = cursor };
  return test_subscribe (t, &options);
}

static void
test_snapshot (void)
{
  const char *snapshot = "{ \"currentModelId\":\"m\",\r\n\"n\":1e400 }";
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) live = with_snapshot (&t, FALSE, 0);
  g_autoptr (HeadwaySubscription) replayed = NULL;

  test_pub (&t, 2);
  assert_reads (&t, live,
                "snapshot({\"sessionId\":\"test\",\"currentModelId\":null,\"currentApprovalMode\":null}) #1 #2 open");
  g_assert_true (headway_bus_set_snapshot (t.bus, snapshot, strlen (snapshot), 1000, NULL));
  replayed = with_snapshot (&t, TRUE, 0);
  /* As it was when the subscription was made. */
  g_assert_true (headway_bus_set_snapshot (t.bus, NULL, 0, 1000, NULL));
  test_pub (&t, 1);
  assert_reads (&t, replayed,
                "#1 #2 rc(2,2) snapshot({\"sessionId\":\"test\",\"currentModelId\":\"m\","
                "\"currentApprovalMode\":null,\"n\":1e400}) #3 open");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/stream/epoch/case-46-stable", test_case_46);
  g_test_add_func ("/stream/epoch/case-47-mismatch", test_case_47);
  g_test_add_func ("/stream/epoch/case-48-detail-only-with-a-mismatch", test_case_48);
  g_test_add_func ("/stream/epoch/case-49-match", test_case_49);
  g_test_add_func ("/stream/epoch/case-50-epoch-without-cursor", test_case_50);
  g_test_add_func ("/stream/epoch/case-51-restart", test_case_51);
  g_test_add_func ("/stream/epoch/case-52-three-rounds", test_case_52);
  g_test_add_func ("/stream/seed/case-53-seed-only", test_case_53);
  g_test_add_func ("/stream/seed/case-54-seed-then-publish", test_case_54);
  g_test_add_func ("/stream/seed/case-55-seed-empties-the-ring", test_case_55);
  g_test_add_func ("/stream/budget/case-56-prefix-then-resync", test_case_56);
  g_test_add_func ("/stream/budget/case-57-first-event-always", test_case_57);
  g_test_add_func ("/stream/budget/case-58-two-resyncs", test_case_58);
  g_test_add_func ("/stream/budget/equality-fits", test_budget_equality);
  g_test_add_func ("/stream/budget/case-59-parity", test_case_59_parity);
  g_test_add_func ("/stream/budget/case-59-ours", test_case_59_ours);
  g_test_add_func ("/stream/snapshot/behind-the-replay", test_snapshot);
  return g_test_run ();
}
