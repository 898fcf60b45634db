/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-bus.h"
#include "engine/headway-error.h"
#include "stream/headway-stream-hub.h"
#include "wire/headway-clock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* Streams over socket pairs, in a hub whose sources run in the main loop of the test. */
typedef struct
{
  int fd; /* the reader's end, -1 once closed */
  HeadwayPrincipalTable *principals;
  HeadwayBus *bus;
  HeadwayStreamHub *hub;
  HeadwaySubscription *subscription;
  HeadwayStreamWriter *writer; /* until it is released */
} Fixture;

typedef struct
{
  HeadwayStreamFormat format;
  HeadwayMode mode;
} Kind;

static const Kind ndjson = { HEADWAY_STREAM_FORMAT_NDJSON, HEADWAY_MODE_STREAM };
static const Kind sse = { HEADWAY_STREAM_FORMAT_SSE, HEADWAY_MODE_STREAM };
static const Kind routed = { HEADWAY_STREAM_FORMAT_NDJSON, HEADWAY_MODE_ROUTED };
static const Kind broadcast = { HEADWAY_STREAM_FORMAT_NDJSON, HEADWAY_MODE_BROADCAST };

static void
released (gpointer user_data)
{
  ((Fixture *) user_data)->writer = NULL;
}

static void
set_up (Fixture *self, gconstpointer data)
{
  const Kind *kind = data;
  HeadwaySubscribeOptions options;
  HeadwayLimits limits;
  g_autoptr (GError) error = NULL;

  headway_limits_init (&limits);
  headway_subscribe_options_init (&options);
  headway_route_options_init (&options.route, &limits);
  options.mode = kind->mode;
  self->principals = headway_principal_table_new ();
  self->bus = headway_bus_new ("b", "epoch", 0, &limits.bus, self->principals);
  self->hub = headway_stream_hub_new ();
  headway_stream_hub_set_times (self->hub, 0, 0, 10000);
  self->subscription = headway_bus_subscribe (self->bus, &options, headway_clock_now (), &error);
  g_assert_no_error (error);
  self->writer = headway_stream_hub_open (self->hub, self->subscription, kind->format, released, self, &self->fd, &error);
  g_assert_no_error (error);
}

static void
close_reader (Fixture *self)
{
  close (self->fd);
  self->fd = -1;
}

static void
tear_down (Fixture *self, gconstpointer data)
{
  g_clear_object (&self->hub);
  g_assert_null (self->writer);
  g_object_unref (self->subscription);
  g_object_unref (self->bus);
  headway_principal_table_unref (self->principals);
  if (self->fd >= 0)
    close (self->fd);
}

static void
publish (Fixture *self, guint count, gsize size)
{
  g_autofree char *digits = g_strnfill (size, '7');

  for (guint i = 0; i < count; i++)
    {
      HeadwayPublication publication = {
        .topic = "t",
        .principal = headway_principal_table_get_system (self->principals),
        .data = digits,
        .data_length = size,
      };
      HeadwayBatch *batch = headway_batch_new (1, NULL, NULL);

      headway_batch_add (batch, headway_event_new (&publication, 1024 * 1024, headway_clock_now (), NULL));
      headway_bus_publish (self->bus, batch, headway_clock_now ());
    }
}

/* Lets the hub do all it has to do now. */
static void
turn (void)
{
  for (guint i = 0; i < 100; i++)
    g_main_context_iteration (NULL, FALSE);
}

static void
run_until_released (Fixture *self)
{
  while (self->writer != NULL)
    g_main_context_iteration (NULL, TRUE);
}

/* What the reader gets until the end, or until there is nothing now. @code: 0 at the end, else errno. */
static GString *
read_all (Fixture *self, int *code)
{
  GString *text = g_string_new (NULL);
  char buffer[4096];
  gssize n;

  do
    {
      turn ();
      n = recv (self->fd, buffer, sizeof buffer, MSG_DONTWAIT);
      if (n > 0)
        g_string_append_len (text, buffer, n);
    }
  while (n > 0);
  *code = n < 0 ? errno : 0;
  return text;
}

static guint
count (const GString *text, const char *what)
{
  guint n = 0;

  for (const char *at = strstr (text->str, what); at != NULL; at = strstr (at + 1, what))
    n++;
  return n;
}

