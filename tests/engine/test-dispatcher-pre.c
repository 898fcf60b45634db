/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-dispatch.h"

#include "engine/headway-decision.h"
#include "engine/headway-error.h"

#include <string.h>

/* routing.md 4I, case 145 and phase pre (3.7, decisions.md 35). */

static const char *const foo[] = { "foo.*", NULL };
static const char *const bar[] = { "bar.*", NULL };

#define PRE(...) ((HeadwayHandlerOptions){ .patterns = foo, .phase = HEADWAY_PHASE_PRE, __VA_ARGS__ })

static void
set_up (TestDispatch *f)
{
  test_dispatch_set_up (f);
  test_show_events (f);
}

static void
test_case_145_a_veto_leaves_no_trace (void)
{
  g_auto (TestDispatch) f;
  TestHandler *guard, *post;

  set_up (&f);
  guard = test_handler (&f, "guard", PRE (0));
  post = test_handler (&f, "post", (HeadwayHandlerOptions){ .patterns = foo });
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  assert_dispatch (&f, "guard.alice.1");
  g_assert_cmpuint (headway_bus_get_last_id (f.bus), ==, 0);
  test_answer_call (guard, "deny", "not today");
  assert_dispatch (&f, "-1:not today");
  g_assert_cmpuint (headway_bus_get_last_id (f.bus), ==, 0);
  test_dispatch_pub (&f, "alice", "foo.a", "2");
  test_continue (guard);
  assert_dispatch (&f, "guard.alice.2 =2 +2 post.alice.2");
  g_assert_cmpuint (headway_bus_get_last_id (f.bus), ==, 1);
  /* After delivery a veto is too late. */
  test_answer_call (post, "deny", "no");
  assert_dispatch (&f, "");
  g_assert_cmpint (test_dispatch_metric (&f, headway_metric_verdicts (HEADWAY_PHASE_PRE, HEADWAY_VERDICT_LABEL_DENY)), ==, 1);
  g_assert_cmpint (test_dispatch_metric (&f, headway_metric_verdicts (HEADWAY_PHASE_POST, HEADWAY_VERDICT_LABEL_DENY)), ==, 1);
  g_assert_cmpint (test_dispatch_metric (&f, HEADWAY_METRIC_UNDECIDED), ==, 0);
}

static void
test_a_denial_without_a_reason_has_one (void)
{
  g_auto (TestDispatch) f;
  g_autofree char *reason = g_strnfill (1025, 'x');
  g_autofree char *cut = g_strdup_printf ("guard.alice.2 -2:%.*s", 1023, reason);
  TestHandler *guard;

  set_up (&f);
  guard = test_handler (&f, "guard", PRE (0));
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  test_answer_call (guard, "deny", "");
  assert_dispatch (&f, "guard.alice.1 -1:denied by a handler");
  /* A character that stands across the limit goes as a whole. */
  memcpy (reason + 1023, "\xc3\xa9", 2);
  test_dispatch_pub (&f, "alice", "foo.a", "2");
  test_answer_call (guard, "deny", reason);
  assert_dispatch (&f, cut);
}

static void
test_new_data_is_what_is_published (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a, *b;

  set_up (&f);
  a = test_handler (&f, "a", PRE (.priority = 10));
  b = test_handler (&f, "b", PRE (.priority = 20));
  test_handler (&f, "post", (HeadwayHandlerOptions){ .patterns = foo });
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  test_answer_call (a, "continue", "[1,\n2]");
  assert_dispatch (&f, "a.alice.1 b.alice.[1, 2]");
  test_continue (b);
  assert_dispatch (&f, "=[1, 2] +1 post.alice.[1, 2]");
}

static void
test_final_ends_the_chain_with_what_it_has (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a, *b;

  set_up (&f);
  a = test_handler (&f, "a", PRE (.priority = 10));
  b = test_handler (&f, "b", PRE (.priority = 20));
  test_handler (&f, "c", PRE (.priority = 30));
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  test_answer_call (a, "continue", "2");
  test_answer_call (b, "final", NULL);
  assert_dispatch (&f, "a.alice.1 b.alice.2 =2 +1");
}

