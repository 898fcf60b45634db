/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-bus.h"

#include "engine/headway-error.h"

#include <string.h>

/* Cases of sse-contract.md 6, A (publish and ids). */

static HeadwayEvent *
build (TestBus *t, const char *type, const char *data, const char *meta, guint64 cost_max, GError **error)
{
  HeadwayPublication publication = {
    .type = type,
    .principal = headway_bus_get_system (t->bus),
    .data = data,
    .data_length = strlen (data),
    .meta = meta,
    .meta_length = meta != NULL ? strlen (meta) : 0,
  };

  return headway_event_new (&publication, cost_max, t->now, error);
}

static void
test_case_1 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_auto (TestResult) first = { 0 };
  g_auto (TestResult) second = { 0 };
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 0);
  g_autoptr (HeadwayEvent) event = NULL;
  g_autofree char *version = NULL;
  g_autofree char *envelope = NULL;
  gsize length;

  headway_bus_publish (t.bus, test_batch (&t, 1, &first), t.now);
  headway_bus_publish (t.bus, test_batch (&t, 1, &second), t.now);
  g_assert_cmpuint (first.first_id, ==, 1);
  g_assert_cmpuint (second.first_id, ==, 2);
  g_assert_cmpuint (headway_bus_get_last_id (t.bus), ==, 2);

  event = test_take_event (&t, subscription);
  envelope = test_dup_envelope (event, &length);
  version = test_member (envelope, length, "v");
  g_assert_cmpstr (version, ==, "1");
  assert_reads (&t, subscription, "#2 open");
}

static void
assert_meta (const char *meta, const char *expected)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (GError) error = NULL;
  g_autoptr (HeadwayEvent) event = build (&t, "foo", "1", meta, G_MAXUINT64, &error);
  g_autofree char *got = NULL;
  g_autofree char *envelope = NULL;
  gsize length;

  g_assert_no_error (error);
  headway_event_set_id (event, 1);
  envelope = test_dup_envelope (event, &length);
  got = test_member (envelope, length, "_meta");
  g_assert_cmpstr (got, ==, expected);
}

static void
test_case_2 (void)
{
  assert_meta ("{\"source\":\"t\"}", "{\"source\":\"t\",\"serverTimestamp\":1700000000000}");
}

static void
test_case_3 (void)
{
  assert_meta ("{\"serverTimestamp\":123}", "{\"serverTimestamp\":123}");
  assert_meta ("{\"serverTimestamp\":-1}", "{\"serverTimestamp\":-1}");
  assert_meta ("{\"serverTimestamp\":1.5}", "{\"serverTimestamp\":1.5}");
  assert_meta ("{\"serverTimestamp\":1e400}", "{\"serverTimestamp\":1700000000000}");
  assert_meta ("{\"serverTimestamp\":-1e400,\"a\":1}", "{\"serverTimestamp\":1700000000000,\"a\":1}");
  assert_meta ("{\"serverTimestamp\":\"123\"}", "{\"serverTimestamp\":1700000000000}");
  assert_meta ("{\"serverTimestamp\":null}", "{\"serverTimestamp\":1700000000000}");
}

static void
test_case_4 (void)
{
  static const char *const bad[] = { "NaN", "Infinity", "\"\xff\"", "", "undefined", "01", "{", "\"\xed\xa0\x80\"" };
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) live = test_live (&t, 0);
  g_autoptr (HeadwaySubscription) replayed = NULL;

  test_pub (&t, 1);
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr (GError) error = NULL;
      g_assert_null (build (&t, "foo", bad[i], NULL, G_MAXUINT64, &error));
      g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_DATA);
    }
  g_assert_cmpuint (headway_bus_get_last_id (t.bus), ==, 1);
  test_pub (&t, 1);
  replayed = test_from (&t, 0);
  assert_reads (&t, live, "#1 #2 open");
  assert_reads (&t, replayed, "#1 #2 rc(2,2) open");
}

