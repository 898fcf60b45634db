/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-dispatcher.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/* Unanswered calls of the whole daemon, overdue ones included: the system bus lets one connection wait for 128
 * replies (decisions.md 35). Beside HEADWAY_CALLS_MAX there is room for so many that nobody waits for any more. */
#define HEADWAY_HANDLER_OVERDUE_MAX 32
#define HEADWAY_HANDLER_OWED_MAX    (HEADWAY_CALLS_MAX + HEADWAY_HANDLER_OVERDUE_MAX)
/* One connection may owe a quarter of the answers that others do not owe for long already: 32 when it is alone,
 * ever fewer the more connections are dead, never none. */
#define HEADWAY_HANDLER_SHARE 4
/* So no handler has more calls under way than this. */
#define HEADWAY_HANDLER_PARALLEL_MAX (HEADWAY_HANDLER_OWED_MAX / HEADWAY_HANDLER_SHARE)

typedef struct _HeadwayHandlerLine HeadwayHandlerLine;

/**
 * HeadwayHandlerCaller:
 * @connection: the message bus
 * @lines: unique name → HeadwayHandlerLine (borrowed: targets own them)
 * @owed: calls without an answer
 * @overdue: those of them that nobody waits for any more
 *
 * Calls the objects of applications over the message bus. Neither GDBus nor the message bus bounds what waits
 * for a peer that does not read, and what it owes an answer for counts until it has left: so that is counted
 * here, for each connection (HeadwayHandlerLine) and in all. Reference-counted.
 */
typedef struct
{
  GDBusConnection *connection; /* owned */
  GHashTable *lines;           /* owned */
  GCancellable *cancellable;   /* owned */
  guint owed;
  guint overdue;
} HeadwayHandlerCaller;

HeadwayHandlerCaller *headway_handler_caller_new (GDBusConnection *connection);
HeadwayHandlerCaller *headway_handler_caller_ref (HeadwayHandlerCaller *self);
void headway_handler_caller_unref (HeadwayHandlerCaller *self);
/* Waits for no answer any more. Any number of times. */
void headway_handler_caller_stop (HeadwayHandlerCaller *self);

/* How many answers one connection may owe at present, at least 1. */
guint headway_handler_caller_get_share (const HeadwayHandlerCaller *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayHandlerCaller, headway_handler_caller_unref)

G_END_DECLS
