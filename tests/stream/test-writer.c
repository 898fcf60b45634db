/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-bus.h"
#include "stream/headway-stream-hub.h"
#include "stream/headway-stream-writer.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* A writer on one end of a socket pair, driven by hand: no main loop runs. */
typedef struct
{
  int peer; /* the reader's end */
  int own;  /* of the writer, which closes it */
  HeadwayPrincipalTable *principals;
  HeadwayBus *bus;
  HeadwayStreamHub *hub;
  HeadwayStreamWriter *writer;
  gsize filler; /* bytes that the socket was filled with */
} Fixture;

static const HeadwayInstant now = { 1000, 1000 };

static void
set_up (Fixture *self, gconstpointer data)
{
  HeadwaySubscribeOptions options;
  HeadwayLimits limits;
  int fds[2];

  g_assert_cmpint (socketpair (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), ==, 0);
  self->own = fds[0];
  self->peer = fds[1];
  headway_limits_init (&limits);
  headway_subscribe_options_init (&options);
  self->principals = headway_principal_table_new ();
  self->bus = headway_bus_new ("b", "epoch", 0, &limits.bus, self->principals);
  self->hub = headway_stream_hub_new ();
  self->writer = headway_stream_writer_new (self->hub, self->own, headway_bus_subscribe (self->bus, &options, now, NULL),
                                            HEADWAY_STREAM_FORMAT_SSE, FALSE, now.monotonic_us, NULL, NULL);
  headway_stream_writer_turn (self->writer, now);
}

static void
tear_down (Fixture *self, gconstpointer data)
{
  g_object_unref (self->hub);
  headway_stream_writer_free (self->writer, FALSE);
  g_object_unref (self->bus);
  headway_principal_table_unref (self->principals);
  close (self->peer);
}

static void
publish (Fixture *self, guint count)
{
  for (guint i = 0; i < count; i++)
    {
      HeadwayPublication publication = {
        .topic = "t",
        .principal = headway_principal_table_get_system (self->principals),
        .data = "1",
        .data_length = 1,
      };
      HeadwayBatch *batch = headway_batch_new (1, NULL, NULL);

      headway_batch_add (batch, headway_event_new (&publication, 1000, now, NULL));
      headway_bus_publish (self->bus, batch, now);
    }
}

/* As if a reader had been slow before: nothing more fits, and nothing is in the batch. */
static void
fill_socket (Fixture *self)
{
  static const char filler[1024];
  gssize n;

  while ((n = send (self->own, filler, sizeof filler, MSG_DONTWAIT | MSG_NOSIGNAL)) > 0)
    self->filler += (gsize) n;
}

/* Everything that is in the socket, without what it was filled with. */
static char *
read_frames (Fixture *self)
{
  GString *text = g_string_new (NULL);
  char buffer[4096];
  gssize n;

  while ((n = recv (self->peer, buffer, sizeof buffer, MSG_DONTWAIT)) > 0)
    g_string_append_len (text, buffer, n);
  g_string_erase (text, 0, (gssize) MIN (self->filler, text->len));
  self->filler = 0;
  return g_string_free (text, FALSE);
}

static guint
count_frames (const char *text, guint first)
{
  guint n = 0;

  for (const char *at = strstr (text, "id: "); at != NULL; at = strstr (at + 1, "\nid: "))
    {
      g_autofree char *head = g_strdup_printf ("id: %u\n", first + n);

      at += *at == '\n' ? 1 : 0;
      g_assert_true (g_str_has_prefix (at, head));
      n++;
    }
  return n;
}

static void
block_with_full_batch (Fixture *self)
{
  fill_socket (self);
  publish (self, HEADWAY_STREAM_BATCH_FRAMES);
  g_assert_true (self->writer->is_blocked);
  g_assert_false (self->writer->is_pulling);
  g_assert_cmpuint (self->writer->batch.count, ==, HEADWAY_STREAM_BATCH_FRAMES);
}

static void
test_publish_before_the_turn (Fixture *self, gconstpointer data)
{
  g_autofree char *before = NULL;
  g_autofree char *frames = NULL;

  block_with_full_batch (self);
  before = read_frames (self);
  headway_stream_writer_handle (self->writer, EPOLLOUT, now);
  publish (self, 3);
  headway_stream_writer_turn (self->writer, now);
  frames = read_frames (self);
  g_assert_cmpuint (count_frames (frames, 1), ==, HEADWAY_STREAM_BATCH_FRAMES + 3);
}

static void
test_publish_while_still_full (Fixture *self, gconstpointer data)
{
  block_with_full_batch (self);
  /* epoll says there is room, and something else takes it first. */
  headway_stream_writer_handle (self->writer, EPOLLOUT, now);
  publish (self, 3);
  g_assert_cmpuint (self->writer->batch.count, ==, HEADWAY_STREAM_BATCH_FRAMES);
  g_assert_cmpuint (headway_subscription_get_queued (self->writer->subscription), ==, 3);
}

static void
test_beat_before_the_turn (Fixture *self, gconstpointer data)
{
  g_autofree char *before = NULL;
  g_autofree char *frames = NULL;

  block_with_full_batch (self);
  before = read_frames (self);
  headway_stream_writer_handle (self->writer, EPOLLOUT, now);
  headway_stream_writer_beat (self->writer);
  headway_stream_writer_turn (self->writer, now);
  frames = read_frames (self);
  g_assert_cmpuint (count_frames (frames, 1), ==, HEADWAY_STREAM_BATCH_FRAMES);
  g_assert_true (g_str_has_suffix (frames, "\n\n: heartbeat\n\n"));
}

static void
test_beat_while_still_full (Fixture *self, gconstpointer data)
{
  block_with_full_batch (self);
  headway_stream_writer_handle (self->writer, EPOLLOUT, now);
  headway_stream_writer_beat (self->writer);
  g_assert_cmpuint (self->writer->batch.count, ==, HEADWAY_STREAM_BATCH_FRAMES);
  g_assert_true (self->writer->owes_heartbeat);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);

#define ADD(path, func) g_test_add (path, Fixture, NULL, set_up, func, tear_down)
  ADD ("/stream/writer/publish-between-room-and-turn", test_publish_before_the_turn);
  ADD ("/stream/writer/publish-when-the-room-is-gone-again", test_publish_while_still_full);
  ADD ("/stream/writer/heartbeat-between-room-and-turn", test_beat_before_the_turn);
  ADD ("/stream/writer/heartbeat-when-the-room-is-gone-again", test_beat_while_still_full);

  return g_test_run ();
}
