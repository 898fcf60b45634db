/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-error.h"
#include "engine/headway-rate-limiter.h"

#include <string.h>

/* Batches of several principals: charged as a whole (decisions.md 13). And random runs against a model
 * that keeps everything for ever, looks everything up in a list, and computes in wide numbers. */

#define N_PRINCIPALS 12
#define N_BUSES      3
#define N_UIDS       3

typedef struct
{
  HeadwayRateLimiter *limiter;           /* owned */
  HeadwayPrincipalTable *principals;     /* owned */
  HeadwayPrincipal *names[N_PRINCIPALS]; /* owned */
  HeadwayLimits limits;
} Fixture;

static const char buses[N_BUSES];

static void
fixture_init (Fixture *self)
{
  self->limiter = headway_rate_limiter_new ();
  self->principals = headway_principal_table_new ();
  for (guint i = 0; i < N_PRINCIPALS; i++)
    {
      g_autofree char *name = g_strdup_printf ("agent.%u", i);
      self->names[i] = headway_principal_table_intern (self->principals, name, NULL);
    }
  headway_limits_init (&self->limits);
  self->limits.principal_bytes_per_second = 0;
  self->limits.principal_events_per_second = 0;
  self->limits.uid_bytes_per_second = 0;
  self->limits.uid_events_per_second = 0;
}

static void
fixture_clear (Fixture *self)
{
  headway_rate_limiter_free (self->limiter);
  for (guint i = 0; i < N_PRINCIPALS; i++)
    headway_principal_unref (self->names[i]);
  headway_principal_table_unref (self->principals);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, fixture_clear)

static HeadwayInstant
at_us (gint64 us)
{
  return (HeadwayInstant){ .monotonic_us = us };
}

/* An event of @cost bytes, from 3: topic `t`, and a string. */
static void
add (HeadwayBatch *batch, HeadwayPrincipal *principal, gsize cost)
{
  g_autofree char *data = g_strnfill (cost - 1, 'x');
  HeadwayPublication publication = {
    .topic = "t",
    .principal = principal,
    .data = data,
    .data_length = cost - 1,
  };
  HeadwayEvent *event;

  data[0] = data[cost - 2] = '"';
  event = headway_event_new (&publication, HEADWAY_EVENT_CEILING, at_us (0), NULL);
  g_assert_nonnull (event);
  g_assert_cmpuint (headway_event_get_cost (event), ==, cost);
  headway_batch_add (batch, event);
}

static gint64
charge (Fixture *self, const HeadwayBatch *batch, guint32 uid, gint64 now_us, HeadwayError *code)
{
  gint64 wait_us = headway_rate_limiter_batch_wait_us (self->limiter, &self->limits, &buses[0], batch, uid, at_us (now_us));
  g_autoptr (GError) error = NULL;

  if (headway_rate_limiter_charge_batch (self->limiter, &self->limits, &buses[0], batch, uid, at_us (now_us), &error))
    {
      g_assert_cmpint (wait_us, ==, 0);
      return 0;
    }
  g_assert_cmpint (wait_us, !=, 0);
  if (code != NULL)
    *code = error->code;
  return headway_error_get_details (error)->retry_after_ms;
}

static void
test_batch_is_charged_by_principal (void)
{
  g_auto (Fixture) self = { 0 };
  g_autoptr (HeadwayBatch) mixed = headway_batch_new (4, NULL, NULL);
  g_autoptr (HeadwayBatch) more = headway_batch_new (1, NULL, NULL);

  fixture_init (&self);
  self.limits.principal_bytes_per_second = 100;
  add (mixed, self.names[0], 40);
  add (mixed, self.names[1], 30);
  add (mixed, self.names[0], 50);
  add (mixed, self.names[2], 100);
  g_assert_cmpint (charge (&self, mixed, 1, 0, NULL), ==, 0);
  g_assert_cmpuint (headway_rate_limiter_size (self.limiter), ==, 3);
  /* 90 of 100, 30 of 100, 100 of 100. */
  add (more, self.names[0], 11);
  g_assert_cmpint (charge (&self, more, 1, 0, NULL), ==, 10);
  g_assert_cmpint (headway_rate_limiter_wait_us (self.limiter, &self.limits, &buses[0], self.names[0], 1, 10, 1, at_us (0)), ==, 0);
  g_assert_cmpint (headway_rate_limiter_wait_us (self.limiter, &self.limits, &buses[0], self.names[1], 1, 70, 1, at_us (0)), ==, 0);
  g_assert_cmpint (headway_rate_limiter_wait_us (self.limiter, &self.limits, &buses[0], self.names[1], 1, 71, 1, at_us (0)), ==, 10000);
  g_assert_cmpint (headway_rate_limiter_wait_us (self.limiter, &self.limits, &buses[0], self.names[2], 1, 1, 1, at_us (0)), ==, 10000);
}

