/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-dispatch.h"
#include "headway-test-envelope.h"

#include <string.h>

/* routing.md 4I, phase post. */

static const char *const foo[] = { "foo.*", NULL };
static const char *const both[] = { "foo.*", "bar.*", NULL };
static const char *const bar[] = { "bar.*", NULL };

#define AT(priority_) ((HeadwayHandlerOptions){ .patterns = foo, .priority = (priority_) })
#define ON_ERROR_DENY(priority_) \
  ((HeadwayHandlerOptions){ .patterns = foo, .priority = (priority_), .on_error = HEADWAY_ON_ERROR_DENY })

static void
test_case_133_by_priority (void)
{
  g_auto (TestDispatch) f;

  test_dispatch_set_up (&f);
  test_handler (&f, "c", AT (0))->on_call = test_answer_at_once;
  test_handler (&f, "a", AT (10))->on_call = test_answer_at_once;
  test_handler (&f, "d", AT (101))->on_call = test_answer_at_once;
  test_handler (&f, "b", AT (50))->on_call = test_answer_at_once;
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  assert_dispatch (&f, "a.alice.1 b.alice.1 c.alice.1 d.alice.1");
}

static void
test_case_134_ties_by_name_then_registration (void)
{
  g_auto (TestDispatch) f;
  TestHandler *first, *second;

  test_dispatch_set_up (&f);
  first = test_handler (&f, "z", AT (20));
  second = test_handler (&f, "z", AT (20));
  test_handler (&f, "a", AT (20))->on_call = test_answer_at_once;
  test_handler (&f, "guard", AT (10))->on_call = test_answer_at_once;
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  assert_dispatch (&f, "guard.alice.1 a.alice.1 z.alice.1");
  g_assert_cmpuint (first->calls->len, ==, 1);
  test_continue (first);
  g_assert_cmpuint (second->calls->len, ==, 1);
}

static void
test_case_135_deny_and_final_stop (void)
{
  static const char *const verdicts[] = { "deny", "final", "abort" };

  for (guint i = 0; i < G_N_ELEMENTS (verdicts); i++)
    {
      g_auto (TestDispatch) f;
      TestHandler *a;
      TestHandler *b;

      test_dispatch_set_up (&f);
      a = test_handler (&f, "a", AT (10));
      b = test_handler (&f, "b", AT (100));
      test_dispatch_pub (&f, "alice", "foo.a", "1");
      test_answer_call (a, verdicts[i], "why");
      assert_dispatch (&f, "a.alice.1");
      /* It needed nothing of b, which is no loss. */
      g_assert_cmpuint (headway_handler_get_handled (b->handler), ==, 1);
      g_assert_cmpuint (headway_handler_get_active_principals (b->handler), ==, 0);
      test_dispatch_pub (&f, "alice", "foo.a", "2");
      assert_dispatch (&f, "a.alice.2");
    }
}

static void
test_case_136_equal_priorities_all_run (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", AT (0));
  test_handler (&f, "b", AT (0));
  test_handler (&f, "c", AT (100));
  test_handler (&f, "d", AT (0));
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  assert_dispatch (&f, "a.alice.1 b.alice.1 c.alice.1 d.alice.1");
  test_answer_call (a, "deny", "no");
  assert_dispatch (&f, "");
  g_assert_cmpint (test_dispatch_metric (&f, headway_metric_verdicts (HEADWAY_PHASE_POST, HEADWAY_VERDICT_LABEL_DENY)), ==, 1);
}

static void
test_a_verdict_is_a_debug_line (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", AT (0));
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  assert_dispatch (&f, "a.alice.1");
  g_log_set_debug_enabled (TRUE);
  g_test_expect_message (G_LOG_DOMAIN, G_LOG_LEVEL_DEBUG, "handler 1 of bus \"test\", phase post: deny");
  test_answer_call (a, "deny", "no");
  g_test_assert_expected_messages ();
  g_log_set_debug_enabled (FALSE);
}

