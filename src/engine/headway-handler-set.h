/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-handler-private.h"

G_BEGIN_DECLS

/* The handlers of one phase. */
typedef struct
{
  HeadwayTopicIndex *index; /* owned: those with patterns */
  GPtrArray *unfiltered;    /* HeadwayHandler (borrowed): the others */
  guint n;                  /* registered */
} HeadwayHandlerGroup;

/**
 * HeadwayHandlerSet:
 *
 * The handlers of one bus, and who of them matches an event. Plain; the dispatcher owns it, and the bus knows it.
 */
struct _HeadwayHandlerSet
{
  HeadwayDispatcher *dispatcher; /* borrowed: owns self */
  HeadwayBus *bus;               /* borrowed: outlives self */
  GPtrArray *all;                /* HeadwayHandler (owned): not ended, in order of registration */
  HeadwayHandlerGroup groups[HEADWAY_N_PHASES];
  GPtrArray *matches; /* owned scratch */
  GHashTable *lines;  /* owned, of HeadwayDecision: publishes that are being decided */
  GQueue undecided;   /* HeadwayDecision (borrowed), in order: those of them with events that are not decided */
  guint64 last_decision;
  guint n_draining; /* handlers of phase `pre` that are still looked up, for what came before they drained */
};

/* Returns: (transfer full). */
HeadwayHandlerSet *headway_handler_set_new (HeadwayDispatcher *dispatcher, HeadwayBus *bus);
/* No handler is left, and nothing is being decided. */
void headway_handler_set_free (HeadwayHandlerSet *self);

void headway_handler_set_add (HeadwayHandlerSet *self, HeadwayHandler *handler);
/* @handler takes no new events; headway_handler_set_forget() is still to come. */
void headway_handler_set_remove (HeadwayHandlerSet *self, HeadwayHandler *handler);
/* @handler has ended. */
void headway_handler_set_forget (HeadwayHandlerSet *self, HeadwayHandler *handler);

/**
 * headway_handler_set_match:
 * @skip: (nullable): leaves out handlers of this origin
 * @decision: number of the publish; leaves out handlers that drain and came to do so before it
 *
 * Returns: (transfer none): the handlers of @phase that match @event, each once, in the order of
 *   routing.md 1.10. Until the next call.
 */
GPtrArray *headway_handler_set_match (HeadwayHandlerSet *self,
                                      HeadwayPhase phase,
                                      const HeadwayEvent *event,
                                      gconstpointer skip,
                                      guint64 decision);

/* An event of the bus was offered to subscriptions. */
void headway_handler_set_offer (HeadwayHandlerSet *self, HeadwayEvent *event, HeadwayInstant now);

G_END_DECLS
