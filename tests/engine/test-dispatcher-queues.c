/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-dispatch.h"

#include "engine/headway-error.h"

#include <string.h>

/* routing.md 4H; the lifecycle half of 120 is void (decisions.md 34). */

static const char *const foo[] = { "foo.*", NULL };
static const char *const bar[] = { "bar.*", NULL };
static const char *const foo_twice[] = { "foo.*", "foo.a", NULL };

#define POST(patterns_) ((HeadwayHandlerOptions){ .patterns = (patterns_) })

static void
pub_range (TestDispatch *f, const char *principal, guint first, guint last)
{
  for (guint i = first; i <= last; i++)
    test_dispatch_pub_number (f, principal, "foo.a", i);
}

static void
pub_principals (TestDispatch *f, guint first, guint last)
{
  for (guint i = first; i <= last; i++)
    {
      g_autofree char *name = g_strdup_printf ("p%u", i);

      test_dispatch_pub (f, name, "foo.a", "1");
    }
}

static void
test_case_120_only_who_matches_is_called (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a, *all;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", POST (foo));
  test_handler (&f, "b", POST (bar));
  all = test_handler (&f, "c", (HeadwayHandlerOptions){ 0 });
  test_dispatch_pub (&f, "alice", "foo.x", "1");
  assert_dispatch (&f, "a.alice.1 c.alice.1");
  test_dispatch_pub (&f, "alice", "other", "2");
  assert_dispatch (&f, "");
  test_continue (all);
  assert_dispatch (&f, "c.alice.2");
  test_continue (a);
  test_continue (all);
  assert_dispatch (&f, "");
  g_assert_cmpuint (headway_handler_get_handled (a->handler), ==, 1);
  g_assert_cmpuint (headway_handler_get_handled (all->handler), ==, 2);
}

static void
test_case_121_a_slow_call_holds_up_its_principal_only (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", POST (foo));
  test_handler (&f, "b", POST (bar));
  test_dispatch_pub (&f, "alice", "foo.x", "1");
  test_dispatch_pub (&f, "alice", "foo.x", "2");
  test_dispatch_pub (&f, "bob", "foo.x", "3");
  test_dispatch_pub (&f, "alice", "bar.x", "4");
  assert_dispatch (&f, "a.alice.1 a.bob.3 b.alice.4");
  test_continue_for (a, "bob");
  assert_dispatch (&f, "");
  test_continue_for (a, "alice");
  assert_dispatch (&f, "a.alice.2");
}

static void
test_case_122_each_principal_once_and_one_in_order (void)
{
  g_auto (TestDispatch) f;
  g_autoptr (GString) expected = g_string_new (NULL);
  TestHandler *a;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", POST (foo));
  a->is_quiet = TRUE;
  pub_principals (&f, 1, 1000);
  g_assert_cmpuint (a->calls->len, ==, HEADWAY_CALLS_MAX);
  g_assert_cmpuint (headway_handler_get_active_principals (a->handler), ==, 1000);
  while (a->calls->len > 0)
    test_continue (a);
  g_assert_cmpuint (a->n_calls, ==, 1000);
  g_assert_cmpuint (headway_handler_get_active_principals (a->handler), ==, 0);

  a->is_quiet = FALSE;
  pub_range (&f, "alice", 1, 50);
  for (guint i = 1; i <= 50; i++)
    {
      g_string_append_printf (expected, "%sa.alice.%u", i > 1 ? " " : "", i);
      test_continue (a);
    }
  assert_dispatch (&f, expected->str);
}

