/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-table.h"

/* All buses by name: running, closing, expiring, stopping (decisions.md 2 to 6, 8). */

/* --- Running -------------------------------------------------------------------------------- */

static void
test_run_in_turn (void)
{
  g_auto (TestTable) f = { 0 };
  TestBus a = { 0 };
  TestBus b = { 0 };

  test_table_set_up (&f, FALSE);
  a = (TestBus){ .bus = test_table_must_create (&f, "a"), .now = f.now };
  b = (TestBus){ .bus = test_table_must_create (&f, "b"), .now = f.now };
  assert_log (&f, "+a +b ");
  headway_bus_publish (a.bus, test_batch (&a, 100, NULL), a.now);
  headway_bus_publish (a.bus, test_batch (&a, 100, NULL), a.now);
  headway_bus_publish (b.bus, test_batch (&b, 64, NULL), b.now);
  assert_log (&f, "w ");
  g_assert_true (headway_bus_table_run (f.table, f.now));
  g_assert_cmpuint (headway_bus_get_last_id (a.bus), ==, 64);
  g_assert_cmpuint (headway_bus_get_last_id (b.bus), ==, 64);
  while (headway_bus_table_run (f.table, f.now))
    continue;
  g_assert_cmpuint (headway_bus_get_last_id (a.bus), ==, 200);
  g_assert_false (headway_bus_table_run (f.table, f.now));
  assert_log (&f, "");
  /* Work that comes up later is said again. */
  headway_bus_publish (b.bus, test_batch (&b, 33, NULL), b.now);
  assert_log (&f, "w ");
}

/* --- Closing -------------------------------------------------------------------------------- */

static void
test_closing_draining_removed (void)
{
  g_auto (TestTable) f = { 0 };
  g_auto (TestAnswer) again = { 0 };
  g_autoptr (HeadwaySubscription) reader = NULL;
  TestBus t = { 0 };

  test_table_set_up (&f, FALSE);
  t = (TestBus){ .bus = test_table_must_create (&f, "a"), .now = f.now };
  reader = test_live (&t, 0);
  headway_bus_publish (t.bus, test_batch (&t, 100, NULL), t.now);
  headway_bus_close_session (t.bus, t.now);
  test_table_lookup_fails (&f, "a", HEADWAY_ERROR_CLOSED);
  test_table_create (&f, "a", &again);
  g_assert_error (again.error, HEADWAY_ERROR, HEADWAY_ERROR_CLOSED);
  test_table_run (&f);
  assert_log (&f, "+a w ");
  test_table_lookup_fails (&f, "a", HEADWAY_ERROR_CLOSED);
  test_table_ensure (&f, "a", &again);
  g_assert_error (again.error, HEADWAY_ERROR, HEADWAY_ERROR_CLOSED);
  headway_bus_table_tick (f.table, f.now, TEST_DRAIN_US);
  g_assert_cmpuint (headway_bus_table_size (f.table), ==, 1);
  assert_reads (&t, reader, "#1..#100 closed end");
  headway_bus_table_tick (f.table, f.now, TEST_DRAIN_US);
  assert_log (&f, "-a ");
  test_table_lookup_fails (&f, "a", HEADWAY_ERROR_NO_SUCH_BUS);
  test_table_must_create (&f, "a");
}

static void
test_drain_window (void)
{
  g_auto (TestTable) f = { 0 };
  g_autoptr (HeadwaySubscription) reader = NULL;
  TestBus t = { 0 };

  test_table_set_up (&f, FALSE);
  t = (TestBus){ .bus = test_table_must_create (&f, "a"), .now = f.now };
  reader = test_live (&t, 0);
  test_table_pub (&f, t.bus, 2);
  headway_bus_close (t.bus);
  f.now = test_instant (TEST_DRAIN_US - 1);
  headway_bus_table_tick (f.table, f.now, TEST_DRAIN_US);
  assert_log (&f, "+a w ");
  f.now = test_instant (TEST_DRAIN_US);
  headway_bus_table_tick (f.table, f.now, TEST_DRAIN_US);
  assert_log (&f, "-a ");
  /* Who still holds it can read to the end. */
  assert_reads (&t, reader, "#1 #2 end");
}

static void
test_reader_leaves_while_draining (void)
{
  g_auto (TestTable) f = { 0 };
  HeadwaySubscription *reader;
  TestBus t = { 0 };

  test_table_set_up (&f, FALSE);
  t = (TestBus){ .bus = test_table_must_create (&f, "a"), .now = f.now };
  reader = test_live (&t, 0);
  test_table_pub (&f, t.bus, 2);
  headway_bus_close (t.bus);
  test_table_run (&f);
  g_assert_cmpuint (headway_bus_table_size (f.table), ==, 1);
  g_object_unref (reader);
  headway_bus_table_tick (f.table, f.now, TEST_DRAIN_US);
  g_assert_cmpuint (headway_bus_table_size (f.table), ==, 0);
}

