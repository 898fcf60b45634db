/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-bus.h"
#include "headway-test-store.h"

#include "engine/headway-bus-table.h"
#include "engine/headway-error.h"

#include <string.h>

/* All buses by name (docs/decisions.md 2 to 6). */

#define DRAIN_US (5 * G_USEC_PER_SEC)

typedef struct
{
  HeadwayBusTable *table; /* owned */
  TestStore *store;       /* owned, nullable */
  HeadwayInstant now;
  GString *log;           /* owned: what the table signalled */
} Fixture;

/* What a caller of create or ensure was told. */
typedef struct
{
  guint n_calls;
  HeadwayBus *bus; /* owned */
  GError *error;   /* owned */
} Answer;

static void
answer_clear (Answer *self)
{
  g_clear_object (&self->bus);
  g_clear_error (&self->error);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Answer, answer_clear)

static void
on_ready (HeadwayBus *bus, const GError *error, gpointer user_data)
{
  Answer *answer = user_data;

  answer->n_calls++;
  g_assert_true ((bus == NULL) == (error != NULL));
  g_set_object (&answer->bus, bus);
  g_clear_error (&answer->error);
  answer->error = error != NULL ? g_error_copy (error) : NULL;
}

static void
on_added (HeadwayBusTable *table, HeadwayBus *bus, GString *log)
{
  g_string_append_printf (log, "+%s ", headway_bus_get_name (bus));
}

static void
on_removed (HeadwayBusTable *table, HeadwayBus *bus, GString *log)
{
  g_string_append_printf (log, "-%s ", headway_bus_get_name (bus));
}

static void
on_work (HeadwayBusTable *table, GString *log)
{
  /* Once or more often says the same. */
  if (!g_str_has_suffix (log->str, "w "))
    g_string_append (log, "w ");
}

static void
set_up (Fixture *f, gboolean has_store)
{
  f->now = test_instant (0);
  f->log = g_string_new (NULL);
  f->store = has_store ? test_store_new () : NULL;
  f->table = headway_bus_table_new (has_store ? HEADWAY_BUS_STORE (f->store) : NULL);
  g_signal_connect (f->table, "bus-added", G_CALLBACK (on_added), f->log);
  g_signal_connect (f->table, "bus-removed", G_CALLBACK (on_removed), f->log);
  g_signal_connect (f->table, "work-pending", G_CALLBACK (on_work), f->log);
}

static void
tear_down (Fixture *f)
{
  if (f->table != NULL)
    g_signal_handlers_disconnect_by_data (f->table, f->log);
  g_clear_object (&f->table);
  g_clear_object (&f->store);
  g_string_free (f->log, TRUE);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

#define assert_log(f, expected)                   \
  G_STMT_START                                    \
  {                                               \
    g_assert_cmpstr ((f)->log->str, ==, expected); \
    g_string_truncate ((f)->log, 0);              \
  }                                               \
  G_STMT_END

static void
create (Fixture *f, const char *name, Answer *answer)
{
  headway_bus_table_create (f->table, name, NULL, 1000, f->now, on_ready, answer);
}

static void
ensure (Fixture *f, const char *name, Answer *answer)
{
  headway_bus_table_ensure (f->table, name, 1001, f->now, on_ready, answer);
}

static HeadwayBus *
must_create (Fixture *f, const char *name)
{
  g_auto (Answer) answer = { 0 };

  create (f, name, &answer);
  if (f->store != NULL)
    headway_bus_table_ids_granted (f->table, test_store_get_last_bus (f->store),
                                   test_store_get_last_request (f->store), f->now);
  g_assert_no_error (answer.error);
  g_assert_cmpuint (answer.n_calls, ==, 1);
  return answer.bus;
}

static void
assert_lookup_fails (Fixture *f, const char *name, HeadwayError code)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (headway_bus_table_lookup (f->table, name, &error));
  g_assert_error (error, HEADWAY_ERROR, (int) code);
}

static void
run (Fixture *f)
{
  while (headway_bus_table_run (f->table, f->now))
    continue;
}

static void
pub (Fixture *f, HeadwayBus *bus, guint n)
{
  TestBus t = { .bus = bus, .now = f->now };

  test_pub (&t, n);
}

/* --- Creating and finding ------------------------------------------------------------------- */