static void
test_bad_data_is_an_error_of_the_step (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  set_up (&f);
  a = test_handler (&f, "a", PRE (.on_error = HEADWAY_ON_ERROR_DENY));
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  test_answer_call (a, "continue", "01");
  assert_dispatch (&f, "a.alice.1 -1:a handler failed");
  test_dispatch_pub (&f, "alice", "foo.a", "2");
  test_skip (a);
  assert_dispatch (&f, "a.alice.2 =2 +2");
}

static void
test_equal_priorities_all_run_and_any_denies (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a, *b, *c;

  set_up (&f);
  a = test_handler (&f, "a", PRE (0));
  b = test_handler (&f, "b", PRE (0));
  c = test_handler (&f, "c", PRE (0));
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  assert_dispatch (&f, "a.alice.1 b.alice.1 c.alice.1");
  /* The last in order that has data counts, whoever is the last to answer. */
  test_answer_call (c, "continue", NULL);
  test_answer_call (b, "continue", "\"b\"");
  test_answer_call (a, "continue", "\"a\"");
  assert_dispatch (&f, "=\"b\" +1");
  test_dispatch_pub (&f, "alice", "foo.a", "2");
  test_answer_call (c, "deny", "by c");
  test_answer_call (b, "deny", "by b");
  assert_dispatch (&f, "a.alice.2 b.alice.2 c.alice.2");
  test_answer_call (a, "final", NULL);
  assert_dispatch (&f, "-2:by b");
}

static void
test_only_matching_topics_wait (void)
{
  g_auto (TestDispatch) f;
  TestHandler *guard;

  set_up (&f);
  guard = test_handler (&f, "guard", PRE (0));
  test_dispatch_pub (&f, "alice", "bar.a", "1");
  assert_dispatch (&f, "=1 +1");
  test_dispatch_pub (&f, "alice", "foo.a", "2");
  /* Others do not wait for alice; she keeps her order. */
  test_dispatch_pub (&f, "bob", "bar.a", "3");
  test_dispatch_pub (&f, "alice", "bar.a", "4");
  test_dispatch_pub (&f, "bob", "foo.a", "5");
  assert_dispatch (&f, "guard.alice.2 =3 +3 guard.bob.5");
  g_assert_cmpuint (headway_dispatcher_get_undecided (f.dispatcher), ==, 3);
  test_continue_for (guard, "bob");
  assert_dispatch (&f, "=5 +5");
  test_continue_for (guard, "alice");
  assert_dispatch (&f, "=2 +2 =4 +4");
  g_assert_cmpuint (headway_dispatcher_get_undecided (f.dispatcher), ==, 0);
}

static void
test_one_principal_is_decided_in_order (void)
{
  g_auto (TestDispatch) f;
  TestHandler *guard;

  set_up (&f);
  guard = test_handler (&f, "guard", PRE (0));
  for (guint i = 1; i <= 3; i++)
    test_dispatch_pub_number (&f, "alice", "foo.a", i);
  assert_dispatch (&f, "guard.alice.1");
  test_continue (guard);
  test_answer_call (guard, "deny", "no");
  test_continue (guard);
  assert_dispatch (&f, "=1 +1 guard.alice.2 -2:no guard.alice.3 =3 +3");
}