static void
test_expiry (void)
{
  const gint64 expire_us = 100 * (gint64) G_USEC_PER_SEC;
  g_auto (TestTable) f = { 0 };
  g_autoptr (HeadwaySubscription) reader = NULL;
  TestBus t = { 0 };
  HeadwayBus *idle;

  test_table_set_up (&f, TRUE);
  headway_bus_table_get_limits (f.table)->bus_expire_seconds = 100;
  idle = test_table_must_create (&f, "idle");
  test_table_pub (&f, idle, 3);
  t = (TestBus){ .bus = test_table_must_create (&f, "read"), .now = f.now };
  reader = test_live (&t, 0);
  f.now = test_instant (expire_us - 1);
  headway_bus_table_tick (f.table, f.now, TEST_DRAIN_US);
  g_assert_cmpuint (headway_bus_table_size (f.table), ==, 2);
  f.now = test_instant (expire_us);
  headway_bus_table_tick (f.table, f.now, TEST_DRAIN_US);
  test_table_run (&f);
  assert_log (&f, "+idle +read w -idle ");
  /* Without a word, and with its mark. */
  g_assert_cmpuint (test_store_get_mark (f.store, "idle"), ==, 3);
  /* The reader's time counts until it goes. */
  g_clear_object (&reader);
  f.now = test_instant (2 * expire_us - 1);
  headway_bus_table_tick (f.table, f.now, TEST_DRAIN_US);
  g_assert_cmpuint (headway_bus_table_size (f.table), ==, 1);
  f.now = test_instant (2 * expire_us);
  headway_bus_table_tick (f.table, f.now, TEST_DRAIN_US);
  test_table_run (&f);
  assert_log (&f, "w -read ");
}

static void
test_no_expiry (void)
{
  g_auto (TestTable) f = { 0 };

  test_table_set_up (&f, FALSE);
  headway_bus_table_get_limits (f.table)->bus_expire_seconds = 0;
  test_table_must_create (&f, "a");
  f.now = test_instant (G_MAXINT64 / 2);
  headway_bus_table_tick (f.table, f.now, TEST_DRAIN_US);
  g_assert_cmpuint (headway_bus_table_size (f.table), ==, 1);
}

/* --- Shutting down -------------------------------------------------------------------------- */

static void
test_shut_down (void)
{
  g_auto (TestTable) f = { 0 };
  g_auto (TestAnswer) opening = { 0 };
  g_auto (TestAnswer) late = { 0 };
  g_autoptr (HeadwaySubscription) reader = NULL;
  TestBus t = { 0 };

  test_table_set_up (&f, TRUE);
  t = (TestBus){ .bus = test_table_must_create (&f, "a"), .now = f.now };
  reader = test_live (&t, 0);
  test_table_pub (&f, t.bus, 2);
  test_table_create (&f, "b", &opening);
  headway_bus_table_shut_down (f.table);
  headway_bus_table_shut_down (f.table);
  g_assert_error (opening.error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE);
  /* "a" will be there again; "b" never was. */
  g_assert_cmpuint (test_store_get_n_forgotten (f.store), ==, 1);
  g_assert_cmpuint (test_store_get_mark (f.store, "a"), ==, 0);
  test_table_create (&f, "c", &late);
  g_assert_error (late.error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE);
  assert_reads (&t, reader, "#1 #2 end");
  /* The store still wants its last id. */
  headway_bus_table_tick (f.table, f.now, TEST_DRAIN_US);
  test_table_run (&f);
  g_assert_cmpuint (headway_bus_table_size (f.table), ==, 1);
  test_table_lookup_fails (&f, "a", HEADWAY_ERROR_CLOSED);
}

/* Buses, subscriptions and events may outlive the table; nobody reaches back into it. */
static void
test_outlived (void)
{
  HeadwayBusTable *table;
  HeadwaySubscription *reader;
  HeadwayBus *bus;
  TestBus t = { 0 };

  {
    g_auto (TestTable) f = { 0 };

    test_table_set_up (&f, TRUE);
    table = f.table;
    g_object_add_weak_pointer (G_OBJECT (table), (gpointer *) &table);
    bus = test_table_must_create (&f, "a");
    g_object_add_weak_pointer (G_OBJECT (bus), (gpointer *) &bus);
    t = (TestBus){ .bus = bus, .now = f.now };
    reader = test_live (&t, 0);
    headway_bus_publish (bus, test_batch (&t, 100, NULL), f.now);
  }
  g_assert_null (table);
  g_assert_nonnull (bus);
  assert_reads (&t, reader, "#1..#100 end");
  g_object_unref (reader);
  g_assert_null (bus);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/bus-table/run/in-turn", test_run_in_turn);
  g_test_add_func ("/bus-table/close/closing-draining-removed", test_closing_draining_removed);
  g_test_add_func ("/bus-table/close/drain-window", test_drain_window);
  g_test_add_func ("/bus-table/close/reader-leaves-while-draining", test_reader_leaves_while_draining);
  g_test_add_func ("/bus-table/expiry/unused", test_expiry);
  g_test_add_func ("/bus-table/expiry/never", test_no_expiry);
  g_test_add_func ("/bus-table/shut-down", test_shut_down);
  g_test_add_func ("/bus-table/outlived", test_outlived);
  return g_test_run ();
}