static void
test_case_123_the_65th_is_lost_and_told (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;
  g_autofree char *log = NULL;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", POST (foo));
  pub_range (&f, "alice", 1, 65);
  g_assert_cmpuint (headway_handler_get_dropped (a->handler), ==, 0);
  g_assert_cmpuint (headway_handler_get_pending (a->handler), ==, 64);
  pub_range (&f, "alice", 66, 70);
  g_assert_cmpuint (headway_handler_get_pending (a->handler), ==, 64);
  g_assert_cmpuint (headway_handler_get_dropped (a->handler), ==, 5);
  test_dispatch_pub (&f, "bob", "foo.x", "1");
  assert_dispatch (&f, "a.alice.1 a.bob.1");
  test_continue_for (a, "bob");

  for (guint i = 1; i <= 65; i++)
    test_continue_for (a, "alice");
  log = test_dispatch_take_log (&f);
  g_assert_true (g_str_has_prefix (log, "a.alice.2!5 a.alice.3 a.alice.4 "));
  g_assert_true (g_str_has_suffix (log, " a.alice.64 a.alice.65"));
  g_assert_null (strchr (strchr (log, '!') + 1, '!'));
  test_dispatch_check (&f);
  g_assert_cmpint (test_dispatch_metric (&f, HEADWAY_METRIC_DISPATCH_DROPS + HEADWAY_DISPATCH_DROP_FULL), ==, 5);
  g_assert_cmpint (test_dispatch_metric (&f, HEADWAY_METRIC_GAPS_DELIVERED + HEADWAY_SUBSCRIBER_DISPATCHER), ==, 1);
  g_assert_cmpint (test_dispatch_metric (&f, HEADWAY_METRIC_EVENTS_DELIVERED + HEADWAY_SUBSCRIBER_DISPATCHER), ==, 66);
}

static guint n_degrade_reports;

static void
on_security_report (HeadwayBusTable *table, const HeadwaySecurityReport *report)
{
  if (report->kind == HEADWAY_SECURITY_QUOTA_EXCEEDED)
    n_degrade_reports++;
}

static void
test_case_124_ten_thousand_queues_then_the_shared_one (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  g_signal_connect (f.table, "security-report", G_CALLBACK (on_security_report), NULL);
  n_degrade_reports = 0;
  a = test_handler (&f, "a", POST (foo));
  a->is_quiet = TRUE;
  pub_principals (&f, 1, 10000);
  g_assert_cmpuint (headway_handler_get_queues (a->handler), ==, 10000);
  g_assert_cmpint (test_dispatch_metric (&f, HEADWAY_METRIC_DISPATCH_DEGRADED), ==, 0);
  pub_principals (&f, 10001, 10002);
  g_assert_cmpuint (headway_handler_get_queues (a->handler), ==, 10001);
  g_assert_cmpint (test_dispatch_metric (&f, HEADWAY_METRIC_DISPATCH_DEGRADED), ==, 2);
  g_assert_cmpuint (n_degrade_reports, ==, 1);
  test_dispatch_check (&f);
}

static void
test_case_124_the_shared_queue_counts (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", POST (foo));
  a->is_quiet = TRUE;
  test_dispatch_pub (&f, "-", "foo.a", "1");
  pub_principals (&f, 1, 9999);
  g_assert_cmpint (test_dispatch_metric (&f, HEADWAY_METRIC_DISPATCH_DEGRADED), ==, 0);
  pub_principals (&f, 10000, 10000);
  g_assert_cmpint (test_dispatch_metric (&f, HEADWAY_METRIC_DISPATCH_DEGRADED), ==, 1);
  g_assert_cmpuint (headway_handler_get_queues (a->handler), ==, 10000);
}

static void
test_case_125_who_shares_goes_on_sharing (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  headway_bus_table_get_limits (f.table)->handler_principals = 2;
  headway_bus_table_get_limits (f.table)->handler_idle_grace_ms = 0;
  a = test_handler (&f, "a", POST (foo));
  test_dispatch_pub (&f, "p1", "foo.a", "1");
  test_dispatch_pub (&f, "p2", "foo.a", "2");
  test_dispatch_pub (&f, "p3", "foo.a", "3");
  test_dispatch_pub (&f, "p3", "foo.a", "4");
  assert_dispatch (&f, "a.p1.1 a.p2.2 a.p3.3");
  test_continue_for (a, "p1");
  test_dispatch_pass (&f, 1);
  g_assert_cmpuint (headway_handler_get_queues (a->handler), ==, 2);
  /* A queue is free, but 3 and 4 are still in the shared one. */
  test_dispatch_pub (&f, "p3", "foo.a", "5");
  assert_dispatch (&f, "");
  test_continue_for (a, "p3");
  test_continue_for (a, "p3");
  assert_dispatch (&f, "a.p3.4 a.p3.5");
  test_continue_for (a, "p3");
  test_dispatch_pass (&f, 1);
  /* Now that nothing of it is left there, it has one of its own. */
  g_assert_cmpuint (headway_handler_get_queues (a->handler), ==, 1);
  test_dispatch_pub (&f, "p3", "foo.a", "6");
  test_dispatch_pub (&f, "-", "foo.a", "7");
  assert_dispatch (&f, "a.p3.6 a.-.7");
}

