/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-life.h"

#include "engine/headway-error.h"
#include "wire/headway-clock.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

/* A FIFO in the place of the new file: the writer hangs in open(), as on a disk that does not answer. */
static void
stall_writing (void)
{
  g_autofree char *path = test_life_path ("buses.new");

  g_assert_cmpint (mkfifo (path, 0600), ==, 0);
}

/* The write that hangs comes back, with an error, since a FIFO cannot be synced. */
static void
unstall_writing (void)
{
  g_autofree char *path = test_life_path ("buses.new");
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
  g_assert_cmpint (inotify_add_watch (watch, test_life_folder (), IN_MOVED_FROM | IN_MOVED_TO), >=, 0);
  return watch;
}

/* --- Blocks of ids -------------------------------------------------------------------------- */

static void
on_ready_check_disk (HeadwayBus *bus, const GError *error, gpointer user_data)
{
  g_assert_no_error (error);
  g_assert_cmpuint (test_life_mark_on_disk ("alpha"), >=, TEST_ID_BLOCK);
  g_assert_true (test_life_is_on_disk ("alpha"));
  test_answer_ready (bus, error, user_data);
}

static void
test_create_answers_when_block_is_on_disk (void)
{
  TestLife life = test_life_new ();
  g_auto (TestAnswer) answer = { 0 };

  headway_bus_table_create (life.table, "alpha", NULL, 0, headway_clock_now (), on_ready_check_disk, &answer);
  g_assert_cmpuint (answer.n_calls, ==, 0);
  test_answer_await (&answer);
  g_assert_cmpuint (headway_bus_get_granted_id (answer.bus), ==, TEST_ID_BLOCK);
  g_assert_cmpuint (test_life_publish (&life, answer.bus, 1), ==, 1);
  test_life_end (&life);
}

static void
test_stalled_disk_fails_creates_after_five_seconds (void)
{
  TestLife life = test_life_new ();
  HeadwayInstant later = headway_clock_now ();
  g_auto (TestAnswer) answer = { 0 };

  stall_writing ();
  test_life_begin_create (&life, "alpha", NULL, &answer);
  later.monotonic_us += 4900000;
  headway_bus_table_tick (life.table, later, 0);
  while (g_main_context_iteration (NULL, FALSE))
    ;
  g_assert_cmpuint (answer.n_calls, ==, 0);
  later.monotonic_us += 200000;
  headway_bus_table_tick (life.table, later, 0);
  test_answer_await (&answer);
  g_assert_error (answer.error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE);

  test_life_expect_warning ("no event ids can be reserved*");
  test_life_expect_recovery ();
  unstall_writing ();
  g_assert_cmpuint (test_life_publish (&life, test_life_create (&life, "alpha"), 1), ==, 1);
  g_test_assert_expected_messages ();
  test_life_end (&life);
}

static void
test_reservations_are_coalesced (void)
{
  TestLife life = test_life_new ();
  TestAnswer answers[100] = { 0 };
  int watch = watch_renames ();

  for (guint i = 0; i < G_N_ELEMENTS (answers); i++)
    {
      g_autofree char *name = g_strdup_printf ("bus%u", i);

      test_life_begin_create (&life, name, NULL, &answers[i]);
    }
  for (guint i = 0; i < G_N_ELEMENTS (answers); i++)
    {
      test_answer_await (&answers[i]);
      g_assert_no_error (answers[i].error);
      test_answer_clear (&answers[i]);
    }
  /* The first alone, and all that came meanwhile together. */
  g_assert_cmpuint (count_renames (watch), ==, 2);
  g_close (watch, NULL);
  test_life_end (&life);
}

static void
test_next_block_comes_before_the_last_is_used_up (void)
{
  TestLife life = test_life_new ();
  HeadwayBus *bus = test_life_create (&life, "alpha");

  test_life_publish (&life, bus, 4096);
  test_life_publish (&life, bus, TEST_ID_BLOCK / 2 - 4096);
  g_assert_cmpuint (headway_bus_get_granted_id (bus), ==, TEST_ID_BLOCK);
  test_life_publish (&life, bus, 1);
  while (headway_bus_get_granted_id (bus) == TEST_ID_BLOCK)
    g_main_context_iteration (NULL, TRUE);
  /* Ten seconds at the present rate, which is high here. */
  g_assert_cmpuint (headway_bus_get_granted_id (bus), >, 2 * TEST_ID_BLOCK);
  g_assert_cmpuint (test_life_mark_on_disk ("alpha"), ==, headway_bus_get_granted_id (bus));
  test_life_end (&life);
}