static void
test_many_are_all_or_nothing (void)
{
  g_auto (TestDispatch) f;
  TestHandler *guard;

  set_up (&f);
  guard = test_handler (&f, "guard", PRE (0));
  test_dispatch_pub_many (&f, "alice/foo.a/1 bob/foo.a/2 alice/bar.a/3 alice/foo.a/4 carol/bar.a/5");
  assert_dispatch (&f, "guard.alice.1 guard.bob.2");
  test_dispatch_pub (&f, "bob", "bar.a", "6");
  test_dispatch_pub (&f, "carol", "bar.a", "7");
  test_answer_call (guard, "continue", "11");
  assert_dispatch (&f, "guard.alice.4");
  test_continue_for (guard, "alice");
  assert_dispatch (&f, "");
  test_continue_for (guard, "bob");
  assert_dispatch (&f, "=11 =2 =3 =4 =5 +many =6 +6 =7 +7");
  g_assert_cmpuint (headway_bus_get_last_id (f.bus), ==, 7);
}

static void
test_one_denial_denies_all (void)
{
  g_auto (TestDispatch) f;
  TestHandler *guard;

  set_up (&f);
  guard = test_handler (&f, "guard", PRE (0));
  test_dispatch_pub_many (&f, "alice/foo.a/1 bob/bar.a/2 bob/foo.a/3");
  test_dispatch_pub (&f, "alice", "foo.a", "4");
  test_continue_for (guard, "alice");
  assert_dispatch (&f, "guard.alice.1 guard.bob.3 guard.alice.4");
  test_continue_for (guard, "alice");
  assert_dispatch (&f, "");
  test_answer_call (guard, "deny", "bad");
  assert_dispatch (&f, "-many:event 2: bad =4 +4");
  g_assert_cmpuint (headway_bus_get_last_id (f.bus), ==, 1);
}

/* What is called for a publish that has failed meanwhile goes on alone; its principal's next waits for it. */
static void
test_a_call_for_what_has_failed_still_counts (void)
{
  g_auto (TestDispatch) f;
  TestHandler *guard;

  set_up (&f);
  guard = test_handler (&f, "guard", PRE (0));
  test_dispatch_pub_many (&f, "alice/foo.a/1 bob/foo.a/2");
  test_dispatch_pub (&f, "bob", "foo.a", "3");
  test_answer_call (guard, "deny", "bad");
  assert_dispatch (&f, "guard.alice.1 guard.bob.2 -many:event 0: bad");
  g_assert_cmpuint (headway_handler_get_in_flight (guard->handler), ==, 1);
  test_answer_call (guard, "deny", "also bad");
  assert_dispatch (&f, "guard.bob.3");
  test_continue (guard);
  assert_dispatch (&f, "=3 +3");
}

static void
test_the_deadline_decides (void)
{
  g_auto (TestDispatch) f;
  TestHandler *slow, *strict;

  set_up (&f);
  slow = test_handler (&f, "slow", PRE (.priority = 10, .timeout_ms = 100));
  strict = test_handler (&f, "strict", PRE (.priority = 20, .timeout_ms = 100, .on_error = HEADWAY_ON_ERROR_DENY));
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  test_dispatch_pub (&f, "bob", "bar.a", "2");
  test_dispatch_pass (&f, 100);
  assert_dispatch (&f, "slow.alice.1 =2 +2 ~slow.alice.1 strict.alice.1");
  test_dispatch_pass (&f, 100);
  assert_dispatch (&f, "~strict.alice.1 -1:a handler did not answer in time");
  test_answer_call (slow, "deny", "late");
  test_continue (strict);
  assert_dispatch (&f, "");
}