static void
test_create (void)
{
  g_auto (Fixture) f = { 0 };
  g_auto (Answer) answer = { 0 };
  HeadwayBusOptions options;

  set_up (&f, FALSE);
  options = headway_bus_table_get_limits (f.table)->bus;
  options.ring_size = 5;
  assert_lookup_fails (&f, "a", HEADWAY_ERROR_NO_SUCH_BUS);
  headway_bus_table_create (f.table, "a", &options, 1000, f.now, on_ready, &answer);
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
  g_auto (Fixture) f = { 0 };
  g_auto (Answer) answer = { 0 };

  set_up (&f, FALSE);
  must_create (&f, "a");
  create (&f, "a", &answer);
  g_assert_cmpuint (answer.n_calls, ==, 1);
  g_assert_error (answer.error, HEADWAY_ERROR, HEADWAY_ERROR_BUS_EXISTS);
  g_assert_cmpuint (headway_bus_table_size (f.table), ==, 1);
}

static void
test_names (void)
{
  static const char *const bad[] = { "", ".", "..", "a/b", "a b", "\xc3\xa9" };
  g_auto (Fixture) f = { 0 };

  set_up (&f, FALSE);
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_auto (Answer) created = { 0 };
      g_auto (Answer) ensured = { 0 };
      create (&f, bad[i], &created);
      ensure (&f, bad[i], &ensured);
      g_assert_error (created.error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_NAME);
      g_assert_error (ensured.error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_NAME);
      assert_lookup_fails (&f, bad[i], HEADWAY_ERROR_INVALID_NAME);
    }
  g_assert_cmpuint (headway_bus_table_size (f.table), ==, 0);
}

static void
test_ensure (void)
{
  g_auto (Fixture) f = { 0 };
  g_auto (Answer) first = { 0 };
  g_auto (Answer) second = { 0 };
  g_auto (Answer) off = { 0 };
  g_auto (Answer) off_but_there = { 0 };

  set_up (&f, FALSE);
  ensure (&f, "a", &first);
  ensure (&f, "a", &second);
  g_assert_true (first.bus != NULL && first.bus == second.bus);
  g_assert_cmpuint (headway_bus_get_creator (first.bus), ==, 1001);
  assert_log (&f, "+a ");
  headway_bus_table_get_limits (f.table)->auto_create_buses = FALSE;
  ensure (&f, "b", &off);
  g_assert_error (off.error, HEADWAY_ERROR, HEADWAY_ERROR_NO_SUCH_BUS);
  ensure (&f, "a", &off_but_there);
  g_assert_true (off_but_there.bus == first.bus);
}

static void
test_max_buses (void)
{
  g_auto (Fixture) f = { 0 };
  g_auto (Answer) created = { 0 };
  g_auto (Answer) ensured = { 0 };
  g_auto (Answer) exists = { 0 };

  set_up (&f, FALSE);
  headway_bus_table_get_limits (f.table)->max_buses = 2;
  must_create (&f, "a");
  must_create (&f, "b");
  create (&f, "c", &created);
  ensure (&f, "c", &ensured);
  create (&f, "a", &exists);
  g_assert_error (created.error, HEADWAY_ERROR, HEADWAY_ERROR_QUOTA_EXCEEDED);
  g_assert_cmpint (headway_error_get_details (created.error)->limit, ==, 2);
  g_assert_error (ensured.error, HEADWAY_ERROR, HEADWAY_ERROR_QUOTA_EXCEEDED);
  g_assert_error (exists.error, HEADWAY_ERROR, HEADWAY_ERROR_BUS_EXISTS);
  headway_bus_close (headway_bus_table_lookup (f.table, "a", NULL));
  run (&f);
  must_create (&f, "c");
}

static void
test_list (void)
{
  static const char *const names[] = { "b", "a", "c~", "B" };
  g_auto (Fixture) f = { 0 };
  g_autoptr (GPtrArray) list = NULL;
  g_autoptr (GPtrArray) after = NULL;

  set_up (&f, FALSE);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    must_create (&f, names[i]);
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
  g_auto (Fixture) f = { 0 };
  g_autofree char *first = NULL;
  HeadwayBus *a, *b;

  set_up (&f, FALSE);
  a = must_create (&f, "a");
  b = must_create (&f, "b");
  first = g_strdup (headway_bus_get_epoch (a));
  g_assert_cmpstr (first, !=, headway_bus_get_epoch (b));
  g_assert_true (g_regex_match_simple ("^[A-Za-z0-9_-]{1,64}$", first, G_REGEX_DOLLAR_ENDONLY, 0));
  headway_bus_close (a);
  run (&f);
  g_assert_cmpstr (headway_bus_get_epoch (must_create (&f, "a")), !=, first);
}

