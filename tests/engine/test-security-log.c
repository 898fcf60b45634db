/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-security-log.h"

#include <string.h>

/* What was told, one word each: `kind` at once, `kind*n/ms` in a summary, with who it was about. */
static void
on_report (const HeadwaySecurityReport *report, gpointer user_data)
{
  GString *told = user_data;

  if (told->len > 0)
    g_string_append_c (told, ' ');
  g_string_append (told, headway_security_kind_get_name (report->kind));
  if (report->is_summary)
    g_string_append_printf (told, "*%" G_GUINT64_FORMAT "/%" G_GINT64_FORMAT, report->count, report->interval_us / 1000);
  else
    g_assert_cmpuint (report->count, ==, 1);
  if (report->uid != G_MAXUINT32)
    g_string_append_printf (told, ":%u", report->uid);
  if (report->principal != NULL)
    g_string_append_printf (told, ":%s", report->principal);
  if (report->bus != NULL)
    g_string_append_printf (told, ":%s", report->bus);
}

static HeadwayInstant
at (gint64 ms)
{
  return (HeadwayInstant){ .monotonic_us = ms * 1000 };
}

static void
add (HeadwaySecurityLog *log, HeadwaySecurityKind kind, guint n, gint64 ms)
{
  for (guint i = 0; i < n; i++)
    headway_security_log_add (log, kind, G_MAXUINT32, NULL, NULL, at (ms));
}

static void
assert_told (GString *told, const char *expected)
{
  g_assert_cmpstr (told->str, ==, expected);
  g_string_truncate (told, 0);
}

static void
test_first_at_once_then_a_summary (void)
{
  g_autoptr (GString) told = g_string_new (NULL);
  g_autoptr (HeadwaySecurityLog) log = headway_security_log_new (on_report, told);

  g_assert_cmpint (headway_security_log_tick (log, at (0)), ==, -1);
  add (log, HEADWAY_SECURITY_RATE_LIMITED, 1, 100);
  assert_told (told, "rate_limited");
  g_assert_cmpint (headway_security_log_tick (log, at (100)), ==, -1);
  add (log, HEADWAY_SECURITY_RATE_LIMITED, 500, 200);
  g_assert_cmpint (headway_security_log_tick (log, at (1099)), ==, 1100000);
  assert_told (told, "");
  g_assert_cmpint (headway_security_log_tick (log, at (1100)), ==, -1);
  assert_told (told, "rate_limited*500/1000");
  g_assert_cmpuint (headway_security_log_get_count (log, HEADWAY_SECURITY_RATE_LIMITED), ==, 501);
}

static void
test_one_summary_a_second (void)
{
  g_autoptr (GString) told = g_string_new (NULL);
  g_autoptr (HeadwaySecurityLog) log = headway_security_log_new (on_report, told);

  /* 2000 a second for 3 s, without any tick. */
  for (gint64 ms = 0; ms < 3000; ms++)
    add (log, HEADWAY_SECURITY_MALFORMED, 2, ms);
  headway_security_log_tick (log, at (3000));
  assert_told (told, "malformed malformed*1999/1000 malformed*2000/1000 malformed*2000/1000");
}

static void
test_quiet_kind_starts_over (void)
{
  g_autoptr (GString) told = g_string_new (NULL);
  g_autoptr (HeadwaySecurityLog) log = headway_security_log_new (on_report, told);

  add (log, HEADWAY_SECURITY_NOT_OWNER, 1, 0);
  add (log, HEADWAY_SECURITY_NOT_OWNER, 1, 999);
  headway_security_log_tick (log, at (1000));
  assert_told (told, "not_owner not_owner*1/1000");
  /* Within a second of the summary it waits, a second behind it it is news. */
  add (log, HEADWAY_SECURITY_NOT_OWNER, 1, 1999);
  assert_told (told, "");
  headway_security_log_tick (log, at (2000));
  assert_told (told, "not_owner*1/1000");
  add (log, HEADWAY_SECURITY_NOT_OWNER, 1, 3000);
  assert_told (told, "not_owner");
}

static void
test_kinds_are_told_apart (void)
{
  g_autoptr (GString) told = g_string_new (NULL);
  g_autoptr (HeadwaySecurityLog) log = headway_security_log_new (on_report, told);

  add (log, HEADWAY_SECURITY_HOST_REFUSED, 3, 0);
  add (log, HEADWAY_SECURITY_ORIGIN_REFUSED, 2, 400);
  g_assert_cmpint (headway_security_log_tick (log, at (500)), ==, 1000000);
  g_assert_cmpint (headway_security_log_tick (log, at (1000)), ==, 1400000);
  g_assert_cmpint (headway_security_log_tick (log, at (1400)), ==, -1);
  assert_told (told, "host_refused origin_refused host_refused*2/1000 origin_refused*1/1000");
}