static void
test_ndjson_is_envelopes (Fixture *self, gconstpointer data)
{
  g_autoptr (GString) text = NULL;
  int code;

  publish (self, 2, 1);
  text = read_all (self, &code);
  g_assert_cmpint (code, ==, EAGAIN);
  g_assert_true (g_str_has_prefix (text->str, "{\"id\":1,\"v\":1,\"type\":\"message\",\"data\":7,"));
  g_assert_nonnull (strstr (text->str, "}\n{\"id\":2,\"v\":1,"));
  g_assert_true (g_str_has_suffix (text->str, "}\n"));
  g_assert_cmpuint (count (text, "\n"), ==, 2);
}

static void
test_sse_begins_with_retry (Fixture *self, gconstpointer data)
{
  g_autoptr (GString) text = NULL;
  int code;

  publish (self, 1, 1);
  text = read_all (self, &code);
  g_assert_true (g_str_has_prefix (text->str, "retry: 3000\n\nid: 1\nevent: message\ndata: {\"id\":1,"));
  g_assert_true (g_str_has_suffix (text->str, "}\n\n"));
}

static void
test_routed_tells_what_to_resume_from (Fixture *self, gconstpointer data)
{
  g_autoptr (GString) text = NULL;
  int code;

  publish (self, 1, 1);
  text = read_all (self, &code);
  g_assert_true (g_str_has_prefix (text->str, "{\"id\":1,\"seq\":1,\"v\":1,"));
}

static void
test_ends_are_close_on_exec (Fixture *self, gconstpointer data)
{
  g_assert_cmpint (fcntl (self->fd, F_GETFD), ==, FD_CLOEXEC);
  g_assert_cmpint (fcntl (self->writer->fd, F_GETFD), ==, FD_CLOEXEC);
  g_assert_cmpint (fcntl (self->fd, F_GETFL) & O_NONBLOCK, ==, 0);
  g_assert_cmpint (fcntl (self->writer->fd, F_GETFL) & O_NONBLOCK, ==, O_NONBLOCK);
}

/* One that does not read has little in the kernel and whole frames; what it gets later is their end. */
static void
test_a_reader_that_stops (Fixture *self, gconstpointer data)
{
  const Kind *kind = data;
  g_autoptr (GString) text = NULL;
  int waiting = 0;
  int code;

  headway_stream_hub_set_times (self->hub, 0, 0, 100);
  for (guint i = 0; i < 600; i++)
    publish (self, 1, 1 + i * 131 % 9000);
  turn ();
  g_assert_cmpint (ioctl (self->fd, FIONREAD, &waiting), ==, 0);
  g_assert_cmpint (waiting, >, 0);
  /* The kernel doubles what it is asked for, and lets in the write that goes over it. */
  g_assert_cmpint (waiting, <=, 3 * HEADWAY_STREAM_PAIR_BUFFER);
  headway_subscription_close (self->subscription);
  run_until_released (self);
  g_assert_cmpuint (headway_stream_hub_get_stats (self->hub)->closed[HEADWAY_STREAM_CLOSE_DRAIN_TIMEOUT], ==, 1);
  text = read_all (self, &code);
  g_assert_cmpint (code, ==, 0);
  g_assert_cmpint ((int) text->len, ==, waiting);
  g_assert_true (g_str_has_suffix (text->str, kind->format == HEADWAY_STREAM_FORMAT_NDJSON ? "}\n" : "}\n\n"));
}

/* In `stream` mode its queue fills: a warning, the end, and the end is told if it reads within the window. */
static void
test_a_reader_that_is_too_slow (Fixture *self, gconstpointer data)
{
  g_autoptr (GString) text = NULL;
  int code;

  publish (self, 1000, 8000);
  turn ();
  g_assert_cmpint (headway_subscription_get_state (self->subscription), ==, HEADWAY_STATE_EVICTED);
  text = read_all (self, &code);
  g_assert_cmpint (code, ==, 0);
  g_assert_cmpuint (count (text, "\"type\":\"slow_client_warning\""), ==, 1);
  g_assert_cmpuint (count (text, "\"type\":\"client_evicted\""), ==, 1);
  g_assert_true (g_str_has_suffix (text->str, "}\n"));
  g_assert_null (self->writer);
  g_assert_cmpuint (headway_stream_hub_get_stats (self->hub)->closed[HEADWAY_STREAM_CLOSE_EVENT_BUS_EVICTED], ==, 1);
}

