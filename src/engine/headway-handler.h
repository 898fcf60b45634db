/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-filter.h"
#include "engine/headway-handler-call.h"

G_BEGIN_DECLS

#define HEADWAY_HANDLER_PRIORITY_DEFAULT   100
#define HEADWAY_HANDLER_TIMEOUT_MS_DEFAULT 5000
#define HEADWAY_HANDLER_TIMEOUT_MS_MAX     60000
/* Handlers of one bus. */
#define HEADWAY_HANDLERS_PER_BUS_MAX 1024

/* What a step counts as that failed or came too late. */
typedef enum
{
  HEADWAY_ON_ERROR_CONTINUE,
  HEADWAY_ON_ERROR_DENY,
} HeadwayOnError;

/* "post" or "pre"; never NULL. */
const char *headway_phase_get_name (HeadwayPhase phase);

/**
 * HeadwayHandlerTransport:
 * @call: calls the application, without waiting. `call` is (transfer full): it goes back through exactly
 *   one of headway_handler_call_finish(), _skip(), _fail() and _retry(), now or later, abandoned or not
 * @abandon: (nullable): nobody wants the answer any more (its deadline is over, the handler is gone); still to be
 *   given back as above, and then ignored
 * @ended: (nullable): the handler has ended and nothing comes for it any more: it was dropped, has drained
 *   after headway_handler_unregister(), or its bus is gone. Called once, never from headway_dispatcher_register()
 *
 * How the engine reaches an application; src/handler does it over the message bus. `user_data` is that of
 * headway_dispatcher_register(). The functions may call any function of handlers and the dispatcher.
 */
typedef struct
{
  void (*call) (HeadwayHandler *handler, HeadwayHandlerCall *call, gpointer user_data);
  void (*abandon) (HeadwayHandler *handler, HeadwayHandlerCall *call, gpointer user_data);
  void (*ended) (HeadwayHandler *handler, gpointer user_data);
} HeadwayHandlerTransport;

/**
 * HeadwayHandlerOptions:
 * @patterns: (nullable): ended by NULL, at most HEADWAY_PATTERNS_MAX; none: every event
 * @name: (nullable): orders handlers of one priority, such as the object path; copied
 * @priority: lower first
 * @phase: when it is called
 * @on_error: what a failed or late step counts as
 * @timeout_ms: deadline of a step, 1 … HEADWAY_HANDLER_TIMEOUT_MS_MAX
 * @uid: of the owner, for the security log; G_MAXUINT32: not known
 * @origin: (nullable): stands for the owner's connection, compared with that of headway_batch_set_origin(); never followed
 *
 * What RegisterHandler takes (dbus-api.md). Everything is borrowed.
 */
typedef struct
{
  const char *const *patterns;
  const char *name;
  guint priority;
  HeadwayPhase phase;
  HeadwayOnError on_error;
  guint timeout_ms;
  guint32 uid;
  gconstpointer origin;
} HeadwayHandlerOptions;

/* The defaults of dbus-api.md. */
void headway_handler_options_init (HeadwayHandlerOptions *options);

#define HEADWAY_TYPE_HANDLER (headway_handler_get_type ())
G_DECLARE_FINAL_TYPE (HeadwayHandler, headway_handler, HEADWAY, HANDLER, GObject)

/**
 * HeadwayHandler:
 *
 * One registration of one handler at one bus: a generation (routing.md 1.9, 3.7). What was queued for one
 * never reaches another, whoever registers it. Made by headway_dispatcher_register(); the dispatcher keeps it
 * until it has ended.
 */

/* Takes no new events; what waits is handled, then @ended comes. Any number of times. */
void headway_handler_unregister (HeadwayHandler *self, HeadwayInstant now);

/* Its owner is gone: ends at once. What waits is counted and logged as lost, calls in flight are abandoned and count
 * as errors of their steps. Any number of times. */
void headway_handler_drop (HeadwayHandler *self, HeadwayInstant now);

/**
 * headway_handler_set_room:
 *
 * FALSE: the owner does not read, so that a call would only pile up: none is made until TRUE. Events wait
 * under the bounds of the queue; a step of phase `pre` or of a chain has its deadline all the same.
 */
void headway_handler_set_room (HeadwayHandler *self, gboolean has_room, HeadwayInstant now);

HeadwayBus *headway_handler_get_bus (HeadwayHandler *self); /* (transfer none) */
/* From 1, in order of registration at the dispatcher; never used twice. */
guint headway_handler_get_number (HeadwayHandler *self);
/* (transfer none): ended by NULL, never NULL itself; empty: every event. */
const char *const *headway_handler_get_patterns (HeadwayHandler *self);
const char *headway_handler_get_name (HeadwayHandler *self); /* "" if it has none */
guint headway_handler_get_priority (HeadwayHandler *self);
HeadwayPhase headway_handler_get_phase (HeadwayHandler *self);
HeadwayOnError headway_handler_get_on_error (HeadwayHandler *self);
guint headway_handler_get_timeout_ms (HeadwayHandler *self);
gconstpointer headway_handler_get_origin (HeadwayHandler *self);
/* FALSE from headway_handler_unregister() on. */
gboolean headway_handler_is_registered (HeadwayHandler *self);
/* TRUE once @ended was called. */
gboolean headway_handler_has_ended (HeadwayHandler *self);

/* The books (architecture.md): admitted = handled + dropped + pending + in flight, always. An admitted event is
 * one that matched and was to be handled by this handler. */
guint64 headway_handler_get_admitted (HeadwayHandler *self);
/* Events that need no more of this handler: their steps ended, whatever came of it, or a chain ended before them. */
guint64 headway_handler_get_handled (HeadwayHandler *self);
/* Events lost: told to it, or to be told with its next call. */
guint64 headway_handler_get_dropped (HeadwayHandler *self);
/* Events that wait for it, and their cost in bytes. */
guint headway_handler_get_pending (HeadwayHandler *self);
guint64 headway_handler_get_pending_bytes (HeadwayHandler *self);
/* Calls under way. */
guint headway_handler_get_in_flight (HeadwayHandler *self);
/* Principals with an event waiting or in flight; those that share a queue count as one. */
guint headway_handler_get_active_principals (HeadwayHandler *self);
/* Queues it has, idle ones included: at most handler-principals and the shared one. */
guint headway_handler_get_queues (HeadwayHandler *self);

G_END_DECLS
