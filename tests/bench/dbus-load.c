/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "load-meter.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

/* dbus-load: a load generator on a message bus, in one thread. It publishes to Headway or to
 * bare-service, one event a call, many a call, or by lines on a publisher's socket, in a closed loop:
 * at most a window of events is published and has not reached all readers (without readers: is not
 * answered). Readers take streams, or signals. With principals it is a handler instead: it counts how
 * often it is called. Prints one line of JSON; exits with 3 where something is not supported. */

#define HEADWAY      "org.headway.Headway1"
#define SUBSCRIPTION HEADWAY ".Subscription"
#define BARE         "org.headway.Bench"
#define BARE_PATH    "/org/headway/Bench"
#define HANDLER_PATH "/org/headway/Bench/Handler"

#define INPUT_BYTES    (256 * 1024)
#define PENDING_MAX    (256 * 1024)
#define EVENTS_MAX     256
#define SIGNAL_WINDOW  1024
#define ACKNOWLEDGE_AT 128
#define PER_PRINCIPAL  32 /* under handler-queue */
#define STALL_NS       (G_GINT64_CONSTANT (5000000000))

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (sd_bus_error, sd_bus_error_free)

typedef struct
{
  sd_bus *bus; /* signals */
  int fd;      /* a stream */
  char *subscription;
  guint64 unacknowledged;
  char *rest;
  gsize rest_length;
} Reader;

typedef struct
{
  /* Options. */
  char *address;
  char *target;
  char *sink;
  char *publish;
  int n_readers;
  int n_principals;
  int window;
  int many;
  int bytes;
  double seconds;
  double warm_seconds;

  LoadMeter meter;
  gboolean is_bare;
  char *bus_path; /* of the bus in Headway */
  sd_bus *bus;    /* publishes */
  Reader handler; /* its connection */
  int epoll_fd;
  Reader *readers;
  int publisher; /* -1: by calls */
  GString *pending;
  gsize pending_at;
  char *payload;
  char *input;
  guint32 *reached;
  guint64 reached_mask;
  guint64 published;
  guint64 completed;
  guint64 delivered;
  guint64 answered;
  guint64 handled;
  guint64 begin_completed, begin_delivered, begin_handled;
} DBusLoad;

static void
check (int result, const char *what, const sd_bus_error *error)
{
  const char *name = error != NULL ? error->name : NULL;

  if (result >= 0)
    return;
  if (name != NULL && (g_str_has_suffix (name, ".NotSupported") || g_str_has_suffix (name, ".UnknownMethod") ||
                       g_str_has_suffix (name, ".UnknownInterface")))
    load_fail (3, "%s answers %s", what, strrchr (name, '.') + 1);
  load_fail (2, "%s: %s", what, error != NULL && error->message != NULL ? error->message : g_strerror (-result));
}

static sd_bus *
connect_bus (DBusLoad *self)
{
  sd_bus *bus = NULL;
  const char *name;

  check (sd_bus_new (&bus), "sd_bus_new", NULL);
  check (sd_bus_set_address (bus, self->address), "address", NULL);
  check (sd_bus_set_bus_client (bus, 1), "bus client", NULL);
  check (sd_bus_negotiate_fds (bus, 1), "descriptors", NULL);
  check (sd_bus_start (bus), "connect", NULL);
  check (sd_bus_get_unique_name (bus, &name), "hello", NULL);
  return bus;
}

static const char *
destination (DBusLoad *self)
{
  return self->is_bare ? BARE : HEADWAY;
}

static const char *
object_path (DBusLoad *self)
{
  return self->is_bare ? BARE_PATH : self->bus_path;
}

static const char *
interface (DBusLoad *self)
{
  return self->is_bare ? BARE : HEADWAY ".Bus";
}

