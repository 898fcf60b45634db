/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-metrics.h"
#include "stream/headway-stream-writer.h"

G_BEGIN_DECLS

#define HEADWAY_TYPE_STREAM_HUB (headway_stream_hub_get_type ())
G_DECLARE_FINAL_TYPE (HeadwayStreamHub, headway_stream_hub, HEADWAY, STREAM_HUB, GObject)

/**
 * HeadwayStreamHub:
 *
 * All streams of a server: one epoll descriptor, one pair of sources, one clock for heartbeats, idle
 * writers and drain windows, and the frames they share. Nothing of these exists per reader.
 */
HeadwayStreamHub *headway_stream_hub_new (void);

/* Applies at once to open streams as well. All in milliseconds, 0: off (for the drain window: at
 * once). */
void headway_stream_hub_set_times (HeadwayStreamHub *self,
                                   guint heartbeat_ms,
                                   guint writer_idle_timeout_ms,
                                   guint drain_window_ms);

/**
 * headway_stream_hub_adopt:
 * @fd: (transfer full): a non-blocking stream socket
 * @subscription: (transfer full): without a reader yet
 * @head: what goes out first, as it is: the header block of the answer
 * @is_chunked: FALSE: HTTP/1.0
 * @released: (nullable): called once the socket is closed
 *
 * From here on the stream lives by itself.
 */
void headway_stream_hub_adopt (HeadwayStreamHub *self,
                               int fd,
                               HeadwaySubscription *subscription,
                               const GString *head,
                               gboolean is_chunked,
                               GDestroyNotify released,
                               gpointer released_data);

/* What the kernel may hold of a socket pair: so its reader feels how fast it is, and so do we (decisions.md 19). */
#define HEADWAY_STREAM_PAIR_BUFFER (64 * 1024)

/**
 * headway_stream_hub_open:
 * @subscription: without a reader yet
 * @format: not HEADWAY_STREAM_FORMAT_SSE_CHUNKED
 * @released: (nullable): called with @released_data once our end is closed
 * @fd: (out): the reader's end, close-on-exec; the caller's to hand over and close
 *
 * Opens a stream over a socket pair (dbus-api.md, OpenStream). From here on it lives by itself: until the reader
 * closes its end, or the subscription ends and what waited is written, or the drain window is over. A frame that is
 * begun by then is still written: headway_stream_writer_expire().
 *
 * Returns: (nullable): the writer, borrowed, valid until @released; NULL with HEADWAY_ERROR_UNAVAILABLE.
 */
HeadwayStreamWriter *headway_stream_hub_open (HeadwayStreamHub *self,
                                              HeadwaySubscription *subscription,
                                              HeadwayStreamFormat format,
                                              GDestroyNotify released,
                                              gpointer released_data,
                                              int *fd,
                                              GError **error);

/* Streams that have ended and whose drain window is not over. */
guint headway_stream_hub_get_n_draining (HeadwayStreamHub *self);
/* Streams whose drain window is over in the middle of a frame: they wait for their readers, or for their owners to leave. */
guint headway_stream_hub_get_n_lingering (HeadwayStreamHub *self);
/* Streams whose socket is still open, those two kinds among them. */
guint headway_stream_hub_get_n_streams (HeadwayStreamHub *self);
const HeadwayStreamStats *headway_stream_hub_get_stats (HeadwayStreamHub *self);
/* Writes the stats to @metrics. */
void headway_stream_hub_collect (HeadwayStreamHub *self, HeadwayMetrics *metrics);

/* --- For the writers ------------------------------------------------------------------------ */

/* The frame that @writer sends for @event. (transfer full) */
HeadwaySseFrame *headway_stream_hub_get_frame (HeadwayStreamHub *self, HeadwayStreamWriter *writer, HeadwayEvent *event, guint64 resume_id);
/* One for each format; those of routed streams have their own: their frames differ from all others. */
HeadwayStreamJoint *headway_stream_hub_get_joint (HeadwayStreamHub *self, HeadwayStreamWriter *writer);
HeadwayStreamStats *headway_stream_hub_get_counts (HeadwayStreamHub *self);
HeadwaySseFrame *headway_stream_hub_get_heartbeat (HeadwayStreamHub *self); /* (transfer none) */

/* Gives @writer a turn before the main loop waits again. */
void headway_stream_hub_mark_dirty (HeadwayStreamHub *self, HeadwayStreamWriter *writer);
/* What epoll is to watch @writer for. */
void headway_stream_hub_watch (HeadwayStreamHub *self, HeadwayStreamWriter *writer, guint32 interest);
/* The subscription of @writer has ended: the drain window starts. */
void headway_stream_hub_begin_drain (HeadwayStreamHub *self, HeadwayStreamWriter *writer, gint64 now_us);
/* The drain window of @writer is over, but not its frame: from here on only its socket has a say. */
void headway_stream_hub_begin_linger (HeadwayStreamHub *self, HeadwayStreamWriter *writer);

G_END_DECLS
