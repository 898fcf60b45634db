/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-gcra.h"

/* The numbers of routing.md 4A in nanoseconds, as they were computed there, and the arithmetic against
 * numbers that are wide enough not to need care. */

#define MIB    G_GUINT64_CONSTANT (1048576)
#define SECOND G_GUINT64_CONSTANT (1000000000)

/* Sends if it may; returns how long it would have to wait. */
static guint64
send (HeadwayGcra *gcra, guint64 now_ns, guint64 amount, guint64 rate, guint64 burst)
{
  guint64 wait_ns = headway_gcra_wait_ns (gcra, now_ns, amount, rate, burst);

  if (wait_ns == 0)
    headway_gcra_charge (gcra, now_ns, amount, rate);
  return wait_ns;
}

static void
test_case_3_retry_after_954_ns (void)
{
  HeadwayGcra gcra = { 0 };

  g_assert_cmpuint (send (&gcra, 0, MIB, MIB, MIB), ==, 0);
  g_assert_cmpuint (send (&gcra, 0, 1, MIB, MIB), ==, 954);
  g_assert_cmpuint (send (&gcra, 953, 1, MIB, MIB), ==, 1);
  g_assert_cmpuint (send (&gcra, 954, 1, MIB, MIB), ==, 0);
}

static void
test_case_9_retry_after_986_ms (void)
{
  HeadwayGcra gcra = { 0 };

  g_assert_cmpuint (send (&gcra, 0, 1, 1000, 1000), ==, 0);
  g_assert_cmpuint (send (&gcra, 990000000, 999, 1000, 1000), ==, 0);
  g_assert_cmpuint (send (&gcra, 1003000000, 1000, 1000, 1000), ==, 986000000);
  g_assert_cmpuint (send (&gcra, 1003000000, 15, 1000, 1000), ==, 1000000);
  g_assert_cmpuint (send (&gcra, 1003000000, 14, 1000, 1000), ==, 0);
  g_assert_cmpuint (send (&gcra, 1003000000, 1, 1000, 1000), ==, 1000000);
}

static void
test_case_13_three_a_second_one_at_once (void)
{
  HeadwayGcra gcra = { 0 };

  g_assert_cmpuint (send (&gcra, 0, 1, 3, 1), ==, 0);
  g_assert_cmpuint (send (&gcra, 333333333, 1, 3, 1), ==, 1);
  g_assert_cmpuint (send (&gcra, 333333334, 1, 3, 1), ==, 0);
  g_assert_cmpuint (send (&gcra, 666666667, 1, 3, 1), ==, 1);
  g_assert_cmpuint (send (&gcra, 666666668, 1, 3, 1), ==, 0);
}

static void
test_burst_of_any_rate_passes_one_by_one (void)
{
  static const guint64 rates[] = { 1, 3, 7, 999, 20000, 30011, 1048573 };

  for (guint i = 0; i < G_N_ELEMENTS (rates); i++)
    {
      HeadwayGcra gcra = { 0 };

      for (guint64 n = 0; n < rates[i]; n++)
        g_assert_cmpuint (send (&gcra, 0, 1, rates[i], rates[i]), ==, 0);
      g_assert_cmpuint (send (&gcra, 0, 1, rates[i], rates[i]), ==, (SECOND + rates[i] - 1) / rates[i]);
      g_assert_cmpuint (send (&gcra, SECOND, rates[i], rates[i], rates[i]), ==, 0);
    }
}

static void
test_over_the_burst_is_never (void)
{
  const HeadwayGcra unused = { 0 };
  const HeadwayGcra far = { .tat_ns = G_MAXUINT64 };

  g_assert_cmpuint (headway_gcra_wait_ns (&unused, 0, 100, 100, 100), ==, 0);
  g_assert_cmpuint (headway_gcra_wait_ns (&unused, 0, 101, 100, 100), ==, HEADWAY_GCRA_NEVER);
  g_assert_cmpuint (headway_gcra_wait_ns (&far, 0, 100, 100, 0), ==, HEADWAY_GCRA_NEVER);
  g_assert_cmpuint (headway_gcra_wait_ns (&far, 0, 100, 100, 100), <, HEADWAY_GCRA_NEVER);
}

static void
test_nothing_always_passes (void)
{
  HeadwayGcra gcra = { .tat_ns = 5 * SECOND };

  g_assert_cmpuint (headway_gcra_wait_ns (&gcra, 0, 0, 100, 100), ==, 0);
  g_assert_cmpuint (headway_gcra_wait_ns (&gcra, 0, 0, 100, 0), ==, 0);
  headway_gcra_charge (&gcra, 9 * SECOND, 0, 100);
  g_assert_cmpuint (gcra.tat_ns, ==, 5 * SECOND);
}

static void
test_idle_when_its_time_has_come (void)
{
  HeadwayGcra gcra = { 0 };

  g_assert_true (headway_gcra_is_idle (&gcra, 0));
  headway_gcra_charge (&gcra, 0, 1, 3);
  g_assert_false (headway_gcra_is_idle (&gcra, 333333333));
  g_assert_true (headway_gcra_is_idle (&gcra, 333333334));
  headway_gcra_charge (&gcra, 333333334, 3, 3);
  g_assert_false (headway_gcra_is_idle (&gcra, 1333333333));
  g_assert_true (headway_gcra_is_idle (&gcra, 1333333334));
}

