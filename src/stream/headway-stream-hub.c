/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "stream/headway-stream-hub.h"

#include "engine/headway-error.h"
#include "stream/headway-stream-frame-cache.h"
#include "wire/headway-clock.h"

#include <errno.h>
#include <glib-unix.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Two sources serve all streams. The watch source has the default priority: what epoll reports, and
 * what the clock says. The flush source comes behind it, and so behind every request and D-Bus call
 * that is ready: events that are published in one go leave in one write per reader. A loop that is
 * never idle would starve it, so the watch source takes over once events have waited for so many
 * turns or so long. Turns come first: a time alone would cut up a burst to many readers, which is
 * when one write each matters most. Only those who pull do not wait: what is published meanwhile counts
 * against their queue, and a replay that is slower than the publishers would never arrive. */

#define FLUSH_PRIORITY    (G_PRIORITY_DEFAULT + 10)
#define FLUSH_DELAY_TURNS 64
#define FLUSH_DELAY_US    (50 * 1000)

/* What one dispatch does before others have their turn. */
#define FLUSH_SLICE_US   (4 * 1000)
#define FLUSH_LOOK_EVERY 32
#define WATCH_EVENTS     128

/* Heartbeats may be this late, so that readers that came together are served together. */
#define HEARTBEAT_SLACK_US (20 * 1000)
#define DRAIN_TICK_US      (100 * 1000)

static const char heartbeat_text[] = ": heartbeat\n\n";
static const char retry_text[] = "retry: 3000\n\n";

struct _HeadwayStreamHub
{
  GObject parent_instance;

  int epoll_fd;
  GSource *watch_source; /* owned */
  gpointer watch_tag;
  GSource *flush_source; /* owned */

  /* By the time of their next heartbeat: all have the same period. */
  GQueue open;      /* HeadwayStreamWriter (owned) */
  GQueue draining;  /* HeadwayStreamWriter (owned) */
  GQueue lingering; /* HeadwayStreamWriter (owned): the clock has nothing to do with them */
  GQueue dirty;     /* HeadwayStreamWriter (borrowed: they are in one of the others) */
  GQueue urgent;    /* those of them that pull: they are not in `dirty` */
  gint64 dirty_since_us;
  guint dirty_turns; /* turns of the main loop since then */

  gint64 heartbeat_us; /* 0: none */
  gint64 idle_timeout_us;
  gint64 drain_window_us;
  gint64 next_idle_check_us;
  gint64 next_drain_tick_us;

  HeadwayStreamFrameCache *cache;                         /* owned */
  HeadwayStreamJoint joints[2][HEADWAY_N_STREAM_FORMATS]; /* those of routed streams are the second */
  guint n_pairs;
  HeadwayStreamStats stats;
  HeadwaySseFrame *heartbeat; /* owned */
  HeadwaySseFrame *retry;     /* owned */
};

G_DEFINE_FINAL_TYPE (HeadwayStreamHub, headway_stream_hub, G_TYPE_OBJECT)

typedef struct
{
  GSource source;
  HeadwayStreamHub *hub; /* borrowed: destroys the source before it goes */
} HubSource;

/* --- Writers come and go -------------------------------------------------------------------- */

static GQueue *
list_of (HeadwayStreamHub *self, const HeadwayStreamWriter *writer)
{
  if (writer->is_lingering)
    return &self->lingering;
  return writer->is_draining ? &self->draining : &self->open;
}

static void
remove_writer (HeadwayStreamHub *self, HeadwayStreamWriter *writer, gboolean is_reset)
{
  self->stats.closed[writer->reason]++;
  g_debug ("stream closed: %s", headway_stream_close_reason_get_name (writer->reason));

  if (writer->is_dirty)
    g_queue_unlink (writer->is_urgent ? &self->urgent : &self->dirty, &writer->dirty_link);
  g_queue_unlink (list_of (self, writer), &writer->link);
  self->n_pairs -= writer->is_pair ? 1 : 0;
  headway_stream_writer_free (writer, is_reset);
  if (self->open.length == 0 && self->draining.length == 0)
    headway_stream_frame_cache_clear (self->cache);
}