static void
test_one_principal_refuses_the_batch (void)
{
  g_auto (Fixture) self = { 0 };
  g_autoptr (HeadwayBatch) mixed = headway_batch_new (2, NULL, NULL);

  fixture_init (&self);
  self.limits.principal_bytes_per_second = 100;
  g_assert_true (headway_rate_limiter_charge (self.limiter, &self.limits, &buses[0], self.names[1], 1, 80, 1, at_us (0), NULL));
  add (mixed, self.names[0], 60);
  add (mixed, self.names[1], 30);
  g_assert_cmpint (charge (&self, mixed, 1, 0, NULL), ==, 100);
  g_assert_cmpuint (headway_rate_limiter_size (self.limiter), ==, 1);
  g_assert_cmpint (charge (&self, mixed, 1, 100000, NULL), ==, 0);
}

static void
test_uid_is_charged_for_all (void)
{
  g_auto (Fixture) self = { 0 };
  g_autoptr (HeadwayBatch) mixed = headway_batch_new (3, NULL, NULL);
  HeadwayError code = HEADWAY_N_ERRORS;

  fixture_init (&self);
  self.limits.uid_events_per_second = 3;
  self.limits.uid_bytes_per_second = 30;
  for (guint i = 0; i < 3; i++)
    add (mixed, self.names[i], 10);
  g_assert_cmpint (charge (&self, mixed, 1, 0, NULL), ==, 0);
  g_assert_cmpint (charge (&self, mixed, 1, 0, &code), ==, 1000);
  g_assert_cmpint (code, ==, HEADWAY_ERROR_RATE_LIMITED);
  g_assert_cmpint (charge (&self, mixed, 2, 0, NULL), ==, 0);
  add (mixed, self.names[0], 10);
  g_assert_cmpint (charge (&self, mixed, 1, 5000000, &code), ==, -1);
  g_assert_cmpint (code, ==, HEADWAY_ERROR_QUOTA_EXCEEDED);
}

static void
test_batch_may_be_over_the_ceiling_of_one (void)
{
  g_auto (Fixture) self = { 0 };
  g_autoptr (HeadwayBatch) three = headway_batch_new (3, NULL, NULL);

  fixture_init (&self);
  self.limits.principal_bytes_per_second = 3 * HEADWAY_EVENT_CEILING;
  for (guint i = 0; i < 3; i++)
    add (three, self.names[0], HEADWAY_EVENT_CEILING);
  g_assert_cmpint (charge (&self, three, 1, 0, NULL), ==, 0);
}

/* A batch that brings more new principals than there are keys left. */
static void
test_newcomers_share_what_is_left (void)
{
  g_auto (Fixture) self = { 0 };
  g_autoptr (HeadwayBatch) batch = headway_batch_new (N_PRINCIPALS, NULL, NULL);
  HeadwayError code = HEADWAY_N_ERRORS;

  fixture_init (&self);
  self.limits.principal_bytes_per_second = 100;
  for (guint i = 0; i < HEADWAY_RATE_KEYS_MAX - 2; i++)
    g_assert_true (headway_rate_limiter_charge (self.limiter, &self.limits, GUINT_TO_POINTER (i + 1), self.names[0], 1, 100, 1, at_us (0), NULL));
  for (guint i = 0; i < 4; i++)
    add (batch, self.names[i], 40);
  /* Two get keys, two have 80 of the common quota. */
  g_assert_cmpint (charge (&self, batch, 1, 0, NULL), ==, 0);
  g_assert_cmpuint (headway_rate_limiter_size (self.limiter), ==, HEADWAY_RATE_KEYS_MAX);
  g_assert_cmpint (headway_rate_limiter_wait_us (self.limiter, &self.limits, &buses[0], self.names[9], 1, 20, 1, at_us (0)), ==, 0);
  g_assert_cmpint (headway_rate_limiter_wait_us (self.limiter, &self.limits, &buses[0], self.names[9], 1, 21, 1, at_us (0)), ==, 10000);
  g_assert_cmpint (headway_rate_limiter_wait_us (self.limiter, &self.limits, &buses[0], self.names[0], 1, 60, 1, at_us (0)), ==, 0);
  /* Together over the common quota: not now, but not for good. */
  add (batch, self.names[4], 30);
  add (batch, self.names[5], 30);
  g_assert_cmpint (charge (&self, batch, 1, 0, &code), >, 0);
  g_assert_cmpint (code, ==, HEADWAY_ERROR_RATE_LIMITED);
  g_assert_cmpint (charge (&self, batch, 1, 2000000, NULL), ==, 0);
}

