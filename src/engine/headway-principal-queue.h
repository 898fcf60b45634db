/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-gap.h"

G_BEGIN_DECLS

typedef struct _HeadwayPrincipalQueue HeadwayPrincipalQueue;

/* One event that waits in a routed subscription. It comes from the free list of its route; its links
 * are part of it, so that whatever happens to it is O(1) and allocates nothing. */
typedef struct
{
  GList fifo;    /* in its queue; `data` is the node, as in `arrival` */
  GList arrival; /* in the route's list of ordinary or of spared events */
  HeadwayPlace place;
  HeadwayPrincipalQueue *queue; /* borrowed: it holds the node */
  HeadwayEvent *event;          /* owned */
  HeadwayGap *gap;              /* owned, nullable: lost before it, told just before it */
  gsize cost;
  gboolean is_spared; /* `final`, and the flag counts (decisions.md 29) */
} HeadwayQueueNode;

/**
 * HeadwayPrincipalQueue:
 *
 * The events of one principal that wait in one routed subscription, first in, first out, and its
 * standing in the deficit round robin (routing.md 3.1, 3.3). It exists exactly while it holds
 * something. architecture.md draws it as a GObject; it is a plain struct, since nobody outside its
 * route ever holds one, it has no signals or properties, and it comes and goes with single events:
 * instance set-up alone would cost more than all the rest of a push.
 */
struct _HeadwayPrincipalQueue
{
  GQueue fifo;                 /* HeadwayQueueNode, by id */
  HeadwayPrincipal *principal; /* borrowed from its events, nullable: NULL for the overflow queue of several */
  guint64 bytes;               /* cost of all */
  guint64 spared_bytes;        /* cost of those that eviction spares */
  GList *ordinary;             /* link in `fifo` of the first one that it does not spare */
  HeadwayGap *gap;             /* owned, nullable: lost behind the last one */
  guint64 untold;              /* events in the gaps that hang here */

  GList ring;      /* in the scheduler */
  guint64 deficit; /* bytes it may still send in its turn */
  gboolean is_in_turn;
  GList class_link; /* in the size classes of its route */
  gint size_class;  /* -1: in none */
};

/* @principal: (nullable). */
void headway_principal_queue_init (HeadwayPrincipalQueue *self, HeadwayPrincipal *principal);

/* Appends @node, whose event, cost and is_spared are set. */
void headway_principal_queue_push (HeadwayPrincipalQueue *self, HeadwayQueueNode *node);
/* Takes @node out, wherever it stands. */
void headway_principal_queue_remove (HeadwayPrincipalQueue *self, HeadwayQueueNode *node);

static inline HeadwayQueueNode *
headway_principal_queue_head (const HeadwayPrincipalQueue *self)
{
  return (HeadwayQueueNode *) self->fifo.head->data;
}

/* The first one that eviction does not spare. */
static inline HeadwayQueueNode *
headway_principal_queue_ordinary (const HeadwayPrincipalQueue *self)
{
  return self->ordinary != NULL ? (HeadwayQueueNode *) self->ordinary->data : NULL;
}

G_END_DECLS