static void
test_the_longest_idle_makes_room_at_the_limit (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  headway_bus_table_get_limits (f.table)->handler_principals = 2;
  a = test_handler (&f, "a", POST (foo));
  a->on_call = test_answer_at_once;
  pub_principals (&f, 1, 5);
  assert_dispatch (&f, "a.p1.1 a.p2.1 a.p3.1 a.p4.1 a.p5.1");
  g_assert_cmpuint (headway_handler_get_queues (a->handler), ==, 2);
  g_assert_cmpint (test_dispatch_metric (&f, HEADWAY_METRIC_DISPATCH_DEGRADED), ==, 0);
}

static void
test_case_126_an_empty_queue_goes_after_its_grace (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  headway_bus_table_get_limits (f.table)->handler_idle_grace_ms = 100;
  a = test_handler (&f, "a", POST (foo));
  a->on_call = test_answer_at_once;
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  g_assert_cmpuint (headway_handler_get_queues (a->handler), ==, 1);
  g_assert_cmpint (headway_dispatcher_get_next_deadline_us (f.dispatcher), ==, f.now.monotonic_us + 100000);
  test_dispatch_pass (&f, 99);
  g_assert_cmpuint (headway_handler_get_queues (a->handler), ==, 1);
  test_dispatch_pass (&f, 1);
  g_assert_cmpuint (headway_handler_get_queues (a->handler), ==, 0);
  g_assert_cmpint (headway_dispatcher_get_next_deadline_us (f.dispatcher), ==, -1);
  test_dispatch_pub (&f, "alice", "foo.a", "2");
  assert_dispatch (&f, "a.alice.1 a.alice.2");
}

static void
test_case_127_an_event_between_idle_and_gone (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  headway_bus_table_get_limits (f.table)->handler_idle_grace_ms = 100;
  a = test_handler (&f, "a", POST (foo));
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  test_continue (a);
  /* The grace is over, and nobody has looked yet. */
  f.now.monotonic_us += 200000;
  test_dispatch_pub (&f, "alice", "foo.a", "2");
  headway_dispatcher_run (f.dispatcher, f.now);
  assert_dispatch (&f, "a.alice.1 a.alice.2");
  g_assert_cmpuint (headway_handler_get_queues (a->handler), ==, 1);
  test_continue (a);
  test_dispatch_pass (&f, 100);
  g_assert_cmpuint (headway_handler_get_queues (a->handler), ==, 0);
}

static void
test_a_shorter_grace_applies_at_once (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", POST (foo));
  a->on_call = test_answer_at_once;
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  headway_bus_table_get_limits (f.table)->handler_idle_grace_ms = 10;
  f.now.monotonic_us += 10000;
  headway_bus_table_tick (f.table, f.now, 0);
  g_assert_cmpuint (headway_handler_get_queues (a->handler), ==, 0);
}

/* Case 128 as fault injection: whoever had the call forgets to answer, and its queue goes on. */
static void
test_case_128_a_call_that_never_ends_holds_up_nothing_for_good (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", POST (foo));
  pub_range (&f, "alice", 1, 2);
  test_dispatch_pass (&f, 4999);
  assert_dispatch (&f, "a.alice.1");
  test_dispatch_pass (&f, 1);
  assert_dispatch (&f, "~a.alice.1 a.alice.2");
  g_assert_cmpint (test_dispatch_metric (&f, headway_metric_verdicts (HEADWAY_PHASE_POST, HEADWAY_VERDICT_LABEL_TIMEOUT)), ==, 1);
  g_assert_cmpuint (a->calls->len, ==, 2);
}