void
headway_stream_hub_mark_dirty (HeadwayStreamHub *self, HeadwayStreamWriter *writer)
{
  if (writer->is_dirty && (writer->is_urgent || !writer->is_pulling))
    return;

  if (writer->is_dirty)
    g_queue_unlink (&self->dirty, &writer->dirty_link);
  writer->is_dirty = TRUE;
  writer->is_urgent = writer->is_pulling;
  if (writer->is_urgent)
    {
      g_queue_push_tail_link (&self->urgent, &writer->dirty_link);
      return;
    }
  if (self->dirty.length == 0)
    {
      self->dirty_since_us = g_get_monotonic_time ();
      self->dirty_turns = 0;
    }
  g_queue_push_tail_link (&self->dirty, &writer->dirty_link);
}

void
headway_stream_hub_watch (HeadwayStreamHub *self, HeadwayStreamWriter *writer, guint32 interest)
{
  struct epoll_event event = { .events = interest, .data.ptr = writer };

  if (writer->interest == interest)
    return;

  writer->interest = interest;
  epoll_ctl (self->epoll_fd, EPOLL_CTL_MOD, writer->fd, &event);
}

void
headway_stream_hub_begin_drain (HeadwayStreamHub *self, HeadwayStreamWriter *writer, gint64 now_us)
{
  if (writer->is_draining)
    return;

  g_queue_unlink (&self->open, &writer->link);
  g_queue_push_tail_link (&self->draining, &writer->link);
  writer->is_draining = TRUE;
  writer->owes_heartbeat = FALSE;
  writer->deadline_us = now_us + self->drain_window_us;
  if (self->draining.length == 1)
    self->next_drain_tick_us = now_us + MIN (DRAIN_TICK_US, self->drain_window_us);
}

void
headway_stream_hub_begin_linger (HeadwayStreamHub *self, HeadwayStreamWriter *writer)
{
  g_queue_unlink (&self->draining, &writer->link);
  g_queue_push_tail_link (&self->lingering, &writer->link);
}

static void
add_writer (HeadwayStreamHub *self, HeadwayStreamWriter *writer, guint32 interest, gint64 now_us)
{
  struct epoll_event event = { .events = interest, .data.ptr = writer };

  self->stats.opened++;
  writer->interest = event.events;
  writer->next_heartbeat_us = now_us + self->heartbeat_us;
  if (self->open.length == 0)
    self->next_idle_check_us = now_us;
  g_queue_push_tail_link (&self->open, &writer->link);
  headway_stream_hub_mark_dirty (self, writer);

  if (epoll_ctl (self->epoll_fd, EPOLL_CTL_ADD, writer->fd, &event) < 0)
    {
      g_warning ("cannot watch a stream: %s", g_strerror (errno));
      writer->reason = HEADWAY_STREAM_CLOSE_SOCKET_ERROR;
      writer->is_gone = TRUE;
    }
}

void
headway_stream_hub_adopt (HeadwayStreamHub *self,
                          int fd,
                          HeadwaySubscription *subscription,
                          const GString *head,
                          gboolean is_chunked,
                          GDestroyNotify released,
                          gpointer released_data)
{
  HeadwayStreamFormat format = is_chunked ? HEADWAY_STREAM_FORMAT_SSE_CHUNKED : HEADWAY_STREAM_FORMAT_SSE;
  gint64 now_us = g_get_monotonic_time ();
  HeadwayStreamWriter *writer = headway_stream_writer_new (self, fd, subscription, format, FALSE, now_us, released, released_data);

  headway_stream_writer_queue (writer, headway_sse_frame_new_raw (head->str, head->len));
  headway_stream_writer_queue (writer, headway_sse_frame_ref (self->retry));
  add_writer (self, writer, EPOLLIN | EPOLLRDHUP, now_us);
}

