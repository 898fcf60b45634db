/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-replay.h"

#include <string.h>

/* The opening resync, first match wins (sse-contract.md 1.6, step 2). */
static void
find_opening (HeadwayReplay *self, const HeadwayCursor *cursor, const HeadwayRing *ring, guint64 next_bus_id, const char *epoch)
{
  guint64 first = headway_ring_get_first_id (ring);
  guint64 earliest = first > 0 ? first : next_bus_id;
  gboolean is_mismatch = cursor->epoch != NULL && strcmp (cursor->epoch, epoch) != 0;
  HeadwayResyncReason reason;

  if (is_mismatch || cursor->last_event_id >= next_bus_id)
    reason = HEADWAY_RESYNC_EPOCH_RESET;
  else if (first == 0 && cursor->last_event_id < next_bus_id - 1)
    reason = HEADWAY_RESYNC_SEEDED_REPLAY_NOT_IN_RING;
  else if (first > cursor->last_event_id + 1)
    reason = HEADWAY_RESYNC_RING_EVICTED;
  else
    return;

  self->has_opening = TRUE;
  self->opening = (HeadwayNotice){
    .kind = HEADWAY_NOTICE_RESYNC,
    .resync = {
      .reason = reason,
      .is_epoch_mismatch = is_mismatch,
      .last_delivered_id = cursor->last_event_id,
      .earliest_available_id = earliest,
    },
  };
  self->next_id = earliest;
}

void
headway_replay_init (HeadwayReplay *self,
                     const HeadwayCursor *cursor,
                     const HeadwayRing *ring,
                     guint64 next_bus_id,
                     const char *epoch,
                     guint64 budget)
{
  *self = (HeadwayReplay){
    .next_id = cursor->last_event_id + 1,
    .until = next_bus_id - 1,
    .last_sent_id = cursor->last_event_id,
    .budget = budget,
  };
  find_opening (self, cursor, ring, next_bus_id, epoch);
}

/* The first id at or behind @next_id that can still be sent: past the end of the replay it is live. */
static guint64
next_kept_id (const HeadwayReplay *self, guint64 first)
{
  guint64 end = self->until + 1;
  guint64 kept = first > 0 ? MIN (first, end) : end;

  return MAX (self->next_id, kept);
}

static HeadwayReplayStep
peek_overtaken (HeadwayReplay *self, HeadwayNotice *notice)
{
  *notice = (HeadwayNotice){
    .kind = HEADWAY_NOTICE_RESYNC,
    .resync = {
      .reason = HEADWAY_RESYNC_RING_EVICTED,
      .last_delivered_id = self->last_sent_id,
      .earliest_available_id = self->next_id,
    },
  };
  return HEADWAY_REPLAY_NOTICE;
}

/* Parity with upstream (case 56): the first event is sent whatever it costs, the first one that
 * does not fit any more ends the replay with a resync behind what was sent. */
static gboolean
is_beyond_budget (const HeadwayReplay *self, const HeadwayEvent *event)
{
  return self->budget > 0 && self->count > 0 &&
         self->spent + headway_event_get_size (event) > self->budget;
}

static HeadwayReplayStep
peek_beyond_budget (HeadwayReplay *self, HeadwayNotice *notice)
{
  *notice = (HeadwayNotice){
    .kind = HEADWAY_NOTICE_RESYNC,
    .resync = {
      .reason = HEADWAY_RESYNC_REPLAY_BUDGET_EXCEEDED,
      .last_delivered_id = self->last_sent_id,
      .earliest_available_id = self->next_id,
    },
  };
  return HEADWAY_REPLAY_NOTICE;
}

HeadwayReplayStep
headway_replay_peek (HeadwayReplay *self,
                     const HeadwayRing *ring,
                     HeadwayFilter *filter,
                     guint *looks,
                     HeadwayEvent **event,
                     HeadwayNotice *notice)
{
  guint64 first = headway_ring_get_first_id (ring);

  if (self->has_opening)
    {
      /* The ring may have gone on since: what the opening promises is the id that is sent next. */
      self->next_id = next_kept_id (self, first);
      self->opening.resync.earliest_available_id = self->next_id;
      *notice = self->opening;
      return HEADWAY_REPLAY_NOTICE;
    }
  for (; self->next_id <= self->until; self->next_id++)
    {
      /* An empty ring here was emptied by seeding: what it held is gone. The loss is told before the
       * id that is sent next, wherever the filter finds that. */
      if (self->next_id < next_kept_id (self, first))
        {
          self->is_overtaken = TRUE;
          self->next_id = next_kept_id (self, first);
          if (self->next_id > self->until)
            break;
        }
      if (*looks == 0)
        return HEADWAY_REPLAY_LOOKED;
      *event = headway_ring_lookup (ring, self->next_id);
      if (headway_scope_admits (&self->scope, *event) && headway_filter_matches (filter, *event))
        {
          if (self->is_overtaken)
            return peek_overtaken (self, notice);
          return is_beyond_budget (self, *event) ? peek_beyond_budget (self, notice) : HEADWAY_REPLAY_EVENT;
        }
      (*looks)--;
    }
  return self->is_overtaken ? peek_overtaken (self, notice) : HEADWAY_REPLAY_DONE;
}

void
headway_replay_advance (HeadwayReplay *self, HeadwayReplayStep step, HeadwayEvent *event, const HeadwayNotice *notice)
{
  if (step == HEADWAY_REPLAY_EVENT)
    {
      self->last_sent_id = self->last_replayed_id = headway_event_get_id (event);
      self->next_id = self->last_sent_id + 1;
      self->count++;
      self->spent += headway_event_get_size (event);
      return;
    }
  g_return_if_fail (step == HEADWAY_REPLAY_NOTICE);
  if (self->has_opening)
    {
      self->has_opening = FALSE;
      return;
    }
  self->is_overtaken = FALSE;
  if (notice->resync.reason == HEADWAY_RESYNC_REPLAY_BUDGET_EXCEEDED)
    self->next_id = self->until + 1;
}

void
headway_replay_complete (const HeadwayReplay *self, gboolean is_filtered, HeadwayNotice *notice)
{
  *notice = (HeadwayNotice){
    .kind = HEADWAY_NOTICE_REPLAY_COMPLETE,
    .replay_complete = {
      .replayed_count = self->count,
      .last_replayed_id = self->last_replayed_id,
      .is_filtered = is_filtered,
    },
  };
}
