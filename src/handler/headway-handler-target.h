/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "handler/headway-handler-line.h"

G_BEGIN_DECLS

/**
 * HeadwayHandlerPlace:
 * @owner: unique name of the application's connection
 * @object_path: its object, which implements org.headway.Headway1.Handler
 * @bus_path: object of the bus, for the context of calls
 *
 * @parallel: calls of it under way at a time, at least 1; an answer that is overdue counts
 *
 * Where calls go, and how many. Borrowed.
 */
typedef struct
{
  const char *owner;
  const char *object_path;
  const char *bus_path;
  guint parallel;
} HeadwayHandlerPlace;

/* The handler has ended (HeadwayHandlerTransport): the target is done. */
typedef void (*HeadwayHandlerEnded) (gpointer user_data);

typedef struct _HeadwayHandlerTarget HeadwayHandlerTarget;

/**
 * HeadwayHandlerTarget:
 *
 * One registered object of an application, as the engine calls it: HandleEvent() with the event and its context
 * (decisions.md 35), without a timeout of GDBus, since the dispatcher has the deadlines. A call that nobody waits
 * for any more is given back to the engine at once; what is left of it is that the answer is owed. Reference-counted.
 */
HeadwayHandlerTarget *headway_handler_target_new (HeadwayHandlerCaller *caller,
                                                  const HeadwayHandlerPlace *place,
                                                  HeadwayHandlerEnded ended,
                                                  gpointer user_data);
HeadwayHandlerTarget *headway_handler_target_ref (HeadwayHandlerTarget *self);
void headway_handler_target_unref (HeadwayHandlerTarget *self);

/**
 * headway_handler_target_register:
 * @options: of the handler; its owner keeps @self until @ended of headway_handler_target_new()
 * @prefix: of the object path of the registration, which ends in its number
 *
 * Registers at @dispatcher, once. Errors: as headway_dispatcher_register().
 *
 * Returns: (transfer none) (nullable): NULL with @error
 */
HeadwayHandler *headway_handler_target_register (HeadwayHandlerTarget *self,
                                                 HeadwayDispatcher *dispatcher,
                                                 HeadwayBus *bus,
                                                 const HeadwayHandlerOptions *options,
                                                 const char *prefix,
                                                 HeadwayInstant now,
                                                 GError **error);

HeadwayHandler *headway_handler_target_get_handler (HeadwayHandlerTarget *self); /* (transfer none) (nullable): NULL: it was never registered */
const char *headway_handler_target_get_path (HeadwayHandlerTarget *self);        /* of the registration */

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayHandlerTarget, headway_handler_target_unref)

G_END_DECLS
