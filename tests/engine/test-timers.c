/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-timers.h"

#define N 200

static void
test_nothing_is_due (void)
{
  HeadwayTimers timers;
  HeadwayTimer timer = { 0 };

  headway_timers_init (&timers);
  g_assert_null (headway_timers_peek (&timers));
  headway_timers_unset (&timers, &timer);
  g_assert_false (headway_timer_is_set (&timer));
  headway_timers_clear (&timers);
}

static void
test_clear_forgets (void)
{
  HeadwayTimers timers;
  HeadwayTimer timer = { 0 };

  headway_timers_init (&timers);
  headway_timers_set (&timers, &timer, 5);
  g_assert_true (headway_timers_peek (&timers) == &timer);
  headway_timers_clear (&timers);
  g_assert_false (headway_timer_is_set (&timer));
}

/* Against a plain search for the smallest. */
static void
test_the_first_is_the_first (void)
{
  HeadwayTimer all[N] = { 0 };
  HeadwayTimers timers;

  headway_timers_init (&timers);
  for (guint step = 0; step < 20000; step++)
    {
      HeadwayTimer *timer = &all[g_test_rand_int_range (0, N)];
      HeadwayTimer *first;
      gint64 least = G_MAXINT64;

      if (g_test_rand_bit ())
        headway_timers_set (&timers, timer, g_test_rand_int_range (0, 1000));
      else
        headway_timers_unset (&timers, timer);
      for (guint i = 0; i < N; i++)
        if (headway_timer_is_set (&all[i]))
          least = MIN (least, all[i].at_us);
      first = headway_timers_peek (&timers);
      g_assert_true ((first == NULL) == (least == G_MAXINT64));
      g_assert_true (first == NULL || first->at_us == least);
    }
  headway_timers_clear (&timers);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/timers/nothing-is-due", test_nothing_is_due);
  g_test_add_func ("/timers/clear-forgets", test_clear_forgets);
  g_test_add_func ("/timers/the-first-is-the-first", test_the_first_is_the_first);
  return g_test_run ();
}