/* --- Against a model ------------------------------------------------------------------------ */

#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 Wide;

#define SECOND G_GUINT64_CONSTANT (1000000000)

/* Bytes, then events: the time in nanoseconds times the rate, which makes it whole. */
typedef struct
{
  Wide scaled[2];
  guint64 rates[2];
} Model;

typedef struct
{
  Model principals[N_BUSES][N_PRINCIPALS];
  Model uids[N_UIDS];
  gint64 now_us;
} World;

/* Under another rate the time starts with the next whole nanosecond. */
static void
model_set_rates (Model *model, const guint64 *rates)
{
  for (guint i = 0; i < 2; i++)
    {
      Wide ns = model->rates[i] > 0 ? (model->scaled[i] + model->rates[i] - 1) / model->rates[i] : 0;

      if (rates[i] == 0 || rates[i] == model->rates[i])
        continue;
      model->scaled[i] = ns * rates[i];
      model->rates[i] = rates[i];
    }
}

/* Nanoseconds until it may pass; G_MAXUINT64: never. */
static guint64
model_wait (const Model *model, const guint64 *rates, const guint64 *amounts, Wide now_ns)
{
  guint64 wait_ns = 0;

  for (guint i = 0; i < 2; i++)
    {
      Wide end, allowed;

      if (rates[i] == 0 || amounts[i] == 0)
        continue;
      if (amounts[i] > rates[i])
        return G_MAXUINT64;
      end = MAX (model->scaled[i], now_ns * rates[i]) + (Wide) amounts[i] * SECOND;
      allowed = (now_ns + SECOND) * rates[i];
      if (end > allowed)
        wait_ns = MAX (wait_ns, (guint64) ((end - allowed + rates[i] - 1) / rates[i]));
    }
  return wait_ns;
}

static void
model_charge (Model *model, const guint64 *rates, const guint64 *amounts, Wide now_ns)
{
  for (guint i = 0; i < 2; i++)
    {
      if (rates[i] > 0 && amounts[i] > 0)
        model->scaled[i] = MAX (model->scaled[i], now_ns * rates[i]) + (Wide) amounts[i] * SECOND;
    }
}

static guint64
random_rate (GRand *random)
{
  static const guint64 rates[] = { 0, 1, 3, 50, 1000, 20000, 1048576, G_GUINT64_CONSTANT (1) << 40 };

  return rates[g_rand_int_range (random, 0, G_N_ELEMENTS (rates))];
}

static void
change_rates (Fixture *self, GRand *random)
{
  self->limits.principal_bytes_per_second = random_rate (random);
  self->limits.principal_events_per_second = random_rate (random);
  self->limits.uid_bytes_per_second = random_rate (random);
  self->limits.uid_events_per_second = random_rate (random);
}

static void
step_time (World *world, GRand *random)
{
  static const gint32 steps_us[] = { 1, 10, 1000, 100000, 3000000 };

  world->now_us += g_rand_int_range (random, 0, steps_us[g_rand_int_range (random, 0, G_N_ELEMENTS (steps_us))] + 1);
}

static guint64
random_bytes (GRand *random)
{
  return (guint64) g_rand_int_range (random, 0, 1 << g_rand_int_range (random, 1, 22));
}