static void
test_publishes_wait_for_ids_in_order (void)
{
  TestLife life = test_life_new ();
  HeadwayBus *bus = test_life_create (&life, "alpha");
  TestResult results[3] = { 0 };

  /* Nothing is granted while the main loop does not run. */
  test_life_publish_until_left (&life, bus, 1);
  test_life_begin_publish (bus, 2, &results[0]);
  test_life_begin_publish (bus, 1, &results[1]);
  test_life_begin_publish (bus, 5, &results[2]);
  g_assert_cmpuint (results[0].n_calls + results[1].n_calls + results[2].n_calls, ==, 0);
  g_assert_true (headway_bus_is_waiting_for_ids (bus));
  while (results[2].n_calls == 0)
    g_main_context_iteration (NULL, TRUE);
  g_assert_cmpuint (results[0].first_id, ==, TEST_ID_BLOCK);
  g_assert_cmpuint (results[1].first_id, ==, TEST_ID_BLOCK + 2);
  g_assert_cmpuint (results[2].first_id, ==, TEST_ID_BLOCK + 3);
  test_life_end (&life);
}

/* --- Over the end --------------------------------------------------------------------------- */

static void
test_clean_end_keeps_the_exact_mark (void)
{
  TestLife life = test_life_new ();

  test_life_publish (&life, test_life_create (&life, "alpha"), 7);
  test_life_create (&life, "unused");
  test_life_end (&life);
  g_assert_cmpuint (test_life_mark_on_disk ("alpha"), ==, 7);

  life = test_life_new ();
  g_assert_cmpuint (test_life_mark_on_disk ("alpha"), ==, 7 + TEST_ID_BLOCK);
  g_assert_cmpuint (test_life_publish (&life, test_life_lookup (&life, "alpha"), 1), ==, 8);
  g_assert_cmpuint (test_life_publish (&life, test_life_lookup (&life, "unused"), 1), ==, 1);
  test_life_end (&life);
}

static void
test_crash_goes_on_behind_the_block (void)
{
  TestLife life = test_life_new ();

  test_life_publish (&life, test_life_create (&life, "alpha"), 7);
  test_life_crash (&life);
  life = test_life_new ();
  g_assert_cmpuint (test_life_publish (&life, test_life_lookup (&life, "alpha"), 1), ==, TEST_ID_BLOCK + 1);
  test_life_crash (&life);
  /* One that used nothing still gives up what it was granted. */
  life = test_life_new ();
  test_life_crash (&life);
  life = test_life_new ();
  g_assert_cmpuint (test_life_publish (&life, test_life_lookup (&life, "alpha"), 1), ==, 3 * TEST_ID_BLOCK + 1);
  test_life_end (&life);
}

static void
test_restore_brings_everything_but_the_epoch (void)
{
  TestLife life = test_life_new ();
  g_auto (TestAnswer) answer = { 0 };
  g_autofree char *epoch = NULL;
  HeadwayBusOptions options = { 11, 22222, 33, 44444, 55, 66666 };
  HeadwayBus *bus;

  test_life_begin_create (&life, "a.b~c-d_e", &options, &answer);
  test_answer_await (&answer);
  epoch = g_strdup (headway_bus_get_epoch (answer.bus));
  test_answer_clear (&answer);
  test_life_end (&life);

  life = test_life_new ();
  bus = test_life_lookup (&life, "a.b~c-d_e");
  for (const HeadwayBusOptionSpec *spec = headway_bus_option_specs (); spec->key != NULL; spec++)
    g_assert_cmpuint (headway_bus_options_get (headway_bus_get_options (bus), spec), ==,
                      headway_bus_options_get (&options, spec));
  g_assert_cmpuint (headway_bus_get_creator (bus), ==, 1234);
  g_assert_cmpstr (headway_bus_get_epoch (bus), !=, epoch);
  test_life_end (&life);
}