static void
test_a_broadcast_reader_skips_ahead (Fixture *self, gconstpointer data)
{
  g_autoptr (GString) text = NULL;
  int code;

  publish (self, 3000, 500);
  text = read_all (self, &code);
  g_assert_cmpint (code, ==, EAGAIN);
  g_assert_cmpuint (count (text, "\"reason\":\"lagged\""), ==, 1);
  g_assert_nonnull (strstr (text->str, "\n{\"id\":3000,"));
}

static void
test_the_reader_closes (Fixture *self, gconstpointer data)
{
  close_reader (self);
  run_until_released (self);
  g_assert_cmpint (headway_subscription_get_state (self->subscription), ==, HEADWAY_STATE_ENDED);
  g_assert_cmpuint (headway_stream_hub_get_stats (self->hub)->closed[HEADWAY_STREAM_CLOSE_CLIENT_DISCONNECT], ==, 1);
}

/* As the test before, but epoll has said nothing yet: the write must not raise SIGPIPE. */
static void
test_a_write_to_a_reader_that_is_gone (Fixture *self, gconstpointer data)
{
  turn ();
  close_reader (self);
  publish (self, HEADWAY_STREAM_BATCH_FRAMES, 1);
  run_until_released (self);
  g_assert_cmpuint (headway_stream_hub_get_stats (self->hub)->closed[HEADWAY_STREAM_CLOSE_CLIENT_DISCONNECT], ==, 1);
}

static void
test_the_end_is_clean (Fixture *self, gconstpointer data)
{
  g_autoptr (GString) text = NULL;
  int code;

  publish (self, 100, 4000);
  headway_subscription_close (self->subscription);
  publish (self, 1, 1);
  text = read_all (self, &code);
  g_assert_cmpint (code, ==, 0);
  g_assert_cmpuint (count (text, "\"id\":100,"), ==, 1);
  g_assert_cmpuint (count (text, "\"id\":101,"), ==, 0);
  g_assert_cmpuint (count (text, "\n"), ==, 100);
  g_assert_null (self->writer);
  g_assert_cmpuint (headway_stream_hub_get_stats (self->hub)->closed[HEADWAY_STREAM_CLOSE_SOURCE_COMPLETE], ==, 1);
}

/* Events that came behind its end must not move what a routed reader resumes from. */
static void
test_a_closed_one_does_not_promise_more (Fixture *self, gconstpointer data)
{
  g_autoptr (GString) text = NULL;
  int code;

  publish (self, 400, 4000);
  headway_subscription_close (self->subscription);
  publish (self, 5, 1);
  text = read_all (self, &code);
  g_assert_cmpint (code, ==, 0);
  g_assert_nonnull (strstr (text->str, "{\"id\":400,\"seq\":400,"));
  g_assert_null (strstr (text->str, "{\"id\":405,"));
}