static void
test_case_137_a_mixed_set_is_a_chain (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a, *b;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", AT (10));
  b = test_handler (&f, "b", AT (20));
  test_handler (&f, "c", AT (20));
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  test_continue (a);
  assert_dispatch (&f, "a.alice.1 b.alice.1");
  test_answer_call (b, "deny", "no");
  assert_dispatch (&f, "");
}

static void
test_case_138_new_data_for_later_steps (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a, *b, *c;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", AT (10));
  b = test_handler (&f, "b", AT (20));
  c = test_handler (&f, "c", AT (30));
  test_show_events (&f);
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  test_answer_call (a, "continue", " \"X\" ");
  assert_dispatch (&f, "=1 a.alice.1 +1 b.alice.\"X\"");
  /* The same event: id, time, meta. */
  {
    HeadwayEvent *event = headway_handler_call_get_event (g_ptr_array_index (b->calls, 0));
    g_autofree char *envelope = test_dup_envelope (event, NULL);

    g_assert_cmpstr (envelope, ==,
                     "{\"id\":1,\"v\":1,\"type\":\"message\",\"data\":\"X\",\"topic\":\"foo.a\",\"principal\":\"alice\","
                     "\"_meta\":{\"serverTimestamp\":1700000000000}}");
    g_assert_cmpuint (headway_event_get_cost (event), ==, 3 + 5);
  }
  test_answer_call (b, "continue", "");
  assert_dispatch (&f, "c.alice.\"X\"");
  test_continue (c);

  test_dispatch_pub (&f, "alice", "foo.a", "2");
  test_answer_call (a, "continue", "");
  assert_dispatch (&f, "=2 a.alice.2 +2 b.alice.2");
}

static void
test_data_that_is_none_is_an_error (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;
  g_autofree char *large = g_strnfill (200, '1');

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", AT (10));
  test_handler (&f, "b", AT (20))->on_call = test_answer_at_once;
  headway_bus_table_get_limits (f.table)->event_max_bytes = 100;
  for (guint i = 0; i < 3; i++)
    {
      static const char *const bad[] = { "{", "\"\xff\"", NULL };

      test_dispatch_pub (&f, "alice", "foo.a", "1");
      test_answer_call (a, "continue", bad[i] != NULL ? bad[i] : large);
      assert_dispatch (&f, "a.alice.1 b.alice.1");
    }
  g_assert_cmpint (test_dispatch_metric (&f, headway_metric_verdicts (HEADWAY_PHASE_POST, HEADWAY_VERDICT_LABEL_ERROR)), ==, 3);
}

static void
test_case_139_errors (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a, *b;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", AT (10));
  b = test_handler (&f, "b", ON_ERROR_DENY (20));
  test_handler (&f, "c", AT (30))->on_call = test_answer_at_once;
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  test_fail (a);
  assert_dispatch (&f, "a.alice.1 b.alice.1");
  test_fail (b);
  assert_dispatch (&f, "");
  test_dispatch_pub (&f, "alice", "foo.a", "2");
  test_skip (a);
  test_skip (b);
  assert_dispatch (&f, "a.alice.2 b.alice.2 c.alice.2");
  g_assert_cmpint (test_dispatch_metric (&f, headway_metric_verdicts (HEADWAY_PHASE_POST, HEADWAY_VERDICT_LABEL_SKIP)), ==, 2);
}

/* The bytes of upstream's encoding are of no concern here; what D-Bus says instead is. */
static void
test_case_140_an_unknown_verdict_is_an_error (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", ON_ERROR_DENY (10));
  test_handler (&f, "b", AT (20))->on_call = test_answer_at_once;
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  test_answer_call (a, "Continue", NULL);
  assert_dispatch (&f, "a.alice.1");
  test_dispatch_pub (&f, "alice", "foo.a", "2");
  test_answer_call (a, "", NULL);
  assert_dispatch (&f, "a.alice.2");
  g_assert_cmpint (test_dispatch_metric (&f, headway_metric_verdicts (HEADWAY_PHASE_POST, HEADWAY_VERDICT_LABEL_ERROR)), ==, 2);
}

