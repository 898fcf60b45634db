/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-take.h"

G_BEGIN_DECLS

typedef enum
{
  HEADWAY_OPENING_OVER,
  HEADWAY_OPENING_REPLAY,
  HEADWAY_OPENING_COMPLETE,
  HEADWAY_OPENING_SNAPSHOT,
} HeadwayOpeningPhase;

/**
 * HeadwayOpening:
 *
 * What a reader gets before the way of its mode begins (decisions.md 22, sse-contract.md 1.6): with a
 * cursor the replay, through filter and scope and outside of every bound of the mode, and
 * `replay_complete`; then the snapshot, if it asked for one. Plain, embedded in its subscription.
 */
typedef struct
{
  HeadwayOpeningPhase phase;
  HeadwayReplay replay;
  HeadwayEvent *snapshot; /* owned, nullable */
} HeadwayOpening;

void headway_opening_init (HeadwayOpening *self,
                           HeadwaySubscription *subscription,
                           const HeadwaySubscribeOptions *options,
                           HeadwayInstant now);
void headway_opening_clear (HeadwayOpening *self);

static inline gboolean
headway_opening_is_over (const HeadwayOpening *self)
{
  return self->phase == HEADWAY_OPENING_OVER;
}

/* Takes what fits and looks at no more than HEADWAY_DISPATCH_EVENTS that do not match. FALSE: it is not
 * over yet. */
gboolean headway_opening_take (HeadwayOpening *self, HeadwayTake *take);

G_END_DECLS