static void
test_change_of_the_rate_rounds_up (void)
{
  HeadwayGcra gcra = { 0 };

  headway_gcra_charge (&gcra, 0, 1, 3);
  g_assert_cmpuint (headway_gcra_wait_ns (&gcra, 0, 10, 10, 10), ==, 333333334);
  headway_gcra_charge (&gcra, 0, 1, 10);
  g_assert_cmpuint (gcra.tat_ns, ==, 433333334);
  g_assert_cmpuint (gcra.rest, ==, 0);
}

static void
test_largest_rate_and_amounts (void)
{
  const guint64 rate = HEADWAY_GCRA_RATE_MAX;
  HeadwayGcra gcra = { 0 };

  /* Over 1 000 bytes a nanosecond: half of it, a byte less than the rest, and that byte. */
  g_assert_cmpuint (send (&gcra, 0, rate / 2, rate, rate), ==, 0);
  g_assert_cmpuint (send (&gcra, 0, rate / 2 - 1, rate, rate), ==, 0);
  g_assert_cmpuint (send (&gcra, 0, 2, rate, rate), ==, 1);
  g_assert_cmpuint (send (&gcra, 0, 1, rate, rate), ==, 0);
  g_assert_cmpuint (send (&gcra, 0, 1, rate, rate), ==, 1);
  g_assert_cmpuint (send (&gcra, 1, 1099, rate, rate), ==, 0);
  g_assert_cmpuint (send (&gcra, 1, 1, rate, rate), ==, 1);
  /* A rate beyond counts as the largest. */
  gcra = (HeadwayGcra){ 0 };
  g_assert_cmpuint (send (&gcra, 0, rate, G_MAXUINT64, G_MAXUINT64), ==, 0);
  g_assert_cmpuint (gcra.tat_ns, ==, SECOND);
  /* What does not fit stays at the end of time. */
  headway_gcra_charge (&gcra, 0, G_MAXUINT64, 1);
  g_assert_cmpuint (gcra.tat_ns, ==, G_MAXUINT64);
  headway_gcra_charge (&gcra, 0, 1, 1);
  g_assert_cmpuint (gcra.tat_ns, ==, G_MAXUINT64);
  gcra = (HeadwayGcra){ 0 };
  headway_gcra_charge (&gcra, 0, rate, 1);
  g_assert_cmpuint (gcra.tat_ns, ==, G_MAXUINT64);
}

#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 Wide;

/* Numbers of every magnitude, and those beside powers of two. */
static guint64
random_number (GRand *random, guint bits)
{
  guint64 number = (guint64) g_rand_int (random) << 32 | g_rand_int (random);

  number >>= 64 - (guint) g_rand_int_range (random, 1, (gint32) bits + 1);
  switch (g_rand_int_range (random, 0, 8))
    {
    case 0:
      return G_GUINT64_CONSTANT (1) << g_rand_int_range (random, 0, (gint32) bits);
    case 1:
      return (G_GUINT64_CONSTANT (1) << g_rand_int_range (random, 0, (gint32) bits)) - 1;
    default:
      return number;
    }
}

/* A leaky bucket in rational numbers: what fills it, in billionths of a unit. */
static void
test_same_as_a_bucket_in_rational_numbers (void)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (12);

  for (guint run = 0; run < 1000; run++)
    {
      guint64 rate = random_number (random, 41);
      guint64 now_ns = 0;
      HeadwayGcra gcra = { 0 };
      Wide level = 0;
      Wide full;

      rate = CLAMP (rate, 1, HEADWAY_GCRA_RATE_MAX);
      full = (Wide) rate * SECOND;
      for (guint i = 0; i < 2000; i++)
        {
          guint64 elapsed_ns = random_number (random, 30);
          guint64 amount = random_number (random, 41) % rate + 1;
          Wide filled;
          guint64 wait_ns;

          now_ns += elapsed_ns;
          level -= MIN (level, (Wide) elapsed_ns * rate);
          filled = level + (Wide) amount * SECOND;
          wait_ns = send (&gcra, now_ns, amount, rate, rate);
          g_assert_cmpuint (wait_ns, ==, filled <= full ? 0 : (guint64) ((filled - full + rate - 1) / rate));
          if (wait_ns == 0)
            level = filled;
        }
    }
}
#endif

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);

  g_test_add_func ("/gcra/case-3/retry-after-954-ns", test_case_3_retry_after_954_ns);
  g_test_add_func ("/gcra/case-9/retry-after-986-ms", test_case_9_retry_after_986_ms);
  g_test_add_func ("/gcra/case-13/three-a-second-one-at-once", test_case_13_three_a_second_one_at_once);
  g_test_add_func ("/gcra/burst-of-any-rate-passes-one-by-one", test_burst_of_any_rate_passes_one_by_one);
  g_test_add_func ("/gcra/over-the-burst-is-never", test_over_the_burst_is_never);
  g_test_add_func ("/gcra/nothing-always-passes", test_nothing_always_passes);
  g_test_add_func ("/gcra/idle-when-its-time-has-come", test_idle_when_its_time_has_come);
  g_test_add_func ("/gcra/change-of-the-rate-rounds-up", test_change_of_the_rate_rounds_up);
  g_test_add_func ("/gcra/largest-rate-and-amounts", test_largest_rate_and_amounts);
#ifdef __SIZEOF_INT128__
  g_test_add_func ("/gcra/same-as-a-bucket-in-rational-numbers", test_same_as_a_bucket_in_rational_numbers);
#endif

  return g_test_run ();
}
