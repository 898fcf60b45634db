/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "stream/headway-stream-writer.h"

#include "stream/headway-stream-hub.h"

#include <errno.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* What a peer may send behind its request before nobody reads it any more (decisions.md 19). */
#define STRAY_BYTES_MAX (64 * 1024)

/* What a reader of a socket pair may have in it when the stream ends, in reads of 4 KiB: more than its end holds. */
#define PAIR_STRAY_READS 128

/* Portions of HEADWAY_DISPATCH_EVENTS that one turn pulls. */
#define PULL_PORTIONS 8

static const char final_chunk[] = "0\r\n\r\n";

static void
set_gone (HeadwayStreamWriter *self, HeadwayStreamCloseReason reason)
{
  if (self->is_gone)
    return;

  self->is_gone = TRUE;
  /* Once everything is said, the reason is why the stream ended, not how the peer left. */
  if (!self->is_over)
    self->reason = reason;
  headway_stream_hub_mark_dirty (self->hub, self);
}

static HeadwayStreamCloseReason
reason_of_errno (int code)
{
  return code == EPIPE || code == ECONNRESET || code == 0 ? HEADWAY_STREAM_CLOSE_CLIENT_DISCONNECT
                                                          : HEADWAY_STREAM_CLOSE_SOCKET_ERROR;
}

/* Writes the batch. Afterwards it is empty, or the writer is blocked or gone. */
static void
write_out (HeadwayStreamWriter *self, gint64 now_us)
{
  gsize written;
  HeadwayStreamWrite result = headway_stream_batch_write (&self->batch, self->fd, self->format,
                                                          headway_stream_hub_get_joint (self->hub, self),
                                                          headway_stream_hub_get_counts (self->hub), &written);
  int code = errno;

  if (written > 0)
    self->last_write_us = now_us;

  switch (result)
    {
    case HEADWAY_STREAM_WRITE_DONE:
      break;
    case HEADWAY_STREAM_WRITE_BLOCKED:
      /* Without heartbeats its last write may be long ago: it is idle from here on. */
      if (self->format == HEADWAY_STREAM_FORMAT_NDJSON && written == 0)
        self->last_write_us = now_us;
      self->is_blocked = TRUE;
      headway_stream_hub_get_counts (self->hub)->blocked++;
      headway_stream_hub_watch (self->hub, self, self->interest | EPOLLOUT);
      break;
    case HEADWAY_STREAM_WRITE_FAILED:
    default:
      set_gone (self, reason_of_errno (code));
      break;
    }
}

/* Whether another frame may go into the batch. One that is still full from before the socket had room
 * again is written first; if that fails, the writer is blocked or gone. */
static gboolean
has_room (HeadwayStreamWriter *self)
{
  if (headway_stream_batch_is_full (&self->batch))
    write_out (self, g_get_monotonic_time ());
  return !self->is_blocked && !self->is_gone;
}

void
headway_stream_writer_queue (HeadwayStreamWriter *self, HeadwaySseFrame *frame)
{
  headway_stream_batch_append (&self->batch, frame);
  self->has_last |= frame->is_last;
  if (!self->is_dirty)
    headway_stream_hub_mark_dirty (self->hub, self);
  if (headway_stream_batch_is_full (&self->batch))
    write_out (self, g_get_monotonic_time ());
}

/* --- The sink: runs inside a publish -------------------------------------------------------- */

static gboolean
writer_put (HeadwaySink *sink, HeadwayEvent *event, guint64 resume_id)
{
  HeadwayStreamWriter *self = (HeadwayStreamWriter *) sink;

  if (self->is_blocked || self->is_pulling || self->is_over || self->is_gone || !has_room (self))
    return FALSE;

  headway_stream_writer_queue (self, headway_stream_hub_get_frame (self->hub, self, event, resume_id));
  return TRUE;
}

static void
writer_wake (HeadwaySink *sink)
{
  HeadwayStreamWriter *self = (HeadwayStreamWriter *) sink;

  self->is_pulling = TRUE;
  headway_stream_hub_mark_dirty (self->hub, self);
}

static const HeadwaySinkClass writer_class = { writer_put, writer_wake };

