/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-life.h"

#include "engine/headway-error.h"
#include "wire/headway-clock.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#define EXIT_SKIPPED 77

/* A write fails, and is told; what waits for it goes on waiting, up to 5 s. */
static void
wait_in_vain (TestLife *life, const guint *n_calls)
{
  HeadwayInstant later = headway_clock_now ();

  g_main_context_iteration (NULL, TRUE);
  later.monotonic_us += 4 * G_USEC_PER_SEC;
  headway_bus_table_tick (life->table, later, 0);
  g_assert_cmpuint (*n_calls, ==, 0);
  later.monotonic_us += 2 * G_USEC_PER_SEC;
  headway_bus_table_tick (life->table, later, 0);
}

static void
assert_cannot_create (TestLife *life, const char *name)
{
  g_auto (TestAnswer) answer = { 0 };
  g_autoptr (GError) error = NULL;

  test_life_begin_create (life, name, NULL, &answer);
  wait_in_vain (life, &answer.n_calls);
  g_assert_error (answer.error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE);
  g_assert_null (headway_bus_table_lookup (life->table, name, &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_NO_SUCH_BUS);
}

static void
assert_cannot_publish (TestLife *life, HeadwayBus *bus)
{
  guint64 last_id = headway_bus_get_last_id (bus);
  g_auto (TestResult) result = { 0 };

  test_life_begin_publish (bus, 1, &result);
  wait_in_vain (life, &result.n_calls);
  g_assert_error (result.error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE);
  g_assert_cmpuint (headway_bus_get_last_id (bus), ==, last_id);
}

static void
write_file (const char *text, gsize length)
{
  g_autofree char *path = test_life_path ("buses");
  g_autoptr (GError) error = NULL;

  g_file_set_contents (path, text, length, &error);
  g_assert_no_error (error);
}

/* --- Folders and disks that refuse ---------------------------------------------------------- */

static void
test_folder_that_is_a_file (void)
{
  g_autofree char *path = test_life_path ("file");
  g_autoptr (GError) error = NULL;

  g_assert_cmpint (g_mkdir_with_parents (test_life_folder (), 0700), ==, 0);
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
      g_assert_null (headway_state_store_open (test_life_folder (), 0, &error));
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED);
      return;
    }
  g_assert_cmpint (g_mkdir_with_parents (test_life_folder (), 0500), ==, 0);
  g_setenv (TEST_FOLDER_ENV, test_life_folder (), TRUE);
  g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
  g_unsetenv (TEST_FOLDER_ENV);
  g_test_trap_assert_passed ();
}

/* What a full disk must not do, and what it does: @fill and @empty act on the disk. */
static void
check_full_disk (void (*fill) (void), void (*empty) (void))
{
  TestLife life = test_life_new ();
  HeadwayBus *bus = test_life_create (&life, "alpha");

  test_life_expect_warning ("no event ids can be reserved*");
  fill ();
  assert_cannot_create (&life, "beta");
  /* What is granted is used up to the last id. */
  test_life_publish_until_left (&life, bus, 0);
  g_assert_cmpuint (headway_bus_get_last_id (bus), ==, TEST_ID_BLOCK);
  assert_cannot_publish (&life, bus);
  assert_cannot_publish (&life, bus);
  assert_cannot_create (&life, "beta");
  g_assert_cmpuint (test_life_mark_on_disk ("alpha"), ==, TEST_ID_BLOCK);
  /* It is told once. */
  g_test_assert_expected_messages ();

  test_life_expect_recovery ();
  empty ();
  g_assert_cmpuint (test_life_publish (&life, bus, 1), ==, TEST_ID_BLOCK + 1);
  g_assert_cmpuint (test_life_publish (&life, test_life_create (&life, "beta"), 1), ==, 1);
  g_test_assert_expected_messages ();
  test_life_crash (&life);

  life = test_life_new ();
  g_assert_cmpuint (test_life_publish (&life, test_life_lookup (&life, "alpha"), 1), >, TEST_ID_BLOCK + 1);
  test_life_end (&life);
}

static void
test_folder_that_vanishes (void)
{
  check_full_disk (test_life_block_writing, test_life_unblock_writing);
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
  g_autofree char *path = test_life_path ("filler");
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
  g_autofree char *path = test_life_path ("filler");

  g_assert_cmpint (g_unlink (path), ==, 0);
}

