/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-subscription.h"
#include "stream/headway-stream-batch.h"

G_BEGIN_DECLS

typedef struct _HeadwayStreamHub HeadwayStreamHub;
typedef struct _HeadwayStreamWriter HeadwayStreamWriter;

/**
 * HeadwayStreamWriter:
 *
 * One reader: a subscription on one side, a socket on the other. It goes through these states, and
 * only forward: open (frames flow); draining (the subscription has ended, the rest must be taken
 * within the drain window); lingering (of a socket pair: the window is over in the middle of a frame, whose
 * rest is all that is left); over (the final chunk, of HTTP/1.1, is in the batch); shut (everything is in
 * the kernel, the peer's end is awaited, of HTTP); gone (the hub frees it). Plain, since there may be
 * thousands.
 */
struct _HeadwayStreamWriter
{
  /* A publish and the turn behind it touch these and the head of the batch, and of thousands of writers little stays
   * in a cache: so they come first, in the order of cache lines. */
  HeadwaySink sink;
  HeadwayStreamHub *hub; /* borrowed, outlives self */
  GList dirty_link;      /* in the hub's list of writers that want a turn */
  gint64 last_write_us;
  int fd; /* owned */
  HeadwayStreamFormat format;
  guint is_pair : 1;   /* of OpenStream(): a reader that is no HTTP client */
  guint is_routed : 1; /* its ids are to resume from: decisions.md 32 */
  guint is_dirty : 1;
  guint is_urgent : 1;  /* with is_dirty: in the hub's list of those that pull */
  guint is_blocked : 1; /* the socket was full: waits for EPOLLOUT */
  guint is_pulling : 1; /* something may wait in the subscription: it goes first */
  guint owes_heartbeat : 1;
  guint is_draining : 1;
  guint may_linger : 1; /* a socket pair for which somebody is charged */
  guint is_lingering : 1;
  guint is_over : 1;
  guint is_shut : 1;
  guint is_gone : 1;
  guint has_last : 1; /* a frame that ends its bus went by */
  guint was_idle : 1; /* evicted for it */
  guint32 interest;   /* what epoll watches for */
  HeadwayStreamBatch batch;

  HeadwaySubscription *subscription; /* owned, NULL from "over" on */
  GList link;                        /* in the hub's list of open, of draining or of lingering writers */
  GDestroyNotify released;           /* nullable */
  gpointer released_data;
  gint64 opened_us;
  gint64 next_heartbeat_us;
  gint64 deadline_us; /* from "draining" on */
  guint stray_bytes;
  HeadwayStreamCloseReason reason;
};

/**
 * headway_stream_writer_new:
 * @fd: (transfer full): a non-blocking stream socket
 * @subscription: (transfer full): without a reader yet
 * @is_pair: @fd is one end of a socket pair: its reader may close its side to write and go on reading
 * @released: (nullable): called with @released_data once the socket is closed
 */
HeadwayStreamWriter *headway_stream_writer_new (HeadwayStreamHub *hub,
                                                int fd,
                                                HeadwaySubscription *subscription,
                                                HeadwayStreamFormat format,
                                                gboolean is_pair,
                                                gint64 now_us,
                                                GDestroyNotify released,
                                                gpointer released_data);

/* Closes the socket, by a reset if @is_reset or if frames are unsent: an end in the middle of a
 * frame must never look like a clean one (sse-contract.md, case 100). A socket pair knows no reset: there the kernel
 * is asked to take the rest of the frame at once. */
void headway_stream_writer_free (HeadwayStreamWriter *self, gboolean is_reset);

/* Puts @frame (transfer full) behind what waits to be written. Not while it is blocked, nor while its
 * batch is full. */
void headway_stream_writer_queue (HeadwayStreamWriter *self, HeadwaySseFrame *frame);

/* Fetches what a turn touches into the cache. */
void headway_stream_writer_prefetch (HeadwayStreamWriter *self);

/* One turn of the main loop: writes what waits, then takes and writes a bounded portion. */
void headway_stream_writer_turn (HeadwayStreamWriter *self, HeadwayInstant now);

/* What epoll reported; @events as of epoll_wait(). */
void headway_stream_writer_handle (HeadwayStreamWriter *self, guint32 events, HeadwayInstant now);

/* A heartbeat is due: it goes out behind what waits, never inside a frame. */
void headway_stream_writer_beat (HeadwayStreamWriter *self);

/* No write settled for @idle_ms. */
void headway_stream_writer_evict_idle (HeadwayStreamWriter *self, gint64 idle_ms, gint64 timeout_ms);

/**
 * headway_stream_writer_expire:
 *
 * The drain window has passed, or must not be waited for: it is gone by the next turn. A socket pair of whose frame
 * the kernel has a part lingers instead, for as long as somebody is charged for it: what stands behind that frame is
 * dropped, and it goes once the reader has made room for the rest, or has closed its end. Without chunks a reader
 * could not tell half a frame from the end (dbus-api.md, OpenStream).
 */
void headway_stream_writer_expire (HeadwayStreamWriter *self);

/* Nobody is charged for it any more: it ends with its drain window, or now if that is over, whatever its reader has. */
void headway_stream_writer_disown (HeadwayStreamWriter *self);

G_END_DECLS
