/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "daemon/headway-state-store.h"
#include "daemon/headway-state-table.h"
#include "engine/headway-error.h"
#include "wire/headway-clock.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* The store on a real folder, with a real bus table and worker thread. */

#define ID_BLOCK     10000
#define FOLDER_ENV   "HEADWAY_TEST_FOLDER"
#define EXIT_SKIPPED 77

/* --- One life of the daemon ----------------------------------------------------------------- */

typedef struct
{
  HeadwayStateStore *store; /* owned */
  HeadwayBusTable *table;   /* owned */
} Life;

typedef struct
{
  guint n_calls;
  HeadwayBus *bus; /* owned, nullable */
  GError *error;   /* owned, nullable */
} Answer;

typedef struct
{
  guint n_calls;
  guint64 first_id;
  GError *error; /* owned, nullable */
} Result;

static void
answer_clear (Answer *self)
{
  g_clear_object (&self->bus);
  g_clear_error (&self->error);
}

static void
result_clear (Result *self)
{
  g_clear_error (&self->error);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Answer, answer_clear)
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Result, result_clear)

static const char *
folder (void)
{
  const char *given = g_getenv (FOLDER_ENV);

  return given != NULL ? given : g_get_user_state_dir ();
}

static char *
path_of (const char *file)
{
  return g_build_filename (folder (), file, NULL);
}

static Life
life_new (void)
{
  g_autoptr (GError) error = NULL;
  /* The thread of the last life's last write may still hold the lock. */
  Life self = { headway_state_store_open (folder (), 10 * G_USEC_PER_SEC, &error), NULL };

  g_assert_no_error (error);
  self.table = headway_bus_table_new (HEADWAY_BUS_STORE (self.store));
  headway_state_store_restore (self.store, self.table);
  return self;
}

/* Without a word to the disk, but for what is under way there. */
static void
life_crash (Life *self)
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

static void
life_end (Life *self)
{
  g_autoptr (GError) error = NULL;

  headway_bus_table_shut_down (self->table);
  g_assert_true (headway_state_store_close (self->store, &error));
  g_assert_no_error (error);
  life_crash (self);
}

/* --- Making and publishing ------------------------------------------------------------------ */

static void
on_ready (HeadwayBus *bus, const GError *error, gpointer user_data)
{
  Answer *answer = user_data;

  answer->n_calls++;
  g_set_object (&answer->bus, bus);
  if (error != NULL)
    answer->error = g_error_copy (error);
}

static void
begin_create (Life *life, const char *name, const HeadwayBusOptions *options, Answer *answer)
{
  headway_bus_table_create (life->table, name, options, 1234, headway_clock_now (), on_ready, answer);
}

static void
await_answer (Answer *answer)
{
  while (answer->n_calls == 0)
    g_main_context_iteration (NULL, TRUE);
  g_assert_cmpuint (answer->n_calls, ==, 1);
}

/* Returns: (transfer none). */
static HeadwayBus *
create (Life *life, const char *name)
{
  g_auto (Answer) answer = { 0 };

  begin_create (life, name, NULL, &answer);
  await_answer (&answer);
  g_assert_no_error (answer.error);
  return answer.bus;
}