/* --- Life ----------------------------------------------------------------------------------- */

HeadwayStreamWriter *
headway_stream_writer_new (HeadwayStreamHub *hub,
                           int fd,
                           HeadwaySubscription *subscription,
                           HeadwayStreamFormat format,
                           gboolean is_pair,
                           gint64 now_us,
                           GDestroyNotify released,
                           gpointer released_data)
{
  HeadwayStreamWriter *self = g_aligned_alloc0 (1, sizeof *self, HEADWAY_CACHE_LINE);

  self->sink.klass = &writer_class;
  self->hub = hub;
  self->subscription = subscription;
  self->link.data = self;
  self->dirty_link.data = self;
  self->released = released;
  self->released_data = released_data;
  self->opened_us = now_us;
  self->last_write_us = now_us;
  self->fd = fd;
  self->format = format;
  self->is_pair = is_pair;
  self->may_linger = is_pair;
  self->is_routed = headway_subscription_get_mode (subscription) == HEADWAY_MODE_ROUTED;
  headway_subscription_attach (subscription, &self->sink, NULL);
  /* A replay, a snapshot, or a bus that is closed already. */
  self->is_pulling = TRUE;
  return self;
}

static void
drop_subscription (HeadwayStreamWriter *self)
{
  if (self->subscription == NULL)
    return;

  headway_subscription_detach (self->subscription, &self->sink);
  headway_subscription_abort (self->subscription);
  g_clear_object (&self->subscription);
}

/* A socket pair goes in the middle of a frame. What the kernel takes its reader can have, whatever becomes of us: so
 * it is asked to take the rest too, which it does as far as it lets buffers grow. */
static void
push_rest (HeadwayStreamWriter *self)
{
  gsize written;

  if (!self->is_pair || self->batch.offset == 0)
    return;

  headway_stream_batch_keep_begun (&self->batch);
  setsockopt (self->fd, SOL_SOCKET, SO_SNDBUF, &(int){ (int) MIN (self->batch.bytes, G_MAXINT) }, sizeof (int));
  headway_stream_batch_write (&self->batch, self->fd, self->format, headway_stream_hub_get_joint (self->hub, self),
                              headway_stream_hub_get_counts (self->hub), &written);
}

