/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-dispatch.h"

#include "engine/headway-error.h"

#include <string.h>

/* Case 129 and how handlers come and go. */

static const char *const foo[] = { "foo.*", NULL };

#define AT(priority_) ((HeadwayHandlerOptions){ .patterns = foo, .priority = (priority_) })
#define PRE(...)      ((HeadwayHandlerOptions){ .patterns = foo, .phase = HEADWAY_PHASE_PRE, __VA_ARGS__ })

static void
test_case_129_a_new_generation_gets_no_old_work (void)
{
  g_auto (TestDispatch) f;
  TestHandler *old, *new;

  test_dispatch_set_up (&f);
  old = test_handler (&f, "old", AT (0));
  for (guint i = 1; i <= 3; i++)
    test_dispatch_pub_number (&f, "alice", "foo.a", i);
  headway_handler_drop (old->handler, f.now);
  assert_dispatch (&f, "old.alice.1 ~old.alice.1 /old");
  g_assert_cmpuint (headway_handler_get_dropped (old->handler), ==, 2);
  g_assert_cmpint (test_dispatch_metric (&f, HEADWAY_METRIC_DISPATCH_DROPS + HEADWAY_DISPATCH_DROP_UNREGISTERED), ==, 2);
  new = test_handler (&f, "new", AT (0));
  g_assert_cmpuint (headway_handler_get_number (new->handler), >, headway_handler_get_number (old->handler));
  test_dispatch_pub (&f, "alice", "foo.a", "4");
  assert_dispatch (&f, "new.alice.4");
  /* The answer of the old one changes nothing. */
  test_continue (old);
  headway_handler_drop (old->handler, f.now);
  assert_dispatch (&f, "");
  g_assert_cmpuint (old->n_ended, ==, 1);
}

static void
on_security_report (HeadwayBusTable *table, const HeadwaySecurityReport *report, guint *n_lost)
{
  if (report->kind == HEADWAY_SECURITY_EVENTS_LOST)
    *n_lost += report->count;
}

static void
test_what_waits_for_who_leaves_is_logged_as_lost (void)
{
  g_auto (TestDispatch) f;
  guint n_lost = 0;
  TestHandler *a;

  test_dispatch_set_up (&f);
  g_signal_connect (f.table, "security-report", G_CALLBACK (on_security_report), &n_lost);
  a = test_handler (&f, "a", AT (0));
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  g_assert_cmpuint (n_lost, ==, 0);
  test_dispatch_pub (&f, "alice", "foo.a", "2");
  headway_handler_drop (a->handler, f.now);
  assert_dispatch (&f, "a.alice.1 ~a.alice.1 /a");
  g_assert_cmpuint (n_lost, ==, 1);
  g_signal_handlers_disconnect_by_data (f.table, &n_lost);
}

static void
test_unregister_drains_first (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", AT (0));
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  test_dispatch_pub (&f, "alice", "foo.a", "2");
  headway_handler_unregister (a->handler, f.now);
  g_assert_false (headway_handler_is_registered (a->handler));
  test_dispatch_pub (&f, "alice", "foo.a", "3");
  g_assert_cmpuint (headway_dispatcher_count_handlers (f.dispatcher, f.bus), ==, 1);
  assert_dispatch (&f, "a.alice.1");
  test_continue (a);
  assert_dispatch (&f, "a.alice.2");
  test_continue (a);
  assert_dispatch (&f, "/a");
  g_assert_cmpuint (headway_dispatcher_count_handlers (f.dispatcher, f.bus), ==, 0);
}

static void
test_unregister_decides_what_waits_first (void)
{
  g_auto (TestDispatch) f;
  TestHandler *guard, *next;

  test_dispatch_set_up (&f);
  test_show_events (&f);
  guard = test_handler (&f, "guard", PRE (0));
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  test_dispatch_pub (&f, "alice", "foo.a", "2");
  test_dispatch_pub_many (&f, "alice/bar.a/3 bob/foo.a/4 alice/foo.a/5");
  headway_handler_unregister (guard->handler, f.now);
  g_assert_false (headway_handler_is_registered (guard->handler));
  next = test_handler (&f, "next", PRE (.priority = 200));
  test_dispatch_pub (&f, "alice", "foo.a", "6");
  test_dispatch_pub (&f, "carol", "foo.a", "7");
  assert_dispatch (&f, "guard.alice.1 guard.bob.4 next.carol.7");
  test_continue (guard);
  test_answer_call (next, "deny", "no");
  test_continue_for (guard, "bob");
  assert_dispatch (&f, "=1 +1 guard.alice.2 -7:no");
  test_answer_call (guard, "deny", "two");
  assert_dispatch (&f, "-2:two guard.alice.5");
  g_assert_cmpuint (headway_dispatcher_count_handlers (f.dispatcher, f.bus), ==, 2);
  test_continue (guard);
  assert_dispatch (&f, "next.alice.5");
  test_continue (next);
  assert_dispatch (&f, "=3 =4 =5 +many next.alice.6 /guard");
  test_continue (next);
  assert_dispatch (&f, "=6 +6");
}