static void
test_numbers (void)
{
  g_auto (Fixture) f = { 0 };
  HeadwayBus *buses[2];

  set_up (&f, FALSE);
  buses[0] = must_create (&f, "a");
  buses[1] = must_create (&f, "b");
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
  g_auto (Fixture) f = { 0 };
  g_auto (Answer) first = { 0 };
  g_auto (Answer) second = { 0 };
  g_auto (Answer) third = { 0 };

  set_up (&f, TRUE);
  test_store_set_mark (f.store, "a", 77);
  create (&f, "a", &first);
  create (&f, "a", &second);
  ensure (&f, "a", &third);
  g_assert_cmpuint (first.n_calls + second.n_calls + third.n_calls, ==, 0);
  assert_lookup_fails (&f, "a", HEADWAY_ERROR_NO_SUCH_BUS);
  g_assert_cmpuint (test_store_get_n_requests (f.store), ==, 1);
  g_assert_cmpuint (test_store_get_last_request (f.store), ==, 10077);
  assert_log (&f, "");
  headway_bus_table_ids_granted (f.table, test_store_get_last_bus (f.store), 10077, f.now);
  assert_log (&f, "+a ");
  g_assert_no_error (first.error);
  g_assert_error (second.error, HEADWAY_ERROR, HEADWAY_ERROR_BUS_EXISTS);
  g_assert_true (third.bus == first.bus);
  pub (&f, first.bus, 1);
  g_assert_cmpuint (headway_bus_get_last_id (first.bus), ==, 78);
}

static void
test_refused (void)
{
  g_auto (Fixture) f = { 0 };
  g_auto (Answer) first = { 0 };
  g_auto (Answer) second = { 0 };
  g_autoptr (HeadwayBus) late = NULL;

  set_up (&f, TRUE);
  create (&f, "a", &first);
  ensure (&f, "a", &second);
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
  must_create (&f, "a");
  headway_bus_table_ids_granted (f.table, late, 10000, f.now);
  headway_bus_table_ids_refused (f.table, late, "again");
  g_assert_cmpuint (headway_bus_table_size (f.table), ==, 1);
}

static void
test_ids_wait (void)
{
  g_auto (Fixture) f = { 0 };
  g_auto (Answer) answer = { 0 };
  g_auto (TestResult) result = { 0 };
  TestBus t = { 0 };

  set_up (&f, TRUE);
  create (&f, "slow", &answer);
  f.now = test_instant (DRAIN_US - 1);
  headway_bus_table_tick (f.table, f.now, DRAIN_US);
  g_assert_cmpuint (answer.n_calls, ==, 0);
  f.now = test_instant (DRAIN_US);
  headway_bus_table_tick (f.table, f.now, DRAIN_US);
  g_assert_error (answer.error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE);
  g_assert_cmpuint (headway_bus_table_size (f.table), ==, 0);

  t.bus = must_create (&f, "a");
  t.now = f.now;
  for (guint i = 0; i < 3; i++)
    headway_bus_publish (t.bus, test_batch (&t, 4000, &result), t.now);
  run (&f);
  g_assert_cmpuint (result.n_calls, ==, 2);
  g_assert_no_error (result.error);
  f.now = test_instant (2 * DRAIN_US - 1);
  headway_bus_table_tick (f.table, f.now, DRAIN_US);
  g_assert_cmpuint (result.n_calls, ==, 2);
  f.now = test_instant (2 * DRAIN_US);
  headway_bus_table_tick (f.table, f.now, DRAIN_US);
  g_assert_cmpuint (result.n_calls, ==, 3);
  g_assert_error (result.error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE);
  g_assert_cmpuint (headway_bus_get_last_id (t.bus), ==, 8000);
}

/* A closed bus leaves its mark: a new one of that name goes on behind it. */
static void
test_goes_on_behind_the_mark (void)
{
  g_auto (Fixture) f = { 0 };
  HeadwayBus *bus;

  set_up (&f, TRUE);
  bus = must_create (&f, "a");
  pub (&f, bus, 5);
  headway_bus_close_session (bus, f.now);
  g_assert_cmpuint (test_store_get_n_forgotten (f.store), ==, 1);
  run (&f);
  assert_lookup_fails (&f, "a", HEADWAY_ERROR_NO_SUCH_BUS);
  bus = must_create (&f, "a");
  pub (&f, bus, 1);
  g_assert_cmpuint (headway_bus_get_last_id (bus), ==, 7);
}

