/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-bus.h"

#include <string.h>

/* A replay by itself, without a subscription: how Fetch reads (decisions.md 22, 23). */

typedef struct
{
  HeadwayReplay replay;
  HeadwayFilter *filter; /* owned */
  TestScript script;
  guint n_looked; /* how often it said: come again */
} Reader;

static void
reader_init (Reader *self, TestBus *t, HeadwayCursor cursor, guint64 budget, const char *patterns)
{
  self->n_looked = 0;
  self->filter = test_filter (patterns, NULL);
  test_script_init (&self->script);
  headway_replay_init (&self->replay, &cursor, headway_bus_get_ring (t->bus), headway_bus_get_last_id (t->bus) + 1,
                       headway_bus_get_epoch (t->bus), budget);
}

static void
reader_clear (Reader *self)
{
  headway_filter_unref (self->filter);
  g_string_free (self->script.text, TRUE);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Reader, reader_clear)

static void
add_notice (Reader *self, TestBus *t, const HeadwayNotice *notice)
{
  g_autoptr (HeadwayEvent) event =
               headway_notice_to_event (notice, 0, headway_bus_get_system (t->bus), t->now);

  test_script_add (&self->script, event);
}

/* At most @n steps that show something. TRUE: not at the end. */
static gboolean
reader_step (Reader *self, TestBus *t, guint n, guint looks)
{
  for (guint i = 0; i < n;)
    {
      guint left = looks;
      HeadwayEvent *event = NULL;
      HeadwayNotice notice;
      HeadwayReplayStep step;

      step = headway_replay_peek (&self->replay, headway_bus_get_ring (t->bus), self->filter, &left, &event, &notice);
      g_assert_cmpuint (left, <=, looks);
      if (step == HEADWAY_REPLAY_DONE)
        return FALSE;
      if (step == HEADWAY_REPLAY_LOOKED)
        {
          g_assert_cmpuint (left, ==, 0);
          self->n_looked++;
          continue;
        }
      if (step == HEADWAY_REPLAY_EVENT)
        test_script_add (&self->script, event);
      else
        add_notice (self, t, &notice);
      headway_replay_advance (&self->replay, step, event, &notice);
      i++;
    }
  return TRUE;
}

#define assert_reader(r, expected)                          \
  G_STMT_START                                              \
  {                                                         \
    g_autofree char *got_ = test_script_end (&(r)->script); \
    g_assert_cmpstr (got_, ==, (expected));                 \
  }                                                         \
  G_STMT_END

static HeadwayCursor
from (guint64 id)
{
  return (HeadwayCursor){ .is_set = TRUE, .last_event_id = id };
}

static void
test_plain (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_auto (Reader) r = { 0 };

  test_pub (&t, 6);
  reader_init (&r, &t, from (2), 0, NULL);
  /* What comes behind H is not the replay's. */
  test_pub (&t, 3);
  g_assert_false (reader_step (&r, &t, 100, 32));
  assert_reader (&r, "#3..#6");
  g_assert_cmpuint (r.replay.count, ==, 4);
}

static void
test_peek_consumes_nothing (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_auto (Reader) r = { 0 };
  HeadwayNotice notice;

  test_pub (&t, 2);
  reader_init (&r, &t, from (0), 0, NULL);
  for (guint i = 0; i < 3; i++)
    {
      guint looks = 32;
      HeadwayEvent *event = NULL;
      g_assert_cmpint (headway_replay_peek (&r.replay, headway_bus_get_ring (t.bus), r.filter, &looks, &event, &notice),
                       ==, HEADWAY_REPLAY_EVENT);
      g_assert_cmpuint (headway_event_get_id (event), ==, 1);
      g_assert_cmpuint (looks, ==, 32);
    }
}

static void
test_looks (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_auto (Reader) r = { 0 };

  for (guint i = 0; i < 100; i++)
    test_pub_on (&t, "other", NULL);
  test_pub_on (&t, "mine", NULL);
  for (guint i = 0; i < 64; i++)
    test_pub_on (&t, "other", NULL);
  reader_init (&r, &t, from (0), 0, "mine");
  g_assert_true (reader_step (&r, &t, 1, 32));
  assert_reader (&r, "#101");
  g_assert_cmpuint (r.n_looked, ==, 3);
  g_assert_false (reader_step (&r, &t, 1, 32));
  g_assert_cmpuint (r.n_looked, ==, 4);
}