HeadwayStreamWriter *
headway_stream_hub_open (HeadwayStreamHub *self,
                         HeadwaySubscription *subscription,
                         HeadwayStreamFormat format,
                         GDestroyNotify released,
                         gpointer released_data,
                         int *fd,
                         GError **error)
{
  gint64 now_us = g_get_monotonic_time ();
  HeadwayStreamWriter *writer;
  int fds[2];

  if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
    {
      g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE, "cannot make a socket pair: %s", g_strerror (errno));
      return NULL;
    }
  /* The other end is the reader's, who may want to block. */
  g_unix_set_fd_nonblocking (fds[0], TRUE, NULL);
  setsockopt (fds[0], SOL_SOCKET, SO_SNDBUF, &(int){ HEADWAY_STREAM_PAIR_BUFFER }, sizeof (int));
  writer = headway_stream_writer_new (self, fds[0], g_object_ref (subscription), format, TRUE, now_us, released, released_data);
  if (format != HEADWAY_STREAM_FORMAT_NDJSON)
    headway_stream_writer_queue (writer, headway_sse_frame_ref (self->retry));
  self->n_pairs++;
  add_writer (self, writer, EPOLLIN, now_us);
  *fd = fds[1];
  return writer;
}

/* --- The clock ------------------------------------------------------------------------------ */

static gint64
idle_check_period_us (HeadwayStreamHub *self)
{
  return CLAMP (self->idle_timeout_us / 4, 250 * 1000, 5 * G_USEC_PER_SEC);
}

/* When the clock has something to do next, G_MAXINT64 for never. */
static gint64
next_due_us (HeadwayStreamHub *self)
{
  HeadwayStreamWriter *first = g_queue_peek_head (&self->open);
  gint64 due_us = G_MAXINT64;

  if (first != NULL && self->heartbeat_us > 0)
    due_us = first->next_heartbeat_us + HEARTBEAT_SLACK_US;
  if (first != NULL && self->idle_timeout_us > 0)
    due_us = MIN (due_us, self->next_idle_check_us);
  if (self->draining.length > 0)
    due_us = MIN (due_us, self->next_drain_tick_us);
  return due_us;
}

static void
beat (HeadwayStreamHub *self, gint64 now_us)
{
  HeadwayStreamWriter *writer;

  while (self->heartbeat_us > 0 && (writer = g_queue_peek_head (&self->open)) != NULL && writer->next_heartbeat_us <= now_us)
    {
      /* The clock of a stream runs from its opening, however late a beat was. */
      do
        writer->next_heartbeat_us += self->heartbeat_us;
      while (writer->next_heartbeat_us <= now_us);
      g_queue_unlink (&self->open, &writer->link);
      g_queue_push_tail_link (&self->open, &writer->link);
      headway_stream_writer_beat (writer);
    }
}

static void
check_idle (HeadwayStreamHub *self, gint64 now_us)
{
  if (self->idle_timeout_us == 0 || now_us < self->next_idle_check_us)
    return;

  self->next_idle_check_us = now_us + idle_check_period_us (self);
  for (GList *l = self->open.head; l != NULL; l = l->next)
    {
      HeadwayStreamWriter *writer = l->data;
      gint64 idle_us = now_us - writer->last_write_us;

      if (idle_us >= self->idle_timeout_us)
        headway_stream_writer_evict_idle (writer, idle_us / 1000, self->idle_timeout_us / 1000);
    }
}

static void
check_draining (HeadwayStreamHub *self, gint64 now_us)
{
  if (self->draining.length == 0 || now_us < self->next_drain_tick_us)
    return;

  self->next_drain_tick_us = now_us + DRAIN_TICK_US;
  for (GList *l = self->draining.head, *next; l != NULL; l = next)
    {
      HeadwayStreamWriter *writer = l->data;

      /* One that lingers changes its list. */
      next = l->next;
      if (now_us >= writer->deadline_us && !writer->is_gone)
        headway_stream_writer_expire (writer);
    }
}

/* --- The flush ------------------------------------------------------------------------------ */

/* Gives the writers that stood in @queue when it began a turn each, the longest waiting first. Those
 * that have more to do stand at the end of it again. */
