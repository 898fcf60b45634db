/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-gap.h"

G_BEGIN_DECLS

/**
 * HeadwayHandlerQueue:
 *
 * What waits at one handler for one principal, in order (routing.md 1.9). The step at its head is the only
 * one that may be under way, so that a busy flag is not needed: nobody is called for a step that is not there. A
 * step of a chain keeps its place until the whole chain has ended, and that is what keeps chains, and single
 * events among them, in order (routing.md 3.7). Plain; its handler's HeadwayHandlerQueues owns it.
 */
typedef struct
{
  HeadwayPrincipal *principal; /* owned; of the shared queue the system principal */
  GQueue steps;                /* HeadwayStep (borrowed), by link */
  guint waiting;               /* those of `steps` that are not under way */
  guint64 bytes;               /* cost of those */
  HeadwayGap *gap;             /* owned, nullable: lost and not told */
  GList weight_link;           /* in the list of `weight` */
  gint weight;                 /* power of two of `bytes`; -1: none */
  GList idle_link;             /* in the list of idle queues */
  gint64 idle_since_us;        /* monotonic; -1: not idle */
} HeadwayHandlerQueue;

/* Returns: (transfer full). */
HeadwayHandlerQueue *headway_handler_queue_new (HeadwayPrincipal *principal);
void headway_handler_queue_free (HeadwayHandlerQueue *self);

/* Counts @event as lost in *@gap, which is made if there is none. */
void headway_handler_add_loss (HeadwayGap **gap, HeadwayGapReason reason, const HeadwayEvent *event);
/* @gap: (transfer full): older than what was lost since. */
void headway_handler_queue_put_back_gap (HeadwayHandlerQueue *self, HeadwayGap *gap);

G_END_DECLS