static void
test_case_141_chains_of_a_principal_do_not_overlap (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a, *b;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", AT (50));
  b = test_handler (&f, "b", AT (100));
  for (guint i = 1; i <= 20; i++)
    test_dispatch_pub_number (&f, "alice", "foo.a", i);
  for (guint i = 1; i <= 20; i++)
    {
      g_autofree char *first = g_strdup_printf ("a.alice.%u", i);
      g_autofree char *second = g_strdup_printf ("b.alice.%u", i);

      assert_dispatch (&f, first);
      test_continue (a);
      assert_dispatch (&f, second);
      test_continue (b);
    }
  assert_dispatch (&f, "");
}

static void
test_case_142_principals_run_side_by_side (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", AT (50));
  test_handler (&f, "b", AT (100));
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  test_dispatch_pub (&f, "bob", "foo.a", "2");
  test_continue (a);
  assert_dispatch (&f, "a.alice.1 a.bob.2 b.alice.1");
}

static void
test_case_143_nothing_is_left_behind (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a, *b;

  test_dispatch_set_up (&f);
  headway_bus_table_get_limits (f.table)->handler_idle_grace_ms = 0;
  a = test_handler (&f, "a", AT (50));
  b = test_handler (&f, "b", AT (100));
  a->is_quiet = b->is_quiet = TRUE;
  for (guint i = 0; i < 256; i++)
    {
      g_autofree char *name = g_strdup_printf ("p%u", i);

      test_dispatch_pub (&f, name, "foo.a", "1");
      g_assert_cmpuint (headway_handler_get_active_principals (b->handler), ==, 1);
      test_continue (a);
      test_continue (b);
      g_assert_cmpuint (headway_handler_get_active_principals (a->handler), ==, 0);
    }
  test_dispatch_pass (&f, 0);
  g_assert_cmpuint (headway_handler_get_queues (a->handler), ==, 0);
  g_assert_cmpuint (headway_handler_get_queues (b->handler), ==, 0);
  /* Two wait for one key, and one of them is lost: nothing of it stays. */
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  test_dispatch_pub (&f, "alice", "foo.a", "2");
  headway_handler_drop (b->handler, f.now);
  test_continue (a);
  test_continue (a);
  test_dispatch_pass (&f, 0);
  g_assert_cmpuint (headway_handler_get_queues (a->handler), ==, 0);
}

static void
test_case_144_no_more_than_64_chains_wait (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a, *b;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", AT (50));
  b = test_handler (&f, "b", AT (100));
  for (guint i = 1; i <= 1000; i++)
    test_dispatch_pub_number (&f, "alice", "foo.a", i);
  g_assert_cmpuint (headway_handler_get_pending (a->handler), ==, 64);
  g_assert_cmpuint (headway_handler_get_pending (b->handler), ==, 65);
  g_assert_cmpuint (headway_handler_get_dropped (a->handler), ==, 1000 - 65);
  g_assert_cmpint (test_dispatch_metric (&f, HEADWAY_METRIC_DISPATCH_DROPS + HEADWAY_DISPATCH_DROP_CHAIN_CAP), ==, 2 * (1000 - 65));
  test_continue (a);
  test_continue (b);
  assert_dispatch (&f, "a.alice.1 b.alice.1!935 a.alice.2!935");
  test_continue (a);
  test_continue (b);
  assert_dispatch (&f, "b.alice.2 a.alice.3");
}

static void
test_case_146_a_late_answer_is_none (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a, *b;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", (HeadwayHandlerOptions){ .patterns = foo, .priority = 10, .timeout_ms = 50 });
  b = test_handler (&f, "b", AT (20));
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  test_dispatch_pub (&f, "alice", "foo.a", "2");
  g_assert_cmpint (headway_dispatcher_get_next_deadline_us (f.dispatcher), ==, f.now.monotonic_us + 50000);
  test_dispatch_pass (&f, 49);
  assert_dispatch (&f, "a.alice.1");
  test_dispatch_pass (&f, 1);
  assert_dispatch (&f, "~a.alice.1 b.alice.1");
  test_answer_call (a, "deny", "too late");
  assert_dispatch (&f, "");
  test_continue (b);
  assert_dispatch (&f, "a.alice.2");
  g_assert_cmpint (test_dispatch_metric (&f, headway_metric_verdicts (HEADWAY_PHASE_POST, HEADWAY_VERDICT_LABEL_TIMEOUT)), ==, 1);
  g_assert_cmpint (test_dispatch_metric (&f, headway_metric_verdicts (HEADWAY_PHASE_POST, HEADWAY_VERDICT_LABEL_DENY)), ==, 0);
}

