/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-subscription.h"
#include "http/headway-sse-batch.h"

G_BEGIN_DECLS

typedef struct _HeadwaySseHub HeadwaySseHub;
typedef struct _HeadwaySseWriter HeadwaySseWriter;

/**
 * HeadwaySseWriter:
 *
 * One reader: a subscription on one side, a socket on the other. It goes through these states, and
 * only forward: open (frames flow); draining (the subscription has ended, the rest must be taken
 * within the drain window); over (the final chunk is in the batch); shut (everything is in the
 * kernel, the peer's end is awaited); gone (the hub frees it). Plain, since there may be thousands.
 */
struct _HeadwaySseWriter
{
  HeadwaySink sink;
  HeadwaySseHub *hub;                /* borrowed, outlives self */
  HeadwaySubscription *subscription; /* owned, NULL from "over" on */
  GList link;                        /* in the hub's list of open or of draining writers */
  GList dirty_link;                  /* in the hub's list of writers that want a turn */
  GDestroyNotify released;           /* nullable */
  gpointer released_data;
  gint64 opened_us;
  gint64 last_write_us;
  gint64 next_heartbeat_us;
  gint64 deadline_us; /* from "draining" on */
  int fd;             /* owned */
  guint stray_bytes;
  HeadwaySseCloseReason reason;
  guint32 interest; /* what epoll watches for */
  guint is_chunked : 1;
  guint is_routed : 1; /* its ids are to resume from: decisions.md 32 */
  guint is_dirty : 1;
  guint is_urgent : 1;  /* with is_dirty: in the hub's list of those that pull */
  guint is_blocked : 1; /* the socket was full: waits for EPOLLOUT */
  guint is_pulling : 1; /* something may wait in the subscription: it goes first */
  guint owes_heartbeat : 1;
  guint is_draining : 1;
  guint is_over : 1;
  guint is_shut : 1;
  guint is_gone : 1;
  guint has_last : 1; /* a frame that ends its bus went by */
  guint was_idle : 1; /* evicted for it */
  HeadwaySseBatch batch;
};

/**
 * headway_sse_writer_new:
 * @fd: (transfer full): a non-blocking stream socket
 * @subscription: (transfer full): without a reader yet
 * @is_chunked: FALSE: HTTP/1.0, the stream is delimited by its end
 * @released: (nullable): called with @released_data once the socket is closed
 */
HeadwaySseWriter *headway_sse_writer_new (HeadwaySseHub *hub,
                                          int fd,
                                          HeadwaySubscription *subscription,
                                          gboolean is_chunked,
                                          gint64 now_us,
                                          GDestroyNotify released,
                                          gpointer released_data);

/* Closes the socket, by a reset if @is_reset or if frames are unsent: an end in the middle of a
 * frame must never look like a clean one (sse-contract.md, case 100). */
void headway_sse_writer_free (HeadwaySseWriter *self, gboolean is_reset);

/* Puts @frame (transfer full) behind what waits to be written. Not while it is blocked, nor while its
 * batch is full. */
void headway_sse_writer_queue (HeadwaySseWriter *self, HeadwaySseFrame *frame);

/* One turn of the main loop: writes what waits, then takes and writes a bounded portion. */
void headway_sse_writer_turn (HeadwaySseWriter *self, HeadwayInstant now);

/* What epoll reported; @events as of epoll_wait(). */
void headway_sse_writer_handle (HeadwaySseWriter *self, guint32 events, HeadwayInstant now);

/* A heartbeat is due: it goes out behind what waits, never inside a frame. */
void headway_sse_writer_beat (HeadwaySseWriter *self);

/* No write settled for @idle_ms. */
void headway_sse_writer_evict_idle (HeadwaySseWriter *self, gint64 idle_ms, gint64 timeout_ms);

/* The drain window has passed. */
void headway_sse_writer_expire (HeadwaySseWriter *self);

G_END_DECLS