static void
test_case_130_all_that_was_lost_is_told (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  headway_bus_table_get_limits (f.table)->handler_queue = 2;
  a = test_handler (&f, "a", POST (foo));
  pub_range (&f, "alice", 1, 20);
  test_continue (a);
  assert_dispatch (&f, "a.alice.1 a.alice.2!17");
  pub_range (&f, "alice", 21, 23);
  test_continue (a);
  assert_dispatch (&f, "a.alice.3!2");
  test_continue (a);
  assert_dispatch (&f, "a.alice.21");
}

static void
test_case_131_a_flood_of_one_leaves_the_other_alone (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", POST (foo));
  a->is_quiet = TRUE;
  for (guint i = 0; i < 100000; i++)
    test_dispatch_pub (&f, "mallory", "foo.a", "1");
  a->is_quiet = FALSE;
  test_dispatch_pub (&f, "alice", "foo.a", "2");
  assert_dispatch (&f, "a.alice.2");
  g_assert_cmpuint (headway_handler_get_dropped (a->handler), ==, 100000 - 65);
}

static void
test_case_132_two_registrations_two_patterns (void)
{
  g_auto (TestDispatch) f;

  test_dispatch_set_up (&f);
  test_handler (&f, "a", POST (foo));
  test_handler (&f, "a", POST (foo_twice));
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  assert_dispatch (&f, "a.alice.1 a.alice.1");
}

/* --- Calls in flight ------------------------------------------------------------------------ */

static void
test_no_more_than_96_at_a_time (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", POST (foo));
  a->is_quiet = TRUE;
  pub_principals (&f, 1, 97);
  g_assert_cmpuint (a->calls->len, ==, 96);
  g_assert_cmpint (test_dispatch_metric (&f, HEADWAY_METRIC_HANDLER_CALLS), ==, 96);
  g_assert_cmpint (test_dispatch_metric (&f, HEADWAY_METRIC_HANDLER_QUEUED), ==, 1);
  test_continue (a);
  g_assert_cmpuint (a->n_calls, ==, 97);
  g_assert_cmpuint (a->calls->len, ==, 96);
  test_dispatch_check (&f);
}

static void
test_a_slow_handler_leaves_some_for_others (void)
{
  g_auto (TestDispatch) f;
  TestHandler *slow, *quick;

  test_dispatch_set_up (&f);
  slow = test_handler (&f, "slow", POST (foo));
  quick = test_handler (&f, "quick", POST (bar));
  slow->is_quiet = TRUE;
  pub_principals (&f, 1, 200);
  g_assert_cmpuint (slow->calls->len, ==, 92);
  for (guint i = 0; i < 10; i++)
    {
      g_autofree char *name = g_strdup_printf ("q%u", i);

      test_dispatch_pub (&f, name, "bar.a", "1");
    }
  assert_dispatch (&f, "quick.q0.1 quick.q1.1 quick.q2.1 quick.q3.1");
  /* What becomes free goes to the one that has fewer. */
  test_continue (slow);
  assert_dispatch (&f, "quick.q4.1");
  g_assert_cmpuint (slow->calls->len, ==, 91);
  test_continue (quick);
  assert_dispatch (&f, "quick.q5.1");
}

static void
test_busy_handlers_use_all_calls (void)
{
  g_auto (TestDispatch) f;
  TestHandler *handlers[12];

  test_dispatch_set_up (&f);
  for (guint i = 0; i < 12; i++)
    {
      handlers[i] = test_handler (&f, "busy", POST (foo));
      handlers[i]->is_quiet = TRUE;
    }
  pub_principals (&f, 1, 60);
  for (guint i = 0; i < 12; i++)
    g_assert_cmpuint (handlers[i]->calls->len, ==, HEADWAY_CALLS_MAX / 12);
  g_assert_cmpuint (headway_dispatcher_get_in_flight (f.dispatcher), ==, HEADWAY_CALLS_MAX);
  test_dispatch_check (&f);
}

static void
test_principals_take_turns (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", POST (foo));
  headway_handler_set_room (a->handler, FALSE, f.now);
  pub_range (&f, "alice", 1, 3);
  test_dispatch_pub (&f, "bob", "foo.a", "9");
  a->on_call = test_answer_at_once;
  headway_handler_set_room (a->handler, TRUE, f.now);
  assert_dispatch (&f, "a.alice.1 a.bob.9 a.alice.2 a.alice.3");
}

