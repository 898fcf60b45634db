/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-batch.h"

G_BEGIN_DECLS

struct _HeadwayBatch
{
  GPtrArray *events; /* owned HeadwayEvent, in order */
  guint64 cost;
  gboolean is_seed;
  gconstpointer origin; /* never followed */
  guint next;           /* index of the event to publish next */
  guint64 first_id;
  gint64 queued_us;
  HeadwayOutcome outcome;
  HeadwayBatchDone done;
  gpointer user_data; /* of `done`, borrowed */
};

/* A handler made another @event, (transfer none), of the one at @index. */
void headway_batch_replace (HeadwayBatch *self, guint index, HeadwayEvent *event);
/* Tells the publisher, exactly once, and frees @self. */
void headway_batch_finish (HeadwayBatch *self, const GError *error);

G_END_DECLS
