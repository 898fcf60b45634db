/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "stream/headway-stream-batch.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct
{
  int fds[2]; /* the writer's end, the reader's */
  HeadwayStreamBatch batch;
  HeadwayStreamJoint joint;
  HeadwayStreamStats stats;
  GString *seen;
} Fixture;

static void
set_up (Fixture *self, gconstpointer data)
{
  g_assert_cmpint (socketpair (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, self->fds), ==, 0);
  self->seen = g_string_new (NULL);
}

static void
tear_down (Fixture *self, gconstpointer data)
{
  headway_stream_batch_clear (&self->batch);
  headway_stream_joint_clear (&self->joint);
  g_string_free (self->seen, TRUE);
  close (self->fds[0]);
  close (self->fds[1]);
}

static void
append (Fixture *self, const char *text)
{
  headway_stream_batch_append (&self->batch, headway_sse_frame_new_text (text, strlen (text)));
}

static HeadwayStreamWrite
write_batch (Fixture *self, HeadwayStreamFormat format)
{
  gsize written;

  return headway_stream_batch_write (&self->batch, self->fds[0], format, &self->joint, &self->stats, &written);
}

/* What the reader has got since the last call. */
static const char *
read_all (Fixture *self, gsize most)
{
  g_autofree char *buffer = g_malloc (most);
  gssize n = recv (self->fds[1], buffer, most, MSG_DONTWAIT);

  g_string_truncate (self->seen, 0);
  if (n > 0)
    g_string_append_len (self->seen, buffer, n);
  return self->seen->str;
}

static void
test_frames_go_out_in_order (Fixture *self, gconstpointer data)
{
  append (self, "a\n\n");
  g_assert_cmpint (write_batch (self, HEADWAY_STREAM_FORMAT_SSE_CHUNKED), ==, HEADWAY_STREAM_WRITE_DONE);
  g_assert_cmpstr (read_all (self, 100), ==, "3\r\na\n\n\r\n");
  append (self, "b\n\n");
  append (self, "0123456789abcd\n\n");
  g_assert_cmpint (write_batch (self, HEADWAY_STREAM_FORMAT_SSE_CHUNKED), ==, HEADWAY_STREAM_WRITE_DONE);
  g_assert_cmpstr (read_all (self, 100), ==, "3\r\nb\n\n\r\n10\r\n0123456789abcd\n\n\r\n");
  g_assert_cmpuint (self->batch.count, ==, 0);
  g_assert_cmpuint (self->batch.bytes, ==, 0);
}

static void
test_without_chunks_only_the_inner_bytes (Fixture *self, gconstpointer data)
{
  append (self, "a\n\n");
  append (self, "b\n\n");
  g_assert_cmpint (write_batch (self, HEADWAY_STREAM_FORMAT_SSE), ==, HEADWAY_STREAM_WRITE_DONE);
  g_assert_cmpstr (read_all (self, 100), ==, "a\n\nb\n\n");
}

static void
test_the_same_batch_twice_is_joined_once (Fixture *self, gconstpointer data)
{
  g_autoptr (HeadwaySseFrame) first = headway_sse_frame_new_text ("x\n\n", 3);
  g_autoptr (HeadwaySseFrame) second = headway_sse_frame_new_text ("y\n\n", 3);

  for (guint reader = 0; reader < 4; reader++)
    {
      HeadwayStreamFormat format = reader < 3 ? HEADWAY_STREAM_FORMAT_SSE_CHUNKED : HEADWAY_STREAM_FORMAT_SSE;

      headway_stream_batch_append (&self->batch, headway_sse_frame_ref (first));
      headway_stream_batch_append (&self->batch, headway_sse_frame_ref (second));
      g_assert_cmpint (write_batch (self, format), ==, HEADWAY_STREAM_WRITE_DONE);
      g_assert_cmpstr (read_all (self, 100), ==, reader < 3 ? "3\r\nx\n\n\r\n3\r\ny\n\n\r\n" : "x\n\ny\n\n");
    }
  headway_stream_joint_clear (&self->joint);
  g_assert_cmpuint (first->ref, ==, 1);
  g_assert_cmpuint (second->ref, ==, 1);
}