/* What it waited for fails, or its owner leaves. */
static void
test_a_drain_ends_with_what_it_waits_for (void)
{
  g_auto (TestDispatch) f;
  TestHandler *guard, *gone;

  test_dispatch_set_up (&f);
  test_show_events (&f);
  guard = test_handler (&f, "guard", PRE (0));
  gone = test_handler (&f, "gone", PRE (0));
  test_dispatch_pub_many (&f, "alice/foo.a/1 alice/foo.a/2");
  headway_handler_unregister (guard->handler, f.now);
  headway_handler_unregister (gone->handler, f.now);
  headway_handler_drop (gone->handler, f.now);
  assert_dispatch (&f, "gone.alice.1 guard.alice.1 ~gone.alice.1 /gone");
  test_answer_call (guard, "deny", "no");
  assert_dispatch (&f, "-many:event 0: no /guard");
  g_assert_false (headway_dispatcher_has_pre (f.dispatcher, f.bus));
}

static void
test_unregister_with_nothing_left_ends_at_once (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", AT (0));
  headway_handler_unregister (a->handler, f.now);
  headway_handler_unregister (a->handler, f.now);
  assert_dispatch (&f, "/a");
}

static void
test_drop_while_it_drains (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", AT (0));
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  test_dispatch_pub (&f, "alice", "foo.a", "2");
  headway_handler_unregister (a->handler, f.now);
  headway_handler_drop (a->handler, f.now);
  assert_dispatch (&f, "a.alice.1 ~a.alice.1 /a");
}

/* The first, the middle and the last of a chain leave, while it is called and before. */
static void
test_who_leaves_a_chain_is_an_error_of_it (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a, *b, *c;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", AT (10));
  b = test_handler (&f, "b", AT (20));
  c = test_handler (&f, "c", AT (30));
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  test_dispatch_pub (&f, "alice", "foo.a", "2");
  headway_handler_drop (b->handler, f.now);
  assert_dispatch (&f, "a.alice.1 /b");
  g_assert_cmpuint (headway_handler_get_dropped (b->handler), ==, 2);
  test_continue (a);
  assert_dispatch (&f, "c.alice.1");
  headway_handler_drop (a->handler, f.now);
  assert_dispatch (&f, "/a");
  test_continue (c);
  /* Of the second chain only c is left. */
  assert_dispatch (&f, "c.alice.2");
  headway_handler_drop (c->handler, f.now);
  assert_dispatch (&f, "~c.alice.2 /c");
}

static void
test_who_leaves_with_on_error_deny_ends_the_chain (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", (HeadwayHandlerOptions){ .patterns = foo, .priority = 10, .on_error = HEADWAY_ON_ERROR_DENY });
  test_handler (&f, "b", AT (20));
  for (guint i = 1; i <= 3; i++)
    test_dispatch_pub_number (&f, "alice", "foo.a", i);
  headway_handler_drop (a->handler, f.now);
  assert_dispatch (&f, "a.alice.1 ~a.alice.1 /a");
  test_dispatch_pub (&f, "alice", "foo.a", "4");
  assert_dispatch (&f, "b.alice.4");
}

static void
drop_self (TestHandler *self, HeadwayHandlerCall *call)
{
  headway_handler_drop (self->handler, self->f->now);
  headway_handler_call_finish (call, "continue", "", 0, self->f->now);
}

/* Also the sanitizers' test: everything from within the call. */
static void
test_a_handler_that_leaves_from_within_its_call (void)
{
  g_auto (TestDispatch) f;

  test_dispatch_set_up (&f);
  test_handler (&f, "a", AT (10))->on_call = drop_self;
  test_handler (&f, "b", AT (20))->on_call = drop_self;
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  assert_dispatch (&f, "a.alice.1 b.alice.1 /a /b");
}