static void
give_turns (HeadwayStreamHub *self, GQueue *queue)
{
  HeadwayInstant now = headway_clock_now ();
  gint64 end_us = now.monotonic_us + FLUSH_SLICE_US;

  for (guint n = queue->length, done = 1; n > 0; n--, done++)
    {
      HeadwayStreamWriter *writer = g_queue_pop_head_link (queue)->data;

      /* What one write does in the kernel leaves little of the next writer in the cache. */
      if (queue->head != NULL)
        headway_stream_writer_prefetch (queue->head->data);
      writer->is_dirty = writer->is_urgent = FALSE;
      headway_stream_writer_turn (writer, now);
      if (writer->is_gone)
        remove_writer (self, writer, FALSE);
      if (done % FLUSH_LOOK_EVERY == 0 && g_get_monotonic_time () > end_us)
        break;
    }
}

static void
flush (HeadwayStreamHub *self)
{
  give_turns (self, &self->dirty);
  if (self->dirty.length == 0)
    {
      for (guint i = 0; i < HEADWAY_N_STREAM_FORMATS; i++)
        {
          headway_stream_joint_forget (&self->joints[FALSE][i]);
          headway_stream_joint_forget (&self->joints[TRUE][i]);
        }
    }
  self->dirty_since_us = g_get_monotonic_time ();
  self->dirty_turns = 0;
}

static gboolean
flush_prepare (GSource *source, int *timeout)
{
  *timeout = -1;
  return ((HubSource *) source)->hub->dirty.length > 0;
}

static gboolean
flush_check (GSource *source)
{
  return ((HubSource *) source)->hub->dirty.length > 0;
}

static gboolean
flush_dispatch (GSource *source, GSourceFunc callback, gpointer user_data)
{
  g_autoptr (HeadwayStreamHub) hub = g_object_ref (((HubSource *) source)->hub);

  flush (hub);
  return G_SOURCE_CONTINUE;
}

static GSourceFuncs flush_funcs = { flush_prepare, flush_check, flush_dispatch, NULL, NULL, NULL };

/* --- The watch ------------------------------------------------------------------------------ */

static gboolean
is_flush_overdue (HeadwayStreamHub *self, gint64 now_us)
{
  return self->dirty.length > 0 &&
         (self->dirty_turns > FLUSH_DELAY_TURNS || now_us - self->dirty_since_us > FLUSH_DELAY_US);
}

static gboolean
watch_prepare (GSource *source, int *timeout)
{
  HeadwayStreamHub *self = ((HubSource *) source)->hub;
  gint64 now_us = g_source_get_time (source);
  gint64 due_us = next_due_us (self);

  self->dirty_turns++;
  *timeout = -1;
  if (self->urgent.length > 0 || due_us <= now_us || is_flush_overdue (self, now_us))
    return TRUE;

  if (due_us < G_MAXINT64)
    *timeout = (int) MIN ((due_us - now_us + 999) / 1000, G_MAXINT);
  return FALSE;
}

static gboolean
watch_check (GSource *source)
{
  HeadwayStreamHub *self = ((HubSource *) source)->hub;
  gint64 now_us = g_source_get_time (source);

  return self->urgent.length > 0 || g_source_query_unix_fd (source, self->watch_tag) != 0 || next_due_us (self) <= now_us ||
         is_flush_overdue (self, now_us);
}

static void
handle_sockets (HeadwayStreamHub *self)
{
  struct epoll_event events[WATCH_EVENTS];
  HeadwayInstant now = headway_clock_now ();
  int n = epoll_wait (self->epoll_fd, events, WATCH_EVENTS, 0);

  for (int i = 0; i < n; i++)
    {
      HeadwayStreamWriter *writer = events[i].data.ptr;

      headway_stream_writer_handle (writer, events[i].events, now);
      /* Its descriptor is in this report once, so nobody looks at it again. */
      if (writer->is_gone)
        remove_writer (self, writer, FALSE);
    }
}

static gboolean
watch_dispatch (GSource *source, GSourceFunc callback, gpointer user_data)
{
  g_autoptr (HeadwayStreamHub) self = g_object_ref (((HubSource *) source)->hub);
  gint64 now_us = g_get_monotonic_time ();

  if (g_source_query_unix_fd (source, self->watch_tag) != 0)
    handle_sockets (self);
  beat (self, now_us);
  check_idle (self, now_us);
  check_draining (self, now_us);
  give_turns (self, &self->urgent);
  if (is_flush_overdue (self, now_us))
    flush (self);
  return G_SOURCE_CONTINUE;
}

