/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-table.h"

#include <string.h>

/* All buses by name: finding and creating (decisions.md 3 to 5). */

/* --- Creating and finding ------------------------------------------------------------------- */

static void
test_create (void)
{
  g_auto (TestTable) f = { 0 };
  g_auto (TestAnswer) answer = { 0 };
  HeadwayBusOptions options;

  test_table_set_up (&f, FALSE);
  options = headway_bus_table_get_limits (f.table)->bus;
  options.ring_size = 5;
  test_table_lookup_fails (&f, "a", HEADWAY_ERROR_NO_SUCH_BUS);
  headway_bus_table_create (f.table, "a", &options, 1000, f.now, test_on_ready, &answer);
  g_assert_no_error (answer.error);
  g_assert_true (headway_bus_table_lookup (f.table, "a", NULL) == answer.bus);
  g_assert_cmpuint (headway_bus_get_options (answer.bus)->ring_size, ==, 5);
  g_assert_cmpuint (headway_bus_get_creator (answer.bus), ==, 1000);
  g_assert_cmpint (headway_bus_get_last_used_us (answer.bus), ==, f.now.monotonic_us);
  assert_log (&f, "+a ");
}

static void
test_exists (void)
{
  g_auto (TestTable) f = { 0 };
  g_auto (TestAnswer) answer = { 0 };

  test_table_set_up (&f, FALSE);
  test_table_must_create (&f, "a");
  test_table_create (&f, "a", &answer);
  g_assert_cmpuint (answer.n_calls, ==, 1);
  g_assert_error (answer.error, HEADWAY_ERROR, HEADWAY_ERROR_BUS_EXISTS);
  g_assert_cmpuint (headway_bus_table_size (f.table), ==, 1);
}

static void
test_names (void)
{
  static const char *const bad[] = { "", ".", "..", "a/b", "a b", "\xc3\xa9" };
  g_auto (TestTable) f = { 0 };

  test_table_set_up (&f, FALSE);
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_auto (TestAnswer) created = { 0 };
      g_auto (TestAnswer) ensured = { 0 };
      test_table_create (&f, bad[i], &created);
      test_table_ensure (&f, bad[i], &ensured);
      g_assert_error (created.error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_NAME);
      g_assert_error (ensured.error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_NAME);
      test_table_lookup_fails (&f, bad[i], HEADWAY_ERROR_INVALID_NAME);
    }
  g_assert_cmpuint (headway_bus_table_size (f.table), ==, 0);
}

static void
test_ensure (void)
{
  g_auto (TestTable) f = { 0 };
  g_auto (TestAnswer) first = { 0 };
  g_auto (TestAnswer) second = { 0 };
  g_auto (TestAnswer) off = { 0 };
  g_auto (TestAnswer) off_but_there = { 0 };

  test_table_set_up (&f, FALSE);
  test_table_ensure (&f, "a", &first);
  test_table_ensure (&f, "a", &second);
  g_assert_true (first.bus != NULL && first.bus == second.bus);
  g_assert_cmpuint (headway_bus_get_creator (first.bus), ==, 1001);
  assert_log (&f, "+a ");
  headway_bus_table_get_limits (f.table)->auto_create_buses = FALSE;
  test_table_ensure (&f, "b", &off);
  g_assert_error (off.error, HEADWAY_ERROR, HEADWAY_ERROR_NO_SUCH_BUS);
  test_table_ensure (&f, "a", &off_but_there);
  g_assert_true (off_but_there.bus == first.bus);
}

static void
test_max_buses (void)
{
  g_auto (TestTable) f = { 0 };
  g_auto (TestAnswer) created = { 0 };
  g_auto (TestAnswer) ensured = { 0 };
  g_auto (TestAnswer) exists = { 0 };

  test_table_set_up (&f, FALSE);
  headway_bus_table_get_limits (f.table)->max_buses = 2;
  test_table_must_create (&f, "a");
  test_table_must_create (&f, "b");
  test_table_create (&f, "c", &created);
  test_table_ensure (&f, "c", &ensured);
  test_table_create (&f, "a", &exists);
  g_assert_error (created.error, HEADWAY_ERROR, HEADWAY_ERROR_QUOTA_EXCEEDED);
  g_assert_cmpint (headway_error_get_details (created.error)->limit, ==, 2);
  g_assert_error (ensured.error, HEADWAY_ERROR, HEADWAY_ERROR_QUOTA_EXCEEDED);
  g_assert_error (exists.error, HEADWAY_ERROR, HEADWAY_ERROR_BUS_EXISTS);
  headway_bus_close (headway_bus_table_lookup (f.table, "a", NULL));
  test_table_run (&f);
  test_table_must_create (&f, "c");
}