static void
test_what_the_reader_writes_is_ignored (Fixture *self, gconstpointer data)
{
  g_autoptr (GString) text = NULL;
  static const char stray[4096];
  int code;

  while (send (self->fd, stray, sizeof stray, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
    turn ();
  publish (self, 3, 1);
  headway_subscription_close (self->subscription);
  text = read_all (self, &code);
  /* No reset at the end either. */
  g_assert_cmpint (code, ==, 0);
  g_assert_cmpuint (count (text, "\n"), ==, 3);
}

static void
test_a_reader_that_will_not_write (Fixture *self, gconstpointer data)
{
  g_autoptr (GString) text = NULL;
  int code;

  g_assert_cmpint (shutdown (self->fd, SHUT_WR), ==, 0);
  turn ();
  publish (self, 3, 1);
  text = read_all (self, &code);
  g_assert_cmpint (code, ==, EAGAIN);
  g_assert_cmpuint (count (text, "\n"), ==, 3);
  close_reader (self);
  run_until_released (self);
}

static gboolean
tick (gpointer user_data)
{
  return G_SOURCE_CONTINUE;
}

/* Runs the loop for @ms. */
static void
run_for (guint ms)
{
  gint64 end_us = g_get_monotonic_time () + ms * G_GINT64_CONSTANT (1000);
  guint id = g_timeout_add (5, tick, NULL);

  while (g_get_monotonic_time () < end_us)
    g_main_context_iteration (NULL, TRUE);
  g_source_remove (id);
}

static void
test_heartbeats (Fixture *self, gconstpointer data)
{
  const Kind *kind = data;
  g_autoptr (GString) text = NULL;
  int code;

  headway_stream_hub_set_times (self->hub, 20, 0, 10000);
  run_for (100);
  text = read_all (self, &code);
  if (kind->format == HEADWAY_STREAM_FORMAT_NDJSON)
    g_assert_cmpuint (text->len, ==, 0);
  else
    g_assert_cmpuint (count (text, ": heartbeat\n\n"), >=, 2);
}

/* Without heartbeats a stream is idle only while its reader lets it wait. */
static void
test_idle_writers (Fixture *self, gconstpointer data)
{
  headway_stream_hub_set_times (self->hub, 0, 50, 100);
  run_for (350);
  g_assert_cmpint (headway_subscription_get_state (self->subscription), ==, HEADWAY_STATE_LIVE);
  publish (self, 200, 4000);
  turn ();
  g_assert_cmpint (headway_subscription_get_state (self->subscription), ==, HEADWAY_STATE_LIVE);
  run_until_released (self);
  g_assert_cmpint (headway_subscription_get_state (self->subscription), ==, HEADWAY_STATE_EVICTED);
}

/* --- A frame that is begun when the drain window is over ------------------------------------ */

#define LARGE      (300 * 1000)
#define VERY_LARGE (1000 * 1000)

static guint64
get_closed (Fixture *self, HeadwayStreamCloseReason reason)
{
  return headway_stream_hub_get_stats (self->hub)->closed[reason];
}

/* An event of @size between two small ones, of which the reader takes 1 KiB. */
static void
begin_frame (Fixture *self, gsize size)
{
  char start[1024];

  headway_stream_hub_set_times (self->hub, 0, 0, 50);
  publish (self, 1, 1);
  publish (self, 1, size);
  publish (self, 1, 1);
  turn ();
  g_assert_cmpint (recv (self->fd, start, sizeof start, MSG_DONTWAIT), ==, sizeof start);
  g_assert_nonnull (g_strstr_len (start, sizeof start, "\n{\"id\":2,") != NULL ? start : g_strstr_len (start, sizeof start, "\nid: 2\n"));
  turn ();
  g_assert_true (self->writer->is_blocked);
  headway_subscription_close (self->subscription);
}

/* As the test before; then its window passes. */
static void
begin_linger (Fixture *self, gsize size)
{
  begin_frame (self, size);
  while (self->writer != NULL && !self->writer->is_lingering)
    g_main_context_iteration (NULL, TRUE);
  g_assert_nonnull (self->writer);
}

static gboolean
is_whole (const GString *text, const Kind *kind)
{
  return g_str_has_suffix (text->str, kind->format == HEADWAY_STREAM_FORMAT_NDJSON ? "}\n" : "}\n\n");
}

static void
test_a_begun_frame_is_finished (Fixture *self, gconstpointer data)
{
  const Kind *kind = data;
  g_autoptr (GString) text = NULL;
  int code;

  begin_linger (self, VERY_LARGE);
  g_assert_cmpuint (headway_stream_hub_get_n_draining (self->hub), ==, 0);
  g_assert_cmpuint (headway_stream_hub_get_n_lingering (self->hub), ==, 1);
  g_assert_cmpuint (headway_stream_hub_get_n_streams (self->hub), ==, 1);
  g_assert_cmpuint (get_closed (self, HEADWAY_STREAM_CLOSE_DRAIN_TIMEOUT), ==, 0);
  g_assert_cmpuint (self->writer->batch.count, ==, 1);
  g_assert_null (self->writer->subscription);

  text = read_all (self, &code);
  g_assert_cmpint (code, ==, 0);
  g_assert_true (is_whole (text, kind));
  /* Its data was begun before, and nothing stands behind it. */
  g_assert_cmpuint (count (text, "\n"), ==, kind->format == HEADWAY_STREAM_FORMAT_NDJSON ? 1 : 2);
  g_assert_cmpuint (text->len, >, VERY_LARGE - 1024);
  g_assert_null (self->writer);
  g_assert_cmpuint (headway_stream_hub_get_n_streams (self->hub), ==, 0);
  g_assert_cmpuint (get_closed (self, HEADWAY_STREAM_CLOSE_DRAIN_TIMEOUT), ==, 1);
}

static int poll_timeout;

static int
note_timeout (GPollFD *fds, guint n_fds, int timeout)
{
  poll_timeout = timeout;
  return g_poll (fds, n_fds, 0);
}

/* Nothing runs while it waits for its reader, and no clock. */
static void
test_lingering_takes_no_time (Fixture *self, gconstpointer data)
{
  begin_linger (self, VERY_LARGE);
  turn ();
  g_main_context_set_poll_func (NULL, note_timeout);
  g_assert_false (g_main_context_iteration (NULL, TRUE));
  g_main_context_set_poll_func (NULL, NULL);
  g_assert_cmpint (poll_timeout, ==, -1);
}

static void
test_a_lingering_reader_closes (Fixture *self, gconstpointer data)
{
  begin_linger (self, VERY_LARGE);
  close_reader (self);
  run_until_released (self);
  g_assert_cmpuint (headway_stream_hub_get_n_streams (self->hub), ==, 0);
  g_assert_cmpuint (get_closed (self, HEADWAY_STREAM_CLOSE_DRAIN_TIMEOUT), ==, 1);
}

/* Nobody is charged for it any more: it goes at once. Whether the kernel takes the rest is a setting of the machine;
 * it gets nothing that stands behind it. */
static void
test_a_lingering_one_is_disowned (Fixture *self, gconstpointer data)
{
  g_autoptr (GString) text = NULL;
  int code;

  begin_linger (self, VERY_LARGE);
  headway_stream_writer_disown (self->writer);
  run_until_released (self);
  text = read_all (self, &code);
  g_assert_cmpint (code, ==, 0);
  g_assert_cmpuint (text->len, <, VERY_LARGE);
  g_assert_null (strstr (text->str, "\"id\":3,"));
  g_assert_cmpuint (get_closed (self, HEADWAY_STREAM_CLOSE_DRAIN_TIMEOUT), ==, 1);
}

/* One that was disowned within its window has the rest of it, and no more. */
static void
test_a_disowned_one_has_its_window (Fixture *self, gconstpointer data)
{
  begin_frame (self, VERY_LARGE);
  headway_stream_writer_disown (self->writer);
  turn ();
  g_assert_nonnull (self->writer);
  g_assert_cmpuint (headway_stream_hub_get_n_draining (self->hub), ==, 1);
  run_until_released (self);
  g_assert_cmpuint (get_closed (self, HEADWAY_STREAM_CLOSE_DRAIN_TIMEOUT), ==, 1);
}

/* The kernel keeps what we cannot, as far as it lets the buffer grow: 300 kB fit its usual bounds. */
static void
test_the_hub_goes_while_one_lingers (Fixture *self, gconstpointer data)
{
  const Kind *kind = data;
  g_autoptr (GString) text = NULL;
  int code;

  begin_linger (self, LARGE);
  g_clear_object (&self->hub);
  g_assert_null (self->writer);
  text = read_all (self, &code);
  g_assert_cmpint (code, ==, 0);
  g_assert_true (is_whole (text, kind));
  g_assert_cmpuint (count (text, "\n"), ==, kind->format == HEADWAY_STREAM_FORMAT_NDJSON ? 1 : 2);
}

static void
test_no_descriptors_left (Fixture *self, gconstpointer data)
{
  HeadwaySubscribeOptions options;
  g_autoptr (HeadwaySubscription) subscription = NULL;
  g_autoptr (GError) error = NULL;
  struct rlimit before, none;
  int fd = -1;

  headway_subscribe_options_init (&options);
  subscription = headway_bus_subscribe (self->bus, &options, headway_clock_now (), NULL);
  g_assert_cmpint (getrlimit (RLIMIT_NOFILE, &before), ==, 0);
  none = before;
  none.rlim_cur = 0;
  g_assert_cmpint (setrlimit (RLIMIT_NOFILE, &none), ==, 0);
  g_assert_null (headway_stream_hub_open (self->hub, subscription, HEADWAY_STREAM_FORMAT_SSE, NULL, NULL, &fd, &error));
  g_assert_cmpint (setrlimit (RLIMIT_NOFILE, &before), ==, 0);
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE);
  g_assert_cmpint (headway_subscription_get_state (subscription), ==, HEADWAY_STATE_LIVE);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);

#define ADD(path, kind, func) g_test_add (path, Fixture, &(kind), set_up, func, tear_down)
  ADD ("/stream/pair/ndjson-is-envelopes", ndjson, test_ndjson_is_envelopes);
  ADD ("/stream/pair/sse-begins-with-retry", sse, test_sse_begins_with_retry);
  ADD ("/stream/pair/routed-tells-what-to-resume-from", routed, test_routed_tells_what_to_resume_from);
  ADD ("/stream/pair/ends-are-close-on-exec", ndjson, test_ends_are_close_on_exec);
  ADD ("/stream/pair/ndjson-reader-that-stops-has-whole-frames", broadcast, test_a_reader_that_stops);
  ADD ("/stream/pair/routed-reader-that-stops-has-whole-frames", routed, test_a_reader_that_stops);
  ADD ("/stream/pair/sse-reader-that-stops-has-whole-frames", sse, test_a_reader_that_stops);
  ADD ("/stream/pair/a-reader-that-is-too-slow", ndjson, test_a_reader_that_is_too_slow);
  ADD ("/stream/pair/a-broadcast-reader-skips-ahead", broadcast, test_a_broadcast_reader_skips_ahead);
  ADD ("/stream/pair/the-reader-closes", ndjson, test_the_reader_closes);
  ADD ("/stream/pair/a-write-to-a-reader-that-is-gone", ndjson, test_a_write_to_a_reader_that_is_gone);
  ADD ("/stream/pair/the-end-is-clean", ndjson, test_the_end_is_clean);
  ADD ("/stream/pair/a-closed-one-does-not-promise-more", routed, test_a_closed_one_does_not_promise_more);
  ADD ("/stream/pair/what-the-reader-writes-is-ignored", ndjson, test_what_the_reader_writes_is_ignored);
  ADD ("/stream/pair/a-reader-that-will-not-write", ndjson, test_a_reader_that_will_not_write);
  ADD ("/stream/pair/sse-has-heartbeats", sse, test_heartbeats);
  ADD ("/stream/pair/ndjson-has-no-heartbeats", ndjson, test_heartbeats);
  ADD ("/stream/pair/idle-writers", ndjson, test_idle_writers);
  ADD ("/stream/pair/linger/ndjson-frame-is-finished", ndjson, test_a_begun_frame_is_finished);
  ADD ("/stream/pair/linger/sse-frame-is-finished", sse, test_a_begun_frame_is_finished);
  ADD ("/stream/pair/linger/routed-frame-is-finished", routed, test_a_begun_frame_is_finished);
  ADD ("/stream/pair/linger/broadcast-frame-is-finished", broadcast, test_a_begun_frame_is_finished);
  ADD ("/stream/pair/linger/takes-no-time", ndjson, test_lingering_takes_no_time);
  ADD ("/stream/pair/linger/the-reader-closes", ndjson, test_a_lingering_reader_closes);
  ADD ("/stream/pair/linger/disowned", ndjson, test_a_lingering_one_is_disowned);
  ADD ("/stream/pair/linger/sse-disowned", sse, test_a_lingering_one_is_disowned);
  ADD ("/stream/pair/linger/disowned-has-its-window", ndjson, test_a_disowned_one_has_its_window);
  ADD ("/stream/pair/linger/the-hub-goes", ndjson, test_the_hub_goes_while_one_lingers);
  ADD ("/stream/pair/linger/sse-the-hub-goes", sse, test_the_hub_goes_while_one_lingers);
  ADD ("/stream/pair/no-descriptors-left", ndjson, test_no_descriptors_left);

  return g_test_run ();
}