static void
test_case_5 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autoptr (HeadwaySubscription) subscription = test_live (&t, 0);
  g_autoptr (HeadwayEvent) event = NULL;
  g_autofree char *envelope = NULL;

  test_pub (&t, 1);
  event = test_take_event (&t, subscription);
  envelope = test_dup_envelope (event, NULL);
  g_assert_cmpstr (envelope, ==, "{\"id\":1,\"v\":1,\"type\":\"foo\",\"data\":1,\"_meta\":{\"serverTimestamp\":1}}");
  g_assert_cmpuint (headway_event_get_size (event), ==, 66);
}

static void
test_case_6 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_auto (TestResult) result = { 0 };

  test_pub (&t, 2);
  headway_bus_close (t.bus);
  headway_bus_publish (t.bus, test_batch (&t, 1, &result), t.now);
  g_assert_cmpuint (result.n_calls, ==, 1);
  g_assert_error (result.error, HEADWAY_ERROR, HEADWAY_ERROR_CLOSED);
  g_assert_cmpuint (headway_bus_get_last_id (t.bus), ==, 2);
  g_assert_cmpuint (headway_ring_get_last_id (headway_bus_get_ring (t.bus)), ==, 2);
}

static void
test_case_7 (void)
{
  static const char *const bad[] = {
    "a\nb", "a\rb", "a b", "", " ", "\xc3\xa9", "client_evicted", "state_resync_required", "replay_complete",
    "slow_client_warning", "stream_error", "session_snapshot", "session_closed", "gap", "headway.x"
  };
  g_auto (TestBus) t = TEST_BUS (0);
  g_autofree char *longest = g_strnfill (128, 'a');
  g_autofree char *too_long = g_strnfill (129, 'a');
  g_autoptr (GError) error = NULL;
  g_autoptr (HeadwayEvent) event = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr (GError) refused = NULL;
      g_assert_null (build (&t, bad[i], "1", NULL, G_MAXUINT64, &refused));
      g_assert_error (refused, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_TYPE);
    }
  g_assert_null (build (&t, too_long, "1", NULL, G_MAXUINT64, &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_TYPE);
  g_clear_error (&error);
  event = build (&t, longest, "1", NULL, G_MAXUINT64, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (headway_bus_get_last_id (t.bus), ==, 0);
  g_assert_cmpuint (headway_event_get_id (event), ==, 0);
}

/* Cost is data and topic and meta (decisions.md 9): 2 + 10 + 3 + 6. */
static void
test_case_8 (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_autofree char *data = test_string (10);
  g_autoptr (GError) error = NULL;
  g_autoptr (HeadwayEvent) event = build (&t, "foo", data, "{\"a\":1}", 22, &error);

  g_assert_no_error (error);
  g_assert_cmpuint (headway_event_get_cost (event), ==, 22);
  g_assert_null (build (&t, "foo", data, "{\"a\":1}", 21, &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_TOO_LARGE);
  g_assert_cmpint (headway_error_get_details (error)->limit, ==, 21);
  test_pub (&t, 1);
  g_assert_cmpuint (headway_bus_get_last_id (t.bus), ==, 1);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/stream/publish/case-1-ids-count-from-one", test_case_1);
  g_test_add_func ("/stream/publish/case-2-meta-gets-a-timestamp", test_case_2);
  g_test_add_func ("/stream/publish/case-3-finite-timestamp-is-kept", test_case_3);
  g_test_add_func ("/stream/publish/case-4-bad-data-uses-no-id", test_case_4);
  g_test_add_func ("/stream/publish/case-5-golden-envelope", test_case_5);
  g_test_add_func ("/stream/publish/case-6-closed-bus-takes-nothing", test_case_6);
  g_test_add_func ("/stream/publish/case-7-bad-type-uses-no-id", test_case_7);
  g_test_add_func ("/stream/publish/case-8-limit-and-one-more", test_case_8);
  return g_test_run ();
}
