/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-bus-table.h"
#include "engine/headway-handler.h"

G_BEGIN_DECLS

/* Calls in flight of all handlers (decisions.md 35). */
#define HEADWAY_CALLS_MAX 96

#define HEADWAY_TYPE_DISPATCHER (headway_dispatcher_get_type ())
G_DECLARE_FINAL_TYPE (HeadwayDispatcher, headway_dispatcher, HEADWAY, DISPATCHER, GObject)

/**
 * HeadwayDispatcher:
 *
 * Calls the handlers of all buses of a table (routing.md 1.9, 1.10, 3.7): one call at a time for each handler
 * and principal, HEADWAY_CALLS_MAX in all. headway_bus_table_get_dispatcher() has it.
 *
 * Phase `post`: a bus hands over each event once it was offered to subscriptions. Phase `pre`:
 * headway_bus_table_publish() does not go on until it is decided.
 *
 * Signal: `deadline-changed ()`, when headway_dispatcher_get_next_deadline_us() has become earlier.
 */

/**
 * headway_dispatcher_register:
 * @transport: borrowed, outlives the handler
 *
 * Registers a handler: it sees every event that is published after this. Errors: INVALID_PATTERN, INVALID_OPTION,
 * QUOTA_EXCEEDED (HEADWAY_HANDLERS_PER_BUS_MAX), CLOSED.
 *
 * Returns: (transfer full) (nullable): NULL with @error.
 */
HeadwayHandler *headway_dispatcher_register (HeadwayDispatcher *self,
                                             HeadwayBus *bus,
                                             const HeadwayHandlerOptions *options,
                                             const HeadwayHandlerTransport *transport,
                                             gpointer user_data,
                                             HeadwayInstant now,
                                             GError **error);

/* Monotonic microseconds at which headway_dispatcher_run() has something to do; -1: nothing waits for time. */
gint64 headway_dispatcher_get_next_deadline_us (HeadwayDispatcher *self);
/* Ends the steps whose deadline is over, repeats calls that could not be made, frees what was idle. */
void headway_dispatcher_run (HeadwayDispatcher *self, HeadwayInstant now);

/* Handlers of @bus that have not ended. */
guint headway_dispatcher_count_handlers (HeadwayDispatcher *self, HeadwayBus *bus);
/* Those of @bus that have not ended, of all connections (element-type HeadwayHandler), in order of registration. (transfer full) */
GPtrArray *headway_dispatcher_list_handlers (HeadwayDispatcher *self, HeadwayBus *bus);
/* Whether any event published to @bus may have to wait for a `pre` handler. */
gboolean headway_dispatcher_has_pre (HeadwayDispatcher *self, HeadwayBus *bus);
/* Calls in flight of all handlers. */
guint headway_dispatcher_get_in_flight (HeadwayDispatcher *self);
/* Publishes that wait for `pre` handlers, of all buses. */
guint headway_dispatcher_get_undecided (HeadwayDispatcher *self);

G_END_DECLS
