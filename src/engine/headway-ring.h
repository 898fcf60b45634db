/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-event.h"

G_BEGIN_DECLS

/**
 * HeadwayRing:
 *
 * The last events of a bus, by id: a circular array whose ids have no holes, so that append and
 * look-up are O(1) (sse-contract.md 5.5). Bounded by count and by event size, whichever comes
 * first; one event is always kept.
 */
HeadwayRing *headway_ring_new (guint max_events, guint64 max_bytes);
void headway_ring_free (HeadwayRing *self);

/* Takes a reference. The id of @event is that of the last one + 1, if there is one. */
void headway_ring_append (HeadwayRing *self, HeadwayEvent *event);
void headway_ring_clear (HeadwayRing *self);

guint headway_ring_get_length (const HeadwayRing *self);
guint64 headway_ring_get_bytes (const HeadwayRing *self);
/* 0 if the ring is empty. */
guint64 headway_ring_get_first_id (const HeadwayRing *self);
guint64 headway_ring_get_last_id (const HeadwayRing *self);
/* Returns: (transfer none) (nullable): the event of that id, NULL if it is not kept. */
HeadwayEvent *headway_ring_lookup (const HeadwayRing *self, guint64 id);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayRing, headway_ring_free)

G_END_DECLS