static void
test_a_bad_handler_is_refused (void)
{
  static const char *const bad[] = { "a..b", NULL };
  static const HeadwayHandlerTransport transport = { NULL, NULL, NULL };
  g_auto (TestDispatch) f;
  HeadwayHandlerOptions options;
  const struct
  {
    const char *const *patterns;
    guint timeout_ms;
    HeadwayError code;
  } cases[] = {
    { bad, 1, HEADWAY_ERROR_INVALID_PATTERN },
    { foo, 0, HEADWAY_ERROR_INVALID_OPTION },
    { foo, 60001, HEADWAY_ERROR_INVALID_OPTION },
  };

  test_dispatch_set_up (&f);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GError) error = NULL;

      headway_handler_options_init (&options);
      options.patterns = cases[i].patterns;
      options.timeout_ms = cases[i].timeout_ms;
      g_assert_null (headway_dispatcher_register (f.dispatcher, f.bus, &options, &transport, NULL, f.now, &error));
      g_assert_error (error, HEADWAY_ERROR, (int) cases[i].code);
    }
  g_assert_cmpuint (headway_dispatcher_count_handlers (f.dispatcher, f.bus), ==, 0);
  test_handler (&f, "a", (HeadwayHandlerOptions){ .patterns = foo, .timeout_ms = 1 });
  test_handler (&f, "b", (HeadwayHandlerOptions){ .patterns = foo, .timeout_ms = 60000 });
}