static void
test_no_room_then_room (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", POST (foo));
  headway_handler_set_room (a->handler, FALSE, f.now);
  pub_range (&f, "alice", 1, 70);
  assert_dispatch (&f, "");
  g_assert_cmpuint (headway_handler_get_pending (a->handler), ==, 64);
  test_dispatch_pass (&f, 4999);
  assert_dispatch (&f, "");
  headway_handler_set_room (a->handler, TRUE, f.now);
  assert_dispatch (&f, "a.alice.1!6");
}

static void
test_a_retry_is_no_answer (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  headway_bus_table_get_limits (f.table)->handler_queue = 1;
  a = test_handler (&f, "a", POST (foo));
  pub_range (&f, "alice", 1, 4);
  test_continue (a);
  assert_dispatch (&f, "a.alice.1 a.alice.2!2");
  test_retry (a);
  assert_dispatch (&f, "");
  g_assert_cmpuint (headway_dispatcher_get_in_flight (f.dispatcher), ==, 0);
  g_assert_cmpint (test_dispatch_metric (&f, HEADWAY_METRIC_EVENTS_DELIVERED + HEADWAY_SUBSCRIBER_DISPATCHER), ==, 1);
  test_dispatch_pass (&f, 19);
  assert_dispatch (&f, "");
  /* What was lost was not told, and is told again. */
  test_dispatch_pass (&f, 1);
  assert_dispatch (&f, "a.alice.2!2");
  g_assert_cmpint (test_dispatch_metric (&f, HEADWAY_METRIC_GAPS_DELIVERED + HEADWAY_SUBSCRIBER_DISPATCHER), ==, 1);
  g_assert_cmpint (test_dispatch_metric (&f, HEADWAY_METRIC_EVENTS_DELIVERED + HEADWAY_SUBSCRIBER_DISPATCHER), ==, 2);
  g_assert_cmpint (test_dispatch_metric (&f, headway_metric_verdicts (HEADWAY_PHASE_POST, HEADWAY_VERDICT_LABEL_ERROR)), ==, 0);
}

static void
test_a_retry_goes_on_when_another_call_is_back (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", POST (foo));
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  test_dispatch_pub (&f, "bob", "foo.a", "2");
  test_retry (a);
  assert_dispatch (&f, "a.alice.1 a.bob.2");
  test_continue (a);
  assert_dispatch (&f, "a.alice.1");
}

static void
test_a_call_that_cannot_be_made_runs_out_of_time (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", POST (foo));
  pub_range (&f, "alice", 1, 2);
  for (guint i = 0; i < 250; i++)
    {
      if (a->calls->len > 0)
        test_retry (a);
      test_dispatch_pass (&f, 20);
    }
  g_string_truncate (f.log, 0);
  g_assert_cmpuint (headway_handler_get_dropped (a->handler), ==, 1);
  g_assert_cmpint (test_dispatch_metric (&f, HEADWAY_METRIC_DISPATCH_DROPS + HEADWAY_DISPATCH_DROP_TIMEOUT), ==, 1);
  test_dispatch_check (&f);
}

/* --- Bytes ---------------------------------------------------------------------------------- */

/* An event of @n characters: its cost is @n + 2 + 5, topic and quotes. */
static void
pub_chars (TestDispatch *f, const char *principal, char mark, guint n)
{
  g_autofree char *data = g_malloc (n + 3);

  memset (data, mark, n + 2);
  data[0] = data[n + 1] = '"';
  data[n + 2] = '\0';
  test_dispatch_pub (f, principal, "foo.a", data);
}

