/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-bus.h"
#include "headway-test-store.h"

#include "engine/headway-bus-private.h"
#include "engine/headway-error.h"

/* Ids in blocks (decisions.md 4). */

typedef struct
{
  TestBus t;
  TestStore *store;
} Fixture;

/* A bus whose ids start behind @last_id, of which those up to @granted_id may be used. */
static void
set_up (Fixture *self, guint64 last_id, guint64 granted_id)
{
  self->t = test_bus_new ((HeadwayBusOptions){ .ring_size = 100 }, "epoch-a", last_id);
  self->store = test_store_new ();
  headway_bus_set_store (self->t.bus, HEADWAY_BUS_STORE (self->store), granted_id);
}

static void
tear_down (Fixture *self)
{
  g_clear_object (&self->store);
  test_bus_clear (&self->t);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

static void
publish (Fixture *self, guint n, TestResult *result)
{
  headway_bus_publish (self->t.bus, test_batch (&self->t, n, result), self->t.now);
}

static void
grant (Fixture *self, guint64 up_to)
{
  headway_bus_grant_ids (self->t.bus, up_to, self->t.now);
  test_run (&self->t);
}

#define assert_requests(f, n, up_to)                                          \
  G_STMT_START                                                                \
  {                                                                           \
    g_assert_cmpuint (test_store_get_n_requests ((f)->store), ==, (n));       \
    g_assert_cmpuint (test_store_get_last_request ((f)->store), ==, (up_to)); \
  }                                                                           \
  G_STMT_END

static void
test_first_block (void)
{
  g_auto (Fixture) f = { 0 };
  g_auto (TestResult) result = { 0 };

  set_up (&f, 500, 500);
  headway_bus_request_ids (f.t.bus, f.t.now);
  assert_requests (&f, 1, 10500);
  g_assert_true (test_store_get_last_bus (f.store) == f.t.bus);
  grant (&f, 10500);
  g_assert_cmpuint (headway_bus_get_granted_id (f.t.bus), ==, 10500);
  publish (&f, 1, &result);
  g_assert_cmpuint (result.first_id, ==, 501);
  assert_requests (&f, 1, 10500);
}

static void
test_waits_in_order (void)
{
  g_auto (Fixture) f = { 0 };
  TestResult results[3] = { { 0 } };
  g_autoptr (HeadwaySubscription) subscription = NULL;

  set_up (&f, 0, 0);
  subscription = test_live (&f.t, 0);
  for (guint i = 0; i < 3; i++)
    publish (&f, i + 1, &results[i]);
  g_assert_true (headway_bus_is_waiting_for_ids (f.t.bus));
  g_assert_cmpint (headway_bus_get_waiting_since_us (f.t.bus), ==, f.t.now.monotonic_us);
  g_assert_cmpuint (headway_bus_get_last_id (f.t.bus), ==, 0);
  g_assert_cmpuint (results[0].n_calls, ==, 0);
  g_assert_false (headway_bus_run (f.t.bus, f.t.now));
  assert_requests (&f, 1, 10001);
  assert_reads (&f.t, subscription, "open");

  grant (&f, 10001);
  g_assert_false (headway_bus_is_waiting_for_ids (f.t.bus));
  g_assert_cmpuint (results[0].first_id, ==, 1);
  g_assert_cmpuint (results[1].first_id, ==, 2);
  g_assert_cmpuint (results[2].first_id, ==, 4);
  for (guint i = 0; i < 3; i++)
    g_assert_cmpuint (results[i].n_calls, ==, 1);
  assert_reads (&f.t, subscription, "#1..#6 open");
}

static void
test_refused (void)
{
  g_auto (Fixture) f = { 0 };
  TestResult results[2] = { { 0 } };
  g_auto (TestResult) later = { 0 };
  g_autoptr (HeadwaySubscription) subscription = NULL;

  set_up (&f, 7, 7);
  subscription = test_live (&f.t, 0);
  publish (&f, 2, &results[0]);
  publish (&f, 1, &results[1]);
  headway_bus_refuse_ids (f.t.bus, "no space left on device");
  for (guint i = 0; i < 2; i++)
    {
      g_assert_cmpuint (results[i].n_calls, ==, 1);
      g_assert_error (results[i].error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE);
      g_assert_cmpuint (results[i].first_id, ==, 0);
      test_result_clear (&results[i]);
    }
  g_assert_cmpuint (headway_bus_get_last_id (f.t.bus), ==, 7);
  g_assert_cmpuint (headway_ring_get_length (headway_bus_get_ring (f.t.bus)), ==, 0);
  g_assert_false (headway_bus_is_waiting_for_ids (f.t.bus));
  assert_reads (&f.t, subscription, "open");

  /* The next publish asks again, and uses the id that nobody got. */
  publish (&f, 1, &later);
  assert_requests (&f, 2, 10008);
  grant (&f, 10008);
  g_assert_cmpuint (later.first_id, ==, 8);
}

static void
test_whole_batch (void)
{
  g_auto (Fixture) f = { 0 };
  g_auto (TestResult) batch = { 0 };
  g_auto (TestResult) behind = { 0 };
  g_autoptr (HeadwaySubscription) subscription = NULL;

  set_up (&f, 0, 10);
  subscription = test_live (&f.t, 0);
  publish (&f, 11, &batch);
  publish (&f, 1, &behind);
  g_assert_cmpuint (headway_bus_get_last_id (f.t.bus), ==, 0);
  g_assert_cmpuint (behind.n_calls, ==, 0);
  assert_reads (&f.t, subscription, "open");
  grant (&f, 11);
  g_assert_cmpuint (batch.first_id, ==, 1);
  g_assert_cmpuint (headway_bus_get_last_id (f.t.bus), ==, 11);
  g_assert_cmpuint (behind.n_calls, ==, 0);
  /* A refusal does not touch what has been published. */
  headway_bus_refuse_ids (f.t.bus, "no");
  g_assert_no_error (batch.error);
  g_assert_error (behind.error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE);
  assert_reads (&f.t, subscription, "#1..#11 open");
}

static void
test_begun_batch (void)
{
  g_auto (Fixture) f = { 0 };
  g_auto (TestResult) batch = { 0 };
  g_auto (TestResult) behind = { 0 };

  set_up (&f, 0, 100);
  publish (&f, 100, &batch);
  publish (&f, 1, &behind);
  g_assert_cmpuint (headway_bus_get_last_id (f.t.bus), ==, 32);
  g_assert_false (headway_bus_is_waiting_for_ids (f.t.bus));
  headway_bus_refuse_ids (f.t.bus, "no");
  test_run (&f.t);
  g_assert_cmpuint (batch.n_calls, ==, 1);
  g_assert_no_error (batch.error);
  g_assert_cmpuint (headway_bus_get_last_id (f.t.bus), ==, 100);
  g_assert_true (headway_bus_is_waiting_for_ids (f.t.bus));
  grant (&f, 10000);
  g_assert_cmpuint (behind.first_id, ==, 101);
}

static void
test_large_batch_asks_for_enough (void)
{
  g_auto (Fixture) f = { 0 };
  g_auto (TestResult) result = { 0 };

  set_up (&f, 0, 4000);
  publish (&f, 4096, &result);
  assert_requests (&f, 1, 14096);
  grant (&f, 14096);
  g_assert_cmpuint (result.first_id, ==, 1);
  g_assert_cmpuint (headway_bus_get_last_id (f.t.bus), ==, 4096);
}

static void
test_prefetch (void)
{
  g_auto (Fixture) f = { 0 };

  set_up (&f, 0, 0);
  headway_bus_request_ids (f.t.bus, f.t.now);
  grant (&f, 10000);
  test_pub (&f.t, 5000);
  assert_requests (&f, 1, 10000);
  test_pub (&f.t, 1);
  assert_requests (&f, 2, 20000);
  /* One request at a time; nobody waits meanwhile. */
  test_pub (&f.t, 4999);
  assert_requests (&f, 2, 20000);
  g_assert_cmpuint (headway_bus_get_last_id (f.t.bus), ==, 10000);
  grant (&f, 20000);
  test_pub (&f.t, 4999);
  assert_requests (&f, 2, 20000);
  test_pub (&f.t, 2);
  assert_requests (&f, 3, 30000);
}

/* Ten seconds at the present rate, and half of *that* block before the next request. */
static void
test_rate_sized (void)
{
  g_auto (Fixture) f = { 0 };

  set_up (&f, 0, 0);
  headway_bus_request_ids (f.t.bus, f.t.now);
  grant (&f, 10000);
  test_pub (&f.t, 5000);
  f.t.now = test_instant (G_USEC_PER_SEC * 4 / 10);
  test_pub (&f.t, 1);
  assert_requests (&f, 2, 135000); /* 12 500 a second */
  grant (&f, 135000);

  f.t.now = test_instant (1000 * (gint64) G_USEC_PER_SEC);
  test_pub (&f.t, 67499); /* last id 72 500 */
  assert_requests (&f, 2, 135000);
  test_pub (&f.t, 1); /* under 62 500 of 125 000 are left; 67 a second by now */
  assert_requests (&f, 3, 145000);
}

static void
test_grants_never_shrink (void)
{
  g_auto (Fixture) f = { 0 };

  set_up (&f, 0, 10000);
  headway_bus_grant_ids (f.t.bus, 5000, f.t.now);
  g_assert_cmpuint (headway_bus_get_granted_id (f.t.bus), ==, 10000);
}

static void
test_largest_id (void)
{
  g_auto (Fixture) f = { 0 };
  g_auto (TestResult) last = { 0 };
  g_auto (TestResult) beyond = { 0 };

  set_up (&f, HEADWAY_ID_MAX - 2, HEADWAY_ID_MAX - 2);
  publish (&f, 2, &last);
  assert_requests (&f, 1, HEADWAY_ID_MAX);
  grant (&f, HEADWAY_ID_MAX);
  g_assert_cmpuint (last.first_id, ==, HEADWAY_ID_MAX - 1);
  publish (&f, 1, &beyond);
  g_assert_cmpuint (headway_bus_get_last_id (f.t.bus), ==, HEADWAY_ID_MAX);
  g_assert_true (headway_bus_is_waiting_for_ids (f.t.bus));
  headway_bus_refuse_ids (f.t.bus, "all are used");
  g_assert_error (beyond.error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE);
}

static void
test_close_session (gboolean is_granted)
{
  g_auto (Fixture) f = { 0 };
  g_auto (TestResult) before = { 0 };
  g_autoptr (HeadwaySubscription) subscription = NULL;

  set_up (&f, 0, 0);
  subscription = test_live (&f.t, 0);
  publish (&f, 1, &before);
  headway_bus_close_session (f.t.bus, f.t.now);
  g_assert_true (headway_bus_is_closing (f.t.bus));
  g_assert_false (headway_bus_is_closed (f.t.bus));
  if (is_granted)
    grant (&f, 10000);
  else
    headway_bus_refuse_ids (f.t.bus, "no");
  /* A bus that cannot say goodbye closes all the same. */
  g_assert_true (headway_bus_is_closed (f.t.bus));
  g_assert_cmpuint (before.n_calls, ==, 1);
  assert_reads (&f.t, subscription, is_granted ? "#1 closed end" : "end");
}

static void
test_close_session_granted (void)
{
  test_close_session (TRUE);
}

static void
test_close_session_refused (void)
{
  test_close_session (FALSE);
}

static void
test_close_while_waiting (void)
{
  g_auto (Fixture) f = { 0 };
  g_auto (TestResult) result = { 0 };

  set_up (&f, 0, 0);
  publish (&f, 1, &result);
  headway_bus_close (f.t.bus);
  g_assert_error (result.error, HEADWAY_ERROR, HEADWAY_ERROR_CLOSED);
  headway_bus_grant_ids (f.t.bus, 10000, f.t.now);
  g_assert_cmpuint (headway_bus_get_last_id (f.t.bus), ==, 0);
  g_assert_cmpuint (result.n_calls, ==, 1);
}

typedef struct
{
  Fixture *f;
  TestResult result;
} Again;

static void
publish_again (HeadwayBatch *batch, const GError *error, gpointer user_data)
{
  Again *again = user_data;

  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE);
  publish (again->f, 1, &again->result);
}

