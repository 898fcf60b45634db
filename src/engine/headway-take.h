/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-gap.h"
#include "engine/headway-notice.h"
#include "engine/headway-subscription.h"

G_BEGIN_DECLS

/**
 * HeadwayTake:
 *
 * One call of headway_subscription_take() or headway_subscription_drain(): where to put what is taken,
 * and the bounds of the reply (decisions.md 12). Synthetic events count in the events and the bytes
 * but cost nothing, and the first real event fits whatever its size, even behind a gap: so a reply
 * that may hold two always has an event if one waits (decisions.md 28). Plain, on the stack.
 */
typedef struct
{
  HeadwaySubscription *subscription; /* borrowed */
  HeadwayInstant now;
  HeadwayDelivery *deliveries; /* borrowed: room for max_events */
  guint max_events;
  gsize max_bytes;
  guint64 max_cost; /* G_MAXUINT64: no budget */
  guint n;
  guint n_events; /* of these are no synthetic ones */
  gsize bytes;
  guint64 cost;
} HeadwayTake;

/* FALSE: it would be the first, and is too large for headway_subscription_take_one(). The others ask it too. */
gboolean headway_take_fits_first (const HeadwayTake *self, gsize size);
gboolean headway_take_fits_notice (const HeadwayTake *self);
/* Within events and bytes; the budget is for the scheduler to keep. */
gboolean headway_take_has_room (const HeadwayTake *self, const HeadwayEvent *event);
/* Within events, bytes and the budget. */
gboolean headway_take_fits (const HeadwayTake *self, const HeadwayEvent *event);

/* Hands @event over: takes a reference, and enters it into the books of the subscription. */
void headway_take_add (HeadwayTake *self, HeadwayEvent *event, guint64 resume_id, gboolean is_replayed);
/* @event: (transfer full): it fits. */
void headway_take_add_synthetic (HeadwayTake *self, HeadwayEvent *event);
void headway_take_add_notice (HeadwayTake *self, const HeadwayNotice *notice);
void headway_take_add_gap (HeadwayTake *self, const HeadwayGap *gap);

G_END_DECLS