static void
test_a_late_step_of_on_error_deny_ends_the_chain (void)
{
  g_auto (TestDispatch) f;

  test_dispatch_set_up (&f);
  test_handler (&f, "a", ON_ERROR_DENY (10));
  test_handler (&f, "b", AT (20));
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  test_dispatch_pass (&f, 5000);
  assert_dispatch (&f, "a.alice.1 ~a.alice.1");
}

/* A peer that does not read holds up the others of its chain no longer than its deadline, and is told. */
static void
test_a_step_that_cannot_be_called (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", AT (10));
  test_handler (&f, "b", AT (20))->on_call = test_answer_at_once;
  headway_handler_set_room (a->handler, FALSE, f.now);
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  test_dispatch_pub (&f, "alice", "foo.a", "2");
  test_dispatch_pass (&f, 5000);
  assert_dispatch (&f, "b.alice.1");
  g_assert_cmpuint (headway_handler_get_dropped (a->handler), ==, 1);
  headway_handler_set_room (a->handler, TRUE, f.now);
  assert_dispatch (&f, "a.alice.2!1");
}

/* routing.md 3.7: an event that is handled singly and one that is handled by a chain keep their order. */
static void
test_single_events_and_chains_keep_their_order (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a, *b;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", AT (10));
  b = test_handler (&f, "b", (HeadwayHandlerOptions){ .patterns = both, .priority = 20 });
  test_dispatch_pub (&f, "alice", "bar.a", "1"); /* b alone */
  test_dispatch_pub (&f, "alice", "foo.a", "2"); /* a, then b */
  test_dispatch_pub (&f, "alice", "bar.a", "3"); /* b alone */
  test_dispatch_pub (&f, "bob", "bar.a", "4");
  assert_dispatch (&f, "b.alice.1 b.bob.4");
  test_continue_for (b, "alice");
  assert_dispatch (&f, "a.alice.2");
  test_continue (a);
  assert_dispatch (&f, "b.alice.2");
  test_continue_for (b, "alice");
  assert_dispatch (&f, "b.alice.3");
}

/* Two chains that share a handler in the middle of one, and one that shares none. */
static void
test_chains_wait_only_for_those_they_share_with (void)
{
  static const char *const baz[] = { "baz.*", NULL };
  static const char *const foo_baz[] = { "foo.*", "baz.*", NULL };
  g_auto (TestDispatch) f;
  TestHandler *a, *b;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", AT (10));
  b = test_handler (&f, "b", (HeadwayHandlerOptions){ .patterns = foo_baz, .priority = 20 });
  test_handler (&f, "c", (HeadwayHandlerOptions){ .patterns = baz, .priority = 5 });
  test_handler (&f, "d", (HeadwayHandlerOptions){ .patterns = bar, .priority = 10 });
  test_handler (&f, "e", (HeadwayHandlerOptions){ .patterns = bar, .priority = 20 });
  test_dispatch_pub (&f, "alice", "foo.a", "1"); /* a b */
  test_dispatch_pub (&f, "alice", "baz.a", "2"); /* c b */
  test_dispatch_pub (&f, "alice", "bar.a", "3"); /* d e */
  assert_dispatch (&f, "a.alice.1 d.alice.3");
  test_continue (a);
  assert_dispatch (&f, "b.alice.1");
  test_continue (b);
  assert_dispatch (&f, "c.alice.2");
}