static void
test_overtaken_with_filter (void)
{
  g_auto (TestBus) t = TEST_BUS (.ring_size = 6);
  g_auto (Reader) r = { 0 };

  for (guint i = 0; i < 6; i++)
    test_pub_on (&t, i % 2 == 0 ? "mine" : "other", NULL);
  reader_init (&r, &t, from (0), 0, "mine");
  g_assert_true (reader_step (&r, &t, 1, 32));
  test_pub (&t, 3);
  g_assert_false (reader_step (&r, &t, 100, 32));
  assert_reader (&r, "#1 resync(ring_evicted,1,5) #5");
}

/* Nothing that is left matches: what comes next is live. Overtaken twice, told once. */
static void
test_overtaken_twice (void)
{
  g_auto (TestBus) t = TEST_BUS (.ring_size = 100);
  g_auto (Reader) r = { 0 };

  test_pub_on (&t, "mine", NULL);
  for (guint i = 0; i < 99; i++)
    test_pub_on (&t, "other", NULL);
  reader_init (&r, &t, from (0), 0, "mine");
  test_pub (&t, 10);
  for (guint i = 0; i < 2; i++)
    {
      guint looks = 32;
      HeadwayEvent *event;
      HeadwayNotice notice;
      g_assert_cmpint (headway_replay_peek (&r.replay, headway_bus_get_ring (t.bus), r.filter, &looks, &event, &notice),
                       ==, HEADWAY_REPLAY_LOOKED);
      test_pub (&t, 10);
    }
  g_assert_false (reader_step (&r, &t, 100, 32));
  assert_reader (&r, "resync(ring_evicted,0,101)");
}

static void
test_seeded_under_way (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_auto (Reader) r = { 0 };
  g_auto (Reader) at_end = { 0 };

  test_pub (&t, 4);
  reader_init (&r, &t, from (0), 0, NULL);
  reader_init (&at_end, &t, from (3), 0, NULL);
  g_assert_true (reader_step (&r, &t, 2, 32));
  g_assert_true (reader_step (&at_end, &t, 1, 32));
  test_seed (&t, 1);
  g_assert_false (reader_step (&r, &t, 100, 32));
  assert_reader (&r, "#1 #2 resync(ring_evicted,2,5)");
  /* Nothing is said where nothing is missing. */
  g_assert_false (reader_step (&at_end, &t, 100, 32));
  assert_reader (&at_end, "#4");
}

static void
test_budget_counts_matches_only (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_auto (Reader) r = { 0 };
  gsize size;

  for (guint i = 0; i < 8; i++)
    test_pub_on (&t, i % 2 == 0 ? "mine" : "other", NULL);
  size = headway_event_get_size (headway_ring_lookup (headway_bus_get_ring (t.bus), 1));
  reader_init (&r, &t, from (0), size * 2, "mine");
  g_assert_false (reader_step (&r, &t, 100, 32));
  assert_reader (&r, "#1 #3 resync(replay_budget_exceeded,3,5)");
}

static void
test_complete (void)
{
  g_auto (TestBus) t = TEST_BUS (0);
  g_auto (Reader) r = { 0 };
  HeadwayNotice notice;

  test_pub (&t, 3);
  reader_init (&r, &t, from (1), 0, NULL);
  headway_replay_complete (&r.replay, FALSE, &notice);
  add_notice (&r, &t, &notice);
  g_assert_false (reader_step (&r, &t, 100, 32));
  headway_replay_complete (&r.replay, TRUE, &notice);
  add_notice (&r, &t, &notice);
  assert_reader (&r, "rc(0) #2 #3 rc(2,3,filtered)");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/replay/up-to-the-last-id-at-its-start", test_plain);
  g_test_add_func ("/replay/peek-consumes-nothing", test_peek_consumes_nothing);
  g_test_add_func ("/replay/looks-at-32-a-turn", test_looks);
  g_test_add_func ("/replay/overtaken-with-a-filter", test_overtaken_with_filter);
  g_test_add_func ("/replay/overtaken-twice-told-once", test_overtaken_twice);
  g_test_add_func ("/replay/seeded-under-way", test_seeded_under_way);
  g_test_add_func ("/replay/budget-counts-what-matches", test_budget_counts_matches_only);
  g_test_add_func ("/replay/complete", test_complete);
  return g_test_run ();
}