void
headway_stream_writer_free (HeadwayStreamWriter *self, gboolean is_reset)
{
  struct linger reset = { 1, 0 };

  drop_subscription (self);
  push_rest (self);
  if (is_reset || self->batch.count > 0)
    setsockopt (self->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  close (self->fd);
  headway_stream_batch_clear (&self->batch);
  if (self->released != NULL)
    self->released (self->released_data);
  g_aligned_free (self);
}

/* --- Turns ---------------------------------------------------------------------------------- */

static HeadwayStreamCloseReason
reason_of_end (HeadwayStreamWriter *self)
{
  if (self->was_idle)
    return HEADWAY_STREAM_CLOSE_WRITER_IDLE_TIMEOUT;
  if (headway_subscription_get_state (self->subscription) == HEADWAY_STATE_EVICTED)
    return HEADWAY_STREAM_CLOSE_EVENT_BUS_EVICTED;
  return self->has_last ? HEADWAY_STREAM_CLOSE_SESSION_TERMINAL : HEADWAY_STREAM_CLOSE_SOURCE_COMPLETE;
}

/* Everything is read out: the final chunk, and nothing after it. */
static void
finish (HeadwayStreamWriter *self, gint64 now_us)
{
  self->reason = reason_of_end (self);
  drop_subscription (self);
  self->is_over = TRUE;
  self->owes_heartbeat = FALSE;
  if (self->format == HEADWAY_STREAM_FORMAT_SSE_CHUNKED)
    headway_stream_batch_append (&self->batch, headway_sse_frame_new_raw (final_chunk, strlen (final_chunk)));
  write_out (self, now_us);
}

/* Everything is in the kernel, and of a socket pair the reader can take it from there whatever becomes of our
 * end; only what it wrote and nobody read would turn its end of file into an error. */
static void
shut_pair (HeadwayStreamWriter *self)
{
  char scratch[4096];

  self->is_shut = TRUE;
  shutdown (self->fd, SHUT_RDWR);
  for (guint i = 0; i < PAIR_STRAY_READS && recv (self->fd, scratch, sizeof scratch, MSG_DONTWAIT) > 0; i++)
    ;
  set_gone (self, self->reason);
}

/* Everything is in the kernel. Closing now would turn input that nobody read into a reset, which
 * could overtake the last frames: so the peer's end is awaited, as long as the drain window lasts. */
static void
shut (HeadwayStreamWriter *self)
{
  if (self->is_pair)
    {
      shut_pair (self);
      return;
    }
  self->is_shut = TRUE;
  self->stray_bytes = 0;
  if (shutdown (self->fd, SHUT_WR) < 0)
    {
      set_gone (self, reason_of_errno (errno));
      return;
    }
  headway_stream_hub_watch (self->hub, self, EPOLLIN | EPOLLRDHUP);
}

/* Takes one portion from the subscription and writes it. */
static void
pull_portion (HeadwayStreamWriter *self, HeadwayInstant now)
{
  HeadwayDelivery deliveries[HEADWAY_DISPATCH_EVENTS];
  guint n = headway_subscription_take (self->subscription, now, HEADWAY_DISPATCH_EVENTS,
                                       HEADWAY_STREAM_BATCH_BYTES, deliveries);

  /* The batch is empty here, and both hold the same number. */
  G_STATIC_ASSERT (HEADWAY_DISPATCH_EVENTS <= HEADWAY_STREAM_BATCH_FRAMES);
  for (guint i = 0; i < n; i++)
    {
      HeadwaySseFrame *frame = headway_stream_hub_get_frame (self->hub, self, deliveries[i].event, deliveries[i].resume_id);

      self->has_last |= frame->is_last;
      headway_stream_batch_append (&self->batch, frame);
      headway_event_unref (deliveries[i].event);
    }
  write_out (self, now.monotonic_us);
}

/* Several portions a turn, so that a reader that takes them comes up with the publishers, each of
 * whom has one portion a turn. */
static void
pull (HeadwayStreamWriter *self, HeadwayInstant now)
{
  for (guint i = 0; i < PULL_PORTIONS; i++)
    {
      pull_portion (self, now);
      if (self->is_gone || self->is_blocked || !headway_subscription_is_ready (self->subscription))
        break;
    }
  if (self->is_gone)
    return;

  if (headway_subscription_is_ready (self->subscription))
    {
      headway_stream_hub_mark_dirty (self->hub, self);
      return;
    }
  if (!headway_subscription_is_finished (self->subscription))
    self->is_pulling = FALSE;
  else if (!self->is_blocked)
    finish (self, now.monotonic_us);
}

static gboolean
is_ended (HeadwayStreamWriter *self)
{
  HeadwayState state = headway_subscription_get_state (self->subscription);

  return state == HEADWAY_STATE_EVICTED || state == HEADWAY_STATE_ENDED;
}

void
headway_stream_writer_prefetch (HeadwayStreamWriter *self)
{
  __builtin_prefetch (self, TRUE);
  __builtin_prefetch (&self->batch, TRUE);
  __builtin_prefetch (self->batch.frames + HEADWAY_CACHE_LINE / sizeof self->batch.frames[0], TRUE);
}

void
headway_stream_writer_turn (HeadwayStreamWriter *self, HeadwayInstant now)
{
  if (self->is_gone)
    return;
  if (self->is_pulling && !self->is_draining && !self->is_over && is_ended (self))
    headway_stream_hub_begin_drain (self->hub, self, now.monotonic_us);
  if (self->is_blocked)
    return;

  if (self->batch.count > 0)
    write_out (self, now.monotonic_us);
  if (self->is_blocked || self->is_gone)
    return;

  if (self->owes_heartbeat)
    headway_stream_writer_beat (self);
  if (self->is_pulling && !self->is_over && self->batch.count == 0)
    pull (self, now);
  if (self->is_over && !self->is_shut && !self->is_gone && self->batch.count == 0)
    shut (self);
}

void
headway_stream_writer_beat (HeadwayStreamWriter *self)
{
  if (self->is_over || self->is_gone || self->format == HEADWAY_STREAM_FORMAT_NDJSON)
    return;
  self->owes_heartbeat = self->is_blocked || !has_room (self);
  if (self->owes_heartbeat || self->is_gone)
    return;

  headway_stream_writer_queue (self, headway_sse_frame_ref (headway_stream_hub_get_heartbeat (self->hub)));
}

void
headway_stream_writer_evict_idle (HeadwayStreamWriter *self, gint64 idle_ms, gint64 timeout_ms)
{
  if (self->is_draining || self->is_over || self->is_gone)
    return;
  /* Nothing is written to it while nothing happens. */
  if (self->format == HEADWAY_STREAM_FORMAT_NDJSON && !self->is_blocked)
    return;

  self->was_idle = TRUE;
  headway_subscription_evict_idle (self->subscription, idle_ms, timeout_ms);
}

/* Bytes that the kernel has not delivered yet; a socket that cannot say has none. */
static gboolean
has_undelivered (HeadwayStreamWriter *self)
{
  int bytes = 0;

  return ioctl (self->fd, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

/* The rest of the frame that is begun, and then nothing: not what waits behind it either. */
static void
linger (HeadwayStreamWriter *self)
{
  drop_subscription (self);
  headway_stream_batch_keep_begun (&self->batch);
  self->is_lingering = self->is_over = TRUE;
  self->is_pulling = FALSE;
  self->reason = HEADWAY_STREAM_CLOSE_DRAIN_TIMEOUT;
  headway_stream_hub_begin_linger (self->hub, self);
}

void
headway_stream_writer_expire (HeadwayStreamWriter *self)
{
  struct linger reset = { 1, 0 };

  if (self->may_linger && self->is_draining && !self->is_lingering && !self->is_gone && self->batch.offset > 0)
    {
      linger (self);
      return;
    }
  set_gone (self, HEADWAY_STREAM_CLOSE_DRAIN_TIMEOUT);
  if (self->is_shut && !has_undelivered (self))
    return;

  self->reason = HEADWAY_STREAM_CLOSE_DRAIN_TIMEOUT;
  setsockopt (self->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
}

void
headway_stream_writer_disown (HeadwayStreamWriter *self)
{
  self->may_linger = FALSE;
  if (self->is_lingering)
    headway_stream_writer_expire (self);
}

/* --- What the peer does --------------------------------------------------------------------- */

/* Reads and drops what a peer sends that has nothing to say, up to a bound. */
static void
drop_stray (HeadwayStreamWriter *self)
{
  char scratch[4096];
  gssize n;

  do
    n = recv (self->fd, scratch, sizeof scratch, MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);

  if (n == 0 && self->is_pair)
    {
      /* It has closed its side to write. */
      headway_stream_hub_watch (self->hub, self, self->interest & ~(guint32) EPOLLIN);
      return;
    }
  if (n == 0)
    {
      set_gone (self, HEADWAY_STREAM_CLOSE_CLIENT_DISCONNECT);
      return;
    }
  if (n < 0)
    {
      if (errno != EAGAIN && errno != EWOULDBLOCK)
        set_gone (self, reason_of_errno (errno));
      return;
    }
  self->stray_bytes += (guint) n;
  if (self->stray_bytes >= STRAY_BYTES_MAX)
    headway_stream_hub_watch (self->hub, self, self->interest & ~(guint32) EPOLLIN);
}

void
headway_stream_writer_handle (HeadwayStreamWriter *self, guint32 events, HeadwayInstant now)
{
  if (self->is_gone)
    return;

  if ((events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)) != 0)
    {
      int code = 0;
      socklen_t size = sizeof code;

      getsockopt (self->fd, SOL_SOCKET, SO_ERROR, &code, &size);
      set_gone (self, reason_of_errno (code));
      return;
    }
  if ((events & EPOLLIN) != 0)
    drop_stray (self);
  if ((events & EPOLLOUT) != 0 && self->is_blocked && !self->is_gone)
    {
      self->is_blocked = FALSE;
      headway_stream_hub_watch (self->hub, self, self->interest & ~(guint32) EPOLLOUT);
      headway_stream_hub_mark_dirty (self->hub, self);
    }
}