static void
test_bytes_are_lost_by_the_heaviest (void)
{
  g_auto (TestDispatch) f;
  HeadwayLimits *limits;
  TestHandler *a;

  test_dispatch_set_up (&f);
  limits = headway_bus_table_get_limits (f.table);
  limits->event_max_bytes = limits->route_budget_bytes = 1000;
  a = test_handler (&f, "a", POST (foo));
  headway_handler_set_room (a->handler, FALSE, f.now);
  for (guint i = 0; i < 5; i++)
    pub_chars (&f, "hog", (char) ('a' + i), 193); /* 200 each: exactly the budget */
  g_assert_cmpuint (headway_handler_get_pending_bytes (a->handler), ==, 1000);
  g_assert_cmpuint (headway_handler_get_dropped (a->handler), ==, 0);
  pub_chars (&f, "hog", 'z', 193);
  g_assert_cmpuint (headway_handler_get_dropped (a->handler), ==, 1);
  /* The quiet one takes from the hog, and the newest of it. */
  test_dispatch_pub (&f, "quiet", "foo.a", "1");
  g_assert_cmpuint (headway_handler_get_dropped (a->handler), ==, 2);
  g_assert_cmpuint (headway_handler_get_pending_bytes (a->handler), ==, 806);
  a->on_call = test_answer_at_once;
  headway_handler_set_room (a->handler, TRUE, f.now);
  assert_dispatch (&f, "a.hog.\"aaaaaaaaaaa!2 a.quiet.1 a.hog.\"bbbbbbbbbbb a.hog.\"ccccccccccc a.hog.\"ddddddddddd");
  g_assert_cmpint (test_dispatch_metric (&f, HEADWAY_METRIC_DISPATCH_DROPS + HEADWAY_DISPATCH_DROP_BUDGET), ==, 2);
}

/* Lost of a queue that has nothing left: told with the handler's next call, whosever it is. */
static void
test_a_loss_outlives_its_queue (void)
{
  g_auto (TestDispatch) f;
  HeadwayLimits *limits;
  TestHandler *a;

  test_dispatch_set_up (&f);
  limits = headway_bus_table_get_limits (f.table);
  limits->event_max_bytes = limits->route_budget_bytes = 1000;
  a = test_handler (&f, "a", POST (foo));
  headway_handler_set_room (a->handler, FALSE, f.now);
  pub_chars (&f, "hog", 'a', 893);
  pub_chars (&f, "quiet", 'b', 193);
  g_assert_cmpuint (headway_handler_get_active_principals (a->handler), ==, 1);
  headway_handler_set_room (a->handler, TRUE, f.now);
  assert_dispatch (&f, "a.quiet.\"bbbbbbbbbbb!1");
}

/* Who never has room does not keep events for ever, nor a handler that drains. */
static void
test_no_room_does_not_stop_the_clock_of_post (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", (HeadwayHandlerOptions){ .timeout_ms = 100 });
  headway_handler_set_room (a->handler, FALSE, f.now);
  test_dispatch_pub (&f, "bob", "t", "1");
  test_dispatch_pub (&f, "bob", "t", "2");
  test_dispatch_pass (&f, 99);
  g_assert_cmpuint (headway_handler_get_dropped (a->handler), ==, 0);
  test_dispatch_pass (&f, 1);
  g_assert_cmpuint (headway_handler_get_dropped (a->handler), ==, 1);
  g_assert_cmpint (test_dispatch_metric (&f, HEADWAY_METRIC_DISPATCH_DROPS + HEADWAY_DISPATCH_DROP_TIMEOUT), ==, 1);
  test_dispatch_pass (&f, 50);
  /* With room there is the whole time again. */
  headway_handler_set_room (a->handler, TRUE, f.now);
  assert_dispatch (&f, "a.bob.2!1");
  test_dispatch_pass (&f, 99);
  assert_dispatch (&f, "");
  headway_handler_set_room (a->handler, FALSE, f.now);
  test_dispatch_pub (&f, "ann", "t", "3");
  headway_handler_unregister (a->handler, f.now);
  /* While a call is under way its deadline is the one that runs. */
  test_dispatch_pass (&f, 1);
  assert_dispatch (&f, "~a.bob.2");
  test_dispatch_pass (&f, 99);
  assert_dispatch (&f, "");
  test_dispatch_pass (&f, 1);
  assert_dispatch (&f, "/a");
}

