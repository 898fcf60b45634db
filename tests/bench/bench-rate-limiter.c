/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-rate-limiter.h"

#include <stdlib.h>

/* What one charge costs with few and with many principals, in turn and at random, and what it costs to
 * be refused, to forget a bus, and to make and lose a key. */

#define ROUNDS 4000000

static const char bus[] = "bus";

typedef struct
{
  HeadwayRateLimiter *limiter; /* owned */
  HeadwayLimits limits;
  GPtrArray *principals; /* HeadwayPrincipal (owned) */
} Bench;

static HeadwayInstant
at_us (gint64 us)
{
  return (HeadwayInstant){ .monotonic_us = us };
}

static void
bench_init (Bench *self, HeadwayPrincipalTable *table, guint n)
{
  self->limiter = headway_rate_limiter_new ();
  headway_limits_init (&self->limits);
  self->principals = g_ptr_array_new_with_free_func ((GDestroyNotify) headway_principal_unref);
  for (guint i = 0; i < n; i++)
    {
      g_autofree char *name = g_strdup_printf ("principal.%u", i);
      g_ptr_array_add (self->principals, headway_principal_table_intern (table, name, NULL));
    }
}

static void
bench_clear (Bench *self)
{
  headway_rate_limiter_free (self->limiter);
  g_ptr_array_unref (self->principals);
}

/* @order: indices of principals, ROUNDS of them; @step_ns: how fast time goes. Returns ns a charge. */
static double
charge (Bench *self, const guint *order, guint64 bytes, guint step_ns, guint *accepted)
{
  gint64 start = g_get_monotonic_time ();

  *accepted = 0;
  for (guint i = 0; i < ROUNDS; i++)
    *accepted += headway_rate_limiter_charge (self->limiter, &self->limits, bus, g_ptr_array_index (self->principals, order[i]), 1000,
                                              bytes, 1, at_us (G_USEC_PER_SEC + (gint64) i * step_ns / 1000), NULL)
                   ? 1
                   : 0;
  return (double) (g_get_monotonic_time () - start) * 1000.0 / ROUNDS;
}

static void
run (HeadwayPrincipalTable *table, guint n, guint *order)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (n);
  Bench bench;
  guint accepted;
  double in_turn, at_random, refused;
  gint64 start;

  bench_init (&bench, table, n);
  /* A key lives as long as its second of rate: 100 bytes of 100 a second. */
  bench.limits.principal_bytes_per_second = 1000;
  bench.limits.uid_bytes_per_second = 0;
  bench.limits.uid_events_per_second = 0;
  for (guint i = 0; i < n; i++)
    headway_rate_limiter_charge (bench.limiter, &bench.limits, bus, g_ptr_array_index (bench.principals, i), 1000, 1000, 1,
                                 at_us (G_USEC_PER_SEC), NULL);
  bench.limits = (HeadwayLimits){ 0 };
  headway_limits_init (&bench.limits);
  bench.limits.principal_events_per_second = bench.limits.uid_events_per_second = G_GUINT64_CONSTANT (1) << 40;
  bench.limits.principal_bytes_per_second = bench.limits.uid_bytes_per_second = G_GUINT64_CONSTANT (1) << 40;

  for (guint i = 0; i < ROUNDS; i++)
    order[i] = i % n;
  in_turn = charge (&bench, order, 256, 10, &accepted);
  if (accepted == 0)
    abort ();
  for (guint i = 0; i < ROUNDS; i++)
    order[i] = (guint) g_rand_int_range (random, 0, (gint32) n);
  at_random = charge (&bench, order, 256, 0, &accepted);
  g_print ("%6u keys, now %6u: in turn %6.1f ns, at random %6.1f ns", n, headway_rate_limiter_size (bench.limiter), in_turn, at_random);

  bench.limits.principal_bytes_per_second = 1;
  refused = charge (&bench, order, 256, 0, &accepted);
  start = g_get_monotonic_time ();
  headway_rate_limiter_forget_bus (bench.limiter, bus);
  g_print (", refused %6.1f ns, forgetting the bus %" G_GINT64_FORMAT " us\n", refused, g_get_monotonic_time () - start);
  bench_clear (&bench);
}

/* Each charge makes a key, and takes two idle ones out. */
static void
run_churn (HeadwayPrincipalTable *table, guint *order)
{
  Bench bench;
  guint accepted;
  double ns;

  bench_init (&bench, table, 10000);
  for (guint i = 0; i < ROUNDS; i++)
    order[i] = i % 10000;
  /* 100 us apart: all others are idle before one comes again. */
  ns = charge (&bench, order, 256, 100000, &accepted);
  g_print ("     a key made and lost: %6.1f ns (%u keys at the end)\n", ns, headway_rate_limiter_size (bench.limiter));
  bench_clear (&bench);
}

int
main (void)
{
  static const guint sizes[] = { 1, 1000, HEADWAY_RATE_KEYS_MAX };
  g_autoptr (HeadwayPrincipalTable) table = headway_principal_table_new ();
  g_autofree guint *order = g_new (guint, ROUNDS);

  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++)
    run (table, sizes[i], order);
  run_churn (table, order);

  return EXIT_SUCCESS;
}