static void
test_list (void)
{
  static const char *const names[] = { "b", "a", "c~", "B" };
  g_auto (TestTable) f = { 0 };
  g_autoptr (GPtrArray) list = NULL;
  g_autoptr (GPtrArray) after = NULL;

  test_table_set_up (&f, FALSE);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    test_table_must_create (&f, names[i]);
  list = headway_bus_table_list (f.table);
  g_assert_cmpuint (list->len, ==, 4);
  g_assert_cmpstr (headway_bus_get_name (g_ptr_array_index (list, 0)), ==, "B");
  g_assert_cmpstr (headway_bus_get_name (g_ptr_array_index (list, 3)), ==, "c~");
  headway_bus_close (headway_bus_table_lookup (f.table, "a", NULL));
  after = headway_bus_table_list (f.table);
  g_assert_cmpuint (after->len, ==, 3);
}

/* Tokens of two buses, and of two lives of one name, differ (case 46). */
static void
test_case_46 (void)
{
  g_auto (TestTable) f = { 0 };
  g_autofree char *first = NULL;
  HeadwayBus *a, *b;

  test_table_set_up (&f, FALSE);
  a = test_table_must_create (&f, "a");
  b = test_table_must_create (&f, "b");
  first = g_strdup (headway_bus_get_epoch (a));
  g_assert_cmpstr (first, !=, headway_bus_get_epoch (b));
  g_assert_true (g_regex_match_simple ("^[A-Za-z0-9_-]{1,64}$", first, G_REGEX_DOLLAR_ENDONLY, 0));
  headway_bus_close (a);
  test_table_run (&f);
  g_assert_cmpstr (headway_bus_get_epoch (test_table_must_create (&f, "a")), !=, first);
}

static void
test_numbers (void)
{
  g_auto (TestTable) f = { 0 };
  HeadwayBus *buses[2];

  test_table_set_up (&f, FALSE);
  buses[0] = test_table_must_create (&f, "a");
  buses[1] = test_table_must_create (&f, "b");
  for (guint i = 1; i <= 4; i++)
    {
      TestBus t = { .bus = buses[i % 2], .now = f.now };
      g_autoptr (HeadwaySubscription) subscription = test_live (&t, 0);
      g_assert_cmpuint (headway_subscription_get_number (subscription), ==, i);
    }
}

/* --- With a store --------------------------------------------------------------------------- */

static void
test_waiters (void)
{
  g_auto (TestTable) f = { 0 };
  g_auto (TestAnswer) first = { 0 };
  g_auto (TestAnswer) second = { 0 };
  g_auto (TestAnswer) third = { 0 };

  test_table_set_up (&f, TRUE);
  test_store_set_mark (f.store, "a", 77);
  test_table_create (&f, "a", &first);
  test_table_create (&f, "a", &second);
  test_table_ensure (&f, "a", &third);
  g_assert_cmpuint (first.n_calls + second.n_calls + third.n_calls, ==, 0);
  test_table_lookup_fails (&f, "a", HEADWAY_ERROR_NO_SUCH_BUS);
  g_assert_cmpuint (test_store_get_n_requests (f.store), ==, 1);
  g_assert_cmpuint (test_store_get_last_request (f.store), ==, 10077);
  assert_log (&f, "");
  headway_bus_table_ids_granted (f.table, test_store_get_last_bus (f.store), 10077, f.now);
  assert_log (&f, "+a ");
  g_assert_no_error (first.error);
  g_assert_error (second.error, HEADWAY_ERROR, HEADWAY_ERROR_BUS_EXISTS);
  g_assert_true (third.bus == first.bus);
  test_table_pub (&f, first.bus, 1);
  g_assert_cmpuint (headway_bus_get_last_id (first.bus), ==, 78);
}

static void
test_refused (void)
{
  g_auto (TestTable) f = { 0 };
  g_auto (TestAnswer) first = { 0 };
  g_auto (TestAnswer) second = { 0 };
  g_autoptr (HeadwayBus) late = NULL;

  test_table_set_up (&f, TRUE);
  test_table_create (&f, "a", &first);
  test_table_ensure (&f, "a", &second);
  late = g_object_ref (test_store_get_last_bus (f.store));
  headway_bus_table_ids_refused (f.table, late, "disk full");
  g_assert_error (first.error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE);
  g_assert_nonnull (strstr (first.error->message, "disk full"));
  g_assert_error (second.error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE);
  g_assert_cmpuint (headway_bus_table_size (f.table), ==, 0);
  g_assert_cmpuint (test_store_get_n_forgotten (f.store), ==, 1);
  assert_log (&f, "");
  /* An answer that comes too late concerns nobody; the name can be created again. */
  headway_bus_table_ids_granted (f.table, late, 10000, f.now);
  test_table_must_create (&f, "a");
  headway_bus_table_ids_granted (f.table, late, 10000, f.now);
  headway_bus_table_ids_refused (f.table, late, "again");
  g_assert_cmpuint (headway_bus_table_size (f.table), ==, 1);
}

