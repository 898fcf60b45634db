/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-sse-hub.h"

#include "http/headway-sse-frame-cache.h"
#include "wire/headway-clock.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
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

struct _HeadwaySseHub
{
  GObject parent_instance;

  int epoll_fd;
  GSource *watch_source; /* owned */
  gpointer watch_tag;
  GSource *flush_source; /* owned */

  /* By the time of their next heartbeat: all have the same period. */
  GQueue open;     /* HeadwaySseWriter (owned) */
  GQueue draining; /* HeadwaySseWriter (owned) */
  GQueue dirty;    /* HeadwaySseWriter (borrowed: they are in one of the others) */
  GQueue urgent;   /* those of them that pull: they are not in `dirty` */
  gint64 dirty_since_us;
  guint dirty_turns; /* turns of the main loop since then */

  gint64 heartbeat_us; /* 0: none */
  gint64 idle_timeout_us;
  gint64 drain_window_us;
  gint64 next_idle_check_us;
  gint64 next_drain_tick_us;

  HeadwaySseFrameCache *cache; /* owned */
  HeadwaySseJoint joint;
  HeadwaySseJoint routed_joint;
  HeadwaySseStats stats;
  HeadwaySseFrame *heartbeat; /* owned */
  HeadwaySseFrame *retry;     /* owned */
};

G_DEFINE_FINAL_TYPE (HeadwaySseHub, headway_sse_hub, G_TYPE_OBJECT)

typedef struct
{
  GSource source;
  HeadwaySseHub *hub; /* borrowed: destroys the source before it goes */
} HubSource;

/* --- Writers come and go -------------------------------------------------------------------- */

static void
remove_writer (HeadwaySseHub *self, HeadwaySseWriter *writer, gboolean is_reset)
{
  self->stats.closed[writer->reason]++;
  g_debug ("stream closed: %s", headway_sse_close_reason_get_name (writer->reason));

  if (writer->is_dirty)
    g_queue_unlink (writer->is_urgent ? &self->urgent : &self->dirty, &writer->dirty_link);
  g_queue_unlink (writer->is_draining ? &self->draining : &self->open, &writer->link);
  headway_sse_writer_free (writer, is_reset);
  if (self->open.length == 0 && self->draining.length == 0)
    headway_sse_frame_cache_clear (self->cache);
}

void
headway_sse_hub_mark_dirty (HeadwaySseHub *self, HeadwaySseWriter *writer)
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
headway_sse_hub_watch (HeadwaySseHub *self, HeadwaySseWriter *writer, guint32 interest)
{
  struct epoll_event event = { .events = interest, .data.ptr = writer };

  if (writer->interest == interest)
    return;

  writer->interest = interest;
  epoll_ctl (self->epoll_fd, EPOLL_CTL_MOD, writer->fd, &event);
}