static void
test_a_publish_waits_for_one_deadline_of_a_handler (void)
{
  g_auto (TestDispatch) f;
  TestHandler *dead, *well;
  guint timeouts = headway_metric_verdicts (HEADWAY_PHASE_PRE, HEADWAY_VERDICT_LABEL_TIMEOUT);

  set_up (&f);
  dead = test_handler (&f, "dead", PRE (.priority = 10, .timeout_ms = 100));
  well = test_handler (&f, "well", PRE (.priority = 20));
  well->on_call = test_answer_at_once;
  well->verdict = "continue";
  test_dispatch_pub_many (&f, "alice/foo.a/1 alice/foo.a/2 alice/bar.a/3 alice/foo.a/4 alice/foo.a/5");
  test_dispatch_pub (&f, "alice", "foo.a", "6");
  test_dispatch_pass (&f, 99);
  assert_dispatch (&f, "dead.alice.1");
  test_dispatch_pass (&f, 1);
  assert_dispatch (&f, "~dead.alice.1 well.alice.1 well.alice.2 well.alice.4 well.alice.5 dead.alice.6 =1 =2 =3 =4 =5 +many");
  g_assert_cmpint (test_dispatch_metric (&f, timeouts), ==, 4);
  g_assert_cmpuint (headway_handler_get_handled (dead->handler), ==, 4);
  /* The next publish asks again. */
  test_continue_for (dead, "alice");
  test_continue (dead);
  assert_dispatch (&f, "well.alice.6 =6 +6");
}

static void
test_what_handlers_make_of_a_publish_has_its_bound (void)
{
  g_auto (TestDispatch) f;
  g_autofree char *large = g_strnfill (1000000, '1');
  g_autoptr (GString) words = g_string_new (NULL);
  TestHandler *guard;

  set_up (&f);
  guard = test_handler (&f, "guard", PRE (0));
  guard->is_quiet = TRUE;
  for (guint i = 0; i < 20; i++)
    g_string_append_printf (words, "%salice/foo.a/%u", i > 0 ? " " : "", i);
  test_dispatch_pub_many (&f, words->str);
  for (guint i = 0; i < 17; i++)
    {
      g_assert_cmpstr (f.log->str, ==, "");
      test_answer_call (guard, "continue", large);
    }
  g_assert_nonnull (strstr (f.log->str, "-many:event 16: with what handlers made of it the publish has"));
  g_assert_cmpuint (headway_bus_get_last_id (f.bus), ==, 0);
  guard->is_quiet = FALSE;
  g_string_truncate (f.log, 0);
  test_dispatch_pub (&f, "alice", "foo.a", "5");
  test_continue (guard);
  assert_dispatch (&f, "guard.alice.5 =5 +5");
}

/* A peer that does not read: its deadline runs all the same. */
static void
test_no_room_does_not_stop_the_clock (void)
{
  g_auto (TestDispatch) f;
  TestHandler *guard;

  set_up (&f);
  guard = test_handler (&f, "guard", PRE (.timeout_ms = 100));
  headway_handler_set_room (guard->handler, FALSE, f.now);
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  test_dispatch_pass (&f, 99);
  assert_dispatch (&f, "");
  test_dispatch_pass (&f, 1);
  assert_dispatch (&f, "=1 +1");
  /* An event that was not published is no loss. */
  g_assert_cmpuint (headway_handler_get_dropped (guard->handler), ==, 0);
}

static void
test_an_interceptor_that_leaves (void)
{
  g_auto (TestDispatch) f;
  TestHandler *open, *strict;

  set_up (&f);
  open = test_handler (&f, "open", PRE (.priority = 10));
  strict = test_handler (&f, "strict", PRE (.priority = 20, .on_error = HEADWAY_ON_ERROR_DENY));
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  test_dispatch_pub (&f, "alice", "foo.a", "2");
  test_dispatch_pub (&f, "bob", "foo.a", "3");
  /* While the others wait for their turn at it. */
  headway_handler_drop (strict->handler, f.now);
  assert_dispatch (&f, "open.alice.1 open.bob.3 /strict");
  test_continue (open);
  assert_dispatch (&f, "-1:a handler failed open.alice.2");
  test_continue_for (open, "bob");
  assert_dispatch (&f, "-3:a handler failed");
  /* The second of alice began when only one was there. */
  headway_handler_drop (open->handler, f.now);
  assert_dispatch (&f, "~open.alice.2 =2 +2 /open");
  test_dispatch_pub (&f, "alice", "foo.a", "4");
  assert_dispatch (&f, "=4 +4");
}

