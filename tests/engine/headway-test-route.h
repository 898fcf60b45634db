/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "headway-test-bus.h"

/* For `routed` and `broadcast`: publishing as somebody, at an exact cost, and what a reader got as
 * text:
 *
 *   alice#1  #2                       events, of alice and of the system principal
 *   gap(budget,alice,3,300,5..7)      reason, principal (- where there is none), count, bytes, ids;
 *                                     with a last word `filtered` where it says so
 *   rc(0)  resync(ring_evicted)       replay_complete and its count, state_resync_required
 *   evict(writer_idle_timeout,7)      client_evicted and its lastDeliveredId
 *   snapshot                          session_snapshot
 *   closed                            session_closed
 *
 * With resume ids every event and notice is followed by @ and its resume id. */

/* The cost of an event on `t.x` whose data are n digits. */
#define TEST_COST_MIN 4

/* Options that routed subscriptions of tests begin with. */
HeadwaySubscribeOptions test_route_options (guint64 budget);
HeadwaySubscription *test_route (TestBus *self, guint64 budget);
HeadwaySubscription *test_broadcast (TestBus *self, const char *patterns, guint64 cursor, gboolean has_cursor);

/* (transfer none): lives as long as the bus. NULL is the system principal. */
HeadwayPrincipal *test_principal (TestBus *self, const char *name);
/* An event on `t.x` that costs @cost. */
HeadwayEvent *test_event_of (TestBus *self, const char *principal, gsize cost, gboolean is_final);
HeadwayEvent *test_event_at (TestBus *self, const char *principal, const char *topic, gsize cost, gboolean is_final);
HeadwayOutcome test_publish (TestBus *self, HeadwayEvent *event);
/* n events of @cost. */
HeadwayOutcome test_pub_as (TestBus *self, const char *principal, gsize cost, guint n);
HeadwayOutcome test_pub_final (TestBus *self, const char *principal, gsize cost);

char *test_route_take (TestBus *self, HeadwaySubscription *subscription, guint n);
char *test_route_take_resumable (TestBus *self, HeadwaySubscription *subscription, guint n);
char *test_route_drain (TestBus *self, HeadwaySubscription *subscription, guint64 budget);
void test_route_append (GString *text, HeadwayEvent *event);

/* Takes @n in one go; 1000 is all. */
#define assert_route_take(t, subscription, n, expected)                   \
  G_STMT_START                                                            \
  {                                                                       \
    g_autofree char *taken_ = test_route_take ((t), (subscription), (n)); \
    g_assert_cmpstr (taken_, ==, (expected));                             \
    assert_books (subscription);                                          \
  }                                                                       \
  G_STMT_END

#define assert_route_resume(t, subscription, n, expected)                           \
  G_STMT_START                                                                      \
  {                                                                                 \
    g_autofree char *taken_ = test_route_take_resumable ((t), (subscription), (n)); \
    g_assert_cmpstr (taken_, ==, (expected));                                       \
    assert_books (subscription);                                                    \
  }                                                                                 \
  G_STMT_END

#define assert_route_drain(t, subscription, budget, expected)                   \
  G_STMT_START                                                                  \
  {                                                                             \
    g_autofree char *taken_ = test_route_drain ((t), (subscription), (budget)); \
    g_assert_cmpstr (taken_, ==, (expected));                                   \
    assert_books (subscription);                                                \
  }                                                                             \
  G_STMT_END

/* What a take or a drain of a route gave, in numbers. */
typedef struct
{
  guint events;
  guint gaps;
  guint64 cost;
  guint64 lost; /* in the gaps */
} TestTally;

/* @budget: 0: takes up to @n. */
TestTally test_tally (TestBus *self, HeadwaySubscription *subscription, guint n, guint64 budget);

/* A sink that prints, and can be told to refuse. */
typedef struct
{
  HeadwaySink base;
  guint room;
  guint n_wakes;
  guint n_puts;
  GString *text; /* owned */
} TestRouteSink;

void test_route_sink_init (TestRouteSink *self, guint room);
void test_route_sink_clear (TestRouteSink *self);
