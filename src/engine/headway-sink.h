/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-event.h"

G_BEGIN_DECLS

/**
 * HeadwaySinkClass:
 * @put: offers a live event straight into the sink's batch (decisions.md 20). FALSE: the sink
 *   cannot take it now; the event waits in the subscription until the sink takes it from there
 *   with headway_subscription_take(). @resume_id is what an SSE `id:` line says: the id of the
 *   event, or the low-water mark of a routed stream.
 * @wake: something waits that was not offered (a notice, queued events, the end). The sink does
 *   not take from inside this call: it remembers, and takes when its turn of the loop comes.
 *
 * A reader of a subscription. Both functions run inside a publish: they do not block, do not
 * re-enter the bus, and do not drop the subscription.
 */
typedef struct
{
  gboolean (*put) (HeadwaySink *self, HeadwayEvent *event, guint64 resume_id);
  void (*wake) (HeadwaySink *self);
} HeadwaySinkClass;

/* Bytes that memory comes in. */
#define HEADWAY_CACHE_LINE 64

/* Embedded as the first member of whoever reads. A publish to many fetches its first two cache lines ahead. */
struct _HeadwaySink
{
  const HeadwaySinkClass *klass;
};

/* One event on its way out. */
typedef struct
{
  HeadwayEvent *event; /* owned */
  guint64 resume_id;   /* 0 for a synthetic event */
} HeadwayDelivery;

G_END_DECLS
