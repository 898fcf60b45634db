/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "headway-test-envelope.h"

#include "engine/headway-bus.h"

/* A bus to test with, ways to publish and subscribe in the words of sse-contract.md 6, and a
 * notation of what a reader got in which each case reads like the contract:
 *
 *   #3                            an event; four and more in a row are #3..#6
 *   resync(ring_evicted,0,3)      with a fourth word, epoch_mismatch, where `detail` says so
 *   rc(0)  rc(3,5)                replay_complete; a last word `filtered` where it says so
 *   warn(6,8,6,396,BC,frames)     slow_client_warning
 *   evict(queue_overflow,3,2,2,132,BC)
 *   snapshot({…})                 session_snapshot
 *   closed                        session_closed, an event whose id is checked but not shown
 *   open  end                     nothing waits, and more may come or not
 */

#define BC "2097152"

/* What counts in ten thousands is divided by this: a sanitizer is that much slower. */
#ifdef __SANITIZE_ADDRESS__
#define TEST_SLOWDOWN 10
#else
#define TEST_SLOWDOWN 1
#endif

typedef struct
{
  HeadwayPrincipalTable *principals; /* owned */
  HeadwayBus *bus;                   /* owned */
  HeadwayInstant now;
} TestBus;

/* Members that are 0 take their defaults. */
#define TEST_BUS(...) (test_bus_new ((HeadwayBusOptions){ __VA_ARGS__ }, "epoch-a", 0))

TestBus test_bus_new (HeadwayBusOptions options, const char *epoch, guint64 last_id);
void test_bus_clear (TestBus *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (TestBus, test_bus_clear)

/* An instant @us after an arbitrary start. */
HeadwayInstant test_instant (gint64 us);

/* --- Publishing ----------------------------------------------------------------------------- */

/* Type `foo`, @data, meta {"serverTimestamp":1}, the system principal. */
HeadwayEvent *test_event (HeadwayPrincipal *principal, const char *data);
HeadwayEvent *test_event_on (HeadwayPrincipal *principal, const char *topic, const char *type);
/* A JSON string of @n characters. */
char *test_string (guint n);

/* "pub n": n events `foo`, data 1. */
void test_pub (TestBus *self, guint n);
/* One event whose data is @data, or a string of @n characters. */
void test_pub_data (TestBus *self, const char *data);
void test_pub_chars (TestBus *self, guint n);
void test_pub_on (TestBus *self, const char *topic, const char *type);
/* "seed n" (decisions.md 38). */
void test_seed (TestBus *self, guint n);

/* What became of a batch. */
typedef struct
{
  guint n_calls;
  guint64 first_id;
  HeadwayOutcome outcome;
  GError *error; /* owned */
} TestResult;

void test_result_clear (TestResult *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (TestResult, test_result_clear)
/* n events `foo` that tell @result; not yet published. */
HeadwayBatch *test_batch (TestBus *self, guint n, TestResult *result);
/* Runs the bus until it has nothing more to do; returns how many turns that took. */
guint test_run (TestBus *self);

/* --- Subscribing ---------------------------------------------------------------------------- */

/* @max_queued: 0 for the default. */
HeadwaySubscription *test_live (TestBus *self, guint max_queued);
HeadwaySubscription *test_from (TestBus *self, guint64 cursor);
HeadwaySubscription *test_from_epoch (TestBus *self, guint64 cursor, const char *epoch);
HeadwaySubscription *test_subscribe (TestBus *self, const HeadwaySubscribeOptions *options);
/* Live, with a filter of patterns and types separated by blanks; NULL for none. */
HeadwaySubscription *test_filtered (TestBus *self, const char *patterns, const char *types);
HeadwayFilter *test_filter (const char *patterns, const char *types);

/* --- Reading -------------------------------------------------------------------------------- */

/* What the reader got, in the notation above; keeps a run of events open until it is broken. */
typedef struct
{
  GString *text; /* owned */
  guint64 run_first;
  guint64 run_last; /* 0: no run */
} TestScript;

void test_script_init (TestScript *self);
void test_script_add (TestScript *self, HeadwayEvent *event);
/* Returns: (transfer full): the text; @self is empty again. */
char *test_script_end (TestScript *self);

/* Takes at most @n in one go; adds no word about the state. */
char *test_take (TestBus *self, HeadwaySubscription *subscription, guint n);
/* Takes until nothing waits, then says `open` or `end`. */
char *test_take_all (TestBus *self, HeadwaySubscription *subscription);

#define assert_take(t, subscription, n, expected)                   \
  G_STMT_START                                                      \
  {                                                                 \
    g_autofree char *taken_ = test_take ((t), (subscription), (n)); \
    g_assert_cmpstr (taken_, ==, (expected));                       \
  }                                                                 \
  G_STMT_END

#define assert_reads(t, subscription, expected)                   \
  G_STMT_START                                                    \
  {                                                               \
    g_autofree char *read_ = test_take_all ((t), (subscription)); \
    g_assert_cmpstr (read_, ==, (expected));                      \
  }                                                               \
  G_STMT_END

/* Subscribes with @cursor and @epoch, which may be NULL, reads all, leaves. */
char *test_read_from (TestBus *self, guint64 cursor, const char *epoch);

#define assert_from(t, cursor, epoch, expected)                       \
  G_STMT_START                                                        \
  {                                                                   \
    g_autofree char *from_ = test_read_from ((t), (cursor), (epoch)); \
    g_assert_cmpstr (from_, ==, (expected));                          \
  }                                                                   \
  G_STMT_END

/* admitted = delivered + dropped + queued (architecture.md). */
#define assert_books(subscription)                                        \
  g_assert_cmpuint (headway_subscription_get_admitted (subscription), ==, \
                    headway_subscription_get_delivered (subscription) +   \
                      headway_subscription_get_dropped (subscription) +   \
                      headway_subscription_get_queued (subscription))

/* The JSON text of the member @name of @object; fails if there is none. */
char *test_member (const char *object, gsize length, const char *name);

/* A reader that takes straight from a publish while it has room. */
typedef struct
{
  HeadwaySink base;
  guint room; /* G_MAXUINT: no bound */
  guint n_puts;
  guint n_wakes;
  TestScript script;
} TestSink;

void test_sink_init (TestSink *self, guint room);
void test_sink_clear (TestSink *self);
/* What it got so far. */
char *test_sink_end (TestSink *self);

/* The one event that waits next; there is one. (transfer full) */
HeadwayEvent *test_take_event (TestBus *t, HeadwaySubscription *subscription);