/* One charge, by both; the clock of the limiter is sometimes behind. */
static void
step (Fixture *self, World *world, GRand *random)
{
  const HeadwayLimits *limits = &self->limits;
  const guint64 principal_rates[] = { limits->principal_bytes_per_second, limits->principal_events_per_second };
  const guint64 uid_rates[] = { limits->uid_bytes_per_second, limits->uid_events_per_second };
  guint bus = (guint) g_rand_int_range (random, 0, N_BUSES);
  guint who = (guint) g_rand_int_range (random, 0, N_PRINCIPALS);
  guint32 uid = (guint32) g_rand_int_range (random, 0, N_UIDS);
  const guint64 amounts[] = { random_bytes (random), (guint64) g_rand_int_range (random, 0, 40) };
  Wide now_ns = (Wide) world->now_us * 1000;
  gint64 told_us = g_rand_int_range (random, 0, 50) == 0 ? world->now_us - 1000000 : world->now_us;
  Model *principal = &world->principals[bus][who];
  guint64 wait_ns;
  gint64 expected_us, wait_us;

  model_set_rates (principal, principal_rates);
  model_set_rates (&world->uids[uid], uid_rates);
  wait_ns = MAX (model_wait (principal, principal_rates, amounts, now_ns),
                 model_wait (&world->uids[uid], uid_rates, amounts, now_ns));
  expected_us = wait_ns == G_MAXUINT64 ? HEADWAY_RATE_NEVER : (gint64) ((wait_ns + 999) / 1000);
  wait_us = headway_rate_limiter_wait_us (self->limiter, limits, &buses[bus], self->names[who], uid,
                                          amounts[0], (guint) amounts[1], at_us (told_us));
  g_assert_cmpint (wait_us, ==, expected_us);
  g_assert_cmpint (headway_rate_limiter_charge (self->limiter, limits, &buses[bus], self->names[who], uid,
                                                amounts[0], (guint) amounts[1], at_us (told_us), NULL),
                   ==, wait_ns == 0);
  if (wait_ns > 0)
    {
      /* Often it waits as long as it was told to, and then it may. */
      if (wait_ns < 2 * SECOND && g_rand_boolean (random))
        {
          world->now_us += expected_us;
          g_assert_cmpint (headway_rate_limiter_wait_us (self->limiter, limits, &buses[bus], self->names[who], uid,
                                                         amounts[0], (guint) amounts[1], at_us (world->now_us)),
                           ==, 0);
        }
      return;
    }
  model_charge (principal, principal_rates, amounts, now_ns);
  model_charge (&world->uids[uid], uid_rates, amounts, now_ns);
}

static void
test_random_run_agrees_with_the_model (void)
{
  for (guint seed = 1; seed <= 20; seed++)
    {
      g_autoptr (GRand) random = g_rand_new_with_seed (seed);
      g_auto (Fixture) self = { 0 };
      World world = { .now_us = G_GINT64_CONSTANT (1) << g_rand_int_range (random, 21, 50) };

      fixture_init (&self);
      change_rates (&self, random);
      headway_rate_limiter_reclaim (self.limiter, 0, at_us (world.now_us));
      for (guint i = 0; i < 10000; i++)
        {
          if (g_rand_int_range (random, 0, 500) == 0)
            change_rates (&self, random);
          step_time (&world, random);
          headway_rate_limiter_reclaim (self.limiter, 0, at_us (world.now_us));
          step (&self, &world, random);
        }
      g_assert_cmpuint (headway_rate_limiter_size (self.limiter), <=, N_BUSES * N_PRINCIPALS);
    }
}
#endif

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);

  g_test_add_func ("/rate-limiter/batch/is-charged-by-principal", test_batch_is_charged_by_principal);
  g_test_add_func ("/rate-limiter/batch/one-principal-refuses-it", test_one_principal_refuses_the_batch);
  g_test_add_func ("/rate-limiter/batch/uid-is-charged-for-all", test_uid_is_charged_for_all);
  g_test_add_func ("/rate-limiter/batch/may-be-over-the-ceiling-of-one", test_batch_may_be_over_the_ceiling_of_one);
  g_test_add_func ("/rate-limiter/batch/newcomers-share-what-is-left", test_newcomers_share_what_is_left);
#ifdef __SIZEOF_INT128__
  g_test_add_func ("/rate-limiter/random/agrees-with-the-model", test_random_run_agrees_with_the_model);
#endif

  return g_test_run ();
}