static void
test_ids_wait (void)
{
  g_auto (TestTable) f = { 0 };
  g_auto (TestAnswer) answer = { 0 };
  g_auto (TestResult) result = { 0 };
  TestBus t = { 0 };

  test_table_set_up (&f, TRUE);
  test_table_create (&f, "slow", &answer);
  f.now = test_instant (TEST_DRAIN_US - 1);
  headway_bus_table_tick (f.table, f.now, TEST_DRAIN_US);
  g_assert_cmpuint (answer.n_calls, ==, 0);
  f.now = test_instant (TEST_DRAIN_US);
  headway_bus_table_tick (f.table, f.now, TEST_DRAIN_US);
  g_assert_error (answer.error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE);
  g_assert_cmpuint (headway_bus_table_size (f.table), ==, 0);

  t.bus = test_table_must_create (&f, "a");
  t.now = f.now;
  for (guint i = 0; i < 3; i++)
    headway_bus_publish (t.bus, test_batch (&t, 4000, &result), t.now);
  test_table_run (&f);
  g_assert_cmpuint (result.n_calls, ==, 2);
  g_assert_no_error (result.error);
  f.now = test_instant (2 * TEST_DRAIN_US - 1);
  headway_bus_table_tick (f.table, f.now, TEST_DRAIN_US);
  g_assert_cmpuint (result.n_calls, ==, 2);
  f.now = test_instant (2 * TEST_DRAIN_US);
  headway_bus_table_tick (f.table, f.now, TEST_DRAIN_US);
  g_assert_cmpuint (result.n_calls, ==, 3);
  g_assert_error (result.error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE);
  g_assert_cmpuint (headway_bus_get_last_id (t.bus), ==, 8000);
}

/* A closed bus leaves its mark: a new one of that name goes on behind it. */
static void
test_goes_on_behind_the_mark (void)
{
  g_auto (TestTable) f = { 0 };
  HeadwayBus *bus;

  test_table_set_up (&f, TRUE);
  bus = test_table_must_create (&f, "a");
  test_table_pub (&f, bus, 5);
  headway_bus_close_session (bus, f.now);
  g_assert_cmpuint (test_store_get_n_forgotten (f.store), ==, 1);
  test_table_run (&f);
  test_table_lookup_fails (&f, "a", HEADWAY_ERROR_NO_SUCH_BUS);
  bus = test_table_must_create (&f, "a");
  test_table_pub (&f, bus, 1);
  g_assert_cmpuint (headway_bus_get_last_id (bus), ==, 7);
}

static void
test_restore (void)
{
  g_auto (TestTable) f = { 0 };
  HeadwayBus *bus;

  test_table_set_up (&f, TRUE);
  bus = headway_bus_table_restore (f.table, "a", 500, 600, &headway_bus_table_get_limits (f.table)->bus, 42, f.now);
  assert_log (&f, "+a ");
  g_assert_true (headway_bus_table_lookup (f.table, "a", NULL) == bus);
  g_assert_cmpuint (headway_bus_get_creator (bus), ==, 42);
  g_assert_cmpuint (headway_bus_get_granted_id (bus), ==, 600);
  test_table_pub (&f, bus, 1);
  g_assert_cmpuint (headway_bus_get_last_id (bus), ==, 501);
  test_table_pub (&f, bus, 100);
  g_assert_cmpuint (headway_bus_get_last_id (bus), ==, 600);
  g_assert_true (headway_bus_is_waiting_for_ids (bus));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/bus-table/create/there-at-once-without-a-store", test_create);
  g_test_add_func ("/bus-table/create/exists", test_exists);
  g_test_add_func ("/bus-table/create/names", test_names);
  g_test_add_func ("/bus-table/ensure/auto-create", test_ensure);
  g_test_add_func ("/bus-table/create/max-buses", test_max_buses);
  g_test_add_func ("/bus-table/list/sorted-and-open", test_list);
  g_test_add_func ("/bus-table/create/case-46-epochs-differ", test_case_46);
  g_test_add_func ("/bus-table/subscription-numbers", test_numbers);
  g_test_add_func ("/bus-table/ids/second-waiter", test_waiters);
  g_test_add_func ("/bus-table/ids/refused", test_refused);
  g_test_add_func ("/bus-table/ids/five-seconds", test_ids_wait);
  g_test_add_func ("/bus-table/ids/goes-on-behind-the-mark", test_goes_on_behind_the_mark);
  g_test_add_func ("/bus-table/restore", test_restore);
  return g_test_run ();
}
