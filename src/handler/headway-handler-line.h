/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "handler/headway-handler-caller.h"

G_BEGIN_DECLS

/* Bytes of calls that one connection may owe answers for, or one call of any size. */
#define HEADWAY_HANDLER_OWED_BYTES_MAX (256 * 1024)
/* Whose answers are overdue so often, with none in between, is silent: it is not called until it answers, be it the Ping()
 * that is sent behind the calls, one at a time: what answers that has read them. */
#define HEADWAY_HANDLER_SILENT_AFTER 4

/**
 * HeadwayHandlerSeat:
 * @handler: (nullable): borrowed; NULL once it has ended
 * @owed_max: answers that it may owe
 * @owed: answers that it owes
 * @has_room: what it was told last
 *
 * A handler at a line. Embedded in what stands for the handler, which outlives its calls.
 */
typedef struct
{
  HeadwayHandler *handler;
  guint owed_max;
  guint owed;
  gboolean has_room;
} HeadwayHandlerSeat;

/**
 * HeadwayHandlerLine:
 * @owner: unique name of the connection
 * @seats: HeadwayHandlerSeat (borrowed): the handlers of the connection
 * @owed, @owed_bytes: calls without an answer
 * @missed: answers that have become overdue since one came
 * @is_probed: a Ping() is under way
 * @is_silent_told: the log has it that it is silent
 *
 * What waits at one connection, of all its handlers. Reference-counted; one for each connection and caller.
 */
struct _HeadwayHandlerLine
{
  HeadwayHandlerCaller *caller; /* owned */
  char *owner;                  /* owned */
  GPtrArray *seats;             /* owned */
  guint owed;
  guint64 owed_bytes;
  guint missed;
  gboolean is_probed;
  gboolean is_silent_told;
  gint64 told_us; /* when the log was told last */
};

/* The line to @owner. Returns: (transfer full). */
HeadwayHandlerLine *headway_handler_line_get (HeadwayHandlerCaller *caller, const char *owner);
HeadwayHandlerLine *headway_handler_line_ref (HeadwayHandlerLine *self);
void headway_handler_line_unref (HeadwayHandlerLine *self);

/* @handler learns from now on whether there is room (headway_handler_set_room()). */
void headway_handler_line_sit_down (HeadwayHandlerLine *self, HeadwayHandlerSeat *seat, HeadwayHandler *handler, HeadwayInstant now);
/* The handler has ended; what @seat owes it still owes. */
void headway_handler_line_stand_up (HeadwayHandlerLine *self, HeadwayHandlerSeat *seat);

/* FALSE: a call of @bytes would be too much at present, and nothing has changed. */
gboolean headway_handler_line_take (HeadwayHandlerLine *self, HeadwayHandlerSeat *seat, gsize bytes, HeadwayInstant now);
/* Nobody waits any more for the answer of a call that was taken, be it that it is @is_late; it is owed all the same. */
void headway_handler_line_give_up (HeadwayHandlerLine *self, gboolean is_late, HeadwayInstant now);

/**
 * headway_handler_line_release:
 * @was_given_up: headway_handler_line_give_up() was told of this call
 * @is_read: it is the peer that has answered: so it has read all that was sent before
 *
 * The message bus waits for the answer of a call of @bytes no longer.
 */
void headway_handler_line_release (HeadwayHandlerLine *self,
                                   HeadwayHandlerSeat *seat,
                                   gsize bytes,
                                   gboolean was_given_up,
                                   gboolean is_read,
                                   HeadwayInstant now);

/* Whether it is the peer that has answered, with @error, (nullable): so it has read all that was sent before. */
gboolean headway_handler_line_is_of_peer (const GError *error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayHandlerLine, headway_handler_line_unref)

G_END_DECLS