static const int me = 0, other = 0;

/* decisions.md 35: who decides may publish meanwhile, as anybody, and wait for the answer. */
static void
test_a_publish_from_within_a_call (void)
{
  g_auto (TestDispatch) f;
  TestHandler *guard, *second;

  set_up (&f);
  guard = test_handler (&f, "guard", PRE (.origin = &me, .priority = 10));
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  test_dispatch_pub_from (&f, &me, "alice", "foo.a", "2");
  assert_dispatch (&f, "guard.alice.1 =2 +2");
  /* Others wait. */
  test_dispatch_pub_from (&f, &other, "alice", "foo.a", "3");
  assert_dispatch (&f, "");
  /* The handlers of others decide on it. */
  second = test_handler (&f, "second", PRE (.origin = &other, .priority = 20));
  test_dispatch_pub_from (&f, &me, "alice", "foo.a", "4");
  test_dispatch_pub_from (&f, &me, "alice", "bar.a", "5");
  assert_dispatch (&f, "second.alice.4");
  test_continue (second);
  assert_dispatch (&f, "=4 +4 =5 +5");
  test_continue (guard);
  assert_dispatch (&f, "=1 +1 guard.alice.3");
  test_continue (guard);
  test_continue (second);
  assert_dispatch (&f, "second.alice.3 =3 +3");
  /* Without a call in flight it is like anybody. */
  test_dispatch_pub_from (&f, &me, "alice", "foo.a", "6");
  assert_dispatch (&f, "guard.alice.6");
}

static void
test_own_publishes_keep_their_order_when_the_call_is_over (void)
{
  g_auto (TestDispatch) f;
  TestHandler *guard, *second;

  set_up (&f);
  guard = test_handler (&f, "guard", PRE (.origin = &me));
  second = test_handler (&f, "second", ((HeadwayHandlerOptions){ .patterns = bar, .phase = HEADWAY_PHASE_PRE }));
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  test_dispatch_pub_from (&f, &me, "me", "bar.a", "2");
  test_continue (guard);
  test_dispatch_pub_from (&f, &me, "me", "baz.a", "3");
  assert_dispatch (&f, "guard.alice.1 second.me.2 =1 +1");
  test_continue (second);
  assert_dispatch (&f, "=2 +2 =3 +3");
}

static void
test_64_publishes_of_a_principal_wait (void)
{
  g_auto (TestDispatch) f;
  TestHandler *guard;

  set_up (&f);
  guard = test_handler (&f, "guard", PRE (0));
  for (guint i = 1; i <= HEADWAY_DECISIONS_MAX; i++)
    test_dispatch_pub (&f, "alice", i % 2 == 1 ? "foo.a" : "bar.a", "1");
  assert_dispatch (&f, "guard.alice.1");
  test_dispatch_pub (&f, "alice", "bar.a", "2");
  assert_dispatch (&f, "-2:64 publishes of principal \"alice\" wait for handlers already, at most 64 and 16777216 bytes may");
  test_dispatch_pub (&f, "bob", "foo.a", "3");
  assert_dispatch (&f, "guard.bob.3");
  g_assert_cmpuint (headway_dispatcher_get_undecided (f.dispatcher), ==, 65);
  guard->is_quiet = TRUE;
  test_continue (guard);
  test_dispatch_pub (&f, "alice", "bar.a", "4");
  g_assert_cmpuint (headway_dispatcher_get_undecided (f.dispatcher), ==, 64);
}

