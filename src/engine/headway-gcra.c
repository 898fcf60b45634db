/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-gcra.h"

#define NS_PER_SECOND G_GUINT64_CONSTANT (1000000000)

/* 1e9 as two factors: what is left of a division by 2^40 times the first one fits 64 bits, and so
 * does what is left of that times the second one. */
#define FIRST_FACTOR  G_GUINT64_CONSTANT (100000)
#define SECOND_FACTOR (NS_PER_SECOND / FIRST_FACTOR)

/* ns + rest / rate nanoseconds, rest below the rate. */
typedef struct
{
  guint64 ns;
  guint64 rest;
} Span;

static guint64
add_saturated (guint64 a, guint64 b)
{
  return a > G_MAXUINT64 - b ? G_MAXUINT64 : a + b;
}

static Span
span_add (Span a, Span b, guint64 rate)
{
  guint64 rest = a.rest + b.rest;

  if (rest < rate)
    return (Span){ add_saturated (a.ns, b.ns), rest };
  return (Span){ add_saturated (add_saturated (a.ns, b.ns), 1), rest - rate };
}

/* @amount x 1e9 / @rate; saturated where that does not fit. */
static Span
span_of (guint64 amount, guint64 rate)
{
  guint64 seconds, first, second;

  if (amount <= G_MAXUINT64 / NS_PER_SECOND)
    return (Span){ amount * NS_PER_SECOND / rate, amount * NS_PER_SECOND % rate };

  /* Long division, digit by digit, which is as exact. */
  seconds = amount / rate;
  if (seconds > G_MAXUINT64 / NS_PER_SECOND)
    return (Span){ G_MAXUINT64, 0 };
  first = amount % rate * FIRST_FACTOR;
  second = first % rate * SECOND_FACTOR;
  return (Span){ add_saturated (seconds * NS_PER_SECOND, first / rate * SECOND_FACTOR + second / rate), second % rate };
}

/* The time as it is under @rate. */
static Span
get_tat (const HeadwayGcra *self, guint64 rate)
{
  if (self->rate == rate || self->rest == 0)
    return (Span){ self->tat_ns, self->rest };
  return (Span){ add_saturated (self->tat_ns, 1), 0 };
}

guint64
headway_gcra_wait_ns (const HeadwayGcra *self, guint64 now_ns, guint64 amount, guint64 rate, guint64 burst)
{
  Span needed, allowed;

  g_return_val_if_fail (rate > 0, HEADWAY_GCRA_NEVER);

  if (amount == 0)
    return 0;
  if (amount > burst)
    return HEADWAY_GCRA_NEVER;
  allowed = burst == rate ? (Span){ NS_PER_SECOND, 0 } : span_of (burst, MIN (rate, HEADWAY_GCRA_RATE_MAX));
  rate = MIN (rate, HEADWAY_GCRA_RATE_MAX);

  needed = get_tat (self, rate);
  needed = needed.ns >= now_ns ? (Span){ needed.ns - now_ns, needed.rest } : (Span){ 0, 0 };
  needed = span_add (needed, span_of (amount, rate), rate);
  if (needed.ns < allowed.ns || (needed.ns == allowed.ns && needed.rest <= allowed.rest))
    return 0;
  /* One less than never, where both have the largest value. */
  return MIN (needed.ns - allowed.ns + (needed.rest > allowed.rest ? 1 : 0), HEADWAY_GCRA_NEVER - 1);
}

void
headway_gcra_charge (HeadwayGcra *self, guint64 now_ns, guint64 amount, guint64 rate)
{
  Span tat;

  g_return_if_fail (rate > 0);

  if (amount == 0)
    return;
  rate = MIN (rate, HEADWAY_GCRA_RATE_MAX);
  tat = get_tat (self, rate);
  if (tat.ns < now_ns)
    tat = (Span){ now_ns, 0 };
  tat = span_add (tat, span_of (amount, rate), rate);
  *self = (HeadwayGcra){ tat.ns, tat.rest, rate };
}

gboolean
headway_gcra_is_idle (const HeadwayGcra *self, guint64 now_ns)
{
  return self->tat_ns < now_ns || (self->tat_ns == now_ns && self->rest == 0);
}
