/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-types.h"

G_BEGIN_DECLS

/* Never allowed, however long one waits: the amount is over the burst. */
#define HEADWAY_GCRA_NEVER G_MAXUINT64

/* The largest rate that is told from no limit, as for the settings (decisions.md 15). */
#define HEADWAY_GCRA_RATE_MAX (G_GUINT64_CONSTANT (1) << 40)

/**
 * HeadwayGcra:
 * @tat_ns: the theoretical arrival time, in nanoseconds of any clock that starts at 0
 * @rest: and a fraction of a nanosecond, @rest / @rate
 * @rate: of the last charge
 *
 * The generic cell rate algorithm (routing.md 3.6): what one key remembers. All 0 at first; one whose
 * time is not behind the present says the same as that.
 *
 * Exact in 64 bits, without rounding: a rate of 3 a second lets 3 pass at once, which three times a
 * third of a second, rounded up, would not. Only a change of the rate rounds the time up to the next
 * nanosecond.
 */
typedef struct
{
  guint64 tat_ns;
  guint64 rest;
  guint64 rate;
} HeadwayGcra;

/**
 * headway_gcra_wait_ns:
 * @rate: of @amount a second, from 1; over HEADWAY_GCRA_RATE_MAX it counts as that
 * @burst: what may come at once, in units of @amount
 *
 * Returns: 0 if @amount may pass at @now_ns, else nanoseconds until it may, rounded up, if nothing
 *   else comes in between; HEADWAY_GCRA_NEVER if @amount is over @burst. An amount of 0 may always.
 */
guint64 headway_gcra_wait_ns (const HeadwayGcra *self, guint64 now_ns, guint64 amount, guint64 rate, guint64 burst);

/* Remembers @amount; to be called when headway_gcra_wait_ns() has said 0. */
void headway_gcra_charge (HeadwayGcra *self, guint64 now_ns, guint64 amount, guint64 rate);

/* TRUE if there is nothing to remember any more. */
gboolean headway_gcra_is_idle (const HeadwayGcra *self, guint64 now_ns);

G_END_DECLS
