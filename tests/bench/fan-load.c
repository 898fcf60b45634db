/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "fan-protocol.h"
#include "load-meter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* fan-load: a load generator in one thread. It opens so many readers, waits until all stream, and
 * publishes over one connection in a closed loop: at most a window of events is published and has not
 * reached all of them. With a rate it is an open loop. Without readers the window is of requests that
 * are not answered, and for lines the time runs until the answer to all of them.
 * Prints one line of JSON. */

#define INPUT_BYTES   (256 * 1024)
#define EVENTS_MAX    1024
#define PENDING_MAX   (1024 * 1024)
#define STALL_NS      (G_GINT64_CONSTANT (5000000000))
#define READY_NS      (G_GINT64_CONSTANT (30000000000))
#define FRESH_BUFFER  4096
#define SETTLE_US     200000
#define NS_PER_SECOND 1e9

typedef struct
{
  int fd;
  gboolean is_ready;
  gboolean is_stalled; /* never reads */
  guint64 next;        /* sequence that comes next */
  char *rest;          /* owned: the beginning of a line */
  gsize rest_length;
  gsize rest_size;
} Reader;

typedef struct
{
  /* Options. */
  FanDialect dialect;
  guint n_readers;
  guint n_stalled;
  guint window;
  double seconds;
  double warm_seconds;
  double rate;
  gboolean is_any_order;

  LoadMeter meter;
  int epoll_fd;
  Reader *readers;
  guint n_ready;
  int publisher;
  GString *pending; /* published, not yet in the socket from `pending_at` on */
  gsize pending_at;
  gboolean is_waiting; /* for room in the publisher's socket */
  char *input;

  guint32 *reached; /* how many readers each event of the window has reached */
  guint64 reached_mask;
  guint64 published;
  guint64 completed;
  guint64 delivered;
  guint64 disorder; /* sequences that were not the next one */
  guint64 replies;
  guint64 refused; /* replies that are not 2xx */
  guint64 begin_published, begin_delivered, begin_completed;
} FanLoad;

