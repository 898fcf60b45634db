/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-handler-queues.h"
#include "engine/headway-handler.h"
#include "engine/headway-timers.h"

G_BEGIN_DECLS

typedef enum
{
  HEADWAY_HANDLER_REGISTERED,
  HEADWAY_HANDLER_DRAINING, /* takes no new events */
  HEADWAY_HANDLER_ENDED,
} HeadwayHandlerState;

/* Within the engine a handler is open: the dispatcher, its queues and its steps share it. */
struct _HeadwayHandler
{
  GObject parent_instance;

  HeadwayDispatcher *dispatcher; /* borrowed: outlives its time until it has ended */
  HeadwayBus *bus;               /* owned */
  HeadwayFilter *filter;         /* owned: its patterns */
  char *name;                    /* owned */
  guint priority;
  HeadwayPhase phase;
  HeadwayOnError on_error;
  gint64 timeout_us;
  guint32 uid;
  gconstpointer origin; /* never followed */
  guint number;
  gint64 told_us;                           /* when the log was last told of a failure */
  const HeadwayHandlerTransport *transport; /* borrowed, outlives self */
  gpointer user_data;

  HeadwayHandlerState state;
  gboolean is_matching;  /* is looked up for events */
  guint64 last_decision; /* draining, phase `pre`: publishes that came later are not its own any more */
  gboolean is_told;      /* that it has ended */
  HeadwayHandlerQueues queues;
  GQueue ready;       /* HeadwayStep (borrowed), by ready_link: may be called */
  GList level_link;   /* in the dispatcher's list of `level` */
  gint level;         /* calls in flight when it was put there; -1: it stands in none */
  gboolean has_room;  /* headway_handler_set_room() */
  HeadwayTimer pause; /* until calls are tried again */
  HeadwayTimer idle;  /* to free the queue that is idle for longest */

  guint n_unfinished; /* steps at it, of whatever state but done */
  guint in_flight;
  guint64 admitted;
  guint64 handled;
  guint64 dropped;
};

/* What it is; the rest is the dispatcher's. Returns: (transfer full) (nullable): INVALID_PATTERN, INVALID_OPTION. */
HeadwayHandler *headway_handler_new (HeadwayBus *bus,
                                     const HeadwayHandlerOptions *options,
                                     const HeadwayLimits *limits,
                                     GError **error);
/* @self takes no events any more. */
void headway_handler_stop_matching (HeadwayHandler *self);
/* headway_handler_drop(), but for headway_dispatcher_settle(). */
void headway_handler_end (HeadwayHandler *self, HeadwayInstant now);
/* The order of routing.md 1.10: priority, name, registration. */
int headway_handler_compare (const HeadwayHandler *a, const HeadwayHandler *b);

G_END_DECLS