static void
test_summary_names_its_first (void)
{
  g_autoptr (GString) told = g_string_new (NULL);
  g_autoptr (HeadwaySecurityLog) log = headway_security_log_new (on_report, told);

  headway_security_log_add (log, HEADWAY_SECURITY_RATE_LIMITED, 1000, "alice", "one", at (0));
  headway_security_log_add (log, HEADWAY_SECURITY_RATE_LIMITED, 1001, "bob", "two", at (1));
  headway_security_log_add (log, HEADWAY_SECURITY_RATE_LIMITED, 1002, "carol", "three", at (2));
  headway_security_log_tick (log, at (1000));
  assert_told (told, "rate_limited:1000:alice:one rate_limited*2/1000:1001:bob:two");
  headway_security_log_add (log, HEADWAY_SECURITY_RATE_LIMITED, 1003, NULL, NULL, at (1500));
  headway_security_log_tick (log, at (2000));
  assert_told (told, "rate_limited*1/1000:1003");
}

static void
test_flush_and_end_lose_nothing (void)
{
  g_autoptr (GString) told = g_string_new (NULL);
  HeadwaySecurityLog *log = headway_security_log_new (on_report, told);

  add (log, HEADWAY_SECURITY_TOO_LARGE, 3, 0);
  headway_security_log_flush (log, at (10));
  assert_told (told, "too_large too_large*2/10");
  headway_security_log_flush (log, at (10));
  assert_told (told, "");
  add (log, HEADWAY_SECURITY_TOO_LARGE, 4, 20);
  headway_security_log_free (log);
  assert_told (told, "too_large*4/10");
}

static void
test_clock_that_goes_backwards_stands_still (void)
{
  g_autoptr (GString) told = g_string_new (NULL);
  g_autoptr (HeadwaySecurityLog) log = headway_security_log_new (on_report, told);

  add (log, HEADWAY_SECURITY_NOT_AUTHORIZED, 1, 5000);
  add (log, HEADWAY_SECURITY_NOT_AUTHORIZED, 5, 0);
  headway_security_log_tick (log, at (1000));
  assert_told (told, "not_authorized");
  headway_security_log_tick (log, at (6000));
  assert_told (told, "not_authorized*5/1000");
}

static void
test_every_event_is_in_one_report (void)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (3);
  g_autoptr (GString) told = g_string_new (NULL);
  HeadwaySecurityLog *log = headway_security_log_new (on_report, told);
  g_auto (GStrv) words = NULL;
  gint64 ms = 0;
  guint64 sum = 0;

  for (guint i = 0; i < 20000; i++)
    {
      ms += g_rand_int_range (random, 0, 8) == 0 ? g_rand_int_range (random, 0, 700) : 0;
      if (g_rand_int_range (random, 0, 10) == 0)
        headway_security_log_tick (log, at (ms));
      add (log, g_rand_int_range (random, 0, HEADWAY_N_SECURITY_KINDS), 1, ms);
    }
  headway_security_log_free (log);
  words = g_strsplit (told->str, " ", -1);
  for (guint i = 0; words[i] != NULL; i++)
    {
      const char *star = strchr (words[i], '*');
      sum += star != NULL ? g_ascii_strtoull (star + 1, NULL, 10) : 1;
    }
  g_assert_cmpuint (sum, ==, 20000);
  /* A kind speaks at most once a second, and once more at the end. */
  g_assert_cmpuint (g_strv_length (words), <=, HEADWAY_N_SECURITY_KINDS * (guint) (ms / 1000 + 2));
}

static void
test_every_kind_has_a_name (void)
{
  for (guint i = 0; i < HEADWAY_N_SECURITY_KINDS; i++)
    {
      const char *name = headway_security_kind_get_name (i);

      g_assert_nonnull (name);
      g_assert_true (name == headway_security_kind_names[i]);
      g_assert_cmpuint (strspn (name, "abcdefghijklmnopqrstuvwxyz_"), ==, strlen (name));
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);

  g_test_add_func ("/security-log/first-at-once-then-a-summary", test_first_at_once_then_a_summary);
  g_test_add_func ("/security-log/one-summary-a-second", test_one_summary_a_second);
  g_test_add_func ("/security-log/quiet-kind-starts-over", test_quiet_kind_starts_over);
  g_test_add_func ("/security-log/kinds-are-told-apart", test_kinds_are_told_apart);
  g_test_add_func ("/security-log/summary-names-its-first", test_summary_names_its_first);
  g_test_add_func ("/security-log/flush-and-end-lose-nothing", test_flush_and_end_lose_nothing);
  g_test_add_func ("/security-log/clock-that-goes-backwards-stands-still", test_clock_that_goes_backwards_stands_still);
  g_test_add_func ("/security-log/every-event-is-in-one-report", test_every_event_is_in_one_report);
  g_test_add_func ("/security-log/every-kind-has-a-name", test_every_kind_has_a_name);

  return g_test_run ();
}
