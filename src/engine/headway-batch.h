/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-event.h"

G_BEGIN_DECLS

/* What became of a publish (decisions.md 31). */
typedef struct
{
  guint subscriptions; /* admitted it */
  guint refused;       /* matched and in scope but did not take it */
  guint evicted;       /* older events lost for it */
} HeadwayOutcome;

/**
 * HeadwayBatchDone:
 * @error: (nullable): why nothing at all was published
 *
 * Called exactly once, from within headway_bus_publish() when the bus is free, else later, when
 * the last event of the batch has been offered.
 */
typedef void (*HeadwayBatchDone) (HeadwayBatch *batch, const GError *error, gpointer user_data);

/**
 * HeadwayBatch:
 *
 * Events that are published together: all or nothing, with consecutive ids (decisions.md 13).
 */
HeadwayBatch *headway_batch_new (guint reserve, HeadwayBatchDone done, gpointer user_data);
void headway_batch_free (HeadwayBatch *self);
/* TRUE: the events only take ids and empty the ring (decisions.md 38). */
void headway_batch_set_seed (HeadwayBatch *self, gboolean is_seed);
/* @origin: (nullable): stands for the publisher's connection, compared with that of handlers and never followed: while
 * it has a `pre` call in flight, its own publishes skip its handlers and do not wait for the event being decided
 * (decisions.md 35). NULL: no connection that can have handlers. */
void headway_batch_set_origin (HeadwayBatch *self, gconstpointer origin);

/* @event: (transfer full). */
void headway_batch_add (HeadwayBatch *self, HeadwayEvent *event);
guint headway_batch_get_count (const HeadwayBatch *self);
/* @index: below the count. (transfer none) */
HeadwayEvent *headway_batch_get_event (const HeadwayBatch *self, guint index);
/* Sum of costs, in bytes. */
guint64 headway_batch_get_cost (const HeadwayBatch *self);
guint64 headway_batch_get_first_id (const HeadwayBatch *self); /* 0 before it has ids */
const HeadwayOutcome *headway_batch_get_outcome (const HeadwayBatch *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayBatch, headway_batch_free)

G_END_DECLS
