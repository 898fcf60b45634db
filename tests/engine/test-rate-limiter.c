/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-error.h"
#include "engine/headway-rate-limiter.h"

#include <string.h>

/* Cases 1 to 20 of routing.md, section 4A, by number: 7 and 15 are void (decisions.md 34), 14 is in
 * test-publish-limits.c. Both sides of each limit too; batches and random runs are in test-rate-limiter-batch.c. */

#define MIB     (1024 * 1024)
#define UID     1000
#define REFUSED (-1) /* for good */

typedef struct
{
  HeadwayRateLimiter *limiter;       /* owned */
  HeadwayPrincipalTable *principals; /* owned */
  HeadwayPrincipal *alice;           /* owned */
  HeadwayPrincipal *bob;             /* owned */
  HeadwayLimits limits;
} Fixture;

static const char bus_a[] = "a";
static const char bus_b[] = "b";

/* Everything is unlimited but for what a test sets. */
static void
fixture_init (Fixture *self)
{
  self->limiter = headway_rate_limiter_new ();
  self->principals = headway_principal_table_new ();
  self->alice = headway_principal_table_intern (self->principals, "alice", NULL);
  self->bob = headway_principal_table_intern (self->principals, "bob", NULL);
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
  headway_principal_unref (self->alice);
  headway_principal_unref (self->bob);
  headway_principal_table_unref (self->principals);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, fixture_clear)

static HeadwayInstant
at (double seconds)
{
  return (HeadwayInstant){ .monotonic_us = (gint64) (seconds * 1e6 + 0.5) };
}

/* Charges one event; returns 0, the milliseconds to retry after, or REFUSED. The waiting query agrees. */
static gint64
charge_at (Fixture *self, const char *bus, HeadwayPrincipal *principal, guint64 bytes, guint events, HeadwayInstant now)
{
  gint64 wait_us = headway_rate_limiter_wait_us (self->limiter, &self->limits, bus, principal, UID, bytes, events, now);
  g_autoptr (GError) error = NULL;

  if (headway_rate_limiter_charge (self->limiter, &self->limits, bus, principal, UID, bytes, events, now, &error))
    {
      g_assert_no_error (error);
      g_assert_cmpint (wait_us, ==, 0);
      return 0;
    }
  if (!g_error_matches (error, HEADWAY_ERROR, HEADWAY_ERROR_RATE_LIMITED))
    {
      g_assert_cmpint (wait_us, ==, HEADWAY_RATE_NEVER);
      return REFUSED;
    }
  g_assert_cmpint (wait_us, >, 0);
  g_assert_cmpint ((wait_us + 999) / 1000, ==, headway_error_get_details (error)->retry_after_ms);
  return headway_error_get_details (error)->retry_after_ms;
}

static gint64
send (Fixture *self, double seconds, guint64 bytes)
{
  return charge_at (self, bus_a, self->alice, bytes, 1, at (seconds));
}

static HeadwayPrincipal *
intern (Fixture *self, guint number)
{
  char name[16];

  g_snprintf (name, sizeof name, "p%u", number);
  return headway_principal_table_intern (self->principals, name, NULL);
}