static void
assert_cannot_create (Life *life, const char *name)
{
  g_auto (Answer) answer = { 0 };
  g_autoptr (GError) error = NULL;

  begin_create (life, name, NULL, &answer);
  await_answer (&answer);
  g_assert_error (answer.error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE);
  g_assert_null (headway_bus_table_lookup (life->table, name, &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_NO_SUCH_BUS);
}

static HeadwayBus *
lookup (Life *life, const char *name)
{
  g_autoptr (GError) error = NULL;
  HeadwayBus *bus = headway_bus_table_lookup (life->table, name, &error);

  g_assert_no_error (error);
  return bus;
}

static void
on_published (HeadwayBatch *batch, const GError *error, gpointer user_data)
{
  Result *result = user_data;

  result->n_calls++;
  if (error != NULL)
    result->error = g_error_copy (error);
  else
    result->first_id = headway_batch_get_first_id (batch);
}

static void
begin_publish (HeadwayBus *bus, guint n, Result *result)
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

/* Publishes @n events; returns the id of the first. */
static guint64
publish (Life *life, HeadwayBus *bus, guint n)
{
  g_auto (Result) result = { 0 };

  begin_publish (bus, n, &result);
  while (headway_bus_table_run (life->table, headway_clock_now ()))
    ;
  while (result.n_calls == 0)
    g_main_context_iteration (NULL, TRUE);
  g_assert_cmpuint (result.n_calls, ==, 1);
  g_assert_no_error (result.error);
  return result.first_id;
}

/* Publishes within the block that is granted until exactly @n ids of it are left. */
static void
publish_until_left (Life *life, HeadwayBus *bus, guint n)
{
  for (;;)
    {
      guint64 left = headway_bus_get_granted_id (bus) - headway_bus_get_last_id (bus);

      if (left == n)
        return;
      publish (life, bus, MIN (left - n, HEADWAY_BATCH_EVENTS_MAX));
    }
}

static void
assert_cannot_publish (Life *life, HeadwayBus *bus)
{
  guint64 last_id = headway_bus_get_last_id (bus);
  g_auto (Result) result = { 0 };

  begin_publish (bus, 1, &result);
  while (result.n_calls == 0)
    g_main_context_iteration (NULL, TRUE);
  g_assert_error (result.error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE);
  g_assert_cmpuint (headway_bus_get_last_id (bus), ==, last_id);
}

/* --- What is on the disk -------------------------------------------------------------------- */

static char *
read_file (gsize *length)
{
  g_autofree char *path = path_of ("buses");
  g_autoptr (GError) error = NULL;
  char *text = NULL;

  g_file_get_contents (path, &text, length, &error);
  g_assert_no_error (error);
  return text;
}

static void
write_file (const char *text, gsize length)
{
  g_autofree char *path = path_of ("buses");
  g_autoptr (GError) error = NULL;

  g_file_set_contents (path, text, length, &error);
  g_assert_no_error (error);
}

static HeadwayStateTable *
read_disk (void)
{
  gsize length;
  g_autofree char *text = read_file (&length);
  g_autoptr (GBytes) bytes = g_bytes_new (text, length);
  g_autofree char *damage = NULL;
  HeadwayStateTable *disk = headway_state_table_load (bytes, 0, &damage);

  g_assert_cmpstr (damage, ==, NULL);
  return disk;
}

static guint64
mark_on_disk (const char *name)
{
  g_autoptr (HeadwayStateTable) disk = read_disk ();

  return headway_state_table_get_mark (disk, name);
}

static gboolean
is_on_disk (const char *name)
{
  g_autoptr (HeadwayStateTable) disk = read_disk ();

  return headway_state_table_lookup (disk, name) != NULL;
}

/* A folder in the place of the new file: no table can be written. */
static void
block_writing (void)
{
  g_autofree char *path = path_of ("buses.new");

  g_assert_cmpint (g_mkdir (path, 0700), ==, 0);
}

static void
unblock_writing (void)
{
  g_autofree char *path = path_of ("buses.new");

  g_assert_cmpint (g_rmdir (path), ==, 0);
}

/* A FIFO in the place of the new file: the writer hangs in open(), as on a disk that does not answer. */
static void
stall_writing (void)
{
  g_autofree char *path = path_of ("buses.new");

  g_assert_cmpint (mkfifo (path, 0600), ==, 0);
}

/* The write that hangs comes back, with an error, since a FIFO cannot be synced. */
static void
unstall_writing (void)
{
  g_autofree char *path = path_of ("buses.new");
  int fd = open (path, O_RDWR | O_NONBLOCK | O_CLOEXEC);

  g_assert_cmpint (fd, >=, 0);
  while (g_file_test (path, G_FILE_TEST_EXISTS))
    g_thread_yield ();
  g_close (fd, NULL);
}

/* How often a new table has taken the old one's place since @watch was made. */
static guint
count_renames (int watch)
{
  char buffer[16384] __attribute__ ((aligned (__alignof__(struct inotify_event))));
  gssize length = read (watch, buffer, sizeof buffer);
  guint n = 0;

  for (gssize at = 0; at < length;)
    {
      struct inotify_event *event = (struct inotify_event *) (buffer + at);

      n += (event->mask & IN_MOVED_TO) != 0 ? 1 : 0;
      at += sizeof *event + event->len;
    }
  return n;
}

static int
watch_renames (void)
{
  int watch = inotify_init1 (IN_NONBLOCK | IN_CLOEXEC);

  /* Two events a rename: equal ones in a row would become one. */
  g_assert_cmpint (inotify_add_watch (watch, folder (), IN_MOVED_FROM | IN_MOVED_TO), >=, 0);
  return watch;
}

static void
expect_warning (const char *pattern)
{
  g_test_expect_message ("headway", G_LOG_LEVEL_WARNING, pattern);
}

static void
expect_recovery (void)
{
  g_test_expect_message ("headway", G_LOG_LEVEL_MESSAGE, "event ids can be reserved again*");
}

/* --- Blocks of ids -------------------------------------------------------------------------- */

static void
on_ready_check_disk (HeadwayBus *bus, const GError *error, gpointer user_data)
{
  g_assert_no_error (error);
  g_assert_cmpuint (mark_on_disk ("alpha"), >=, ID_BLOCK);
  g_assert_true (is_on_disk ("alpha"));
  on_ready (bus, error, user_data);
}

static void
test_create_answers_when_block_is_on_disk (void)
{
  Life life = life_new ();
  g_auto (Answer) answer = { 0 };

  headway_bus_table_create (life.table, "alpha", NULL, 0, headway_clock_now (), on_ready_check_disk, &answer);
  g_assert_cmpuint (answer.n_calls, ==, 0);
  await_answer (&answer);
  g_assert_cmpuint (headway_bus_get_granted_id (answer.bus), ==, ID_BLOCK);
  g_assert_cmpuint (publish (&life, answer.bus, 1), ==, 1);
  life_end (&life);
}

static void
test_stalled_disk_fails_creates_after_five_seconds (void)
{
  Life life = life_new ();
  HeadwayInstant later = headway_clock_now ();
  g_auto (Answer) answer = { 0 };

  stall_writing ();
  begin_create (&life, "alpha", NULL, &answer);
  later.monotonic_us += 4900000;
  headway_bus_table_tick (life.table, later, 0);
  while (g_main_context_iteration (NULL, FALSE))
    ;
  g_assert_cmpuint (answer.n_calls, ==, 0);
  later.monotonic_us += 200000;
  headway_bus_table_tick (life.table, later, 0);
  await_answer (&answer);
  g_assert_error (answer.error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE);

  expect_warning ("no event ids can be reserved*");
  expect_recovery ();
  unstall_writing ();
  g_assert_cmpuint (publish (&life, create (&life, "alpha"), 1), ==, 1);
  g_test_assert_expected_messages ();
  life_end (&life);
}

static void
test_reservations_are_coalesced (void)
{
  Life life = life_new ();
  Answer answers[100] = { 0 };
  int watch = watch_renames ();

  for (guint i = 0; i < G_N_ELEMENTS (answers); i++)
    {
      g_autofree char *name = g_strdup_printf ("bus%u", i);

      begin_create (&life, name, NULL, &answers[i]);
    }
  for (guint i = 0; i < G_N_ELEMENTS (answers); i++)
    {
      await_answer (&answers[i]);
      g_assert_no_error (answers[i].error);
      answer_clear (&answers[i]);
    }
  /* The first alone, and all that came meanwhile together. */
  g_assert_cmpuint (count_renames (watch), ==, 2);
  g_close (watch, NULL);
  life_end (&life);
}

static void
test_next_block_comes_before_the_last_is_used_up (void)
{
  Life life = life_new ();
  HeadwayBus *bus = create (&life, "alpha");

  publish (&life, bus, 4096);
  publish (&life, bus, ID_BLOCK / 2 - 4096);
  g_assert_cmpuint (headway_bus_get_granted_id (bus), ==, ID_BLOCK);
  publish (&life, bus, 1);
  while (headway_bus_get_granted_id (bus) == ID_BLOCK)
    g_main_context_iteration (NULL, TRUE);
  /* Ten seconds at the present rate, which is high here. */
  g_assert_cmpuint (headway_bus_get_granted_id (bus), >, 2 * ID_BLOCK);
  g_assert_cmpuint (mark_on_disk ("alpha"), ==, headway_bus_get_granted_id (bus));
  life_end (&life);
}

static void
test_publishes_wait_for_ids_in_order (void)
{
  Life life = life_new ();
  HeadwayBus *bus = create (&life, "alpha");
  Result results[3] = { 0 };

  /* Nothing is granted while the main loop does not run. */
  publish_until_left (&life, bus, 1);
  begin_publish (bus, 2, &results[0]);
  begin_publish (bus, 1, &results[1]);
  begin_publish (bus, 5, &results[2]);
  g_assert_cmpuint (results[0].n_calls + results[1].n_calls + results[2].n_calls, ==, 0);
  g_assert_true (headway_bus_is_waiting_for_ids (bus));
  while (results[2].n_calls == 0)
    g_main_context_iteration (NULL, TRUE);
  g_assert_cmpuint (results[0].first_id, ==, ID_BLOCK);
  g_assert_cmpuint (results[1].first_id, ==, ID_BLOCK + 2);
  g_assert_cmpuint (results[2].first_id, ==, ID_BLOCK + 3);
  life_end (&life);
}

/* --- Over the end --------------------------------------------------------------------------- */

static void
test_clean_end_keeps_the_exact_mark (void)
{
  Life life = life_new ();

  publish (&life, create (&life, "alpha"), 7);
  create (&life, "unused");
  life_end (&life);
  g_assert_cmpuint (mark_on_disk ("alpha"), ==, 7);

  life = life_new ();
  g_assert_cmpuint (mark_on_disk ("alpha"), ==, 7 + ID_BLOCK);
  g_assert_cmpuint (publish (&life, lookup (&life, "alpha"), 1), ==, 8);
  g_assert_cmpuint (publish (&life, lookup (&life, "unused"), 1), ==, 1);
  life_end (&life);
}

static void
test_crash_goes_on_behind_the_block (void)
{
  Life life = life_new ();

  publish (&life, create (&life, "alpha"), 7);
  life_crash (&life);
  life = life_new ();
  g_assert_cmpuint (publish (&life, lookup (&life, "alpha"), 1), ==, ID_BLOCK + 1);
  life_crash (&life);
  /* One that used nothing still gives up what it was granted. */
  life = life_new ();
  life_crash (&life);
  life = life_new ();
  g_assert_cmpuint (publish (&life, lookup (&life, "alpha"), 1), ==, 3 * ID_BLOCK + 1);
  life_end (&life);
}

static void
test_restore_brings_everything_but_the_epoch (void)
{
  Life life = life_new ();
  g_auto (Answer) answer = { 0 };
  g_autofree char *epoch = NULL;
  HeadwayBusOptions options = { 11, 22222, 33, 44444, 55, 66666 };
  HeadwayBus *bus;

  begin_create (&life, "a.b~c-d_e", &options, &answer);
  await_answer (&answer);
  epoch = g_strdup (headway_bus_get_epoch (answer.bus));
  answer_clear (&answer);
  life_end (&life);

  life = life_new ();
  bus = lookup (&life, "a.b~c-d_e");
  for (const HeadwayBusOptionSpec *spec = headway_bus_option_specs (); spec->key != NULL; spec++)
    g_assert_cmpuint (headway_bus_options_get (headway_bus_get_options (bus), spec), ==,
                      headway_bus_options_get (&options, spec));
  g_assert_cmpuint (headway_bus_get_creator (bus), ==, 1234);
  g_assert_cmpstr (headway_bus_get_epoch (bus), !=, epoch);
  life_end (&life);
}

static void
test_closed_bus_leaves_its_mark (void)
{
  Life life = life_new ();
  HeadwayBus *bus = create (&life, "alpha");
  g_autofree char *epoch = g_strdup (headway_bus_get_epoch (bus));

  publish (&life, bus, 7);
  headway_bus_close (bus);
  while (headway_bus_table_run (life.table, headway_clock_now ()))
    ;
  bus = create (&life, "alpha");
  g_assert_cmpstr (headway_bus_get_epoch (bus), !=, epoch);
  g_assert_cmpuint (publish (&life, bus, 3), ==, 8);
  headway_bus_close (bus);
  life_end (&life);

  life = life_new ();
  g_assert_cmpuint (headway_bus_table_size (life.table), ==, 0);
  g_assert_false (is_on_disk ("alpha"));
  g_assert_cmpuint (publish (&life, create (&life, "alpha"), 1), ==, 11);
  g_assert_cmpuint (publish (&life, create (&life, "other"), 1), ==, 1);
  life_end (&life);
}

static void
test_close_is_on_disk_soon (void)
{
  Life life = life_new ();
  HeadwayBus *bus = create (&life, "alpha");

  publish (&life, bus, 7);
  headway_bus_close (bus);
  while (is_on_disk ("alpha"))
    g_main_context_iteration (NULL, TRUE);
  g_assert_cmpuint (mark_on_disk ("alpha"), ==, 7);
  life_crash (&life);
}

static void
test_end_that_cannot_be_written_leaves_the_blocks (void)
{
  Life life = life_new ();
  g_autoptr (GError) error = NULL;

  publish (&life, create (&life, "alpha"), 7);
  block_writing ();
  headway_bus_table_shut_down (life.table);
  g_assert_false (headway_state_store_close (life.store, &error));
  g_assert_nonnull (error);
  life_crash (&life);
  unblock_writing ();

  life = life_new ();
  g_assert_cmpuint (publish (&life, lookup (&life, "alpha"), 1), ==, ID_BLOCK + 1);
  life_end (&life);
}

static void
test_what_a_crash_left_half_written_is_no_matter (void)
{
  Life life = life_new ();
  g_autofree char *path = path_of ("buses.new");

  publish (&life, create (&life, "alpha"), 7);
  life_end (&life);
  g_assert_true (g_file_set_contents (path, "headway-state 1\n0000", -1, NULL));
  life = life_new ();
  g_assert_cmpuint (publish (&life, lookup (&life, "alpha"), 1), ==, 8);
  life_end (&life);
}

/* --- The lock ------------------------------------------------------------------------------- */

static void
test_second_instance_is_refused (void)
{
  Life life = life_new ();
  g_autoptr (GError) error = NULL;

  g_assert_null (headway_state_store_open (folder (), 0, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_BUSY);
  g_assert_nonnull (strstr (error->message, folder ()));
  g_clear_error (&error);
  g_assert_null (headway_state_store_open (folder (), 50000, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_BUSY);
  life_end (&life);
}

static gpointer
open_and_wait (gpointer data)
{
  gint *has_opened = data;
  HeadwayStateStore *store = headway_state_store_open (folder (), 60 * G_USEC_PER_SEC, NULL);

  g_atomic_int_set (has_opened, TRUE);
  return store;
}

static gboolean
on_time (gpointer data)
{
  *(gboolean *) data = TRUE;
  return G_SOURCE_REMOVE;
}

static void
test_second_instance_waits_for_the_first (void)
{
  Life life = life_new ();
  gboolean is_time = FALSE;
  gint has_opened = FALSE;
  GThread *thread;

  publish (&life, create (&life, "alpha"), 7);
  thread = g_thread_new ("second", open_and_wait, &has_opened);
  g_timeout_add (100, on_time, &is_time);
  while (!is_time)
    g_main_context_iteration (NULL, TRUE);
  g_assert_false (g_atomic_int_get (&has_opened));
  life_end (&life);

  life.store = g_thread_join (thread);
  g_assert_nonnull (life.store);
  life.table = headway_bus_table_new (HEADWAY_BUS_STORE (life.store));
  headway_state_store_restore (life.store, life.table);
  g_assert_cmpuint (publish (&life, lookup (&life, "alpha"), 1), ==, 8);
  life_end (&life);
}

/* --- Folders and disks that refuse ---------------------------------------------------------- */

static void
test_folder_that_is_a_file (void)
{
  g_autofree char *path = path_of ("file");
  g_autoptr (GError) error = NULL;

  g_assert_cmpint (g_mkdir_with_parents (folder (), 0700), ==, 0);
  g_assert_true (g_file_set_contents (path, "", 0, NULL));
  g_assert_null (headway_state_store_open (path, 0, &error));
  g_assert_nonnull (error);
  g_assert_nonnull (strstr (error->message, path));
}

/* A subprocess runs with the folder of its parent, as nobody where that was root. */
static void
test_folder_without_permission (void)
{
  g_autoptr (GError) error = NULL;

  if (g_test_subprocess ())
    {
      if (getuid () == 0)
        g_assert_true (setgroups (0, NULL) == 0 && setgid (65534) == 0 && setuid (65534) == 0);
      g_assert_null (headway_state_store_open (folder (), 0, &error));
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED);
      return;
    }
  g_assert_cmpint (g_mkdir_with_parents (folder (), 0500), ==, 0);
  g_setenv (FOLDER_ENV, folder (), TRUE);
  g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
  g_unsetenv (FOLDER_ENV);
  g_test_trap_assert_passed ();
}

/* What a full disk must not do, and what it does: @fill and @empty act on the disk. */
static void
check_full_disk (void (*fill) (void), void (*empty) (void))
{
  Life life = life_new ();
  HeadwayBus *bus = create (&life, "alpha");

  expect_warning ("no event ids can be reserved*");
  fill ();
  assert_cannot_create (&life, "beta");
  /* What is granted is used up to the last id. */
  publish_until_left (&life, bus, 0);
  g_assert_cmpuint (headway_bus_get_last_id (bus), ==, ID_BLOCK);
  assert_cannot_publish (&life, bus);
  assert_cannot_publish (&life, bus);
  assert_cannot_create (&life, "beta");
  g_assert_cmpuint (mark_on_disk ("alpha"), ==, ID_BLOCK);
  /* It is told once. */
  g_test_assert_expected_messages ();

  expect_recovery ();
  empty ();
  g_assert_cmpuint (publish (&life, bus, 1), ==, ID_BLOCK + 1);
  g_assert_cmpuint (publish (&life, create (&life, "beta"), 1), ==, 1);
  g_test_assert_expected_messages ();
  life_crash (&life);

  life = life_new ();
  g_assert_cmpuint (publish (&life, lookup (&life, "alpha"), 1), >, ID_BLOCK + 1);
  life_end (&life);
}

static void
test_folder_that_vanishes (void)
{
  check_full_disk (block_writing, unblock_writing);
}

static void
set_file_size_limit (rlim_t limit)
{
  struct rlimit limits;

  g_assert_cmpint (getrlimit (RLIMIT_FSIZE, &limits), ==, 0);
  limits.rlim_cur = MIN (limit, limits.rlim_max);
  g_assert_cmpint (setrlimit (RLIMIT_FSIZE, &limits), ==, 0);
}

static void
limit_file_size (void)
{
  set_file_size_limit (100);
}

static void
unlimit_file_size (void)
{
  set_file_size_limit (RLIM_INFINITY);
}

static void
test_write_that_ends_in_the_middle (void)
{
  signal (SIGXFSZ, SIG_IGN);
  check_full_disk (limit_file_size, unlimit_file_size);
}

static void
fill_disk (void)
{
  g_autofree char *path = path_of ("filler");
  int fd = open (path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  char block[4096] = { 0 };

  g_assert_cmpint (fd, >=, 0);
  while (write (fd, block, sizeof block) > 0)
    ;
  g_close (fd, NULL);
}

static void
empty_disk (void)
{
  g_autofree char *path = path_of ("filler");

  g_assert_cmpint (g_unlink (path), ==, 0);
}

/* A file system of 64 KiB, in a mount namespace of a subprocess. */
static void
test_full_disk (void)
{
  if (g_test_subprocess ())
    {
      g_assert_cmpint (g_mkdir_with_parents (folder (), 0700), ==, 0);
      if (unshare (CLONE_NEWNS) < 0 || mount (NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
          mount ("none", folder (), "tmpfs", 0, "size=64k") < 0)
        exit (EXIT_SKIPPED);
      check_full_disk (fill_disk, empty_disk);
      return;
    }
  if (getuid () != 0)
    {
      g_test_skip ("only root may mount a small file system; see the test before");
      return;
    }
  g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
  if (g_test_trap_has_passed ())
    return;
  g_test_trap_assert_stdout ("");
  g_test_skip ("no small file system can be mounted here; see the test before");
}

static void
test_start_on_a_full_disk (void)
{
  Life life = life_new ();

  publish (&life, create (&life, "alpha"), 7);
  life_end (&life);

  block_writing ();
  expect_warning ("no event ids can be reserved*");
  life = life_new ();
  assert_cannot_publish (&life, lookup (&life, "alpha"));
  g_test_assert_expected_messages ();
  expect_recovery ();
  unblock_writing ();
  g_assert_cmpuint (publish (&life, lookup (&life, "alpha"), 1), ==, 8);
  g_test_assert_expected_messages ();
  life_end (&life);
}

/* --- Damage --------------------------------------------------------------------------------- */

static void
make_two_buses (void)
{
  Life life = life_new ();

  publish (&life, create (&life, "alpha"), 7);
  publish (&life, create (&life, "beta"), 9);
  life_end (&life);
}

/* Opens what is damaged: one warning, no bus goes back, names without a record start above the clock. */
static void
check_damage (gboolean has_alpha, gboolean has_beta)
{
  guint64 start_us = g_get_real_time ();
  guint64 id;
  Life life;

  expect_warning ("*buses: *. Ids of what is missing go on above *");
  life = life_new ();
  g_test_assert_expected_messages ();
  id = publish (&life, has_beta ? lookup (&life, "beta") : create (&life, "beta"), 1);
  g_assert_true (has_beta ? id == 10 : id > start_us && id < HEADWAY_ID_MAX);
  id = publish (&life, has_alpha ? lookup (&life, "alpha") : create (&life, "alpha"), 1);
  g_assert_true (has_alpha ? id == 8 : id > start_us && id < HEADWAY_ID_MAX);
  id = publish (&life, create (&life, "never"), 1);
  g_assert_true (id > start_us && id < HEADWAY_ID_MAX);
  life_crash (&life);

  /* It is mended. */
  life = life_new ();
  g_assert_cmpuint (headway_bus_table_size (life.table), ==, 3);
  g_assert_cmpuint (publish (&life, lookup (&life, "never"), 1), >, id);
  life_end (&life);
}

static void
test_damaged_record (void)
{
  gsize length;
  g_autofree char *text = NULL;

  make_two_buses ();
  text = read_file (&length);
  *strstr (text, "bus alpha") = 'x';
  write_file (text, length);
  check_damage (FALSE, TRUE);
}

static void
test_cut_file (void)
{
  gsize length;
  g_autofree char *text = NULL;

  make_two_buses ();
  text = read_file (&length);
  write_file (text, strstr (text, "\n") + 1 - text);
  check_damage (FALSE, FALSE);
}

static void
test_file_without_its_end (void)
{
  gsize length;
  g_autofree char *text = NULL;

  make_two_buses ();
  text = read_file (&length);
  write_file (text, g_strrstr (text, " end ") - text);
  check_damage (TRUE, TRUE);
}

static void
test_empty_file (void)
{
  make_two_buses ();
  write_file ("", 0);
  check_damage (FALSE, FALSE);
}

static void
test_file_of_something_else (void)
{
  g_autofree char *junk = g_malloc (70000);

  make_two_buses ();
  memset (junk, 0x8f, 70000);
  junk[9] = '\0';
  junk[999] = '\n';
  write_file (junk, 70000);
  check_damage (FALSE, FALSE);
}

static void
test_missing_file (void)
{
  g_autofree char *path = path_of ("buses");

  make_two_buses ();
  g_assert_cmpint (g_unlink (path), ==, 0);
  check_damage (FALSE, FALSE);
}

static void
test_first_start_is_no_damage (void)
{
  Life life = life_new ();

  g_assert_cmpuint (publish (&life, create (&life, "alpha"), 1), ==, 1);
  life_end (&life);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, G_TEST_OPTION_ISOLATE_DIRS, NULL);

  g_test_add_func ("/state-store/create/answers-when-block-is-on-disk", test_create_answers_when_block_is_on_disk);
  g_test_add_func ("/state-store/create/stalled-disk-fails-after-five-seconds", test_stalled_disk_fails_creates_after_five_seconds);
  g_test_add_func ("/state-store/reserve/is-coalesced", test_reservations_are_coalesced);
  g_test_add_func ("/state-store/reserve/next-block-comes-before-the-last-is-used-up", test_next_block_comes_before_the_last_is_used_up);
  g_test_add_func ("/state-store/reserve/publishes-wait-in-order", test_publishes_wait_for_ids_in_order);
  g_test_add_func ("/state-store/end/keeps-the-exact-mark", test_clean_end_keeps_the_exact_mark);
  g_test_add_func ("/state-store/end/crash-goes-on-behind-the-block", test_crash_goes_on_behind_the_block);
  g_test_add_func ("/state-store/end/that-cannot-be-written-leaves-the-blocks", test_end_that_cannot_be_written_leaves_the_blocks);
  g_test_add_func ("/state-store/end/half-written-file-is-no-matter", test_what_a_crash_left_half_written_is_no_matter);
  g_test_add_func ("/state-store/restore/brings-everything-but-the-epoch", test_restore_brings_everything_but_the_epoch);
  g_test_add_func ("/state-store/forget/leaves-the-mark", test_closed_bus_leaves_its_mark);
  g_test_add_func ("/state-store/forget/is-on-disk-soon", test_close_is_on_disk_soon);
  g_test_add_func ("/state-store/lock/second-instance-is-refused", test_second_instance_is_refused);
  g_test_add_func ("/state-store/lock/second-instance-waits-for-the-first", test_second_instance_waits_for_the_first);
  g_test_add_func ("/state-store/folder/that-is-a-file", test_folder_that_is_a_file);
  g_test_add_func ("/state-store/folder/without-permission", test_folder_without_permission);
  g_test_add_func ("/state-store/disk/new-file-cannot-be-opened", test_folder_that_vanishes);
  g_test_add_func ("/state-store/disk/write-ends-in-the-middle", test_write_that_ends_in_the_middle);
  g_test_add_func ("/state-store/disk/full", test_full_disk);
  g_test_add_func ("/state-store/disk/full-at-start", test_start_on_a_full_disk);
  g_test_add_func ("/state-store/damage/one-record", test_damaged_record);
  g_test_add_func ("/state-store/damage/cut-behind-the-first-line", test_cut_file);
  g_test_add_func ("/state-store/damage/no-end", test_file_without_its_end);
  g_test_add_func ("/state-store/damage/empty", test_empty_file);
  g_test_add_func ("/state-store/damage/something-else", test_file_of_something_else);
  g_test_add_func ("/state-store/damage/missing", test_missing_file);
  g_test_add_func ("/state-store/damage/first-start-is-none", test_first_start_is_no_damage);

  return g_test_run ();
}
