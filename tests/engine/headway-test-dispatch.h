/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-dispatcher.h"

/* A bus with handlers, a clock and a transport that the test holds in its hands. What happens is written into
 * a log, in words:
 *
 *   a.bob.7       handler `a` is called with the event of bob whose data is 7; `-` is the system principal
 *   a.bob.7!5     the same, and is told that 5 were lost
 *   ~a.bob.7      that call was abandoned
 *   /a            handler `a` has ended
 *   +7 -7:reason  the publish of 7 went out, or failed, why
 *   =7            a subscriber would see 7 (only with `shows_events`)
 */

typedef struct _TestHandler TestHandler;

typedef struct
{
  HeadwayBusTable *table;        /* owned */
  HeadwayBus *bus;               /* owned */
  HeadwayDispatcher *dispatcher; /* borrowed */
  HeadwayInstant now;
  GString *log;        /* owned */
  GPtrArray *handlers; /* owned TestHandler */
  guint observer;
} TestDispatch;

/* What it does with a call, beside keeping it. */
typedef void (*TestOnCall) (TestHandler *handler, HeadwayHandlerCall *call);

struct _TestHandler
{
  TestDispatch *f;
  char *name;
  HeadwayHandler *handler; /* owned */
  GPtrArray *calls;        /* HeadwayHandlerCall (owned), in order: not given back */
  TestOnCall on_call;      /* nullable: gives it back at once, from within the call */
  const char *verdict;     /* for test_answer_at_once() */
  guint n_calls;
  guint n_ended;
  gboolean is_quiet; /* writes nothing */
};

void test_dispatch_set_up (TestDispatch *f);
void test_dispatch_clear (TestDispatch *f);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (TestDispatch, test_dispatch_clear)

/* Registers a handler; members that are 0 take their defaults, the name is @name. (transfer none) */
TestHandler *test_handler (TestDispatch *f, const char *name, HeadwayHandlerOptions options);
/* An observer writes what gets an id. */
void test_show_events (TestDispatch *f);

/* For `on_call`: gives back `verdict` with no data. */
void test_answer_at_once (TestHandler *self, HeadwayHandlerCall *call);
/* Gives back the oldest call that waits. @data: (nullable). */
void test_answer_call (TestHandler *self, const char *verdict, const char *data);
void test_continue (TestHandler *self);
void test_fail (TestHandler *self);
void test_skip (TestHandler *self);
void test_retry (TestHandler *self);
/* Gives back the oldest call of @principal. */
void test_continue_for (TestHandler *self, const char *principal);

/* Publishes @data on @topic as @principal ("-": the system principal), through the table. */
void test_dispatch_pub (TestDispatch *f, const char *principal, const char *topic, const char *data);
void test_dispatch_pub_from (TestDispatch *f, gconstpointer origin, const char *principal, const char *topic, const char *data);
/* What a stream asks before it publishes such an event: microseconds to wait. */
gint64 test_dispatch_wait_us (TestDispatch *f, gconstpointer origin, const char *principal, const char *topic, const char *data);
/* test_dispatch_pub() with number @n as data. */
void test_dispatch_pub_number (TestDispatch *f, const char *principal, const char *topic, guint n);
/* Several at once: words `principal/topic/data`. */
void test_dispatch_pub_many (TestDispatch *f, const char *words);

/* @ms later; what is due happens. */
void test_dispatch_pass (TestDispatch *f, gint64 ms);
gint64 test_dispatch_metric (TestDispatch *f, guint series);
/* The books of a handler balance, and nothing is over a bound. */
void test_dispatch_check (TestDispatch *f);
/* What was written since; the log is empty again. (transfer full) */
char *test_dispatch_take_log (TestDispatch *f);

#define assert_dispatch(f, expected)                    \
  G_STMT_START                                          \
  {                                                     \
    g_autofree char *log_ = test_dispatch_take_log (f); \
    g_assert_cmpstr (log_, ==, (expected));             \
    test_dispatch_check (f);                            \
  }                                                     \
  G_STMT_END