/* Why a step failed is told once a second. */
static void
test_failures_are_told (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", POST (foo));
  for (guint i = 0; i < 2; i++)
    {
      g_test_expect_message (G_LOG_DOMAIN, G_LOG_LEVEL_INFO, "handler 1 (a) of bus \"test\", phase post: error: unknown verdict \"maybe\"");
      for (guint j = 0; j < 3; j++)
        {
          test_dispatch_pub (&f, "alice", "foo.a", "1");
          test_answer_call (a, "maybe", NULL);
        }
      g_test_assert_expected_messages ();
      test_dispatch_pass (&f, 1000);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/dispatcher/queues/case-120-only-who-matches-is-called", test_case_120_only_who_matches_is_called);
  g_test_add_func ("/dispatcher/queues/case-121-a-slow-call-holds-up-its-principal-only", test_case_121_a_slow_call_holds_up_its_principal_only);
  g_test_add_func ("/dispatcher/queues/case-122-each-principal-once-and-one-in-order", test_case_122_each_principal_once_and_one_in_order);
  g_test_add_func ("/dispatcher/queues/case-123-the-65th-is-lost-and-told", test_case_123_the_65th_is_lost_and_told);
  g_test_add_func ("/dispatcher/queues/case-124-ten-thousand-queues-then-the-shared-one", test_case_124_ten_thousand_queues_then_the_shared_one);
  g_test_add_func ("/dispatcher/queues/case-124-the-shared-queue-counts", test_case_124_the_shared_queue_counts);
  g_test_add_func ("/dispatcher/queues/case-125-who-shares-goes-on-sharing", test_case_125_who_shares_goes_on_sharing);
  g_test_add_func ("/dispatcher/queues/the-longest-idle-makes-room-at-the-limit", test_the_longest_idle_makes_room_at_the_limit);
  g_test_add_func ("/dispatcher/queues/case-126-an-empty-queue-goes-after-its-grace", test_case_126_an_empty_queue_goes_after_its_grace);
  g_test_add_func ("/dispatcher/queues/case-127-an-event-between-idle-and-gone", test_case_127_an_event_between_idle_and_gone);
  g_test_add_func ("/dispatcher/queues/a-shorter-grace-applies-at-once", test_a_shorter_grace_applies_at_once);
  g_test_add_func ("/dispatcher/queues/case-128-a-call-that-never-ends-holds-up-nothing-for-good", test_case_128_a_call_that_never_ends_holds_up_nothing_for_good);
  g_test_add_func ("/dispatcher/queues/case-130-all-that-was-lost-is-told", test_case_130_all_that_was_lost_is_told);
  g_test_add_func ("/dispatcher/queues/case-131-a-flood-of-one-leaves-the-other-alone", test_case_131_a_flood_of_one_leaves_the_other_alone);
  g_test_add_func ("/dispatcher/queues/case-132-two-registrations-two-patterns", test_case_132_two_registrations_two_patterns);
  g_test_add_func ("/dispatcher/calls/no-more-than-96-at-a-time", test_no_more_than_96_at_a_time);
  g_test_add_func ("/dispatcher/calls/a-slow-handler-leaves-some-for-others", test_a_slow_handler_leaves_some_for_others);
  g_test_add_func ("/dispatcher/calls/busy-handlers-use-all-calls", test_busy_handlers_use_all_calls);
  g_test_add_func ("/dispatcher/calls/principals-take-turns", test_principals_take_turns);
  g_test_add_func ("/dispatcher/calls/no-room-then-room", test_no_room_then_room);
  g_test_add_func ("/dispatcher/calls/a-retry-is-no-answer", test_a_retry_is_no_answer);
  g_test_add_func ("/dispatcher/calls/a-retry-goes-on-when-another-call-is-back", test_a_retry_goes_on_when_another_call_is_back);
  g_test_add_func ("/dispatcher/calls/a-call-that-cannot-be-made-runs-out-of-time", test_a_call_that_cannot_be_made_runs_out_of_time);
  g_test_add_func ("/dispatcher/bytes/are-lost-by-the-heaviest", test_bytes_are_lost_by_the_heaviest);
  g_test_add_func ("/dispatcher/bytes/a-loss-outlives-its-queue", test_a_loss_outlives_its_queue);
  g_test_add_func ("/dispatcher/queues/no-room-does-not-stop-the-clock-of-post", test_no_room_does_not_stop_the_clock_of_post);
  g_test_add_func ("/dispatcher/queues/failures-are-told", test_failures_are_told);
  return g_test_run ();
}