static GSourceFuncs watch_funcs = { watch_prepare, watch_check, watch_dispatch, NULL, NULL, NULL };

/* --- Life ----------------------------------------------------------------------------------- */

static GSource *
add_source (HeadwayStreamHub *self, GSourceFuncs *funcs, int priority, const char *name)
{
  GSource *source = g_source_new (funcs, sizeof (HubSource));

  ((HubSource *) source)->hub = self;
  g_source_set_static_name (source, name);
  g_source_set_priority (source, priority);
  /* Nothing in here runs a loop of its own. Where that may be, GLib takes a source's descriptors out before each
   * dispatch and puts them back behind it: two writes to wake a loop that is awake, and an allocation. */
  g_source_set_can_recurse (source, TRUE);
  return source;
}

static void
headway_stream_hub_dispose (GObject *object)
{
  HeadwayStreamHub *self = HEADWAY_STREAM_HUB (object);
  HeadwayStreamWriter *writer;

  while ((writer = g_queue_peek_head (&self->open)) != NULL || (writer = g_queue_peek_head (&self->draining)) != NULL ||
         (writer = g_queue_peek_head (&self->lingering)) != NULL)
    remove_writer (self, writer, TRUE);
  if (self->watch_source != NULL)
    g_source_destroy (self->watch_source);
  if (self->flush_source != NULL)
    g_source_destroy (self->flush_source);
  g_clear_pointer (&self->watch_source, g_source_unref);
  g_clear_pointer (&self->flush_source, g_source_unref);
  G_OBJECT_CLASS (headway_stream_hub_parent_class)->dispose (object);
}

static void
headway_stream_hub_finalize (GObject *object)
{
  HeadwayStreamHub *self = HEADWAY_STREAM_HUB (object);

  for (guint i = 0; i < HEADWAY_N_STREAM_FORMATS; i++)
    {
      headway_stream_joint_clear (&self->joints[FALSE][i]);
      headway_stream_joint_clear (&self->joints[TRUE][i]);
    }
  headway_stream_frame_cache_free (self->cache);
  headway_sse_frame_unref (self->heartbeat);
  headway_sse_frame_unref (self->retry);
  if (self->epoll_fd >= 0)
    close (self->epoll_fd);
  G_OBJECT_CLASS (headway_stream_hub_parent_class)->finalize (object);
}

static void
headway_stream_hub_class_init (HeadwayStreamHubClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->dispose = headway_stream_hub_dispose;
  object_class->finalize = headway_stream_hub_finalize;
}

static void
headway_stream_hub_init (HeadwayStreamHub *self)
{
  g_queue_init (&self->open);
  g_queue_init (&self->draining);
  g_queue_init (&self->lingering);
  g_queue_init (&self->dirty);
  g_queue_init (&self->urgent);
  self->cache = headway_stream_frame_cache_new ();
  self->heartbeat = headway_sse_frame_new_text (heartbeat_text, strlen (heartbeat_text));
  self->retry = headway_sse_frame_new_text (retry_text, strlen (retry_text));

  self->epoll_fd = epoll_create1 (EPOLL_CLOEXEC);
  if (self->epoll_fd < 0)
    g_critical ("cannot create an epoll descriptor: %s", g_strerror (errno));
  self->watch_source = add_source (self, &watch_funcs, G_PRIORITY_DEFAULT, "headway-stream-watch");
  self->flush_source = add_source (self, &flush_funcs, FLUSH_PRIORITY, "headway-stream-flush");
  self->watch_tag = g_source_add_unix_fd (self->watch_source, self->epoll_fd, G_IO_IN);
  g_source_attach (self->watch_source, g_main_context_get_thread_default ());
  g_source_attach (self->flush_source, g_main_context_get_thread_default ());
}

HeadwayStreamHub *
headway_stream_hub_new (void)
{
  return g_object_new (HEADWAY_TYPE_STREAM_HUB, NULL);
}