static void
test_case_1_over_the_ceiling (void)
{
  g_auto (Fixture) self = { 0 };
  g_autoptr (GError) error = NULL;

  fixture_init (&self);
  g_assert_false (headway_rate_limiter_charge (self.limiter, &self.limits, bus_a, self.alice, UID, 5242881, 1, at (0), &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_TOO_LARGE);
  g_assert_cmpint (headway_error_get_details (error)->limit, ==, 5242880);
  g_assert_cmpint (headway_rate_limiter_wait_us (self.limiter, &self.limits, bus_a, self.alice, UID, 5242881, 1, at (0)), ==, HEADWAY_RATE_NEVER);

  self.limits.principal_bytes_per_second = G_GUINT64_CONSTANT (1) << 40;
  g_assert_cmpint (send (&self, 0, 5242881), ==, REFUSED);
  g_assert_cmpuint (headway_rate_limiter_size (self.limiter), ==, 0);
  g_assert_cmpuint (headway_rate_limiter_n_uids (self.limiter), ==, 0);
}

static void
test_case_2_at_the_ceiling (void)
{
  g_auto (Fixture) self = { 0 };

  fixture_init (&self);
  g_assert_cmpint (send (&self, 0, 5242880), ==, 0);
  /* No limit, no key. */
  g_assert_cmpuint (headway_rate_limiter_size (self.limiter), ==, 0);
  self.limits.principal_bytes_per_second = G_GUINT64_CONSTANT (1) << 40;
  g_assert_cmpint (send (&self, 0, 5242880), ==, 0);
  g_assert_cmpuint (headway_rate_limiter_size (self.limiter), ==, 1);
}

static void
test_case_3_one_byte_more (void)
{
  g_auto (Fixture) self = { 0 };

  fixture_init (&self);
  self.limits.principal_bytes_per_second = MIB;
  g_assert_cmpint (send (&self, 0, MIB), ==, 0);
  /* 954 ns, in whole microseconds and milliseconds; test-gcra.c has the nanoseconds. */
  g_assert_cmpint (headway_rate_limiter_wait_us (self.limiter, &self.limits, bus_a, self.alice, UID, 1, 1, at (0)), ==, 1);
  g_assert_cmpint (send (&self, 0, 1), ==, 1);
  g_assert_cmpint (send (&self, 0.000001, 1), ==, 0);
}

static void
test_case_4_another_principal (void)
{
  g_auto (Fixture) self = { 0 };

  fixture_init (&self);
  self.limits.principal_bytes_per_second = MIB;
  g_assert_cmpint (send (&self, 0, MIB), ==, 0);
  self.limits.principal_bytes_per_second = 10 * MIB;
  g_assert_cmpint (charge_at (&self, bus_a, self.bob, MIB, 1, at (0)), ==, 0);
  g_assert_cmpint (charge_at (&self, bus_a, self.bob, MIB, 1, at (0)), ==, 0);
  self.limits.principal_bytes_per_second = MIB;
  g_assert_cmpint (send (&self, 0, 1), >, 0);
}

static void
test_case_5_another_bus (void)
{
  g_auto (Fixture) self = { 0 };

  fixture_init (&self);
  self.limits.principal_bytes_per_second = MIB;
  g_assert_cmpint (send (&self, 0, MIB), ==, 0);
  g_assert_cmpint (send (&self, 0, 1), >, 0);
  g_assert_cmpint (charge_at (&self, bus_b, self.alice, MIB, 1, at (0)), ==, 0);
}

static void
test_case_6_full_again_after_a_second (void)
{
  g_auto (Fixture) self = { 0 };

  fixture_init (&self);
  self.limits.principal_bytes_per_second = 100;
  g_assert_cmpint (send (&self, 0, 100), ==, 0);
  g_assert_cmpint (send (&self, 0, 1), ==, 10);
  g_assert_cmpint (send (&self, 1.1, 100), ==, 0);
}

static void
test_case_8_refills_as_time_goes (void)
{
  g_auto (Fixture) self = { 0 };

  fixture_init (&self);
  self.limits.principal_bytes_per_second = 100;
  g_assert_cmpint (send (&self, 0, 100), ==, 0);
  g_assert_cmpint (send (&self, 0.5, 50), ==, 0);
  g_assert_cmpint (send (&self, 0.5, 1), ==, 10);
  g_assert_cmpint (send (&self, 1.1, 61), ==, 10);
  g_assert_cmpint (send (&self, 1.1, 60), ==, 0);
  g_assert_cmpint (send (&self, 2.2, 100), ==, 0);
}

static void
test_case_9_no_burst_at_an_edge (void)
{
  g_auto (Fixture) self = { 0 };

  fixture_init (&self);
  self.limits.principal_bytes_per_second = 1000;
  g_assert_cmpint (send (&self, 0, 1), ==, 0);
  g_assert_cmpint (send (&self, 0.990, 999), ==, 0);
  g_assert_cmpint (send (&self, 1.003, 1000), ==, 986);
  g_assert_cmpint (send (&self, 1.003, 15), ==, 1);
  g_assert_cmpint (send (&self, 1.003, 14), ==, 0);
  g_assert_cmpint (send (&self, 1.003, 1), ==, 1);
}

static void
test_case_10_refusals_cost_nothing (void)
{
  g_auto (Fixture) self = { 0 };

  fixture_init (&self);
  self.limits.principal_bytes_per_second = 100;
  g_assert_cmpint (send (&self, 0, 60), ==, 0);
  g_assert_cmpint (send (&self, 0, 50), ==, 100);
  g_assert_cmpint (send (&self, 0, 40), ==, 0);
  g_assert_cmpint (send (&self, 0, 1), ==, 10);
}

static void
test_case_11_over_the_burst_never_fits (void)
{
  g_auto (Fixture) self = { 0 };
  g_autoptr (GError) error = NULL;

  fixture_init (&self);
  self.limits.principal_bytes_per_second = 100;
  g_assert_false (headway_rate_limiter_charge (self.limiter, &self.limits, bus_a, self.alice, UID, 101, 1, at (0), &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_QUOTA_EXCEEDED);
  g_assert_cmpint (headway_error_get_details (error)->limit, ==, 100);
  g_assert_cmpint (headway_error_get_details (error)->retry_after_ms, ==, -1);
  g_assert_cmpstr (error->message, ==,
                   "principal \"alice\" may publish on this bus 100 bytes a second (principal-bytes-per-second), "
                   "101 at once never fit");
  g_assert_cmpuint (headway_rate_limiter_size (self.limiter), ==, 0);
  g_assert_cmpint (send (&self, 0, 100), ==, 0);
  /* For good is said even while it would have to wait as well. */
  g_assert_cmpint (send (&self, 0, 101), ==, REFUSED);
}

static void
test_case_12_no_bytes_pass_the_byte_limit (void)
{
  g_auto (Fixture) self = { 0 };

  fixture_init (&self);
  self.limits.principal_bytes_per_second = 100;
  self.limits.principal_events_per_second = 2;
  g_assert_cmpint (send (&self, 0, 100), ==, 0);
  g_assert_cmpint (send (&self, 0, 0), ==, 0);
  g_assert_cmpint (send (&self, 0, 0), ==, 500);
  self.limits.principal_events_per_second = 0;
  g_assert_cmpint (send (&self, 0, 0), ==, 0);
}

static void
test_case_13_events_have_a_rate (void)
{
  g_auto (Fixture) self = { 0 };

  /* Burst is a second of rate here; test-gcra.c has the case with a burst of 1. */
  fixture_init (&self);
  self.limits.principal_events_per_second = 3;
  for (guint i = 0; i < 3; i++)
    g_assert_cmpint (send (&self, 0, 1), ==, 0);
  g_assert_cmpint (send (&self, 0, 1), ==, 334);
  g_assert_cmpint (send (&self, 0.333333, 1), ==, 1);
  g_assert_cmpint (send (&self, 0.333334, 1), ==, 0);
  g_assert_cmpint (charge_at (&self, bus_a, self.alice, 4, 4, at (9)), ==, REFUSED);
  g_assert_cmpint (charge_at (&self, bus_a, self.alice, 3, 3, at (9)), ==, 0);
}

static void
test_case_16_idle_keys_go (void)
{
  g_auto (Fixture) self = { 0 };
  HeadwayPrincipal *principal;

  fixture_init (&self);
  self.limits.principal_bytes_per_second = 1000;
  self.limits.uid_bytes_per_second = 1000000;
  for (guint i = 0; i < 50000; i++)
    {
      principal = intern (&self, i);
      g_assert_cmpint (charge_at (&self, bus_a, principal, 1, 1, at (0)), ==, 0);
      headway_principal_unref (principal);
    }
  g_assert_cmpuint (headway_rate_limiter_size (self.limiter), ==, 50000);
  g_assert_cmpuint (headway_principal_table_size (self.principals), ==, 50002);
  for (guint i = 0; i < 30000; i++)
    g_assert_cmpint (send (&self, 2 + i * 0.001, 1), ==, 0);
  g_assert_cmpuint (headway_rate_limiter_size (self.limiter), ==, 1);
  g_assert_cmpuint (headway_rate_limiter_n_uids (self.limiter), ==, 1);
  g_assert_cmpuint (headway_principal_table_size (self.principals), ==, 2);
}

static void
test_case_17_beyond_the_last_key (void)
{
  g_auto (Fixture) self = { 0 };
  HeadwayPrincipal *others[3];
  gint64 before_us[3];

  fixture_init (&self);
  self.limits.principal_bytes_per_second = 10;
  for (guint i = 0; i < HEADWAY_RATE_KEYS_MAX; i++)
    {
      HeadwayPrincipal *principal = intern (&self, i);

      g_assert_cmpint (charge_at (&self, bus_a, principal, 10, 1, at (0)), ==, 0);
      headway_principal_unref (principal);
    }
  g_assert_cmpuint (headway_rate_limiter_size (self.limiter), ==, 65536);
  for (guint i = 0; i < 3; i++)
    {
      others[i] = intern (&self, i * 20000);
      before_us[i] = headway_rate_limiter_wait_us (self.limiter, &self.limits, bus_a, others[i], UID, 10, 1, at (0));
      g_assert_cmpint (before_us[i], ==, 1000000);
    }

  /* Alice and bob share what is left. */
  g_assert_cmpint (send (&self, 0, 6), ==, 0);
  g_assert_cmpint (charge_at (&self, bus_a, self.bob, 5, 1, at (0)), ==, 100);
  g_assert_cmpint (charge_at (&self, bus_a, self.bob, 4, 1, at (0)), ==, 0);
  g_assert_cmpint (charge_at (&self, bus_b, self.alice, 1, 1, at (0)), ==, 100);
  g_assert_cmpuint (headway_rate_limiter_size (self.limiter), ==, 65536);
  for (guint i = 0; i < 3; i++)
    {
      g_assert_cmpint (headway_rate_limiter_wait_us (self.limiter, &self.limits, bus_a, others[i], UID, 10, 1, at (0)), ==, before_us[i]);
      headway_principal_unref (others[i]);
    }
  /* Once others are idle there are keys again. */
  g_assert_cmpint (send (&self, 1, 10), ==, 0);
  g_assert_cmpint (charge_at (&self, bus_a, self.bob, 10, 1, at (1)), ==, 0);
}

static void
test_case_18_clock_goes_backwards (void)
{
  g_auto (Fixture) self = { 0 };

  fixture_init (&self);
  self.limits.principal_bytes_per_second = 100;
  g_assert_cmpint (send (&self, 1000, 60), ==, 0);
  g_assert_cmpint (send (&self, 1, 41), ==, 10);
  g_assert_cmpint (send (&self, 0, 40), ==, 0);
  g_assert_cmpint (charge_at (&self, bus_a, self.alice, 1, 1, (HeadwayInstant){ .monotonic_us = G_MININT64 }), ==, 10);
  g_assert_cmpint (send (&self, 1000.01, 1), ==, 0);
  g_assert_cmpint (charge_at (&self, bus_a, self.alice, 100, 1, (HeadwayInstant){ .monotonic_us = G_MAXINT64 }), ==, 0);
  g_assert_cmpint (charge_at (&self, bus_a, self.alice, 1, 1, (HeadwayInstant){ .monotonic_us = G_MAXINT64 }), ==, 10);
}

static void
test_case_19_rates_change (void)
{
  g_auto (Fixture) self = { 0 };

  fixture_init (&self);
  self.limits.principal_bytes_per_second = 1000;
  g_assert_cmpint (send (&self, 0, 500), ==, 0);
  self.limits.principal_bytes_per_second = 10;
  g_assert_cmpint (send (&self, 0, 11), ==, REFUSED);
  g_assert_cmpint (send (&self, 0, 10), ==, 500);
  g_assert_cmpint (send (&self, 0, 5), ==, 0);
  g_assert_cmpint (send (&self, 0, 1), ==, 100);
  self.limits.principal_bytes_per_second = 0;
  g_assert_cmpint (send (&self, 0, MIB), ==, 0);
  self.limits.principal_bytes_per_second = 10;
  g_assert_cmpint (send (&self, 0, 1), ==, 100);
}

static void
test_case_20_parent_has_none_left (void)
{
  g_auto (Fixture) self = { 0 };
  g_autoptr (GError) error = NULL;

  fixture_init (&self);
  self.limits.principal_bytes_per_second = 100;
  self.limits.uid_bytes_per_second = 150;
  g_assert_cmpint (send (&self, 0, 100), ==, 0);
  g_assert_false (headway_rate_limiter_charge (self.limiter, &self.limits, bus_a, self.bob, UID, 60, 1, at (0), &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_RATE_LIMITED);
  g_assert_cmpint (headway_error_get_details (error)->retry_after_ms, ==, 67);
  g_assert_cmpint (headway_error_get_details (error)->limit, ==, 150);
  g_assert_cmpstr (error->message, ==,
                   "user 1000 may publish 150 bytes a second (uid-bytes-per-second), too little of it is left for 60, "
                   "retry-after-ms=67");
  /* Bob has no key, and another user has the whole of bob's quota. */
  g_assert_cmpuint (headway_rate_limiter_size (self.limiter), ==, 1);
  g_assert_true (headway_rate_limiter_charge (self.limiter, &self.limits, bus_a, self.bob, UID + 1, 100, 1, at (0), NULL));
}

/* --- All or none ---------------------------------------------------------------------------- */

static void
test_each_resource_is_charged_or_none (void)
{
  g_auto (Fixture) self = { 0 };

  fixture_init (&self);
  self.limits.principal_bytes_per_second = 100;
  self.limits.principal_events_per_second = 1;
  g_assert_cmpint (send (&self, 0, 50), ==, 0);
  /* Refused for the event: the bytes are still there when the event is. */
  g_assert_cmpint (send (&self, 0, 50), ==, 1000);
  self.limits.principal_events_per_second = 0;
  g_assert_cmpint (send (&self, 0, 50), ==, 0);
}

static void
test_longest_wait_is_told (void)
{
  g_auto (Fixture) self = { 0 };

  fixture_init (&self);
  self.limits.principal_bytes_per_second = 1000;
  self.limits.principal_events_per_second = 10;
  self.limits.uid_events_per_second = 20;
  for (guint i = 0; i < 10; i++)
    g_assert_cmpint (send (&self, 0, 100), ==, 0);
  g_assert_cmpint (send (&self, 0, 1), ==, 100);
  g_assert_cmpint (send (&self, 0, 300), ==, 300);
  g_assert_cmpint (send (&self, 0.3, 300), ==, 0);
}

static void
test_each_rate_has_two_sides (void)
{
  static const gsize rates[] = {
    G_STRUCT_OFFSET (HeadwayLimits, principal_bytes_per_second),
    G_STRUCT_OFFSET (HeadwayLimits, uid_bytes_per_second),
    G_STRUCT_OFFSET (HeadwayLimits, principal_events_per_second),
    G_STRUCT_OFFSET (HeadwayLimits, uid_events_per_second),
  };

  for (guint i = 0; i < G_N_ELEMENTS (rates); i++)
    {
      g_auto (Fixture) self = { 0 };
      guint n = i < 2 ? 1 : 100;

      fixture_init (&self);
      G_STRUCT_MEMBER (guint64, &self.limits, rates[i]) = 100;
      g_assert_cmpint (charge_at (&self, bus_a, self.alice, 101, i < 2 ? 1 : 101, at (0)), ==, REFUSED);
      g_assert_cmpint (charge_at (&self, bus_a, self.alice, 100, n, at (0)), ==, 0);
      g_assert_cmpint (charge_at (&self, bus_a, self.alice, 100, n, at (0.999999)), ==, 1);
      g_assert_cmpint (charge_at (&self, bus_a, self.alice, 100, n, at (1)), ==, 0);
    }
}

static void
test_largest_rates (void)
{
  g_auto (Fixture) self = { 0 };
  const guint64 rate = G_GUINT64_CONSTANT (1) << 40;

  fixture_init (&self);
  self.limits.principal_bytes_per_second = self.limits.uid_bytes_per_second = rate;
  self.limits.principal_events_per_second = self.limits.uid_events_per_second = rate;
  for (guint i = 0; i < (1u << 18); i++)
    g_assert_true (headway_rate_limiter_charge (self.limiter, &self.limits, bus_a, self.alice, UID, 4 * MIB, 1, at (0), NULL));
  g_assert_cmpint (send (&self, 0, 1), ==, 1);
  self.limits.principal_bytes_per_second = G_MAXUINT64;
  g_assert_cmpint (send (&self, 1, 5 * MIB), ==, 0);
}

static void
test_forget_bus (void)
{
  g_auto (Fixture) self = { 0 };

  fixture_init (&self);
  self.limits.principal_bytes_per_second = 100;
  g_assert_cmpint (send (&self, 0, 100), ==, 0);
  g_assert_cmpint (charge_at (&self, bus_b, self.alice, 100, 1, at (0)), ==, 0);
  headway_rate_limiter_forget_bus (self.limiter, bus_a);
  g_assert_cmpuint (headway_rate_limiter_size (self.limiter), ==, 1);
  g_assert_cmpint (charge_at (&self, bus_b, self.alice, 1, 1, at (0)), ==, 10);
  g_assert_cmpint (send (&self, 0, 100), ==, 0);
}

static void
test_reclaim_while_nobody_publishes (void)
{
  g_auto (Fixture) self = { 0 };

  fixture_init (&self);
  self.limits.principal_bytes_per_second = 100;
  self.limits.uid_bytes_per_second = 100;
  g_assert_cmpint (send (&self, 0, 50), ==, 0);
  headway_rate_limiter_reclaim (self.limiter, 100, at (0.499999));
  g_assert_cmpuint (headway_rate_limiter_size (self.limiter), ==, 1);
  headway_rate_limiter_reclaim (self.limiter, 100, at (0.5));
  g_assert_cmpuint (headway_rate_limiter_size (self.limiter), ==, 0);
  g_assert_cmpuint (headway_rate_limiter_n_uids (self.limiter), ==, 0);
}

static void
test_system_principal_has_a_quota (void)
{
  g_auto (Fixture) self = { 0 };
  g_autoptr (GError) error = NULL;
  HeadwayPrincipal *system;

  fixture_init (&self);
  system = headway_principal_table_get_system (self.principals);
  self.limits.principal_bytes_per_second = 100;
  g_assert_cmpint (charge_at (&self, bus_a, system, 100, 1, at (0)), ==, 0);
  g_assert_false (headway_rate_limiter_charge (self.limiter, &self.limits, bus_a, system, UID, 1, 1, at (0), &error));
  g_assert_cmpstr (error->message, ==,
                   "the system principal may publish on this bus 100 bytes a second (principal-bytes-per-second), "
                   "too little of it is left for 1, retry-after-ms=10");
}

#define ADD(name, func) g_test_add_func ("/rate-limiter/" name, func)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);

  ADD ("case-1/over-the-ceiling", test_case_1_over_the_ceiling);
  ADD ("case-2/at-the-ceiling", test_case_2_at_the_ceiling);
  ADD ("case-3/one-byte-more", test_case_3_one_byte_more);
  ADD ("case-4/another-principal", test_case_4_another_principal);
  ADD ("case-5/another-bus", test_case_5_another_bus);
  ADD ("case-6/full-again-after-a-second", test_case_6_full_again_after_a_second);
  ADD ("case-8/refills-as-time-goes", test_case_8_refills_as_time_goes);
  ADD ("case-9/no-burst-at-an-edge", test_case_9_no_burst_at_an_edge);
  ADD ("case-10/refusals-cost-nothing", test_case_10_refusals_cost_nothing);
  ADD ("case-11/over-the-burst-never-fits", test_case_11_over_the_burst_never_fits);
  ADD ("case-12/no-bytes-pass-the-byte-limit", test_case_12_no_bytes_pass_the_byte_limit);
  ADD ("case-13/events-have-a-rate", test_case_13_events_have_a_rate);
  ADD ("case-16/idle-keys-go", test_case_16_idle_keys_go);
  ADD ("case-17/beyond-the-last-key", test_case_17_beyond_the_last_key);
  ADD ("case-18/clock-goes-backwards", test_case_18_clock_goes_backwards);
  ADD ("case-19/rates-change", test_case_19_rates_change);
  ADD ("case-20/parent-has-none-left", test_case_20_parent_has_none_left);
  ADD ("all-or-none/each-resource", test_each_resource_is_charged_or_none);
  ADD ("refusal/longest-wait-is-told", test_longest_wait_is_told);
  ADD ("limits/each-rate-has-two-sides", test_each_rate_has_two_sides);
  ADD ("limits/largest-rates", test_largest_rates);
  ADD ("keys/forget-bus", test_forget_bus);
  ADD ("keys/reclaim-while-nobody-publishes", test_reclaim_while_nobody_publishes);
  ADD ("keys/system-principal-has-a-quota", test_system_principal_has_a_quota);

  return g_test_run ();
}