static void
test_restore (void)
{
  g_auto (Fixture) f = { 0 };
  HeadwayBus *bus;

  set_up (&f, TRUE);
  bus = headway_bus_table_restore (f.table, "a", 500, 600, &headway_bus_table_get_limits (f.table)->bus, 42, f.now);
  assert_log (&f, "+a ");
  g_assert_true (headway_bus_table_lookup (f.table, "a", NULL) == bus);
  g_assert_cmpuint (headway_bus_get_creator (bus), ==, 42);
  g_assert_cmpuint (headway_bus_get_granted_id (bus), ==, 600);
  pub (&f, bus, 1);
  g_assert_cmpuint (headway_bus_get_last_id (bus), ==, 501);
  pub (&f, bus, 100);
  g_assert_cmpuint (headway_bus_get_last_id (bus), ==, 600);
  g_assert_true (headway_bus_is_waiting_for_ids (bus));
}

/* --- Running -------------------------------------------------------------------------------- */

static void
test_run_in_turn (void)
{
  g_auto (Fixture) f = { 0 };
  TestBus a = { 0 };
  TestBus b = { 0 };

  set_up (&f, FALSE);
  a = (TestBus){ .bus = must_create (&f, "a"), .now = f.now };
  b = (TestBus){ .bus = must_create (&f, "b"), .now = f.now };
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
  g_auto (Fixture) f = { 0 };
  g_auto (Answer) again = { 0 };
  g_autoptr (HeadwaySubscription) reader = NULL;
  TestBus t = { 0 };

  set_up (&f, FALSE);
  t = (TestBus){ .bus = must_create (&f, "a"), .now = f.now };
  reader = test_live (&t, 0);
  headway_bus_publish (t.bus, test_batch (&t, 100, NULL), t.now);
  headway_bus_close_session (t.bus, t.now);
  assert_lookup_fails (&f, "a", HEADWAY_ERROR_CLOSED);
  create (&f, "a", &again);
  g_assert_error (again.error, HEADWAY_ERROR, HEADWAY_ERROR_CLOSED);
  run (&f);
  assert_log (&f, "+a w ");
  assert_lookup_fails (&f, "a", HEADWAY_ERROR_CLOSED);
  ensure (&f, "a", &again);
  g_assert_error (again.error, HEADWAY_ERROR, HEADWAY_ERROR_CLOSED);
  headway_bus_table_tick (f.table, f.now, DRAIN_US);
  g_assert_cmpuint (headway_bus_table_size (f.table), ==, 1);
  assert_reads (&t, reader, "#1..#100 closed end");
  headway_bus_table_tick (f.table, f.now, DRAIN_US);
  assert_log (&f, "-a ");
  assert_lookup_fails (&f, "a", HEADWAY_ERROR_NO_SUCH_BUS);
  must_create (&f, "a");
}

static void
test_drain_window (void)
{
  g_auto (Fixture) f = { 0 };
  g_autoptr (HeadwaySubscription) reader = NULL;
  TestBus t = { 0 };

  set_up (&f, FALSE);
  t = (TestBus){ .bus = must_create (&f, "a"), .now = f.now };
  reader = test_live (&t, 0);
  pub (&f, t.bus, 2);
  headway_bus_close (t.bus);
  f.now = test_instant (DRAIN_US - 1);
  headway_bus_table_tick (f.table, f.now, DRAIN_US);
  assert_log (&f, "+a w ");
  f.now = test_instant (DRAIN_US);
  headway_bus_table_tick (f.table, f.now, DRAIN_US);
  assert_log (&f, "-a ");
  /* Who still holds it can read to the end. */
  assert_reads (&t, reader, "#1 #2 end");
}

static void
test_reader_leaves_while_draining (void)
{
  g_auto (Fixture) f = { 0 };
  HeadwaySubscription *reader;
  TestBus t = { 0 };

  set_up (&f, FALSE);
  t = (TestBus){ .bus = must_create (&f, "a"), .now = f.now };
  reader = test_live (&t, 0);
  pub (&f, t.bus, 2);
  headway_bus_close (t.bus);
  run (&f);
  g_assert_cmpuint (headway_bus_table_size (f.table), ==, 1);
  g_object_unref (reader);
  headway_bus_table_tick (f.table, f.now, DRAIN_US);
  g_assert_cmpuint (headway_bus_table_size (f.table), ==, 0);
}

