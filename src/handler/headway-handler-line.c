/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "handler/headway-handler-line.h"

HeadwayHandlerLine *
headway_handler_line_get (HeadwayHandlerCaller *caller, const char *owner)
{
  HeadwayHandlerLine *self = g_hash_table_lookup (caller->lines, owner);

  if (self != NULL)
    return headway_handler_line_ref (self);
  self = g_rc_box_new0 (HeadwayHandlerLine);
  self->caller = headway_handler_caller_ref (caller);
  self->owner = g_strdup (owner);
  self->seats = g_ptr_array_new ();
  g_hash_table_insert (caller->lines, self->owner, self);
  return self;
}

HeadwayHandlerLine *
headway_handler_line_ref (HeadwayHandlerLine *self)
{
  return g_rc_box_acquire (self);
}

static void
line_clear (gpointer data)
{
  HeadwayHandlerLine *self = data;

  g_assert (self->owed == 0 && self->seats->len == 0);
  g_hash_table_remove (self->caller->lines, self->owner);
  g_ptr_array_unref (self->seats);
  g_free (self->owner);
  headway_handler_caller_unref (self->caller);
}

void
headway_handler_line_unref (HeadwayHandlerLine *self)
{
  g_rc_box_release_full (self, line_clear);
}

static gboolean
has_room (const HeadwayHandlerLine *self)
{
  return self->missed < HEADWAY_HANDLER_SILENT_AFTER && self->owed < headway_handler_caller_get_share (self->caller) &&
         self->owed_bytes < HEADWAY_HANDLER_OWED_BYTES_MAX;
}

/* Tells the handlers. They make calls and end while they are told: so it goes through them until all is as it
 * should be. */
static void
update (HeadwayHandlerLine *self, HeadwayInstant now)
{
  g_autoptr (HeadwayHandlerLine) keep = headway_handler_line_ref (self);
  gboolean has_told = TRUE;

  while (has_told)
    {
      has_told = FALSE;
      for (guint i = 0; i < self->seats->len; i++)
        {
          HeadwayHandlerSeat *seat = g_ptr_array_index (self->seats, i);
          gboolean seat_has_room = has_room (self) && seat->owed < seat->owed_max;

          if (seat->has_room == seat_has_room)
            continue;
          seat->has_room = seat_has_room;
          has_told = TRUE;
          headway_handler_set_room (seat->handler, seat_has_room, now);
        }
    }
}

void
headway_handler_line_sit_down (HeadwayHandlerLine *self, HeadwayHandlerSeat *seat, HeadwayHandler *handler, HeadwayInstant now)
{
  seat->handler = handler;
  seat->has_room = TRUE;
  g_ptr_array_add (self->seats, seat);
  update (self, now);
}

void
headway_handler_line_stand_up (HeadwayHandlerLine *self, HeadwayHandlerSeat *seat)
{
  seat->handler = NULL;
  g_ptr_array_remove (self->seats, seat);
}

gboolean
headway_handler_line_take (HeadwayHandlerLine *self, HeadwayHandlerSeat *seat, gsize bytes, HeadwayInstant now)
{
  HeadwayHandlerCaller *caller = self->caller;

  if (!has_room (self) || seat->owed >= seat->owed_max || caller->owed >= HEADWAY_HANDLER_OWED_MAX)
    return FALSE;
  if (self->owed > 0 && self->owed_bytes + bytes > HEADWAY_HANDLER_OWED_BYTES_MAX)
    return FALSE;
  caller->owed++;
  self->owed++;
  self->owed_bytes += bytes;
  seat->owed++;
  update (self, now);
  return TRUE;
}

void
headway_handler_line_give_up (HeadwayHandlerLine *self, HeadwayInstant now)
{
  self->caller->overdue++;
  self->missed++;
  update (self, now);
}

void
headway_handler_line_release (HeadwayHandlerLine *self,
                              HeadwayHandlerSeat *seat,
                              gsize bytes,
                              gboolean was_given_up,
                              gboolean is_read,
                              HeadwayInstant now)
{
  self->caller->owed--;
  self->caller->overdue -= was_given_up ? 1 : 0;
  self->owed--;
  self->owed_bytes -= bytes;
  seat->owed--;
  /* Whoever owes nothing is not silent either: the message bus has let go of all of it. */
  if (is_read || self->owed == 0)
    self->missed = 0;
  update (self, now);
}
