/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* One thing that happens at a time; part of whatever it is about. All zero: not set. */
typedef struct
{
  gint64 at_us;   /* monotonic */
  guint place;    /* in the heap, from 1; 0: not set */
  gpointer owner; /* whom it is about */
  guint kind;     /* the owner's */
} HeadwayTimer;

/**
 * HeadwayTimers:
 *
 * What is due next: a binary heap of timers, whose places the timers know, so that one is taken out
 * as cheaply as it was put in. Plain, embedded in the dispatcher.
 */
typedef struct
{
  GPtrArray *heap; /* owned array of borrowed HeadwayTimer */
} HeadwayTimers;

void headway_timers_init (HeadwayTimers *self);
/* Forgets all. */
void headway_timers_clear (HeadwayTimers *self);
/* Sets @timer to @at_us, or moves it there. */
void headway_timers_set (HeadwayTimers *self, HeadwayTimer *timer, gint64 at_us);
/* Nothing happens if it is not set. */
void headway_timers_unset (HeadwayTimers *self, HeadwayTimer *timer);
/* The timer that is due first. (transfer none) (nullable) */
HeadwayTimer *headway_timers_peek (const HeadwayTimers *self);

static inline gboolean
headway_timer_is_set (const HeadwayTimer *timer)
{
  return timer->place > 0;
}

G_END_DECLS