static void
test_a_bus_has_1024_handlers (void)
{
  static const HeadwayHandlerTransport transport = { NULL, NULL, NULL };
  g_auto (TestDispatch) f;
  g_autoptr (GError) error = NULL;
  HeadwayHandlerOptions options;

  test_dispatch_set_up (&f);
  headway_handler_options_init (&options);
  for (guint i = 0; i < HEADWAY_HANDLERS_PER_BUS_MAX; i++)
    {
      g_autoptr (HeadwayHandler) handler =
                   headway_dispatcher_register (f.dispatcher, f.bus, &options, &transport, NULL, f.now, &error);

      g_assert_no_error (error);
    }
  g_assert_null (headway_dispatcher_register (f.dispatcher, f.bus, &options, &transport, NULL, f.now, &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_QUOTA_EXCEEDED);
  g_assert_cmpint (headway_error_get_details (error)->limit, ==, HEADWAY_HANDLERS_PER_BUS_MAX);
}

static void
test_a_closed_bus_lets_its_handlers_drain (void)
{
  static const HeadwayHandlerTransport transport = { NULL, NULL, NULL };
  g_auto (TestDispatch) f;
  g_autoptr (GError) error = NULL;
  HeadwayHandlerOptions options;
  TestHandler *a;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", AT (0));
  test_handler (&f, "idle", AT (0));
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  test_dispatch_pub (&f, "alice", "foo.a", "2");
  test_continue (g_ptr_array_index (f.handlers, 1));
  test_continue (g_ptr_array_index (f.handlers, 1));
  assert_dispatch (&f, "a.alice.1 idle.alice.1 idle.alice.2");
  headway_bus_close (f.bus);
  assert_dispatch (&f, "/idle");
  headway_handler_options_init (&options);
  g_assert_null (headway_dispatcher_register (f.dispatcher, f.bus, &options, &transport, NULL, f.now, &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_CLOSED);
  headway_bus_table_run (f.table, f.now);
  g_assert_cmpuint (headway_bus_table_size (f.table), ==, 1);
  test_continue (a);
  test_continue (a);
  assert_dispatch (&f, "a.alice.2 /a");
  headway_bus_table_tick (f.table, f.now, 1000000);
  g_assert_cmpuint (headway_bus_table_size (f.table), ==, 0);
}

static void
test_the_drain_window_ends_it (void)
{
  g_auto (TestDispatch) f;

  test_dispatch_set_up (&f);
  test_handler (&f, "a", AT (0));
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  headway_bus_close (f.bus);
  assert_dispatch (&f, "a.alice.1");
  f.now.monotonic_us += 1000000;
  headway_bus_table_tick (f.table, f.now, 1000000);
  assert_dispatch (&f, "~a.alice.1 /a");
  g_assert_cmpuint (headway_bus_table_size (f.table), ==, 0);
}

static void
test_the_table_goes_with_calls_under_way (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  a = test_handler (&f, "a", AT (10));
  test_handler (&f, "b", AT (20));
  for (guint i = 1; i <= 3; i++)
    test_dispatch_pub_number (&f, "alice", "foo.a", i);
  g_clear_object (&f.bus);
  g_clear_object (&f.table);
  {
    g_autofree char *log = test_dispatch_take_log (&f);
    g_assert_cmpstr (log, ==, "a.alice.1 ~a.alice.1 /a /b");
  }
  /* Late, and after everything. */
  test_continue (a);
}

static void
test_a_bus_with_handlers_is_in_use (void)
{
  g_auto (TestDispatch) f;
  TestHandler *a;

  test_dispatch_set_up (&f);
  headway_bus_table_get_limits (f.table)->bus_expire_seconds = 10;
  a = test_handler (&f, "a", AT (0));
  g_assert_cmpuint (headway_bus_get_subscriber_count (f.bus), ==, 0);
  g_assert_cmpint (test_dispatch_metric (&f, HEADWAY_METRIC_HANDLERS + HEADWAY_PHASE_POST), ==, 1);
  f.now.monotonic_us += 20 * G_USEC_PER_SEC;
  headway_bus_table_tick (f.table, f.now, 0);
  g_assert_false (headway_bus_is_closed (f.bus));
  headway_handler_unregister (a->handler, f.now);
  f.now.monotonic_us += 10 * G_USEC_PER_SEC - 1;
  headway_bus_table_tick (f.table, f.now, 0);
  g_assert_false (headway_bus_is_closed (f.bus));
  f.now.monotonic_us += 1;
  headway_bus_table_tick (f.table, f.now, 0);
  g_assert_true (headway_bus_is_closed (f.bus));
}

static void
on_deadline (HeadwayDispatcher *dispatcher, guint *n)
{
  (*n)++;
}

static void
test_an_earlier_deadline_is_said (void)
{
  g_auto (TestDispatch) f;
  guint n = 0;

  test_dispatch_set_up (&f);
  g_signal_connect (f.dispatcher, "deadline-changed", G_CALLBACK (on_deadline), &n);
  test_handler (&f, "slow", (HeadwayHandlerOptions){ .patterns = foo, .timeout_ms = 1000 });
  test_dispatch_pub (&f, "alice", "foo.a", "1");
  g_assert_cmpuint (n, ==, 1);
  test_dispatch_pub (&f, "bob", "foo.a", "1");
  g_assert_cmpuint (n, ==, 1);
  test_handler (&f, "quick", (HeadwayHandlerOptions){ .patterns = foo, .timeout_ms = 10 });
  test_dispatch_pub (&f, "carol", "foo.a", "1");
  g_assert_cmpuint (n, ==, 2);
  g_assert_cmpint (headway_dispatcher_get_next_deadline_us (f.dispatcher), ==, f.now.monotonic_us + 10000);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/dispatcher/life/case-129-a-new-generation-gets-no-old-work", test_case_129_a_new_generation_gets_no_old_work);
  g_test_add_func ("/dispatcher/life/what-waits-for-who-leaves-is-logged-as-lost", test_what_waits_for_who_leaves_is_logged_as_lost);
  g_test_add_func ("/dispatcher/life/unregister-drains-first", test_unregister_drains_first);
  g_test_add_func ("/dispatcher/life/unregister-decides-what-waits-first", test_unregister_decides_what_waits_first);
  g_test_add_func ("/dispatcher/life/a-drain-ends-with-what-it-waits-for", test_a_drain_ends_with_what_it_waits_for);
  g_test_add_func ("/dispatcher/life/unregister-with-nothing-left-ends-at-once", test_unregister_with_nothing_left_ends_at_once);
  g_test_add_func ("/dispatcher/life/drop-while-it-drains", test_drop_while_it_drains);
  g_test_add_func ("/dispatcher/life/who-leaves-a-chain-is-an-error-of-it", test_who_leaves_a_chain_is_an_error_of_it);
  g_test_add_func ("/dispatcher/life/who-leaves-with-on-error-deny-ends-the-chain", test_who_leaves_with_on_error_deny_ends_the_chain);
  g_test_add_func ("/dispatcher/life/a-handler-that-leaves-from-within-its-call", test_a_handler_that_leaves_from_within_its_call);
  g_test_add_func ("/dispatcher/life/a-bad-handler-is-refused", test_a_bad_handler_is_refused);
  g_test_add_func ("/dispatcher/life/a-bus-has-1024-handlers", test_a_bus_has_1024_handlers);
  g_test_add_func ("/dispatcher/life/a-closed-bus-lets-its-handlers-drain", test_a_closed_bus_lets_its_handlers_drain);
  g_test_add_func ("/dispatcher/life/the-drain-window-ends-it", test_the_drain_window_ends_it);
  g_test_add_func ("/dispatcher/life/the-table-goes-with-calls-under-way", test_the_table_goes_with_calls_under_way);
  g_test_add_func ("/dispatcher/life/a-bus-with-handlers-is-in-use", test_a_bus_with_handlers_is_in_use);
  g_test_add_func ("/dispatcher/life/an-earlier-deadline-is-said", test_an_earlier_deadline_is_said);
  return g_test_run ();
}