void
headway_sse_hub_begin_drain (HeadwaySseHub *self, HeadwaySseWriter *writer, gint64 now_us)
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
headway_sse_hub_adopt (HeadwaySseHub *self,
                       int fd,
                       HeadwaySubscription *subscription,
                       const GString *head,
                       gboolean is_chunked,
                       GDestroyNotify released,
                       gpointer released_data)
{
  gint64 now_us = g_get_monotonic_time ();
  HeadwaySseWriter *writer = headway_sse_writer_new (self, fd, subscription, is_chunked, now_us, released, released_data);
  struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP, .data.ptr = writer };

  self->stats.opened++;
  writer->interest = event.events;
  writer->next_heartbeat_us = now_us + self->heartbeat_us;
  if (self->open.length == 0)
    self->next_idle_check_us = now_us;
  g_queue_push_tail_link (&self->open, &writer->link);
  headway_sse_writer_queue (writer, headway_sse_frame_new_raw (head->str, head->len));
  headway_sse_writer_queue (writer, headway_sse_frame_ref (self->retry));

  if (epoll_ctl (self->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
    {
      g_warning ("cannot watch a stream: %s", g_strerror (errno));
      writer->reason = HEADWAY_SSE_CLOSE_SOCKET_ERROR;
      writer->is_gone = TRUE;
    }
}

/* --- The clock ------------------------------------------------------------------------------ */

static gint64
idle_check_period_us (HeadwaySseHub *self)
{
  return CLAMP (self->idle_timeout_us / 4, 250 * 1000, 5 * G_USEC_PER_SEC);
}

/* When the clock has something to do next, G_MAXINT64 for never. */
static gint64
next_due_us (HeadwaySseHub *self)
{
  HeadwaySseWriter *first = g_queue_peek_head (&self->open);
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
beat (HeadwaySseHub *self, gint64 now_us)
{
  HeadwaySseWriter *writer;

  while (self->heartbeat_us > 0 && (writer = g_queue_peek_head (&self->open)) != NULL && writer->next_heartbeat_us <= now_us)
    {
      /* The clock of a stream runs from its opening, however late a beat was. */
      do
        writer->next_heartbeat_us += self->heartbeat_us;
      while (writer->next_heartbeat_us <= now_us);
      g_queue_unlink (&self->open, &writer->link);
      g_queue_push_tail_link (&self->open, &writer->link);
      headway_sse_writer_beat (writer);
    }
}

static void
check_idle (HeadwaySseHub *self, gint64 now_us)
{
  if (self->idle_timeout_us == 0 || now_us < self->next_idle_check_us)
    return;

  self->next_idle_check_us = now_us + idle_check_period_us (self);
  for (GList *l = self->open.head; l != NULL; l = l->next)
    {
      HeadwaySseWriter *writer = l->data;
      gint64 idle_us = now_us - writer->last_write_us;

      if (idle_us >= self->idle_timeout_us)
        headway_sse_writer_evict_idle (writer, idle_us / 1000, self->idle_timeout_us / 1000);
    }
}

static void
check_draining (HeadwaySseHub *self, gint64 now_us)
{
  if (self->draining.length == 0 || now_us < self->next_drain_tick_us)
    return;

  self->next_drain_tick_us = now_us + DRAIN_TICK_US;
  for (GList *l = self->draining.head; l != NULL; l = l->next)
    {
      HeadwaySseWriter *writer = l->data;

      if (now_us >= writer->deadline_us && !writer->is_gone)
        headway_sse_writer_expire (writer);
    }
}

/* --- The flush ------------------------------------------------------------------------------ */

/* Gives the writers that stood in @queue when it began a turn each, the longest waiting first. Those
 * that have more to do stand at the end of it again. */
static void
give_turns (HeadwaySseHub *self, GQueue *queue)
{
  HeadwayInstant now = headway_clock_now ();
  gint64 end_us = now.monotonic_us + FLUSH_SLICE_US;

  for (guint n = queue->length, done = 1; n > 0; n--, done++)
    {
      HeadwaySseWriter *writer = g_queue_pop_head_link (queue)->data;

      writer->is_dirty = writer->is_urgent = FALSE;
      headway_sse_writer_turn (writer, now);
      if (writer->is_gone)
        remove_writer (self, writer, FALSE);
      if (done % FLUSH_LOOK_EVERY == 0 && g_get_monotonic_time () > end_us)
        break;
    }
}

static void
flush (HeadwaySseHub *self)
{
  give_turns (self, &self->dirty);
  if (self->dirty.length == 0)
    {
      headway_sse_joint_forget (&self->joint);
      headway_sse_joint_forget (&self->routed_joint);
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
  g_autoptr (HeadwaySseHub) hub = g_object_ref (((HubSource *) source)->hub);

  flush (hub);
  return G_SOURCE_CONTINUE;
}

static GSourceFuncs flush_funcs = { flush_prepare, flush_check, flush_dispatch, NULL, NULL, NULL };

/* --- The watch ------------------------------------------------------------------------------ */

static gboolean
is_flush_overdue (HeadwaySseHub *self, gint64 now_us)
{
  return self->dirty.length > 0 &&
         (self->dirty_turns > FLUSH_DELAY_TURNS || now_us - self->dirty_since_us > FLUSH_DELAY_US);
}

static gboolean
watch_prepare (GSource *source, int *timeout)
{
  HeadwaySseHub *self = ((HubSource *) source)->hub;
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
  HeadwaySseHub *self = ((HubSource *) source)->hub;
  gint64 now_us = g_source_get_time (source);

  return self->urgent.length > 0 || g_source_query_unix_fd (source, self->watch_tag) != 0 || next_due_us (self) <= now_us ||
         is_flush_overdue (self, now_us);
}

static void
handle_sockets (HeadwaySseHub *self)
{
  struct epoll_event events[WATCH_EVENTS];
  HeadwayInstant now = headway_clock_now ();
  int n = epoll_wait (self->epoll_fd, events, WATCH_EVENTS, 0);

  for (int i = 0; i < n; i++)
    {
      HeadwaySseWriter *writer = events[i].data.ptr;

      headway_sse_writer_handle (writer, events[i].events, now);
      /* Its descriptor is in this report once, so nobody looks at it again. */
      if (writer->is_gone)
        remove_writer (self, writer, FALSE);
    }
}

static gboolean
watch_dispatch (GSource *source, GSourceFunc callback, gpointer user_data)
{
  g_autoptr (HeadwaySseHub) self = g_object_ref (((HubSource *) source)->hub);
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
add_source (HeadwaySseHub *self, GSourceFuncs *funcs, int priority, const char *name)
{
  GSource *source = g_source_new (funcs, sizeof (HubSource));

  ((HubSource *) source)->hub = self;
  g_source_set_static_name (source, name);
  g_source_set_priority (source, priority);
  return source;
}

static void
headway_sse_hub_dispose (GObject *object)
{
  HeadwaySseHub *self = HEADWAY_SSE_HUB (object);
  HeadwaySseWriter *writer;

  while ((writer = g_queue_peek_head (&self->open)) != NULL || (writer = g_queue_peek_head (&self->draining)) != NULL)
    remove_writer (self, writer, TRUE);
  if (self->watch_source != NULL)
    g_source_destroy (self->watch_source);
  if (self->flush_source != NULL)
    g_source_destroy (self->flush_source);
  g_clear_pointer (&self->watch_source, g_source_unref);
  g_clear_pointer (&self->flush_source, g_source_unref);
  G_OBJECT_CLASS (headway_sse_hub_parent_class)->dispose (object);
}

static void
headway_sse_hub_finalize (GObject *object)
{
  HeadwaySseHub *self = HEADWAY_SSE_HUB (object);

  headway_sse_joint_clear (&self->joint);
  headway_sse_joint_clear (&self->routed_joint);
  headway_sse_frame_cache_free (self->cache);
  headway_sse_frame_unref (self->heartbeat);
  headway_sse_frame_unref (self->retry);
  if (self->epoll_fd >= 0)
    close (self->epoll_fd);
  G_OBJECT_CLASS (headway_sse_hub_parent_class)->finalize (object);
}

static void
headway_sse_hub_class_init (HeadwaySseHubClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->dispose = headway_sse_hub_dispose;
  object_class->finalize = headway_sse_hub_finalize;
}

static void
headway_sse_hub_init (HeadwaySseHub *self)
{
  g_queue_init (&self->open);
  g_queue_init (&self->draining);
  g_queue_init (&self->dirty);
  g_queue_init (&self->urgent);
  self->cache = headway_sse_frame_cache_new ();
  self->heartbeat = headway_sse_frame_new_text (heartbeat_text, strlen (heartbeat_text));
  self->retry = headway_sse_frame_new_text (retry_text, strlen (retry_text));

  self->epoll_fd = epoll_create1 (EPOLL_CLOEXEC);
  if (self->epoll_fd < 0)
    g_critical ("cannot create an epoll descriptor: %s", g_strerror (errno));
  self->watch_source = add_source (self, &watch_funcs, G_PRIORITY_DEFAULT, "headway-sse-watch");
  self->flush_source = add_source (self, &flush_funcs, FLUSH_PRIORITY, "headway-sse-flush");
  self->watch_tag = g_source_add_unix_fd (self->watch_source, self->epoll_fd, G_IO_IN);
  g_source_attach (self->watch_source, g_main_context_get_thread_default ());
  g_source_attach (self->flush_source, g_main_context_get_thread_default ());
}

HeadwaySseHub *
headway_sse_hub_new (void)
{
  return g_object_new (HEADWAY_TYPE_SSE_HUB, NULL);
}

static int
compare_heartbeats (gconstpointer a, gconstpointer b, gpointer user_data)
{
  gint64 first = ((const HeadwaySseWriter *) a)->next_heartbeat_us;
  gint64 second = ((const HeadwaySseWriter *) b)->next_heartbeat_us;

  return (first > second) - (first < second);
}

void
headway_sse_hub_set_times (HeadwaySseHub *self,
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
      HeadwaySseWriter *writer = l->data;
      gint64 beats = (now_us - writer->opened_us) / self->heartbeat_us;

      writer->next_heartbeat_us = writer->opened_us + (beats + 1) * self->heartbeat_us;
    }
  /* The links are part of the writers, and sorting only joins them anew. */
  g_queue_sort (&self->open, compare_heartbeats, NULL);
}

guint
headway_sse_hub_get_n_streams (HeadwaySseHub *self)
{
  return self->open.length + self->draining.length;
}

const HeadwaySseStats *
headway_sse_hub_get_stats (HeadwaySseHub *self)
{
  self->stats.frames_built = headway_sse_frame_cache_get_built (self->cache);
  return &self->stats;
}

HeadwaySseFrame *
headway_sse_hub_get_frame (HeadwaySseHub *self, HeadwaySseWriter *writer, HeadwayEvent *event, guint64 resume_id)
{
  if (writer->is_routed && !headway_event_is_synthetic (event))
    return headway_sse_frame_cache_get_headed (self->cache, event, resume_id);
  return headway_sse_frame_cache_get (self->cache, event, resume_id);
}

HeadwaySseJoint *
headway_sse_hub_get_joint (HeadwaySseHub *self, HeadwaySseWriter *writer)
{
  return writer->is_routed ? &self->routed_joint : &self->joint;
}

HeadwaySseStats *
headway_sse_hub_get_counts (HeadwaySseHub *self)
{
  return &self->stats;
}

HeadwaySseFrame *
headway_sse_hub_get_heartbeat (HeadwaySseHub *self)
{
  return self->heartbeat;
}