/* Every way in which a socket may cut the bytes. */
static void
test_a_short_write_goes_on_where_it_stopped (Fixture *self, gconstpointer data)
{
  g_autoptr (GString) sent = g_string_new (NULL);
  g_autoptr (GString) got = g_string_new (NULL);
  guint next = 0;

  while (next < 4000 || self->batch.count > 0)
    {
      while (next < 4000 && !headway_stream_batch_is_full (&self->batch))
        {
          g_autofree char *text = g_strnfill (1 + next * 7 % 997, (char) ('a' + next % 26));
          append (self, text);
          g_string_append_printf (sent, "%" G_GSIZE_MODIFIER "x\r\n%s\r\n", strlen (text), text);
          next++;
        }
      write_batch (self, HEADWAY_STREAM_FORMAT_SSE_CHUNKED);
      read_all (self, 1 + next % 3000);
      g_string_append_len (got, self->seen->str, (gssize) self->seen->len);
    }
  while (*read_all (self, 65536) != '\0')
    g_string_append_len (got, self->seen->str, (gssize) self->seen->len);
  g_assert_cmpuint (self->stats.writes, >, 0);
  g_assert_cmpuint (self->stats.bytes, ==, sent->len);
  g_assert_true (g_string_equal (sent, got));
}

static void
test_a_full_socket_and_a_dead_one (Fixture *self, gconstpointer data)
{
  g_autofree char *large = g_strnfill (100000, 'x');
  HeadwayStreamWrite result = HEADWAY_STREAM_WRITE_DONE;

  while (result == HEADWAY_STREAM_WRITE_DONE)
    {
      append (self, large);
      result = write_batch (self, HEADWAY_STREAM_FORMAT_SSE_CHUNKED);
    }
  g_assert_cmpint (result, ==, HEADWAY_STREAM_WRITE_BLOCKED);
  g_assert_cmpint (write_batch (self, HEADWAY_STREAM_FORMAT_SSE_CHUNKED), ==, HEADWAY_STREAM_WRITE_BLOCKED);
  close (self->fds[1]);
  self->fds[1] = -1;
  g_assert_cmpint (write_batch (self, HEADWAY_STREAM_FORMAT_SSE_CHUNKED), ==, HEADWAY_STREAM_WRITE_FAILED);
  g_assert_true (errno == EPIPE || errno == ECONNRESET);
}

/* A short write may end in either piece of a frame, or between the two. */
static void
test_a_frame_in_two_pieces_is_cut_anywhere (Fixture *self, gconstpointer data)
{
  g_autoptr (HeadwayPrincipalTable) principals = headway_principal_table_new ();
  HeadwayPublication publication = {
    .type = "t",
    .principal = headway_principal_table_get_system (principals),
    .data = "1",
    .data_length = 1,
  };
  g_autoptr (HeadwayEvent) event = headway_event_new (&publication, 100, (HeadwayInstant){ 1, 1 }, NULL);
  g_autoptr (HeadwaySseFrame) shared = NULL;
  g_autoptr (HeadwaySseFrame) frame = NULL;
  g_autofree char *whole = NULL;

  headway_event_set_id (event, 5);
  shared = headway_sse_frame_new (event, 5);
  frame = headway_sse_frame_new_headed (shared, event, 2);
  headway_stream_batch_append (&self->batch, headway_sse_frame_ref (frame));
  g_assert_cmpint (write_batch (self, HEADWAY_STREAM_FORMAT_SSE_CHUNKED), ==, HEADWAY_STREAM_WRITE_DONE);
  whole = g_strdup (read_all (self, 1000));
  g_assert_nonnull (strstr (whole, "{\"id\":2,\"seq\":5,\"v\":1,"));
  for (gsize offset = 1; offset < frame->length; offset++)
    {
      g_autofree char *expected = g_strconcat (whole + offset, whole, NULL);

      headway_stream_batch_append (&self->batch, headway_sse_frame_ref (frame));
      headway_stream_batch_append (&self->batch, headway_sse_frame_ref (frame));
      self->batch.offset = offset;
      g_assert_cmpint (write_batch (self, HEADWAY_STREAM_FORMAT_SSE_CHUNKED), ==, HEADWAY_STREAM_WRITE_DONE);
      g_assert_cmpstr (read_all (self, 1000), ==, expected);
    }
}