static int
connect_to (guint port)
{
  struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons ((guint16) port), .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
  struct linger reset = { 1, 0 };
  int one = 1;
  int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

  if (fd < 0)
    load_fail (2, "socket: %s", strerror (errno));
  setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  setsockopt (fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  if (connect (fd, (struct sockaddr *) &address, sizeof address) < 0)
    load_fail (2, "connect: %s", strerror (errno));
  return fd;
}

static void
send_all (int fd, const GString *text)
{
  gsize at = 0;

  while (at < text->len)
    {
      gssize n = send (fd, text->str + at, text->len - at, MSG_NOSIGNAL);

      if (n < 0)
        load_fail (2, "send: %s", strerror (errno));
      at += (gsize) n;
    }
}

/* --- Readers -------------------------------------------------------------------------------- */

static void
reader_got_line (FanLoad *self, Reader *reader, const char *line, gsize length, gint64 now_ns)
{
  guint64 sequence;
  gint64 sent_ns;
  guint32 *reached;

  if (!fan_parse_line (&self->dialect, line, length, &sequence, &sent_ns))
    {
      if (self->dialect.protocol == FAN_NATS && length >= 4 && memcmp (line, "PING", 4) == 0)
        send (reader->fd, "PONG\r\n", 6, MSG_NOSIGNAL);
      return;
    }
  if (sequence != reader->next && !self->is_any_order)
    self->disorder++;
  reader->next = sequence + 1;
  self->delivered++;
  if (self->meter.is_measuring)
    load_meter_add_latency (&self->meter, now_ns - sent_ns);
  reached = &self->reached[sequence & self->reached_mask];
  if (++*reached == self->n_readers)
    {
      *reached = 0;
      self->completed++;
    }
}

static void
reader_keep_rest (Reader *reader, const char *rest, gsize length)
{
  if (length > reader->rest_size)
    {
      reader->rest_size = length + 4096;
      reader->rest = g_realloc (reader->rest, reader->rest_size);
    }
  if (length > 0)
    memcpy (reader->rest, rest, length);
  reader->rest_length = length;
}

static void
reader_read (FanLoad *self, Reader *reader)
{
  char *at = self->input;
  char *end, *newline;
  gint64 now_ns;
  gssize n;

  if (reader->rest_length > INPUT_BYTES)
    load_fail (2, "a line of over %d bytes", INPUT_BYTES);
  if (reader->rest_length > 0)
    memcpy (self->input, reader->rest, reader->rest_length);
  n = recv (reader->fd, self->input + reader->rest_length, INPUT_BYTES, MSG_DONTWAIT);
  if (n < 0 && errno == EAGAIN)
    return;
  if (n <= 0)
    load_fail (2, "a reader was closed: %s", n < 0 ? strerror (errno) : "end of the stream");

  now_ns = load_now_ns ();
  end = self->input + reader->rest_length + n;
  if (!reader->is_ready)
    {
      reader->is_ready = TRUE;
      self->n_ready++;
      if (self->dialect.protocol <= FAN_EVENT_LINES && memmem (at, (gsize) (end - at), " 200 ", 5) == NULL)
        load_fail (2, "a reader was refused: %.*s", (int) MIN (end - at, 400), at);
    }
  while (at < end && (newline = memchr (at, '\n', (gsize) (end - at))) != NULL)
    {
      reader_got_line (self, reader, at, (gsize) (newline - at), now_ns);
      at = newline + 1;
    }
  reader_keep_rest (reader, at, (gsize) (end - at));
}

static void
open_reader (FanLoad *self, Reader *reader)
{
  g_autoptr (GString) request = g_string_new (NULL);
  struct epoll_event event = { .events = EPOLLIN, .data.ptr = reader };
  int size = FRESH_BUFFER;

  reader->fd = connect_to (self->dialect.port);
  if (reader->is_stalled)
    setsockopt (reader->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  fan_append_subscribe (&self->dialect, request);
  send_all (reader->fd, request);
  epoll_ctl (self->epoll_fd, EPOLL_CTL_ADD, reader->fd, &event);
}

static void
open_readers (FanLoad *self)
{
  struct epoll_event events[EVENTS_MAX];
  gint64 begin_ns = load_now_ns ();
  guint n_all = self->n_readers + self->n_stalled;

  self->readers = g_new0 (Reader, n_all);
  for (guint i = 0; i < n_all; i++)
    {
      self->readers[i].is_stalled = i >= self->n_readers;
      open_reader (self, &self->readers[i]);
    }
  while (self->n_ready < n_all)
    {
      int n = epoll_wait (self->epoll_fd, events, EVENTS_MAX, 1000);

      for (int i = 0; i < n; i++)
        reader_read (self, events[i].data.ptr);
      if (load_now_ns () - begin_ns > READY_NS)
        load_fail (2, "only %u of %u readers stream", self->n_ready, n_all);
    }
  for (guint i = self->n_readers; i < n_all; i++)
    epoll_ctl (self->epoll_fd, EPOLL_CTL_DEL, self->readers[i].fd, NULL);
  g_usleep (SETTLE_US);
}

/* --- The publisher -------------------------------------------------------------------------- */

static void
open_publisher (FanLoad *self)
{
  g_autoptr (GString) hello = g_string_new (NULL);
  struct epoll_event event = { .events = EPOLLIN };

  self->publisher = connect_to (self->dialect.port);
  fan_append_hello (&self->dialect, hello);
  send_all (self->publisher, hello);
  epoll_ctl (self->epoll_fd, EPOLL_CTL_ADD, self->publisher, &event);
}

static void
write_pending (FanLoad *self)
{
  struct epoll_event event = { .events = EPOLLIN };
  gboolean is_waiting = FALSE;

  while (self->pending_at < self->pending->len && !is_waiting)
    {
      gssize n = send (self->publisher, self->pending->str + self->pending_at, self->pending->len - self->pending_at,
                       MSG_NOSIGNAL | MSG_DONTWAIT);

      if (n < 0 && errno != EAGAIN)
        load_fail (2, "the publisher was closed: %s", strerror (errno));
      is_waiting = n < 0;
      self->pending_at += n > 0 ? (gsize) n : 0;
    }
  if (!is_waiting)
    {
      g_string_truncate (self->pending, 0);
      self->pending_at = 0;
    }
  if (is_waiting == self->is_waiting)
    return;
  self->is_waiting = is_waiting;
  event.events |= is_waiting ? EPOLLOUT : 0;
  epoll_ctl (self->epoll_fd, EPOLL_CTL_MOD, self->publisher, &event);
}

static void
count_replies (FanLoad *self, const char *text, gsize length)
{
  static const char word[] = "HTTP/1.1 ";
  const char *end = text + length;

  while ((text = memmem (text, (gsize) (end - text), word, strlen (word))) != NULL)
    {
      text += strlen (word);
      self->replies++;
      if (self->n_readers == 0 && self->dialect.protocol != FAN_EVENT_LINES)
        self->completed++;
      if (text < end && text[0] != '2')
        self->refused++;
    }
}

static void
read_replies (FanLoad *self)
{
  gssize n = recv (self->publisher, self->input, INPUT_BYTES, MSG_DONTWAIT);

  if (n < 0 && errno == EAGAIN)
    return;
  if (n <= 0)
    load_fail (2, "the publisher was closed: %s", n < 0 ? strerror (errno) : "end of the stream");
  if (self->dialect.protocol == FAN_NATS && memmem (self->input, (gsize) n, "PING", 4) != NULL)
    send (self->publisher, "PONG\r\n", 6, MSG_NOSIGNAL);
  if (self->dialect.protocol <= FAN_EVENT_LINES)
    count_replies (self, self->input, (gsize) n);
  if (self->refused > 0)
    load_fail (2, "a publish was refused: %.*s", (int) MIN (n, 400), self->input);
}

/* As many events as the window and the rate allow. Returns milliseconds until the next may come. */
static int
publish_some (FanLoad *self, gint64 begin_ns)
{
  gint64 now_ns = load_now_ns ();
  double due = self->rate > 0 ? (double) (now_ns - begin_ns) / NS_PER_SECOND * self->rate + 1 : G_MAXDOUBLE;
  gsize mark;

  if (self->pending->len - self->pending_at >= PENDING_MAX || self->published - self->completed >= self->window ||
      (double) self->published >= due)
    return due < G_MAXDOUBLE ? (int) MAX (((double) self->published - due) / self->rate * 1000, 0) : 1000;

  mark = fan_begin_portion (&self->dialect, self->pending);
  while (self->published - self->completed < self->window && (double) self->published < due &&
         self->pending->len - self->pending_at < PENDING_MAX)
    fan_append_event (&self->dialect, self->pending, self->published++, load_now_ns ());
  fan_end_portion (&self->dialect, self->pending, mark);
  return 1000;
}

static void
wait_for_events (FanLoad *self, int timeout_ms)
{
  struct epoll_event events[EVENTS_MAX];
  int n = epoll_wait (self->epoll_fd, events, EVENTS_MAX, timeout_ms);

  for (int i = 0; i < n; i++)
    {
      if (events[i].data.ptr != NULL)
        reader_read (self, events[i].data.ptr);
      else if ((events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
        read_replies (self);
    }
}

/* --- The run -------------------------------------------------------------------------------- */

/* Lines have one answer, at their end: what counts is when all are answered. */
static void
finish_lines (FanLoad *self)
{
  gint64 begin_ns = load_now_ns ();

  fan_append_goodbye (&self->dialect, self->pending);
  while (self->replies == 0)
    {
      write_pending (self);
      wait_for_events (self, 1000);
      if (load_now_ns () - begin_ns > STALL_NS)
        load_fail (2, "no answer to %" G_GUINT64_FORMAT " lines", self->published);
    }
}

static void
begin_measuring (FanLoad *self)
{
  self->begin_published = self->published;
  self->begin_delivered = self->delivered;
  self->begin_completed = self->completed;
  load_meter_begin (&self->meter);
}

static void
run (FanLoad *self)
{
  gboolean is_unanswered = self->n_readers == 0 && self->dialect.protocol == FAN_EVENT_LINES;
  gint64 begin_ns = load_now_ns ();
  gint64 progress_ns = begin_ns;
  guint64 progress = 0;
  gint64 warm_ns = is_unanswered ? 0 : (gint64) (self->warm_seconds * NS_PER_SECOND);

  for (;;)
    {
      gint64 now_ns = load_now_ns ();
      guint64 done = self->delivered + self->completed + (is_unanswered ? self->published : 0);

      if (!self->meter.is_measuring && now_ns - begin_ns >= warm_ns)
        begin_measuring (self);
      if (self->meter.is_measuring && now_ns - self->meter.begin_ns > (gint64) (self->seconds * NS_PER_SECOND))
        break;
      if (done != progress)
        progress_ns = now_ns;
      progress = done;
      if (now_ns - progress_ns > STALL_NS)
        load_fail (2, "stalled: %" G_GUINT64_FORMAT " published, %" G_GUINT64_FORMAT " delivered", self->published, self->delivered);

      int timeout_ms = publish_some (self, begin_ns);
      write_pending (self);
      wait_for_events (self, is_unanswered && !self->is_waiting ? 0 : timeout_ms);
    }
  if (is_unanswered)
    finish_lines (self);
  load_meter_end (&self->meter);
}

static void
print_result (FanLoad *self, gint64 resident_first, gint64 resident_idle)
{
  g_autoptr (GString) text = g_string_new ("{");
  guint64 published = (self->n_readers > 0 ? self->published : MAX (self->completed, self->begin_completed)) -
                      (self->n_readers > 0 ? self->begin_published : self->begin_completed);
  guint64 delivered = self->delivered - self->begin_delivered;
  double seconds = load_meter_seconds (&self->meter);

  if (self->n_readers == 0 && self->dialect.protocol == FAN_EVENT_LINES)
    published = self->published - self->begin_published;
  if (published + delivered == 0)
    load_fail (2, "nothing came through while it was measured");
  load_meter_append_json (&self->meter, text, self->n_readers > 0 ? delivered : published);
  g_string_append_printf (text, "\"events_per_s\":%.1f,\"deliveries_per_s\":%.1f,", (double) published / seconds,
                          (double) delivered / seconds);
  g_string_append_printf (text, "\"idle_bytes_per_reader\":%.1f,\"grown_bytes\":%" G_GINT64_FORMAT ",",
                          self->n_readers > 0 ? (double) (resident_idle - resident_first) / self->n_readers : 0,
                          load_meter_resident (&self->meter) - resident_idle);
  g_string_append_printf (text, "\"delivered\":%" G_GUINT64_FORMAT ",\"disorder\":%" G_GUINT64_FORMAT "}", self->delivered,
                          self->disorder);
  g_print ("%s\n", text->str);
}

static void
parse_options (FanLoad *self, int argc, char **argv)
{
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);
  g_autoptr (GError) error = NULL;
  g_autofree char *protocol = NULL;
  g_autofree char *pids = NULL;
  const char *publish_path = "/pub", *subscribe_path = "/sub", *header = NULL;
  int port = 0, readers = 0, stalled = 0, window = 1, bytes = 100, principals = 0;
  const GOptionEntry entries[] = {
    { "protocol", 0, 0, G_OPTION_ARG_STRING, &protocol, "plain-post, event-post, event-lines, redis, nats", NULL },
    { "port", 0, 0, G_OPTION_ARG_INT, &port, "TCP port on the loopback", NULL },
    { "publish-path", 0, 0, G_OPTION_ARG_STRING, &publish_path, "path of the POST", NULL },
    { "subscribe-path", 0, 0, G_OPTION_ARG_STRING, &subscribe_path, "path of the GET", NULL },
    { "header", 0, 0, G_OPTION_ARG_STRING, &header, "a line of header for both", NULL },
    { "readers", 0, 0, G_OPTION_ARG_INT, &readers, "how many read", NULL },
    { "stalled", 0, 0, G_OPTION_ARG_INT, &stalled, "how many more subscribe and never read", NULL },
    { "window", 0, 0, G_OPTION_ARG_INT, &window, "events that may be under way", NULL },
    { "bytes", 0, 0, G_OPTION_ARG_INT, &bytes, "length of a payload", NULL },
    { "principals", 0, 0, G_OPTION_ARG_INT, &principals, "name so many principals in turn", NULL },
    { "any-order", 0, 0, G_OPTION_ARG_NONE, &self->is_any_order, "readers need not see the order of publishing", NULL },
    { "seconds", 0, 0, G_OPTION_ARG_DOUBLE, &self->seconds, "how long to measure", NULL },
    { "warm", 0, 0, G_OPTION_ARG_DOUBLE, &self->warm_seconds, "seconds before that", NULL },
    { "rate", 0, 0, G_OPTION_ARG_DOUBLE, &self->rate, "events a second, an open loop", NULL },
    { "pids", 0, 0, G_OPTION_ARG_STRING, &pids, "process ids of the servers", NULL },
    { NULL }
  };

  self->seconds = 1;
  self->warm_seconds = 0.3;
  g_option_context_add_main_entries (context, entries, NULL);
  if (!g_option_context_parse (context, &argc, &argv, &error))
    load_fail (2, "fan-load: %s", error->message);
  if (!fan_protocol_from_text (protocol, &self->dialect.protocol))
    load_fail (2, "fan-load: unknown protocol %s", protocol);
  if (port < 1 || readers < 0 || stalled < 0 || window < 1 || bytes < 1 || principals < 0)
    load_fail (2, "fan-load: a number is out of its range");
  self->dialect.port = (guint) port;
  self->dialect.publish_path = publish_path;
  self->dialect.subscribe_path = subscribe_path;
  self->dialect.header = header != NULL ? g_strconcat (header, "\r\n", NULL) : "";
  self->dialect.payload_bytes = (guint) bytes;
  self->dialect.n_principals = (guint) principals;
  self->n_readers = (guint) readers;
  self->n_stalled = (guint) stalled;
  self->window = (guint) window;
  load_meter_init (&self->meter, pids);
}

int
main (int argc, char **argv)
{
  FanLoad self = { 0 };
  gint64 resident_first, resident_idle;
  guint64 places = 1;

  signal (SIGPIPE, SIG_IGN);
  load_raise_descriptors ();
  parse_options (&self, argc, argv);
  while (places < 2 * (guint64) self.window + 2)
    places *= 2;
  self.reached = g_new0 (guint32, places);
  self.reached_mask = places - 1;
  self.input = g_malloc (2 * INPUT_BYTES);
  self.pending = g_string_new (NULL);
  self.epoll_fd = epoll_create1 (EPOLL_CLOEXEC);

  resident_first = load_meter_resident (&self.meter);
  open_readers (&self);
  resident_idle = load_meter_resident (&self.meter);
  open_publisher (&self);
  run (&self);
  print_result (&self, resident_first, resident_idle);
  return EXIT_SUCCESS;
}