/* A file system of 64 KiB, in a mount namespace of a subprocess. */
static void
test_full_disk (void)
{
  if (g_test_subprocess ())
    {
      g_assert_cmpint (g_mkdir_with_parents (test_life_folder (), 0700), ==, 0);
      if (unshare (CLONE_NEWNS) < 0 || mount (NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
          mount ("none", test_life_folder (), "tmpfs", 0, "size=64k") < 0)
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
  TestLife life = test_life_new ();

  test_life_publish (&life, test_life_create (&life, "alpha"), 7);
  test_life_end (&life);

  test_life_block_writing ();
  test_life_expect_warning ("no event ids can be reserved*");
  life = test_life_new ();
  assert_cannot_publish (&life, test_life_lookup (&life, "alpha"));
  g_test_assert_expected_messages ();
  test_life_expect_recovery ();
  test_life_unblock_writing ();
  g_assert_cmpuint (test_life_publish (&life, test_life_lookup (&life, "alpha"), 1), ==, 8);
  g_test_assert_expected_messages ();
  test_life_end (&life);
}

/* Its last word takes an id that is not to be had: it ends all the same. */
static void
test_close_without_ids (void)
{
  TestLife life = test_life_new ();
  HeadwayBus *bus = test_life_create (&life, "alpha");
  HeadwayInstant later = headway_clock_now ();

  test_life_block_writing ();
  test_life_expect_warning ("no event ids can be reserved*");
  test_life_publish_until_left (&life, bus, 0);
  assert_cannot_publish (&life, bus);
  headway_bus_close_session (bus, headway_clock_now ());
  later.monotonic_us += 6 * G_USEC_PER_SEC;
  headway_bus_table_tick (life.table, later, 0);
  while (headway_bus_table_size (life.table) > 0)
    {
      headway_bus_table_run (life.table, headway_clock_now ());
      if (headway_bus_table_size (life.table) > 0)
        g_main_context_iteration (NULL, TRUE);
    }
  g_test_assert_expected_messages ();
  test_life_expect_recovery ();
  test_life_unblock_writing ();
  g_assert_cmpuint (test_life_publish (&life, test_life_create (&life, "alpha"), 1), ==, TEST_ID_BLOCK + 1);
  g_test_assert_expected_messages ();
  test_life_end (&life);
}

/* --- Damage --------------------------------------------------------------------------------- */

static void
make_two_buses (void)
{
  TestLife life = test_life_new ();

  test_life_publish (&life, test_life_create (&life, "alpha"), 7);
  test_life_publish (&life, test_life_create (&life, "beta"), 9);
  test_life_end (&life);
}

/* Opens what is damaged: one warning, no bus goes back, names without a record start above the clock. */
static void
check_damage (gboolean has_alpha, gboolean has_beta)
{
  guint64 start_us = g_get_real_time ();
  guint64 id;
  TestLife life;

  test_life_expect_warning ("*buses: *. Ids of what is missing go on above *");
  life = test_life_new ();
  g_test_assert_expected_messages ();
  id = test_life_publish (&life, has_beta ? test_life_lookup (&life, "beta") : test_life_create (&life, "beta"), 1);
  g_assert_true (has_beta ? id == 10 : id > start_us && id < HEADWAY_ID_MAX);
  id = test_life_publish (&life, has_alpha ? test_life_lookup (&life, "alpha") : test_life_create (&life, "alpha"), 1);
  g_assert_true (has_alpha ? id == 8 : id > start_us && id < HEADWAY_ID_MAX);
  id = test_life_publish (&life, test_life_create (&life, "never"), 1);
  g_assert_true (id > start_us && id < HEADWAY_ID_MAX);
  test_life_crash (&life);

  /* It is mended. */
  life = test_life_new ();
  g_assert_cmpuint (headway_bus_table_size (life.table), ==, 3);
  g_assert_cmpuint (test_life_publish (&life, test_life_lookup (&life, "never"), 1), >, id);
  test_life_end (&life);
}

static void
test_damaged_record (void)
{
  gsize length;
  g_autofree char *text = NULL;

  make_two_buses ();
  text = test_life_read_file (&length);
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
  text = test_life_read_file (&length);
  write_file (text, strstr (text, "\n") + 1 - text);
  check_damage (FALSE, FALSE);
}

static void
test_file_without_its_end (void)
{
  gsize length;
  g_autofree char *text = NULL;

  make_two_buses ();
  text = test_life_read_file (&length);
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
  g_autofree char *path = test_life_path ("buses");

  make_two_buses ();
  g_assert_cmpint (g_unlink (path), ==, 0);
  check_damage (FALSE, FALSE);
}

static void
test_first_start_is_no_damage (void)
{
  TestLife life = test_life_new ();

  g_assert_cmpuint (test_life_publish (&life, test_life_create (&life, "alpha"), 1), ==, 1);
  test_life_end (&life);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, G_TEST_OPTION_ISOLATE_DIRS, NULL);

  g_test_add_func ("/state-store/folder/that-is-a-file", test_folder_that_is_a_file);
  g_test_add_func ("/state-store/folder/without-permission", test_folder_without_permission);
  g_test_add_func ("/state-store/disk/new-file-cannot-be-opened", test_folder_that_vanishes);
  g_test_add_func ("/state-store/disk/write-ends-in-the-middle", test_write_that_ends_in_the_middle);
  g_test_add_func ("/state-store/disk/full", test_full_disk);
  g_test_add_func ("/state-store/disk/full-at-start", test_start_on_a_full_disk);
  g_test_add_func ("/state-store/disk/full-at-the-end-of-a-bus", test_close_without_ids);
  g_test_add_func ("/state-store/damage/one-record", test_damaged_record);
  g_test_add_func ("/state-store/damage/cut-behind-the-first-line", test_cut_file);
  g_test_add_func ("/state-store/damage/no-end", test_file_without_its_end);
  g_test_add_func ("/state-store/damage/empty", test_empty_file);
  g_test_add_func ("/state-store/damage/something-else", test_file_of_something_else);
  g_test_add_func ("/state-store/damage/missing", test_missing_file);
  g_test_add_func ("/state-store/damage/first-start-is-none", test_first_start_is_no_damage);

  return g_test_run ();
}