static void
test_closed_bus_leaves_its_mark (void)
{
  TestLife life = test_life_new ();
  HeadwayBus *bus = test_life_create (&life, "alpha");
  g_autofree char *epoch = g_strdup (headway_bus_get_epoch (bus));

  test_life_publish (&life, bus, 7);
  headway_bus_close (bus);
  while (headway_bus_table_run (life.table, headway_clock_now ()))
    ;
  bus = test_life_create (&life, "alpha");
  g_assert_cmpstr (headway_bus_get_epoch (bus), !=, epoch);
  g_assert_cmpuint (test_life_publish (&life, bus, 3), ==, 8);
  headway_bus_close (bus);
  test_life_end (&life);

  life = test_life_new ();
  g_assert_cmpuint (headway_bus_table_size (life.table), ==, 0);
  g_assert_false (test_life_is_on_disk ("alpha"));
  g_assert_cmpuint (test_life_publish (&life, test_life_create (&life, "alpha"), 1), ==, 11);
  g_assert_cmpuint (test_life_publish (&life, test_life_create (&life, "other"), 1), ==, 1);
  test_life_end (&life);
}

static void
test_close_is_on_disk_soon (void)
{
  TestLife life = test_life_new ();
  HeadwayBus *bus = test_life_create (&life, "alpha");

  test_life_publish (&life, bus, 7);
  headway_bus_close (bus);
  while (test_life_is_on_disk ("alpha"))
    g_main_context_iteration (NULL, TRUE);
  g_assert_cmpuint (test_life_mark_on_disk ("alpha"), ==, 7);
  test_life_crash (&life);
}

static void
test_end_that_cannot_be_written_leaves_the_blocks (void)
{
  TestLife life = test_life_new ();
  g_autoptr (GError) error = NULL;

  test_life_publish (&life, test_life_create (&life, "alpha"), 7);
  test_life_block_writing ();
  headway_bus_table_shut_down (life.table);
  g_assert_false (headway_state_store_close (life.store, &error));
  g_assert_nonnull (error);
  test_life_crash (&life);
  test_life_unblock_writing ();

  life = test_life_new ();
  g_assert_cmpuint (test_life_publish (&life, test_life_lookup (&life, "alpha"), 1), ==, TEST_ID_BLOCK + 1);
  test_life_end (&life);
}

static void
test_what_a_crash_left_half_written_is_no_matter (void)
{
  TestLife life = test_life_new ();
  g_autofree char *path = test_life_path ("buses.new");

  test_life_publish (&life, test_life_create (&life, "alpha"), 7);
  test_life_end (&life);
  g_assert_true (g_file_set_contents (path, "headway-state 1\n0000", -1, NULL));
  life = test_life_new ();
  g_assert_cmpuint (test_life_publish (&life, test_life_lookup (&life, "alpha"), 1), ==, 8);
  test_life_end (&life);
}

/* --- The lock ------------------------------------------------------------------------------- */

static void
test_second_instance_is_refused (void)
{
  TestLife life = test_life_new ();
  g_autoptr (GError) error = NULL;

  g_assert_null (headway_state_store_open (test_life_folder (), 0, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_BUSY);
  g_assert_nonnull (strstr (error->message, test_life_folder ()));
  g_clear_error (&error);
  g_assert_null (headway_state_store_open (test_life_folder (), 50000, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_BUSY);
  test_life_end (&life);
}

static gpointer
open_and_wait (gpointer data)
{
  gint *has_opened = data;
  HeadwayStateStore *store = headway_state_store_open (test_life_folder (), 60 * G_USEC_PER_SEC, NULL);

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
  TestLife life = test_life_new ();
  gboolean is_time = FALSE;
  gint has_opened = FALSE;
  GThread *thread;

  test_life_publish (&life, test_life_create (&life, "alpha"), 7);
  thread = g_thread_new ("second", open_and_wait, &has_opened);
  g_timeout_add (100, on_time, &is_time);
  while (!is_time)
    g_main_context_iteration (NULL, TRUE);
  g_assert_false (g_atomic_int_get (&has_opened));
  test_life_end (&life);

  life.store = g_thread_join (thread);
  g_assert_nonnull (life.store);
  life.table = headway_bus_table_new (HEADWAY_BUS_STORE (life.store));
  headway_state_store_restore (life.store, life.table);
  g_assert_cmpuint (test_life_publish (&life, test_life_lookup (&life, "alpha"), 1), ==, 8);
  test_life_end (&life);
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

  return g_test_run ();
}
