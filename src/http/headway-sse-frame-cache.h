/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "wire/headway-sse-frame.h"

G_BEGIN_DECLS

/**
 * HeadwaySseFrameCache:
 *
 * The frames of recent events, so that each is built once for all readers. Direct-mapped by the
 * event's address, whose reference it holds; bounded in slots and in bytes.
 */
typedef struct _HeadwaySseFrameCache HeadwaySseFrameCache;

HeadwaySseFrameCache *headway_sse_frame_cache_new (void);
void headway_sse_frame_cache_free (HeadwaySseFrameCache *self);

/* The frame of @event. @resume_id: as headway_sse_frame_new(); a frame is shared where it is the id
 * of the event. (transfer full) */
HeadwaySseFrame *headway_sse_frame_cache_get (HeadwaySseFrameCache *self, HeadwayEvent *event, guint64 resume_id);

/* The frame of @event, which has an id, on a routed stream: as headway_sse_frame_new_headed(). Its rest
 * is always shared, its head where @resume_id is the id of the event. (transfer full) */
HeadwaySseFrame *headway_sse_frame_cache_get_headed (HeadwaySseFrameCache *self, HeadwayEvent *event, guint64 resume_id);

/* Drops every frame and event. */
void headway_sse_frame_cache_clear (HeadwaySseFrameCache *self);
guint64 headway_sse_frame_cache_get_built (const HeadwaySseFrameCache *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwaySseFrameCache, headway_sse_frame_cache_free)

G_END_DECLS