/* Each is refused where it was told to wait, and not where it was not. */
static void
test_streams_are_told_to_wait (void)
{
  g_auto (TestDispatch) f;
  TestHandler *guard;
  int origin = 0;

  set_up (&f);
  g_assert_cmpint (test_dispatch_wait_us (&f, NULL, "alice", "foo.a", "1"), ==, 0);
  guard = test_handler (&f, "guard", PRE (.origin = &origin));
  for (guint i = 1; i <= HEADWAY_DECISIONS_MAX; i++)
    {
      g_assert_cmpint (test_dispatch_wait_us (&f, NULL, "alice", "foo.a", "1"), ==, 0);
      test_dispatch_pub (&f, "alice", "foo.a", "1");
    }
  assert_dispatch (&f, "guard.alice.1");
  g_assert_cmpint (test_dispatch_wait_us (&f, NULL, "alice", "foo.a", "1"), ==, 5000);
  g_assert_cmpint (test_dispatch_wait_us (&f, NULL, "alice", "bar.a", "1"), ==, 5000);
  g_assert_cmpint (test_dispatch_wait_us (&f, NULL, "bob", "foo.a", "1"), ==, 0);
  /* The connection that decides has a line of its own. */
  g_assert_cmpint (test_dispatch_wait_us (&f, &origin, "alice", "foo.a", "1"), ==, 0);
  guard->is_quiet = TRUE;
  test_continue (guard);
  g_assert_cmpint (test_dispatch_wait_us (&f, NULL, "alice", "foo.a", "1"), ==, 0);
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  g_assert_cmpint (test_dispatch_wait_us (&f, NULL, "alice", "foo.a", "1"), ==, 5000);
  headway_bus_close (f.bus);
  g_assert_cmpint (test_dispatch_wait_us (&f, NULL, "alice", "foo.a", "1"), ==, 0);
}

static void
test_16_mib_of_a_principal_wait (void)
{
  g_auto (TestDispatch) f;
  g_autofree char *large = g_strnfill (HEADWAY_EVENT_CEILING - 100, '1');

  set_up (&f);
  test_handler (&f, "guard", PRE (0))->is_quiet = TRUE;
  for (guint i = 0; i < 3; i++)
    {
      g_assert_cmpint (test_dispatch_wait_us (&f, NULL, "alice", "foo.a", large), ==, 0);
      test_dispatch_pub (&f, "alice", "foo.a", large);
    }
  g_assert_cmpint (test_dispatch_wait_us (&f, NULL, "alice", "foo.a", large), ==, 5000);
  g_assert_cmpuint (headway_dispatcher_get_undecided (f.dispatcher), ==, 3);
  g_assert_cmpstr (f.log->str, ==, "");
  test_dispatch_pub (&f, "alice", "foo.a", large);
  g_assert_cmpuint (headway_dispatcher_get_undecided (f.dispatcher), ==, 3);
  g_assert_nonnull (strstr (f.log->str, ":3 publishes of principal \"alice\" wait"));
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  g_assert_cmpuint (headway_dispatcher_get_undecided (f.dispatcher), ==, 4);
}

/* Many principals are no way around. */
static void
test_a_user_has_a_bound_too (void)
{
  g_auto (TestDispatch) f;
  g_autofree char *large = g_strnfill (HEADWAY_EVENT_CEILING - 100, '1');

  set_up (&f);
  test_handler (&f, "guard", PRE (0))->is_quiet = TRUE;
  for (guint i = 0; i < 13; i++)
    {
      g_autofree char *name = g_strdup_printf ("p%u", i);

      g_assert_cmpstr (f.log->str, ==, "");
      g_assert_cmpint (test_dispatch_wait_us (&f, NULL, name, "foo.a", large), ==, i < 12 ? 0 : 5000);
      g_assert_cmpint (test_dispatch_wait_us (&f, NULL, name, "bar.a", large), ==, 0);
      test_dispatch_pub (&f, name, "foo.a", large);
    }
  g_assert_cmpuint (headway_dispatcher_get_undecided (f.dispatcher), ==, 12);
  g_assert_nonnull (strstr (f.log->str, ":12 publishes of user 1000 wait"));
}

