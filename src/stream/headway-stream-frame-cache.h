/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "wire/headway-sse-frame.h"

G_BEGIN_DECLS

/**
 * HeadwayStreamFrameCache:
 *
 * The frames of recent events, so that each is built once for all readers. Direct-mapped by the
 * event's address, whose reference it holds; bounded in slots and in bytes.
 */
typedef struct _HeadwayStreamFrameCache HeadwayStreamFrameCache;

HeadwayStreamFrameCache *headway_stream_frame_cache_new (void);
void headway_stream_frame_cache_free (HeadwayStreamFrameCache *self);

/* The frame of @event. @resume_id: as headway_sse_frame_new(); a frame is shared where it is the id
 * of the event. (transfer full) */
HeadwaySseFrame *headway_stream_frame_cache_get (HeadwayStreamFrameCache *self, HeadwayEvent *event, guint64 resume_id);

/* The frame of @event, which has an id, on a routed stream: as headway_sse_frame_new_headed(). Its rest
 * is always shared, its head where @resume_id is the id of the event. (transfer full) */
HeadwaySseFrame *headway_stream_frame_cache_get_headed (HeadwayStreamFrameCache *self, HeadwayEvent *event, guint64 resume_id);

/* Drops every frame and event. */
void headway_stream_frame_cache_clear (HeadwayStreamFrameCache *self);
guint64 headway_stream_frame_cache_get_built (const HeadwayStreamFrameCache *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayStreamFrameCache, headway_stream_frame_cache_free)

G_END_DECLS
