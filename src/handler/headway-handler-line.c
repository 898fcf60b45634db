/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "handler/headway-handler-line.h"

#include "wire/headway-clock.h"

/* Of a Ping(): names, paths, what frames them. */
#define PROBE_BYTES 256
/* The log is told at most so often that a connection has become silent. */
#define TELL_US (10 * (gint64) G_USEC_PER_SEC)

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

/* Errors that the message bus makes itself, or GDBus, while the peer has read nothing: all others are the peer's. */
gboolean
headway_handler_line_is_of_peer (const GError *error)
{
  static const char *const others[] = {
    "org.freedesktop.DBus.Error.NoReply",
    "org.freedesktop.DBus.Error.ServiceUnknown",
    "org.freedesktop.DBus.Error.NameHasNoOwner",
    "org.freedesktop.DBus.Error.LimitsExceeded",
    "org.freedesktop.DBus.Error.AccessDenied",
    "org.freedesktop.DBus.Error.Disconnected",
    NULL,
  };
  g_autofree char *name = error != NULL ? g_dbus_error_get_remote_error (error) : NULL;

  return error == NULL || (name != NULL && !g_strv_contains (others, name));
}

/* --- Silence -------------------------------------------------------------------------------- */

static void update (HeadwayHandlerLine *self, HeadwayInstant now);

static gboolean
is_silent (const HeadwayHandlerLine *self)
{
  return self->missed >= HEADWAY_HANDLER_SILENT_AFTER;
}

static void
tell_silence (HeadwayHandlerLine *self, HeadwayInstant now)
{
  const HeadwayHandlerSeat *seat = self->seats->len > 0 ? g_ptr_array_index (self->seats, 0) : NULL;

  if (is_silent (self) == self->is_silent_told || seat == NULL)
    return;
  if (self->is_silent_told)
    g_message ("connection %s of handler %u answers again: its handlers are called", self->owner,
               headway_handler_get_number (seat->handler));
  else if (self->told_us == 0 || now.monotonic_us - self->told_us >= TELL_US)
    {
      self->told_us = now.monotonic_us;
      g_message ("connection %s of handler %u is silent: %u answers in a row are overdue, its handlers are not called until it answers",
                 self->owner, headway_handler_get_number (seat->handler), self->missed);
    }
  else
    return;
  self->is_silent_told = is_silent (self);
}

static void
add_owed (HeadwayHandlerLine *self, gint n, gint64 bytes)
{
  self->caller->owed += (guint) n;
  self->owed += (guint) n;
  self->owed_bytes += (guint64) bytes;
}

static void
on_probed (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (HeadwayHandlerLine) self = user_data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GVariant) reply = g_dbus_connection_call_finish (G_DBUS_CONNECTION (source), result, &error);

  self->is_probed = FALSE;
  self->caller->overdue--;
  add_owed (self, -1, -PROBE_BYTES);
  if (headway_handler_line_is_of_peer (error))
    self->missed = 0;
  update (self, headway_clock_now ());
}

/* Nobody waits for the answer, so it counts as overdue. */
static void
probe_if_silent (HeadwayHandlerLine *self)
{
  if (!is_silent (self) || self->is_probed || self->seats->len == 0 || self->caller->owed >= HEADWAY_HANDLER_OWED_MAX ||
      g_cancellable_is_cancelled (self->caller->cancellable))
    return;
  self->is_probed = TRUE;
  self->caller->overdue++;
  add_owed (self, 1, PROBE_BYTES);
  g_dbus_connection_call (self->caller->connection, self->owner, "/", "org.freedesktop.DBus.Peer", "Ping", NULL, NULL,
                          G_DBUS_CALL_FLAGS_NO_AUTO_START, G_MAXINT, self->caller->cancellable, on_probed,
                          headway_handler_line_ref (self));
}

static void
probe_silent_ones (HeadwayHandlerCaller *caller)
{
  GHashTableIter iter;
  gpointer line;

  g_hash_table_iter_init (&iter, caller->lines);
  while (g_hash_table_iter_next (&iter, NULL, &line))
    probe_if_silent (line);
}

/* --- Room ----------------------------------------------------------------------------------- */

static gboolean
has_room (const HeadwayHandlerLine *self)
{
  return !is_silent (self) && self->owed < headway_handler_caller_get_share (self->caller) &&
         self->owed_bytes < HEADWAY_HANDLER_OWED_BYTES_MAX;
}

/* Tells the handlers. They make calls and end while they are told: so it goes through them until all is as it
 * should be. */
static void
update (HeadwayHandlerLine *self, HeadwayInstant now)
{
  g_autoptr (HeadwayHandlerLine) keep = headway_handler_line_ref (self);
  gboolean has_told = TRUE;

  tell_silence (self, now);
  probe_if_silent (self);
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
  add_owed (self, 1, (gint64) bytes);
  seat->owed++;
  update (self, now);
  return TRUE;
}

void
headway_handler_line_give_up (HeadwayHandlerLine *self, gboolean is_late, HeadwayInstant now)
{
  self->caller->overdue++;
  self->missed += is_late ? 1 : 0;
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
  gboolean was_full = self->caller->owed >= HEADWAY_HANDLER_OWED_MAX;

  self->caller->overdue -= was_given_up ? 1 : 0;
  add_owed (self, -1, -(gint64) bytes);
  seat->owed--;
  /* Whoever owes nothing is not silent either: the message bus has let go of all of it. */
  if (is_read || self->owed == 0)
    self->missed = 0;
  update (self, now);
  if (was_full)
    probe_silent_ones (self->caller);
}