/* What the handlers say then is nobody's business: nothing waits for them. */
static void
test_closing_fails_what_waits (void)
{
  g_auto (TestDispatch) f;
  TestHandler *guard;

  set_up (&f);
  guard = test_handler (&f, "guard", PRE (0));
  test_handler (&f, "equal", PRE (0));
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  test_dispatch_pub (&f, "alice", "bar.a", "2");
  headway_bus_close (f.bus);
  assert_dispatch (&f, "equal.alice.1 guard.alice.1 ~guard.alice.1 ~equal.alice.1 "
                       "-1:bus \"test\": closed while the publish waited for handlers "
                       "-2:bus \"test\": closed while the publish waited for handlers /guard /equal");
  g_assert_cmpuint (headway_dispatcher_count_handlers (f.dispatcher, f.bus), ==, 0);
  g_assert_cmpint (test_dispatch_metric (&f, headway_metric_verdicts (HEADWAY_PHASE_PRE, HEADWAY_VERDICT_LABEL_ERROR)), ==, 0);
  test_dispatch_pub (&f, "alice", "foo.a", "3");
  assert_dispatch (&f, "-3:bus \"test\" is closed");
  test_continue (guard);
  assert_dispatch (&f, "");
}

static void
test_a_stop_fails_what_waits (void)
{
  g_auto (TestDispatch) f;

  set_up (&f);
  test_handler (&f, "guard", PRE (0));
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  test_dispatch_pub (&f, "alice", "bar.a", "2");
  headway_bus_table_shut_down (f.table);
  assert_dispatch (&f, "guard.alice.1 ~guard.alice.1 -1:headwayd is stopping, this was not published "
                       "-2:headwayd is stopping, this was not published /guard");
  test_dispatch_pub (&f, "alice", "foo.a", "3");
  assert_dispatch (&f, "-3:headwayd is stopping, this was not published");
}

static void
test_the_last_handler_leaves_and_order_stays (void)
{
  g_auto (TestDispatch) f;
  TestHandler *guard;

  set_up (&f);
  guard = test_handler (&f, "guard", PRE (0));
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  headway_handler_unregister (guard->handler, f.now);
  test_dispatch_pub (&f, "alice", "foo.a", "2");
  assert_dispatch (&f, "guard.alice.1");
  test_continue (guard);
  assert_dispatch (&f, "=1 +1 =2 +2 /guard");
  g_assert_false (headway_dispatcher_has_pre (f.dispatcher, f.bus));
}

static void
deny_at_once (TestHandler *self, HeadwayHandlerCall *call)
{
  headway_handler_call_finish (call, "deny", "at once", 7, self->f->now);
}

static void
test_answers_from_within_the_call (void)
{
  g_auto (TestDispatch) f;

  set_up (&f);
  test_handler (&f, "a", PRE (.priority = 10))->on_call = test_answer_at_once;
  test_handler (&f, "b", PRE (.priority = 20))->on_call = deny_at_once;
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  test_dispatch_pub_many (&f, "alice/bar.a/2 bob/foo.a/3");
  assert_dispatch (&f, "a.alice.1 b.alice.1 -1:at once a.bob.3 b.bob.3 -many:event 1: at once");
}