static int
compare_heartbeats (gconstpointer a, gconstpointer b, gpointer user_data)
{
  gint64 first = ((const HeadwayStreamWriter *) a)->next_heartbeat_us;
  gint64 second = ((const HeadwayStreamWriter *) b)->next_heartbeat_us;

  return (first > second) - (first < second);
}

void
headway_stream_hub_set_times (HeadwayStreamHub *self,
                              guint heartbeat_ms,
                              guint writer_idle_timeout_ms,
                              guint drain_window_ms)
{
  gint64 now_us = g_get_monotonic_time ();

  self->heartbeat_us = heartbeat_ms * G_GINT64_CONSTANT (1000);
  self->idle_timeout_us = writer_idle_timeout_ms * G_GINT64_CONSTANT (1000);
  self->drain_window_us = drain_window_ms * G_GINT64_CONSTANT (1000);
  self->next_idle_check_us = now_us;

  for (GList *l = self->open.head; l != NULL && self->heartbeat_us > 0; l = l->next)
    {
      HeadwayStreamWriter *writer = l->data;
      gint64 beats = (now_us - writer->opened_us) / self->heartbeat_us;

      writer->next_heartbeat_us = writer->opened_us + (beats + 1) * self->heartbeat_us;
    }
  /* The links are part of the writers, and sorting only joins them anew. */
  g_queue_sort (&self->open, compare_heartbeats, NULL);
}

guint
headway_stream_hub_get_n_streams (HeadwayStreamHub *self)
{
  return self->open.length + self->draining.length + self->lingering.length;
}

const HeadwayStreamStats *
headway_stream_hub_get_stats (HeadwayStreamHub *self)
{
  self->stats.frames_built = headway_stream_frame_cache_get_built (self->cache);
  return &self->stats;
}

G_STATIC_ASSERT (HEADWAY_N_SSE_CLOSES == HEADWAY_STREAM_N_CLOSE_REASONS);

void
headway_stream_hub_collect (HeadwayStreamHub *self, HeadwayMetrics *metrics)
{
  const HeadwayStreamStats *stats = headway_stream_hub_get_stats (self);

  headway_metrics_set (metrics, HEADWAY_METRIC_CONNECTIONS + HEADWAY_TRANSPORT_STREAM, self->n_pairs);
  headway_metrics_set (metrics, HEADWAY_METRIC_SSE_OPENED, (gint64) stats->opened);
  for (guint i = 0; i < HEADWAY_STREAM_N_CLOSE_REASONS; i++)
    headway_metrics_set (metrics, HEADWAY_METRIC_SSE_CLOSED + i, (gint64) stats->closed[i]);
  headway_metrics_set (metrics, HEADWAY_METRIC_SSE_FRAMES, (gint64) stats->frames_built);
  headway_metrics_set (metrics, HEADWAY_METRIC_SSE_WRITES, (gint64) stats->writes);
  headway_metrics_set (metrics, HEADWAY_METRIC_SSE_BLOCKED, (gint64) stats->blocked);
  headway_metrics_set (metrics, HEADWAY_METRIC_SSE_BYTES, (gint64) stats->bytes);
}

HeadwaySseFrame *
headway_stream_hub_get_frame (HeadwayStreamHub *self, HeadwayStreamWriter *writer, HeadwayEvent *event, guint64 resume_id)
{
  if (writer->is_routed && !headway_event_is_synthetic (event))
    return headway_stream_frame_cache_get_headed (self->cache, event, resume_id);
  return headway_stream_frame_cache_get (self->cache, event, resume_id);
}

HeadwayStreamJoint *
headway_stream_hub_get_joint (HeadwayStreamHub *self, HeadwayStreamWriter *writer)
{
  return &self->joints[writer->is_routed][writer->format];
}

guint
headway_stream_hub_get_n_draining (HeadwayStreamHub *self)
{
  return self->draining.length;
}

guint
headway_stream_hub_get_n_lingering (HeadwayStreamHub *self)
{
  return self->lingering.length;
}

HeadwayStreamStats *
headway_stream_hub_get_counts (HeadwayStreamHub *self)
{
  return &self->stats;
}

HeadwaySseFrame *
headway_stream_hub_get_heartbeat (HeadwayStreamHub *self)
{
  return self->heartbeat;
}