static void
test_a_chain_costs_at_each_handler (void)
{
  g_auto (TestDispatch) f;
  HeadwayLimits *limits;
  TestHandler *a, *b;

  test_dispatch_set_up (&f);
  limits = headway_bus_table_get_limits (f.table);
  limits->event_max_bytes = limits->route_budget_bytes = 60;
  a = test_handler (&f, "a", AT (10));
  b = test_handler (&f, "b", AT (20));
  for (guint i = 1; i <= 11; i++)
    test_dispatch_pub_number (&f, "alice", "foo.a", i);
  g_assert_cmpuint (headway_handler_get_pending_bytes (a->handler), ==, 8 * 6 + 7);
  g_assert_cmpuint (headway_handler_get_pending_bytes (b->handler), ==, 8 * 6 + 7);
  g_assert_cmpuint (headway_handler_get_dropped (a->handler), ==, 1);
  /* bob is below his share: the newest of alice goes, at both. */
  test_dispatch_pub (&f, "bob", "foo.a", "1");
  test_dispatch_pub (&f, "bob", "foo.a", "2");
  g_assert_cmpuint (headway_handler_get_dropped (a->handler), ==, 2);
  g_assert_cmpuint (headway_handler_get_dropped (b->handler), ==, 2);
  test_continue_for (a, "alice");
  test_continue_for (b, "alice");
  assert_dispatch (&f, "a.alice.1 a.bob.1 b.alice.1!2 a.alice.2!2");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/dispatcher/chains/case-133-by-priority", test_case_133_by_priority);
  g_test_add_func ("/dispatcher/chains/case-134-ties-by-name-then-registration", test_case_134_ties_by_name_then_registration);
  g_test_add_func ("/dispatcher/chains/case-135-deny-and-final-stop", test_case_135_deny_and_final_stop);
  g_test_add_func ("/dispatcher/chains/case-136-equal-priorities-all-run", test_case_136_equal_priorities_all_run);
  g_test_add_func ("/dispatcher/chains/a-verdict-is-a-debug-line", test_a_verdict_is_a_debug_line);
  g_test_add_func ("/dispatcher/chains/case-137-a-mixed-set-is-a-chain", test_case_137_a_mixed_set_is_a_chain);
  g_test_add_func ("/dispatcher/chains/case-138-new-data-for-later-steps", test_case_138_new_data_for_later_steps);
  g_test_add_func ("/dispatcher/chains/data-that-is-none-is-an-error", test_data_that_is_none_is_an_error);
  g_test_add_func ("/dispatcher/chains/case-139-errors", test_case_139_errors);
  g_test_add_func ("/dispatcher/chains/case-140-an-unknown-verdict-is-an-error", test_case_140_an_unknown_verdict_is_an_error);
  g_test_add_func ("/dispatcher/chains/case-141-chains-of-a-principal-do-not-overlap", test_case_141_chains_of_a_principal_do_not_overlap);
  g_test_add_func ("/dispatcher/chains/case-142-principals-run-side-by-side", test_case_142_principals_run_side_by_side);
  g_test_add_func ("/dispatcher/chains/case-143-nothing-is-left-behind", test_case_143_nothing_is_left_behind);
  g_test_add_func ("/dispatcher/chains/case-144-no-more-than-64-chains-wait", test_case_144_no_more_than_64_chains_wait);
  g_test_add_func ("/dispatcher/chains/case-146-a-late-answer-is-none", test_case_146_a_late_answer_is_none);
  g_test_add_func ("/dispatcher/chains/a-late-step-of-on-error-deny-ends-the-chain", test_a_late_step_of_on_error_deny_ends_the_chain);
  g_test_add_func ("/dispatcher/chains/a-step-that-cannot-be-called", test_a_step_that_cannot_be_called);
  g_test_add_func ("/dispatcher/chains/single-events-and-chains-keep-their-order", test_single_events_and_chains_keep_their_order);
  g_test_add_func ("/dispatcher/chains/wait-only-for-those-they-share-with", test_chains_wait_only_for_those_they_share_with);
  g_test_add_func ("/dispatcher/chains/a-chain-costs-at-each-handler", test_a_chain_costs_at_each_handler);
  return g_test_run ();
}
