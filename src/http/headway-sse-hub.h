/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "http/headway-sse-writer.h"

G_BEGIN_DECLS

#define HEADWAY_TYPE_SSE_HUB (headway_sse_hub_get_type ())
G_DECLARE_FINAL_TYPE (HeadwaySseHub, headway_sse_hub, HEADWAY, SSE_HUB, GObject)

/**
 * HeadwaySseHub:
 *
 * All streams of a server: one epoll descriptor, one pair of sources, one clock for heartbeats, idle
 * writers and drain windows, and the frames they share. Nothing of these exists per reader.
 */
HeadwaySseHub *headway_sse_hub_new (void);

/* Applies at once to open streams as well. All in milliseconds, 0: off (for the drain window: at
 * once). */
void headway_sse_hub_set_times (HeadwaySseHub *self,
                                guint heartbeat_ms,
                                guint writer_idle_timeout_ms,
                                guint drain_window_ms);

/**
 * headway_sse_hub_adopt:
 * @fd: (transfer full): a non-blocking stream socket
 * @subscription: (transfer full): without a reader yet
 * @head: what goes out first, as it is: the header block of the answer
 * @is_chunked: FALSE: HTTP/1.0
 * @released: (nullable): called once the socket is closed
 *
 * From here on the stream lives by itself.
 */
void headway_sse_hub_adopt (HeadwaySseHub *self,
                            int fd,
                            HeadwaySubscription *subscription,
                            const GString *head,
                            gboolean is_chunked,
                            GDestroyNotify released,
                            gpointer released_data);

/* Streams whose socket is still open. */
guint headway_sse_hub_get_n_streams (HeadwaySseHub *self);
const HeadwaySseStats *headway_sse_hub_get_stats (HeadwaySseHub *self);

/* --- For the writers ------------------------------------------------------------------------ */

/* The frame that @writer sends for @event. (transfer full) */
HeadwaySseFrame *headway_sse_hub_get_frame (HeadwaySseHub *self, HeadwaySseWriter *writer, HeadwayEvent *event, guint64 resume_id);
/* Those of routed streams have one of their own: their frames differ from all others. */
HeadwaySseJoint *headway_sse_hub_get_joint (HeadwaySseHub *self, HeadwaySseWriter *writer);
HeadwaySseStats *headway_sse_hub_get_counts (HeadwaySseHub *self);
HeadwaySseFrame *headway_sse_hub_get_heartbeat (HeadwaySseHub *self); /* (transfer none) */

/* Gives @writer a turn before the main loop waits again. */
void headway_sse_hub_mark_dirty (HeadwaySseHub *self, HeadwaySseWriter *writer);
/* What epoll is to watch @writer for. */
void headway_sse_hub_watch (HeadwaySseHub *self, HeadwaySseWriter *writer, guint32 interest);
/* The subscription of @writer has ended: the drain window starts. */
void headway_sse_hub_begin_drain (HeadwaySseHub *self, HeadwaySseWriter *writer, gint64 now_us);

G_END_DECLS