/* Without chunks nobody could tell a frame that was cut from the end. */
static void
test_what_a_full_socket_has_are_whole_frames (Fixture *self, gconstpointer data)
{
  int size = 64 * 1024;
  HeadwayStreamWrite result = HEADWAY_STREAM_WRITE_DONE;
  gsize last_length = 0;
  char last = '\0';

  g_assert_cmpint (setsockopt (self->fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size), ==, 0);
  for (guint next = 0; result == HEADWAY_STREAM_WRITE_DONE; next++)
    {
      while (!headway_stream_batch_is_full (&self->batch))
        {
          g_autofree char *text = g_strnfill (1 + next++ * 7919 % 30000, 'x');
          g_autofree char *line = g_strconcat (text, "\n", NULL);

          append (self, line);
        }
      result = write_batch (self, HEADWAY_STREAM_FORMAT_SSE);
    }
  g_assert_cmpint (result, ==, HEADWAY_STREAM_WRITE_BLOCKED);
  g_assert_cmpuint (self->batch.offset, ==, 0);
  while (*read_all (self, 4096) != '\0')
    {
      last_length += self->seen->len;
      last = self->seen->str[self->seen->len - 1];
    }
  g_assert_cmpint (last, ==, '\n');
  g_assert_cmpuint (last_length, ==, self->stats.bytes);
}

/* One that is larger than what the socket takes in one go is cut, and goes on where it stopped. */
static void
test_a_large_frame_without_chunks (Fixture *self, gconstpointer data)
{
  g_autofree char *large = g_strnfill (700000, 'x');
  gsize got = 0;

  append (self, "a\n");
  append (self, large);
  append (self, "b\n");
  g_assert_cmpint (write_batch (self, HEADWAY_STREAM_FORMAT_SSE), ==, HEADWAY_STREAM_WRITE_BLOCKED);
  g_assert_cmpuint (self->batch.offset, >, 0);
  while (self->batch.count > 0)
    {
      read_all (self, 100000);
      got += self->seen->len;
      write_batch (self, HEADWAY_STREAM_FORMAT_SSE);
    }
  while (*read_all (self, 100000) != '\0')
    got += self->seen->len;
  g_assert_cmpuint (got, ==, 2 + 700000 + 2);
}

static void
test_bounds (Fixture *self, gconstpointer data)
{
  g_autofree char *large = g_strnfill (HEADWAY_STREAM_BATCH_BYTES, 'x');

  for (guint i = 0; i < HEADWAY_STREAM_BATCH_FRAMES; i++)
    {
      g_assert_false (headway_stream_batch_is_full (&self->batch));
      append (self, "a");
    }
  g_assert_true (headway_stream_batch_is_full (&self->batch));
  headway_stream_batch_clear (&self->batch);
  append (self, large);
  g_assert_true (headway_stream_batch_is_full (&self->batch));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name, function) g_test_add ("/stream/batch/" name, Fixture, NULL, set_up, function, tear_down)
  ADD ("frames-go-out-in-order", test_frames_go_out_in_order);
  ADD ("without-chunks-only-the-inner-bytes", test_without_chunks_only_the_inner_bytes);
  ADD ("the-same-batch-twice-is-joined-once", test_the_same_batch_twice_is_joined_once);
  ADD ("a-short-write-goes-on-where-it-stopped", test_a_short_write_goes_on_where_it_stopped);
  ADD ("a-full-socket-and-a-dead-one", test_a_full_socket_and_a_dead_one);
  ADD ("a-frame-in-two-pieces-is-cut-anywhere", test_a_frame_in_two_pieces_is_cut_anywhere);
  ADD ("what-a-full-socket-has-are-whole-frames", test_what_a_full_socket_has_are_whole_frames);
  ADD ("a-large-frame-without-chunks", test_a_large_frame_without_chunks);
  ADD ("bounds", test_bounds);
#undef ADD
  return g_test_run ();
}