/* A publisher that tries again from its own answer waits for the next block. */
static void
test_retry_from_answer (void)
{
  g_auto (Fixture) f = { 0 };
  Again again = { &f, { 0 } };
  HeadwayBatch *batch = headway_batch_new (1, publish_again, &again);

  set_up (&f, 0, 0);
  headway_batch_add (batch, test_event (headway_bus_get_system (f.t.bus), "1"));
  headway_bus_publish (f.t.bus, batch, f.t.now);
  headway_bus_refuse_ids (f.t.bus, "no");
  g_assert_cmpuint (again.result.n_calls, ==, 0);
  g_assert_cmpuint (test_store_get_n_requests (f.store), ==, 2);
  grant (&f, 10000);
  g_assert_cmpuint (again.result.first_id, ==, 1);
}

static void
test_seed_takes_ids (void)
{
  g_auto (Fixture) f = { 0 };

  set_up (&f, 0, 0);
  test_seed (&f.t, 40);
  g_assert_cmpuint (headway_bus_get_last_id (f.t.bus), ==, 0);
  grant (&f, 10000);
  g_assert_cmpuint (headway_bus_get_last_id (f.t.bus), ==, 40);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/bus/ids/first-block-before-the-first-event", test_first_block);
  g_test_add_func ("/bus/ids/publishes-wait-in-order", test_waits_in_order);
  g_test_add_func ("/bus/ids/refusal-changes-nothing", test_refused);
  g_test_add_func ("/bus/ids/batch-waits-whole", test_whole_batch);
  g_test_add_func ("/bus/ids/begun-batch-is-not-refused", test_begun_batch);
  g_test_add_func ("/bus/ids/large-batch-asks-for-enough", test_large_batch_asks_for_enough);
  g_test_add_func ("/bus/ids/prefetch-at-half", test_prefetch);
  g_test_add_func ("/bus/ids/rate-sized-blocks", test_rate_sized);
  g_test_add_func ("/bus/ids/grants-never-shrink", test_grants_never_shrink);
  g_test_add_func ("/bus/ids/largest-id", test_largest_id);
  g_test_add_func ("/bus/ids/close-session-waits-for-its-id", test_close_session_granted);
  g_test_add_func ("/bus/ids/close-session-without-ids", test_close_session_refused);
  g_test_add_func ("/bus/ids/close-while-waiting", test_close_while_waiting);
  g_test_add_func ("/bus/ids/retry-from-the-answer", test_retry_from_answer);
  g_test_add_func ("/bus/ids/seeding-takes-ids", test_seed_takes_ids);
  return g_test_run ();
}