static void
test_expiry (void)
{
  const gint64 expire_us = 100 * (gint64) G_USEC_PER_SEC;
  g_auto (Fixture) f = { 0 };
  g_autoptr (HeadwaySubscription) reader = NULL;
  TestBus t = { 0 };
  HeadwayBus *idle;

  set_up (&f, TRUE);
  headway_bus_table_get_limits (f.table)->bus_expire_seconds = 100;
  idle = must_create (&f, "idle");
  pub (&f, idle, 3);
  t = (TestBus){ .bus = must_create (&f, "read"), .now = f.now };
  reader = test_live (&t, 0);
  f.now = test_instant (expire_us - 1);
  headway_bus_table_tick (f.table, f.now, DRAIN_US);
  g_assert_cmpuint (headway_bus_table_size (f.table), ==, 2);
  f.now = test_instant (expire_us);
  headway_bus_table_tick (f.table, f.now, DRAIN_US);
  run (&f);
  assert_log (&f, "+idle +read w -idle ");
  /* Without a word, and with its mark. */
  g_assert_cmpuint (test_store_get_mark (f.store, "idle"), ==, 3);
  /* The reader's time counts until it goes. */
  g_clear_object (&reader);
  f.now = test_instant (2 * expire_us - 1);
  headway_bus_table_tick (f.table, f.now, DRAIN_US);
  g_assert_cmpuint (headway_bus_table_size (f.table), ==, 1);
  f.now = test_instant (2 * expire_us);
  headway_bus_table_tick (f.table, f.now, DRAIN_US);
  run (&f);
  assert_log (&f, "w -read ");
}

static void
test_no_expiry (void)
{
  g_auto (Fixture) f = { 0 };

  set_up (&f, FALSE);
  headway_bus_table_get_limits (f.table)->bus_expire_seconds = 0;
  must_create (&f, "a");
  f.now = test_instant (G_MAXINT64 / 2);
  headway_bus_table_tick (f.table, f.now, DRAIN_US);
  g_assert_cmpuint (headway_bus_table_size (f.table), ==, 1);
}

/* --- Shutting down -------------------------------------------------------------------------- */

static void
test_shut_down (void)
{
  g_auto (Fixture) f = { 0 };
  g_auto (Answer) opening = { 0 };
  g_auto (Answer) late = { 0 };
  g_autoptr (HeadwaySubscription) reader = NULL;
  TestBus t = { 0 };

  set_up (&f, TRUE);
  t = (TestBus){ .bus = must_create (&f, "a"), .now = f.now };
  reader = test_live (&t, 0);
  pub (&f, t.bus, 2);
  create (&f, "b", &opening);
  headway_bus_table_shut_down (f.table);
  headway_bus_table_shut_down (f.table);
  g_assert_error (opening.error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE);
  /* "a" will be there again; "b" never was. */
  g_assert_cmpuint (test_store_get_n_forgotten (f.store), ==, 1);
  g_assert_cmpuint (test_store_get_mark (f.store, "a"), ==, 0);
  create (&f, "c", &late);
  g_assert_error (late.error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE);
  assert_reads (&t, reader, "#1 #2 end");
  /* The store still wants its last id. */
  headway_bus_table_tick (f.table, f.now, DRAIN_US);
  run (&f);
  g_assert_cmpuint (headway_bus_table_size (f.table), ==, 1);
  assert_lookup_fails (&f, "a", HEADWAY_ERROR_CLOSED);
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
    g_auto (Fixture) f = { 0 };

    set_up (&f, TRUE);
    table = f.table;
    g_object_add_weak_pointer (G_OBJECT (table), (gpointer *) &table);
    bus = must_create (&f, "a");
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

static void
add_life_tests (void)
{
  g_test_add_func ("/bus-table/run/in-turn", test_run_in_turn);
  g_test_add_func ("/bus-table/close/closing-draining-removed", test_closing_draining_removed);
  g_test_add_func ("/bus-table/close/drain-window", test_drain_window);
  g_test_add_func ("/bus-table/close/reader-leaves-while-draining", test_reader_leaves_while_draining);
  g_test_add_func ("/bus-table/expiry/unused", test_expiry);
  g_test_add_func ("/bus-table/expiry/never", test_no_expiry);
  g_test_add_func ("/bus-table/shut-down", test_shut_down);
  g_test_add_func ("/bus-table/outlived", test_outlived);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, G_TEST_OPTION_ISOLATE_DIRS, NULL);
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
  add_life_tests ();
  return g_test_run ();
}
