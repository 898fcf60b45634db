/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-filter.h"
#include "engine/headway-notice.h"
#include "engine/headway-ring.h"
#include "engine/headway-scope.h"

G_BEGIN_DECLS

/* Where a reader wants to go on (sse-contract.md 1.1). */
typedef struct
{
  gboolean is_set;       /* FALSE: live only */
  guint64 last_event_id; /* 0 … HEADWAY_ID_MAX */
  const char *epoch;     /* (nullable): borrowed */
} HeadwayCursor;

/**
 * HeadwayReplay:
 *
 * A read position in the ring (decisions.md 22): the opening resync, ring ids from the cursor to
 * @until through a filter, one resync wherever the ring has overtaken it, and the numbers of
 * `replay_complete`. It copies nothing. Plain, embedded in whoever replays.
 */
typedef struct
{
  guint64 next_id;      /* the id to look at next */
  guint64 until;        /* last id to replay; H of decisions.md 22 */
  guint64 last_sent_id; /* for lastDeliveredId: the cursor at first */
  guint64 count;        /* events sent */
  guint64 last_replayed_id;
  guint64 budget; /* event size left to send; 0: no budget */
  guint64 spent;
  HeadwayScope scope;    /* ALL at first; its principal is borrowed */
  gboolean is_overtaken; /* the ring has dropped what it was to look at: not told yet */
  gboolean has_opening;
  HeadwayNotice opening;
} HeadwayReplay;

typedef enum
{
  HEADWAY_REPLAY_EVENT,  /* @event is the next one */
  HEADWAY_REPLAY_NOTICE, /* @notice comes next */
  HEADWAY_REPLAY_LOOKED, /* enough events looked at without a match: come again */
  HEADWAY_REPLAY_DONE,
} HeadwayReplayStep;

/* @next_bus_id: the id the bus will take next; @epoch: that of the bus. @budget: 0 for none. */
void headway_replay_init (HeadwayReplay *self,
                          const HeadwayCursor *cursor,
                          const HeadwayRing *ring,
                          guint64 next_bus_id,
                          const char *epoch,
                          guint64 budget);

/**
 * headway_replay_peek:
 * @looks: (inout): events the filter holds back that may still be looked at; when it is 0 the
 *   answer is LOOKED
 * @event: (out) (transfer none): with HEADWAY_REPLAY_EVENT
 * @notice: (out): with HEADWAY_REPLAY_NOTICE
 *
 * Says what comes next and consumes nothing but events that the filter holds back;
 * headway_replay_advance() consumes it.
 */
HeadwayReplayStep headway_replay_peek (HeadwayReplay *self,
                                       const HeadwayRing *ring,
                                       HeadwayFilter *filter,
                                       guint *looks,
                                       HeadwayEvent **event,
                                       HeadwayNotice *notice);
void headway_replay_advance (HeadwayReplay *self, HeadwayReplayStep step, HeadwayEvent *event, const HeadwayNotice *notice);

/* The closing notice, once the step is DONE. */
void headway_replay_complete (const HeadwayReplay *self, gboolean is_filtered, HeadwayNotice *notice);

G_END_DECLS