/* More than one dispatch may take goes out in several; nothing overtakes it. */
static void
test_much_that_is_decided_goes_out_bit_by_bit (void)
{
  g_auto (TestDispatch) f;
  TestHandler *guard;

  set_up (&f);
  guard = test_handler (&f, "guard", PRE (0));
  for (guint i = 1; i <= 60; i++)
    test_dispatch_pub (&f, "alice", i == 1 ? "foo.a" : "bar.a", "1");
  test_continue (guard);
  g_assert_cmpuint (headway_bus_get_last_id (f.bus), ==, 32);
  g_assert_cmpint (headway_dispatcher_get_next_deadline_us (f.dispatcher), ==, 0);
  test_dispatch_pub (&f, "alice", "bar.a", "2");
  g_assert_cmpuint (headway_bus_get_last_id (f.bus), >=, 32);
  test_dispatch_pass (&f, 0);
  test_dispatch_pass (&f, 0);
  g_assert_cmpuint (headway_bus_get_last_id (f.bus), ==, 61);
  g_assert_true (g_str_has_suffix (f.log->str, "=1 +1 =2 +2"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/dispatcher/pre/case-145-a-veto-leaves-no-trace", test_case_145_a_veto_leaves_no_trace);
  g_test_add_func ("/dispatcher/pre/a-denial-without-a-reason-has-one", test_a_denial_without_a_reason_has_one);
  g_test_add_func ("/dispatcher/pre/new-data-is-what-is-published", test_new_data_is_what_is_published);
  g_test_add_func ("/dispatcher/pre/final-ends-the-chain-with-what-it-has", test_final_ends_the_chain_with_what_it_has);
  g_test_add_func ("/dispatcher/pre/bad-data-is-an-error-of-the-step", test_bad_data_is_an_error_of_the_step);
  g_test_add_func ("/dispatcher/pre/equal-priorities-all-run-and-any-denies", test_equal_priorities_all_run_and_any_denies);
  g_test_add_func ("/dispatcher/pre/only-matching-topics-wait", test_only_matching_topics_wait);
  g_test_add_func ("/dispatcher/pre/one-principal-is-decided-in-order", test_one_principal_is_decided_in_order);
  g_test_add_func ("/dispatcher/pre/many-are-all-or-nothing", test_many_are_all_or_nothing);
  g_test_add_func ("/dispatcher/pre/one-denial-denies-all", test_one_denial_denies_all);
  g_test_add_func ("/dispatcher/pre/a-call-for-what-has-failed-still-counts", test_a_call_for_what_has_failed_still_counts);
  g_test_add_func ("/dispatcher/pre/the-deadline-decides", test_the_deadline_decides);
  g_test_add_func ("/dispatcher/pre/no-room-does-not-stop-the-clock", test_no_room_does_not_stop_the_clock);
  g_test_add_func ("/dispatcher/pre/an-interceptor-that-leaves", test_an_interceptor_that_leaves);
  g_test_add_func ("/dispatcher/pre/a-publish-from-within-a-call", test_a_publish_from_within_a_call);
  g_test_add_func ("/dispatcher/pre/own-publishes-keep-their-order-when-the-call-is-over", test_own_publishes_keep_their_order_when_the_call_is_over);
  g_test_add_func ("/dispatcher/pre/64-publishes-of-a-principal-wait", test_64_publishes_of_a_principal_wait);
  g_test_add_func ("/dispatcher/pre/streams-are-told-to-wait", test_streams_are_told_to_wait);
  g_test_add_func ("/dispatcher/pre/a-publish-waits-for-one-deadline-of-a-handler", test_a_publish_waits_for_one_deadline_of_a_handler);
  g_test_add_func ("/dispatcher/pre/what-handlers-make-of-a-publish-has-its-bound", test_what_handlers_make_of_a_publish_has_its_bound);
  g_test_add_func ("/dispatcher/pre/16-mib-of-a-principal-wait", test_16_mib_of_a_principal_wait);
  g_test_add_func ("/dispatcher/pre/a-user-has-a-bound-too", test_a_user_has_a_bound_too);
  g_test_add_func ("/dispatcher/pre/closing-fails-what-waits", test_closing_fails_what_waits);
  g_test_add_func ("/dispatcher/pre/a-stop-fails-what-waits", test_a_stop_fails_what_waits);
  g_test_add_func ("/dispatcher/pre/the-last-handler-leaves-and-order-stays", test_the_last_handler_leaves_and_order_stays);
  g_test_add_func ("/dispatcher/pre/answers-from-within-the-call", test_answers_from_within_the_call);
  g_test_add_func ("/dispatcher/pre/much-that-is-decided-goes-out-bit-by-bit", test_much_that_is_decided_goes_out_bit_by_bit);
  return g_test_run ();
}
