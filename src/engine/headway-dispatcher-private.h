/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-bus-private.h"
#include "engine/headway-dispatcher.h"
#include "engine/headway-work.h"

G_BEGIN_DECLS

/* Kinds of timers. */
enum
{
  HEADWAY_TIMER_STEP,
  HEADWAY_TIMER_PAUSE,
  HEADWAY_TIMER_IDLE,
};

struct _HeadwayDispatcher
{
  GObject parent_instance;

  HeadwayBusTable *table;  /* borrowed: owns self */
  HeadwayMetrics *metrics; /* borrowed, of `table` */
  HeadwayTimers timers;
  GHashTable *sets;                     /* HeadwayBus (owned) → HeadwayHandlerSet (owned) */
  GHashTable *origins;                  /* origin of handlers → how many of its `pre` calls are in flight */
  GQueue levels[HEADWAY_CALLS_MAX + 1]; /* HeadwayHandler (borrowed), by level_link: may be called, by calls in flight */
  guint n_ready;                        /* handlers in `levels` */
  GQueue ended;                         /* HeadwayHandler (owned): to be told */
  GQueue abandoned;                     /* HeadwayHandlerCall (borrowed): their transports are to be told */
  GQueue settled;                       /* HeadwayDecision (owned), by link: have failed, their publishers are to be told */
  GQueue published;                     /* HeadwayDecision (owned), by link: decided, to be published in their turn */
  GHashTable *accounts;                 /* uid → what waits of it, see HeadwayDecision */
  guint n_handlers;                     /* that have not ended */
  guint last_number;
  guint in_flight;
  guint n_of_all; /* of them, the first few of each handler */
  guint undecided;
  gint64 announced_us; /* what headway_dispatcher_get_next_deadline_us() said last */
  gboolean is_settling;
};

/* Of @table, which makes it and owns it. */
HeadwayDispatcher *headway_dispatcher_new (HeadwayBusTable *table);
/* @bus has closed: its handlers drain and end, publishes that are being decided fail. */
void headway_dispatcher_close_bus (HeadwayDispatcher *self, HeadwayBus *bus, HeadwayInstant now);
/* @bus has left the table: what is left of its handlers is dropped. */
void headway_dispatcher_forget_bus (HeadwayDispatcher *self, HeadwayBus *bus, HeadwayInstant now);
/* Once a second or so: obeys settings that have changed. */
void headway_dispatcher_tick (HeadwayDispatcher *self, HeadwayInstant now);
/* Makes the calls that may be made and tells who is to be told, from whatever has just happened; all of it from
 * the outermost of nested calls, so that nobody is told of a half-done step. */
void headway_dispatcher_settle (HeadwayDispatcher *self, HeadwayInstant now);

/* Brings the gauges up to date. */
void headway_dispatcher_collect (HeadwayDispatcher *self);

/* --- For work and handlers ------------------------------------------------------------------ */

/* @step may be called: at the next headway_dispatcher_settle() that finds room for it. @is_first: before the others of its handler. */
void headway_dispatcher_add_ready (HeadwayDispatcher *self, HeadwayStep *step, gboolean is_first);
void headway_dispatcher_remove_ready (HeadwayDispatcher *self, HeadwayStep *step);
/* The call of @step is over, or nobody waits for it any more. Returns: (transfer none): the call, which has no step now. */
HeadwayHandlerCall *headway_dispatcher_remove_call (HeadwayDispatcher *self, HeadwayStep *step);
/* @call has no step and is told so later. */
void headway_dispatcher_abandon (HeadwayDispatcher *self, HeadwayHandlerCall *call);
/* Whether @handler may be called has changed. */
void headway_dispatcher_update_handler (HeadwayDispatcher *self, HeadwayHandler *handler);
/* A queue of @handler has become idle. */
void headway_dispatcher_watch_idle (HeadwayDispatcher *self, HeadwayHandler *handler, HeadwayInstant now);
/* Ends @handler if it is draining and has done all it had to. */
void headway_dispatcher_end_if_drained (HeadwayDispatcher *self, HeadwayHandler *handler);
/* @handler has ended: it is told so later, and forgotten. */
void headway_dispatcher_end_handler (HeadwayDispatcher *self, HeadwayHandler *handler);
void headway_dispatcher_add_security (HeadwayDispatcher *self,
                                      HeadwaySecurityKind kind,
                                      HeadwayHandler *handler,
                                      HeadwayPrincipal *principal,
                                      HeadwayInstant now);
/* Whether the connection @origin has a `pre` call in flight. */
gboolean headway_dispatcher_has_origin (HeadwayDispatcher *self, gconstpointer origin);

G_END_DECLS
