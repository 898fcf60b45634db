/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-life.h"

#include "wire/headway-clock.h"

#include <glib/gstdio.h>

void
test_answer_clear (TestAnswer *self)
{
  g_clear_object (&self->bus);
  g_clear_error (&self->error);
}

void
test_result_clear (TestResult *self)
{
  g_clear_error (&self->error);
}

const char *
test_life_folder (void)
{
  const char *given = g_getenv (TEST_FOLDER_ENV);

  return given != NULL ? given : g_get_user_state_dir ();
}

char *
test_life_path (const char *file)
{
  return g_build_filename (test_life_folder (), file, NULL);
}

TestLife
test_life_new (void)
{
  g_autoptr (GError) error = NULL;
  /* The thread of the last life's last write may still hold the lock. */
  TestLife self = { headway_state_store_open (test_life_folder (), 10 * G_USEC_PER_SEC, &error), NULL };

  g_assert_no_error (error);
  self.table = headway_bus_table_new (HEADWAY_BUS_STORE (self.store));
  headway_state_store_restore (self.store, self.table);
  return self;
}

void
test_life_crash (TestLife *self)
{
  gboolean is_gone = FALSE;
  GWeakRef store;

  g_weak_ref_init (&store, self->store);
  g_clear_object (&self->table);
  g_clear_object (&self->store);
  /* The last reference may go in the thread that writes, which wakes nobody. */
  while (!is_gone)
    {
      g_autoptr (GObject) alive = g_weak_ref_get (&store);

      is_gone = alive == NULL;
      g_main_context_iteration (NULL, FALSE);
      g_thread_yield ();
    }
  g_weak_ref_clear (&store);
}

void
test_life_end (TestLife *self)
{
  g_autoptr (GError) error = NULL;

  headway_bus_table_shut_down (self->table);
  g_assert_true (headway_state_store_close (self->store, &error));
  g_assert_no_error (error);
  test_life_crash (self);
}

/* --- Making and publishing ------------------------------------------------------------------ */

void
test_answer_ready (HeadwayBus *bus, const GError *error, gpointer user_data)
{
  TestAnswer *answer = user_data;

  answer->n_calls++;
  g_set_object (&answer->bus, bus);
  if (error != NULL)
    answer->error = g_error_copy (error);
}

void
test_life_begin_create (TestLife *life, const char *name, const HeadwayBusOptions *options, TestAnswer *answer)
{
  headway_bus_table_create (life->table, name, options, 1234, headway_clock_now (), test_answer_ready, answer);
}

void
test_answer_await (TestAnswer *answer)
{
  while (answer->n_calls == 0)
    g_main_context_iteration (NULL, TRUE);
  g_assert_cmpuint (answer->n_calls, ==, 1);
}

HeadwayBus *
test_life_create (TestLife *life, const char *name)
{
  g_auto (TestAnswer) answer = { 0 };

  test_life_begin_create (life, name, NULL, &answer);
  test_answer_await (&answer);
  g_assert_no_error (answer.error);
  return answer.bus;
}

HeadwayBus *
test_life_lookup (TestLife *life, const char *name)
{
  g_autoptr (GError) error = NULL;
  HeadwayBus *bus = headway_bus_table_lookup (life->table, name, &error);

  g_assert_no_error (error);
  return bus;
}

static void
on_published (HeadwayBatch *batch, const GError *error, gpointer user_data)
{
  TestResult *result = user_data;

  result->n_calls++;
  if (error != NULL)
    result->error = g_error_copy (error);
  else
    result->first_id = headway_batch_get_first_id (batch);
}

void
test_life_begin_publish (HeadwayBus *bus, guint n, TestResult *result)
{
  HeadwayBatch *batch = headway_batch_new (n, on_published, result);
  HeadwayPublication publication = {
    .type = "foo",
    .principal = headway_bus_get_system (bus),
    .data = "1",
    .data_length = 1,
  };
  g_autoptr (GError) error = NULL;

  for (guint i = 0; i < n; i++)
    {
      headway_batch_add (batch, headway_event_new (&publication, 1024, headway_clock_now (), &error));
      g_assert_no_error (error);
    }
  headway_bus_publish (bus, batch, headway_clock_now ());
}

guint64
test_life_publish (TestLife *life, HeadwayBus *bus, guint n)
{
  g_auto (TestResult) result = { 0 };

  test_life_begin_publish (bus, n, &result);
  while (headway_bus_table_run (life->table, headway_clock_now ()))
    ;
  while (result.n_calls == 0)
    g_main_context_iteration (NULL, TRUE);
  g_assert_cmpuint (result.n_calls, ==, 1);
  g_assert_no_error (result.error);
  return result.first_id;
}

void
test_life_publish_until_left (TestLife *life, HeadwayBus *bus, guint n)
{
  for (;;)
    {
      guint64 left = headway_bus_get_granted_id (bus) - headway_bus_get_last_id (bus);

      if (left == n)
        return;
      test_life_publish (life, bus, MIN (left - n, HEADWAY_BATCH_EVENTS_MAX));
    }
}

/* --- What is on the disk -------------------------------------------------------------------- */

char *
test_life_read_file (gsize *length)
{
  g_autofree char *path = test_life_path ("buses");
  g_autoptr (GError) error = NULL;
  char *text = NULL;

  g_file_get_contents (path, &text, length, &error);
  g_assert_no_error (error);
  return text;
}

HeadwayStateTable *
test_life_read_disk (void)
{
  gsize length;
  g_autofree char *text = test_life_read_file (&length);
  g_autoptr (GBytes) bytes = g_bytes_new (text, length);
  g_autofree char *damage = NULL;
  HeadwayStateTable *disk = headway_state_table_load (bytes, 0, &damage);

  g_assert_cmpstr (damage, ==, NULL);
  return disk;
}

guint64
test_life_mark_on_disk (const char *name)
{
  g_autoptr (HeadwayStateTable) disk = test_life_read_disk ();

  return headway_state_table_get_mark (disk, name);
}

gboolean
test_life_is_on_disk (const char *name)
{
  g_autoptr (HeadwayStateTable) disk = test_life_read_disk ();

  return headway_state_table_lookup (disk, name) != NULL;
}

/* A folder in the place of the new file: no table can be written. */
void
test_life_block_writing (void)
{
  g_autofree char *path = test_life_path ("buses.new");

  g_assert_cmpint (g_mkdir (path, 0700), ==, 0);
}

void
test_life_unblock_writing (void)
{
  g_autofree char *path = test_life_path ("buses.new");

  g_assert_cmpint (g_rmdir (path), ==, 0);
}

void
test_life_expect_warning (const char *pattern)
{
  g_test_expect_message ("headway", G_LOG_LEVEL_WARNING, pattern);
}

void
test_life_expect_recovery (void)
{
  g_test_expect_message ("headway", G_LOG_LEVEL_MESSAGE, "event ids can be reserved again*");
}
