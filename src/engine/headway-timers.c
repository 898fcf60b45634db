/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-timers.h"

void
headway_timers_init (HeadwayTimers *self)
{
  self->heap = g_ptr_array_new ();
}

void
headway_timers_clear (HeadwayTimers *self)
{
  for (guint i = 0; i < self->heap->len; i++)
    ((HeadwayTimer *) g_ptr_array_index (self->heap, i))->place = 0;
  g_clear_pointer (&self->heap, g_ptr_array_unref);
}

static HeadwayTimer *
at (const HeadwayTimers *self, guint place)
{
  return g_ptr_array_index (self->heap, place - 1);
}

static void
put (HeadwayTimers *self, guint place, HeadwayTimer *timer)
{
  g_ptr_array_index (self->heap, place - 1) = timer;
  timer->place = place;
}

/* @timer stands at @place or belongs somewhere above it. */
static void
move_up (HeadwayTimers *self, guint place, HeadwayTimer *timer)
{
  for (; place > 1 && at (self, place / 2)->at_us > timer->at_us; place /= 2)
    put (self, place, at (self, place / 2));
  put (self, place, timer);
}

static void
move_down (HeadwayTimers *self, guint place, HeadwayTimer *timer)
{
  guint length = self->heap->len;

  for (guint child = 2 * place; child <= length; child = 2 * place)
    {
      if (child < length && at (self, child + 1)->at_us < at (self, child)->at_us)
        child++;
      if (at (self, child)->at_us >= timer->at_us)
        break;
      put (self, place, at (self, child));
      place = child;
    }
  put (self, place, timer);
}

void
headway_timers_set (HeadwayTimers *self, HeadwayTimer *timer, gint64 at_us)
{
  gboolean is_later = timer->place > 0 && at_us > timer->at_us;

  if (timer->place == 0)
    {
      g_ptr_array_add (self->heap, timer);
      timer->place = self->heap->len;
    }
  timer->at_us = at_us;
  if (is_later)
    move_down (self, timer->place, timer);
  else
    move_up (self, timer->place, timer);
}

void
headway_timers_unset (HeadwayTimers *self, HeadwayTimer *timer)
{
  guint place = timer->place;
  HeadwayTimer *last;

  if (place == 0)
    return;
  timer->place = 0;
  last = at (self, self->heap->len);
  g_ptr_array_set_size (self->heap, (gint) self->heap->len - 1);
  if (last == timer)
    return;
  if (place > 1 && at (self, place / 2)->at_us > last->at_us)
    move_up (self, place, last);
  else
    move_down (self, place, last);
}

HeadwayTimer *
headway_timers_peek (const HeadwayTimers *self)
{
  return self->heap->len > 0 ? g_ptr_array_index (self->heap, 0) : NULL;
}