static void
watch (DBusLoad *self, int fd, gpointer data)
{
  struct epoll_event event = { .events = EPOLLIN, .data.ptr = data };

  epoll_ctl (self->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* --- Readers -------------------------------------------------------------------------------- */

static void
got (DBusLoad *self, const char *text, gsize length, gint64 now_ns)
{
  const char *mark = memmem (text, length, "@#", 2);
  guint32 *reached;
  char *end;
  guint64 sequence;

  if (mark == NULL)
    return;
  sequence = strtoull (mark + 2, &end, 10);
  if (self->meter.is_measuring)
    load_meter_add_latency (&self->meter, now_ns - (gint64) strtoull (end, NULL, 10));
  self->delivered++;
  reached = &self->reached[sequence & self->reached_mask];
  if (++*reached == (guint32) self->n_readers)
    {
      *reached = 0;
      self->completed++;
    }
}

static void
acknowledge (DBusLoad *self, Reader *reader, guint64 sequence)
{
  if (++reader->unacknowledged < ACKNOWLEDGE_AT)
    return;
  reader->unacknowledged = 0;
  check (sd_bus_call_method_async (reader->bus, NULL, HEADWAY, reader->subscription, SUBSCRIPTION, "Acknowledge", NULL, NULL, "t",
                                   sequence),
         "Acknowledge", NULL);
}

static gpointer load_self; /* sd-bus hands a filter one pointer, and that is the reader */

static int
on_signal (sd_bus_message *message, void *user_data, sd_bus_error *error)
{
  DBusLoad *self = load_self;
  Reader *reader = user_data;
  guint64 sequence, id;
  const char *data, *text;
  gint64 time;

  if (sd_bus_message_is_signal (message, BARE, "Event") > 0 && sd_bus_message_read (message, "s", &data) >= 0)
    got (self, data, strlen (data), load_now_ns ());
  if (sd_bus_message_is_signal (message, SUBSCRIPTION, "Event") > 0 && sd_bus_message_read (message, "t", &sequence) >= 0 &&
      sd_bus_message_enter_container (message, 'r', "tsssxsa{sv}") >= 0 &&
      sd_bus_message_read (message, "tsssxs", &id, &text, &text, &text, &time, &data) >= 0)
    {
      got (self, data, strlen (data), load_now_ns ());
      acknowledge (self, reader, sequence);
    }
  return 0;
}

static void
read_lines (DBusLoad *self, Reader *reader)
{
  char *at = self->input;
  char *end, *newline;
  gint64 now_ns;
  gssize n;

  if (reader->rest_length > 0)
    memcpy (self->input, reader->rest, reader->rest_length);
  n = recv (reader->fd, self->input + reader->rest_length, INPUT_BYTES, MSG_DONTWAIT);
  if (n < 0 && errno == EAGAIN)
    return;
  if (n <= 0)
    load_fail (2, "a stream was closed");

  now_ns = load_now_ns ();
  end = self->input + reader->rest_length + n;
  while (at < end && (newline = memchr (at, '\n', (gsize) (end - at))) != NULL)
    {
      got (self, at, (gsize) (newline - at), now_ns);
      at = newline + 1;
    }
  reader->rest_length = (gsize) (end - at);
  if (reader->rest_length > PENDING_MAX)
    load_fail (2, "a line of over %d bytes", PENDING_MAX);
  reader->rest = g_realloc (reader->rest, MAX (reader->rest_length, 1));
  memcpy (reader->rest, at, reader->rest_length);
}

static int
take_descriptor (sd_bus_message *answer)
{
  int fd, own;

  check (sd_bus_message_read (answer, "h", &fd), "a descriptor", NULL);
  own = fcntl (fd, F_DUPFD_CLOEXEC, 3);
  if (own < 0)
    load_fail (2, "dup: %s", g_strerror (errno));
  return own;
}

static void
open_reader (DBusLoad *self, Reader *reader)
{
  g_auto (sd_bus_error) error = SD_BUS_ERROR_NULL;
  sd_bus_message *answer = NULL;
  const char *path;

  reader->bus = g_str_equal (self->sink, "stream") ? self->bus : connect_bus (self);
  if (self->is_bare)
    {
      sd_bus_add_filter (reader->bus, NULL, on_signal, reader);
      check (sd_bus_call_method (reader->bus, BARE, BARE_PATH, BARE, "Subscribe", &error, NULL, ""), "Subscribe", &error);
      watch (self, sd_bus_get_fd (reader->bus), reader);
      return;
    }

  check (sd_bus_call_method (reader->bus, HEADWAY, self->bus_path, HEADWAY ".Bus", "Subscribe", &error, &answer, "asa{sv}", 0, 1,
                             "max-queued", "u", 4096),
         "Subscribe", &error);
  check (sd_bus_message_read (answer, "o", &path), "Subscribe", NULL);
  reader->subscription = g_strdup (path);
  sd_bus_message_unref (answer);
  if (g_str_equal (self->sink, "stream"))
    {
      check (sd_bus_call_method (reader->bus, HEADWAY, reader->subscription, SUBSCRIPTION, "OpenStream", &error, &answer, "sa{sv}",
                                 "ndjson", 0),
             "OpenStream", &error);
      reader->fd = take_descriptor (answer);
      sd_bus_message_unref (answer);
      watch (self, reader->fd, reader);
      return;
    }
  sd_bus_add_filter (reader->bus, NULL, on_signal, reader);
  check (sd_bus_call_method (reader->bus, HEADWAY, reader->subscription, SUBSCRIPTION, "StartSignals", &error, NULL, "u", SIGNAL_WINDOW),
         "StartSignals", &error);
  watch (self, sd_bus_get_fd (reader->bus), reader);
}

/* --- The publisher -------------------------------------------------------------------------- */

static const char *
next_payload (DBusLoad *self)
{
  int length = g_snprintf (self->payload, (gulong) self->bytes + 64, "\"@#%" G_GUINT64_FORMAT " %" G_GINT64_FORMAT " ", self->published++,
                           load_now_ns ());

  if (length < self->bytes)
    memset (self->payload + length, 'x', (gsize) (self->bytes - length));
  length = MAX (length, self->bytes);
  self->payload[length] = '"';
  self->payload[length + 1] = '\0';
  return self->payload;
}

static int
on_answer (sd_bus_message *message, void *user_data, sd_bus_error *error)
{
  DBusLoad *self = load_self;
  guint n = GPOINTER_TO_UINT (user_data);

  if (sd_bus_message_is_method_error (message, NULL) > 0)
    check (-EIO, "publish", sd_bus_message_get_error (message));
  self->answered += n;
  if (self->n_readers == 0 && self->n_principals == 0)
    self->completed += n;
  return 0;
}

static void
publish_one (DBusLoad *self)
{
  check (sd_bus_call_method_async (self->bus, NULL, destination (self), object_path (self), interface (self), "Publish", on_answer,
                                   GUINT_TO_POINTER (1), "ssa{sv}", "t", next_payload (self), 0),
         "Publish", NULL);
}

static void
publish_many (DBusLoad *self)
{
  sd_bus_message *message = NULL;

  check (sd_bus_message_new_method_call (self->bus, &message, HEADWAY, self->bus_path, HEADWAY ".Bus", "PublishMany"), "PublishMany", NULL);
  sd_bus_message_open_container (message, 'a', "(ssa{sv})");
  for (int i = 0; i < self->many; i++)
    {
      g_autofree char *principal = NULL;

      if (self->n_principals > 0)
        {
          principal = g_strdup_printf ("p%" G_GUINT64_FORMAT, self->published % (guint64) self->n_principals);
          sd_bus_message_append (message, "(ssa{sv})", "t", next_payload (self), 1, "principal", "s", principal);
        }
      else
        sd_bus_message_append (message, "(ssa{sv})", "t", next_payload (self), 0);
    }
  sd_bus_message_close_container (message);
  sd_bus_message_append (message, "a{sv}", 0);
  check (sd_bus_call_async (self->bus, NULL, message, on_answer, GUINT_TO_POINTER ((guint) self->many), 0), "PublishMany", NULL);
  sd_bus_message_unref (message);
}

static void
read_answers (DBusLoad *self)
{
  gssize n = recv (self->publisher, self->input, INPUT_BYTES, MSG_DONTWAIT);
  char *at = self->input;

  if (n < 0 && errno == EAGAIN)
    return;
  if (n <= 0)
    load_fail (2, "the publisher's socket was closed");
  if (memmem (self->input, (gsize) n, "\"error\"", 7) != NULL)
    load_fail (2, "a line was refused: %.*s", (int) MIN (n, 400), self->input);
  while ((at = memchr (at, '\n', (gsize) (self->input + n - at))) != NULL)
    {
      at++;
      self->answered++;
      if (self->n_readers == 0)
        self->completed++;
    }
}

static void
write_lines (DBusLoad *self)
{
  gssize n;

  if (self->pending_at == self->pending->len)
    return;
  n = send (self->publisher, self->pending->str + self->pending_at, self->pending->len - self->pending_at, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n < 0 && errno != EAGAIN)
    load_fail (2, "the publisher's socket was closed: %s", g_strerror (errno));
  self->pending_at += n > 0 ? (gsize) n : 0;
  if (self->pending_at == self->pending->len)
    {
      g_string_truncate (self->pending, 0);
      self->pending_at = 0;
    }
}

static void
publish_some (DBusLoad *self)
{
  guint64 step = g_str_equal (self->publish, "many") ? (guint64) self->many : 1;
  guint64 window = (guint64) self->window;

  while (self->published - self->completed + step <= window && self->published - self->answered < MAX (window, step))
    {
      if (self->publisher >= 0)
        {
          if (self->pending->len - self->pending_at >= PENDING_MAX)
            break;
          g_string_append_printf (self->pending, "{\"type\":\"t\",\"data\":%s}\n", next_payload (self));
        }
      else if (step > 1)
        publish_many (self);
      else
        publish_one (self);
    }
  if (self->publisher >= 0)
    write_lines (self);
}

static void
open_publisher (DBusLoad *self)
{
  g_auto (sd_bus_error) error = SD_BUS_ERROR_NULL;
  sd_bus_message *answer = NULL;

  check (sd_bus_call_method (self->bus, HEADWAY, self->bus_path, HEADWAY ".Bus", "OpenPublisher", &error, &answer, "sa{sv}", "ndjson", 0),
         "OpenPublisher", &error);
  self->publisher = take_descriptor (answer);
  sd_bus_message_unref (answer);
  watch (self, self->publisher, &self->publisher);
}

/* --- The handler ---------------------------------------------------------------------------- */

static int
on_event (sd_bus_message *message, void *user_data, sd_bus_error *error)
{
  DBusLoad *self = user_data;

  self->handled++;
  self->completed++;
  return sd_bus_reply_method_return (message, "ssa{sv}", "continue", "", 0);
}

static const sd_bus_vtable handler_vtable[] = {
  SD_BUS_VTABLE_START (0),
  SD_BUS_METHOD ("HandleEvent", "(tsssxsa{sv})a{sv}", "ssa{sv}", on_event, SD_BUS_VTABLE_UNPRIVILEGED),
  SD_BUS_VTABLE_END,
};

static void
become_handler (DBusLoad *self)
{
  g_auto (sd_bus_error) error = SD_BUS_ERROR_NULL;
  sd_bus *bus = connect_bus (self);

  self->handler.bus = bus;
  self->handler.fd = -1;
  watch (self, sd_bus_get_fd (bus), &self->handler);
  check (sd_bus_add_object_vtable (bus, NULL, HANDLER_PATH, HEADWAY ".Handler", handler_vtable, self), "handler", NULL);
  if (self->is_bare)
    {
      check (sd_bus_call_method (bus, BARE, BARE_PATH, BARE, "Drive", &error, NULL, "ouu", HANDLER_PATH, (guint32) self->n_principals,
                                 (guint32) self->bytes),
             "Drive", &error);
      return;
    }
  check (sd_bus_call_method (bus, HEADWAY, self->bus_path, HEADWAY ".Bus", "RegisterHandler", &error, NULL, "asoa{sv}", 1, "t",
                             HANDLER_PATH, 0),
         "RegisterHandler", &error);
  g_free (self->publish);
  self->publish = g_strdup ("many");
  self->many = MIN (self->n_principals * PER_PRINCIPAL / 2, 64);
  self->window = self->n_principals * PER_PRINCIPAL;
}

/* --- The run -------------------------------------------------------------------------------- */

static void
process (sd_bus *bus)
{
  int n;

  while ((n = sd_bus_process (bus, NULL)) > 0)
    continue;
  check (n, "the message bus", NULL);
}

static void
wait_for_events (DBusLoad *self)
{
  struct epoll_event events[EVENTS_MAX];
  gboolean is_writing = self->pending->len > 0 || (sd_bus_get_events (self->bus) & POLLOUT) != 0 ||
                        (self->handler.bus != NULL && (sd_bus_get_events (self->handler.bus) & POLLOUT) != 0);
  int n = epoll_wait (self->epoll_fd, events, EVENTS_MAX, is_writing ? 1 : 100);

  for (int i = 0; i < n; i++)
    {
      Reader *reader = events[i].data.ptr;

      if (reader == NULL)
        continue;
      if (events[i].data.ptr == &self->publisher)
        read_answers (self);
      else if (reader->fd >= 0)
        read_lines (self, reader);
      else
        process (reader->bus);
    }
}

static void
run (DBusLoad *self)
{
  gint64 begin_ns = load_now_ns ();
  gint64 progress_ns = begin_ns;
  guint64 progress = 0;

  for (;;)
    {
      gint64 now_ns = load_now_ns ();
      guint64 done = self->completed + self->delivered;

      if (!self->meter.is_measuring && now_ns - begin_ns >= (gint64) (self->warm_seconds * 1e9))
        {
          self->begin_completed = self->completed;
          self->begin_delivered = self->delivered;
          self->begin_handled = self->handled;
          load_meter_begin (&self->meter);
        }
      if (self->meter.is_measuring && now_ns - self->meter.begin_ns >= (gint64) (self->seconds * 1e9))
        break;
      if (done != progress)
        progress_ns = now_ns;
      progress = done;
      if (now_ns - progress_ns > STALL_NS)
        load_fail (2, "stalled: %" G_GUINT64_FORMAT " published, %" G_GUINT64_FORMAT " completed", self->published, self->completed);

      process (self->bus);
      /* What came while it waited for an answer is in its queue, where epoll does not see it. */
      if (self->handler.bus != NULL)
        process (self->handler.bus);
      /* Behind them: answers make room, and with nothing under way nothing would wake it. */
      if (!self->is_bare || self->n_principals == 0)
        publish_some (self);
      wait_for_events (self);
    }
  load_meter_end (&self->meter);
}

static void
print_result (DBusLoad *self)
{
  g_autoptr (GString) text = g_string_new ("{");
  double seconds = load_meter_seconds (&self->meter);
  guint64 completed = self->completed - self->begin_completed;
  guint64 delivered = self->delivered - self->begin_delivered;
  guint64 handled = self->handled - self->begin_handled;

  if (completed + delivered == 0)
    load_fail (2, "nothing came through while it was measured");
  load_meter_append_json (&self->meter, text, self->n_readers > 0 ? delivered : completed);
  g_string_append_printf (text, "\"events_per_s\":%.1f,\"deliveries_per_s\":%.1f,\"handled_per_s\":%.1f}", (double) completed / seconds,
                          (double) delivered / seconds, (double) handled / seconds);
  g_print ("%s\n", text->str);
}

static void
parse_options (DBusLoad *self, int argc, char **argv)
{
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);
  g_autoptr (GError) error = NULL;
  g_autofree char *pids = NULL;
  const GOptionEntry entries[] = {
    { "address", 0, 0, G_OPTION_ARG_STRING, &self->address, "of the message bus", NULL },
    { "target", 0, 0, G_OPTION_ARG_STRING, &self->target, "headway or bare", NULL },
    { "sink", 0, 0, G_OPTION_ARG_STRING, &self->sink, "stream or signals", NULL },
    { "publish", 0, 0, G_OPTION_ARG_STRING, &self->publish, "call, many or publisher", NULL },
    { "readers", 0, 0, G_OPTION_ARG_INT, &self->n_readers, "how many read", NULL },
    { "principals", 0, 0, G_OPTION_ARG_INT, &self->n_principals, "be a handler of events of so many", NULL },
    { "window", 0, 0, G_OPTION_ARG_INT, &self->window, "events that may be under way", NULL },
    { "many", 0, 0, G_OPTION_ARG_INT, &self->many, "events a call", NULL },
    { "bytes", 0, 0, G_OPTION_ARG_INT, &self->bytes, "length of a payload", NULL },
    { "seconds", 0, 0, G_OPTION_ARG_DOUBLE, &self->seconds, "how long to measure", NULL },
    { "warm", 0, 0, G_OPTION_ARG_DOUBLE, &self->warm_seconds, "seconds before that", NULL },
    { "pids", 0, 0, G_OPTION_ARG_STRING, &pids, "process ids of the servers", NULL },
    { NULL }
  };

  self->target = g_strdup ("headway");
  self->sink = g_strdup ("stream");
  self->publish = g_strdup ("call");
  self->window = self->many = 64;
  self->bytes = 100;
  self->seconds = 1;
  self->warm_seconds = 0.3;
  g_option_context_add_main_entries (context, entries, NULL);
  if (!g_option_context_parse (context, &argc, &argv, &error))
    load_fail (2, "dbus-load: %s", error->message);
  if (self->address == NULL || self->n_readers < 0 || self->n_principals < 0 || self->window < 1 || self->many < 1 || self->bytes < 1)
    load_fail (2, "dbus-load: no address, or a number is out of its range");
  self->is_bare = g_str_equal (self->target, "bare");
  load_meter_init (&self->meter, pids);
}

static void
find_bus (DBusLoad *self)
{
  g_auto (sd_bus_error) error = SD_BUS_ERROR_NULL;
  sd_bus_message *answer = NULL;
  const char *path;

  check (sd_bus_call_method (self->bus, HEADWAY, "/org/headway/Headway1", HEADWAY ".Manager", "GetBus", &error, &answer, "s", "bench"),
         "GetBus", &error);
  check (sd_bus_message_read (answer, "o", &path), "GetBus", NULL);
  self->bus_path = g_strdup (path);
  sd_bus_message_unref (answer);
}

int
main (int argc, char **argv)
{
  DBusLoad self = { .publisher = -1 };
  guint64 places = 1;

  signal (SIGPIPE, SIG_IGN);
  load_raise_descriptors ();
  load_self = &self;
  parse_options (&self, argc, argv);
  self.payload = g_malloc ((gsize) self.bytes + 128);
  self.input = g_malloc (INPUT_BYTES + PENDING_MAX);
  self.pending = g_string_new (NULL);
  self.epoll_fd = epoll_create1 (EPOLL_CLOEXEC);
  self.bus = connect_bus (&self);
  watch (&self, sd_bus_get_fd (self.bus), NULL);
  if (!self.is_bare)
    find_bus (&self);
  if (self.n_principals > 0)
    become_handler (&self);

  while (places < 2 * (guint64) self.window + 2)
    places *= 2;
  self.reached = g_new0 (guint32, places);
  self.reached_mask = places - 1;
  self.readers = g_new0 (Reader, (gsize) self.n_readers);
  for (int i = 0; i < self.n_readers; i++)
    {
      self.readers[i].fd = -1;
      open_reader (&self, &self.readers[i]);
    }
  if (g_str_equal (self.publish, "publisher"))
    open_publisher (&self);
  run (&self);
  print_result (&self);
  return EXIT_SUCCESS;
}
