/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-table.h"

void
test_answer_clear (TestAnswer *self)
{
  g_clear_object (&self->bus);
  g_clear_error (&self->error);
}

void
test_on_ready (HeadwayBus *bus, const GError *error, gpointer user_data)
{
  TestAnswer *answer = user_data;

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

void
test_table_set_up (TestTable *f, gboolean has_store)
{
  f->now = test_instant (0);
  f->log = g_string_new (NULL);
  f->store = has_store ? test_store_new () : NULL;
  f->table = headway_bus_table_new (has_store ? HEADWAY_BUS_STORE (f->store) : NULL);
  g_signal_connect (f->table, "bus-added", G_CALLBACK (on_added), f->log);
  g_signal_connect (f->table, "bus-removed", G_CALLBACK (on_removed), f->log);
  g_signal_connect (f->table, "work-pending", G_CALLBACK (on_work), f->log);
}

void
test_table_clear (TestTable *f)
{
  if (f->table != NULL)
    g_signal_handlers_disconnect_by_data (f->table, f->log);
  g_clear_object (&f->table);
  g_clear_object (&f->store);
  g_string_free (f->log, TRUE);
}

void
test_table_create (TestTable *f, const char *name, TestAnswer *answer)
{
  headway_bus_table_create (f->table, name, NULL, 1000, f->now, test_on_ready, answer);
}

void
test_table_ensure (TestTable *f, const char *name, TestAnswer *answer)
{
  headway_bus_table_ensure (f->table, name, 1001, f->now, test_on_ready, answer);
}

HeadwayBus *
test_table_must_create (TestTable *f, const char *name)
{
  g_auto (TestAnswer) answer = { 0 };

  test_table_create (f, name, &answer);
  if (f->store != NULL)
    headway_bus_table_ids_granted (f->table, test_store_get_last_bus (f->store),
                                   test_store_get_last_request (f->store), f->now);
  g_assert_no_error (answer.error);
  g_assert_cmpuint (answer.n_calls, ==, 1);
  return answer.bus;
}

void
test_table_lookup_fails (TestTable *f, const char *name, HeadwayError code)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (headway_bus_table_lookup (f->table, name, &error));
  g_assert_error (error, HEADWAY_ERROR, (int) code);
}

void
test_table_run (TestTable *f)
{
  while (headway_bus_table_run (f->table, f->now))
    continue;
}

void
test_table_pub (TestTable *f, HeadwayBus *bus, guint n)
{
  TestBus t = { .bus = bus, .now = f->now };

  test_pub (&t, n);
}
