/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-connection.h"

#include "http/headway-http-farewell.h"
#include "http/headway-http-inbox.h"
#include "http/headway-http-input.h"
#include "http/headway-http-outbox.h"
#include "http/headway-http-output.h"
#include "http/headway-http-wait.h"

#include <errno.h>
#include <poll.h>
#include <glib-unix.h>
#include <sys/socket.h>
#include <unistd.h>

/* What is read in one turn of the main loop; create_source() starts a new one. */
#define TURN_BYTES (64 * 1024)

#define HEADERS_US  (15 * G_USEC_PER_SEC)
#define PROGRESS_US (30 * G_USEC_PER_SEC)
#define IDLE_US     (30 * G_USEC_PER_SEC)

struct _HeadwayHttpConnection
{
  GObject parent_instance;

  int fd; /* owned, -1 once closed or stolen */
  HeadwayHttpPlace place;
  guint32 uid;

  SoupServerMessage *message; /* weak, nullable */
  HeadwayHttpPhase phase;
  gint64 deadline_us; /* 0: none */
  gsize turn_bytes;   /* given to libsoup in this turn */

  HeadwayHttpInbox inbox;
  HeadwayHttpOutbox outbox;
  guint flush_id; /* while the socket is full and something waits in the outbox */

  GSource *held_wait; /* owned, nullable: libsoup waits on it while nothing may be read */
  gboolean is_held;
  gboolean is_first;     /* no request has been answered yet */
  gboolean is_begun;     /* libsoup has seen a part of the present request */
  gboolean is_ended;     /* by us: nothing more is read */
  gboolean is_dropped;   /* and nothing more written */
  gboolean is_malformed; /* libsoup could not parse it */
  guint refusal;         /* status for a header block that libsoup does not get; 0: none */
  gboolean is_prodded;   /* the byte that begins a last request was given */
};

enum
{
  SIGNAL_CLOSED,
  SIGNAL_REFUSED,
  N_SIGNALS
};

static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE (HeadwayHttpConnection, headway_http_connection, G_TYPE_OBJECT)

static GQuark
connection_quark (void)
{
  return g_quark_from_static_string ("headway-http-connection");
}

static void
headway_http_connection_dispose (GObject *object)
{
  headway_http_connection_close (HEADWAY_HTTP_CONNECTION (object));
  G_OBJECT_CLASS (headway_http_connection_parent_class)->dispose (object);
}

static void
headway_http_connection_finalize (GObject *object)
{
  HeadwayHttpConnection *self = HEADWAY_HTTP_CONNECTION (object);

  g_clear_weak_pointer (&self->message);
  g_clear_pointer (&self->held_wait, g_source_unref);
  headway_http_inbox_clear (&self->inbox);
  headway_http_outbox_clear (&self->outbox);
  G_OBJECT_CLASS (headway_http_connection_parent_class)->finalize (object);
}

static void
headway_http_connection_class_init (HeadwayHttpConnectionClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->dispose = headway_http_connection_dispose;
  object_class->finalize = headway_http_connection_finalize;
  signals[SIGNAL_CLOSED] = g_signal_new ("closed", G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                         NULL, G_TYPE_NONE, 0);
  signals[SIGNAL_REFUSED] = g_signal_new ("refused", G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                          NULL, G_TYPE_NONE, 0);
}

static void
headway_http_connection_init (HeadwayHttpConnection *self)
{
  self->fd = -1;
  self->is_first = TRUE;
}

HeadwayHttpConnection *
headway_http_connection_new (int fd, const HeadwayHttpPlace *place, guint32 uid)
{
  HeadwayHttpConnection *self = g_object_new (HEADWAY_TYPE_HTTP_CONNECTION, NULL);

  self->fd = fd;
  self->place = *place;
  self->uid = uid;
  headway_http_connection_set_phase (self, HEADWAY_HTTP_PHASE_HEADERS);
  return self;
}

HeadwayHttpConnection *
headway_http_connection_from_address (GSocketAddress *address)
{
  return address != NULL ? g_object_get_qdata (G_OBJECT (address), connection_quark ()) : NULL;
}

GSocketAddress *
headway_http_connection_new_address (HeadwayHttpConnection *self)
{
  /* An internet address even for a Unix socket: libsoup takes the address of HTTP/1.0 requests
   * without Host for one. */
  g_autoptr (GInetAddress) loopback = g_inet_address_new_loopback (G_SOCKET_FAMILY_IPV4);
  GSocketAddress *address = g_inet_socket_address_new (loopback, self->place.port);

  g_object_set_qdata_full (G_OBJECT (address), connection_quark (), g_object_ref (self), g_object_unref);
  return address;
}

GIOStream *
headway_http_connection_new_stream (HeadwayHttpConnection *self)
{
  g_autoptr (GInputStream) input = headway_http_input_new (self);
  g_autoptr (GOutputStream) output = headway_http_output_new (self);

  return g_simple_io_stream_new (input, output);
}

const HeadwayHttpPlace *
headway_http_connection_get_place (HeadwayHttpConnection *self)
{
  return &self->place;
}

guint32
headway_http_connection_get_uid (HeadwayHttpConnection *self)
{
  return self->uid;
}

static void flush_output (HeadwayHttpConnection *self);

static gint64
phase_allows_us (HeadwayHttpPhase phase)
{
  switch (phase)
    {
    case HEADWAY_HTTP_PHASE_HEADERS:
      return HEADERS_US;
    case HEADWAY_HTTP_PHASE_BODY:
      return PROGRESS_US;
    case HEADWAY_HTTP_PHASE_IDLE:
      return IDLE_US;
    case HEADWAY_HTTP_PHASE_STREAM:
    case HEADWAY_HTTP_PHASE_HANDLING:
    default:
      return 0;
    }
}

void
headway_http_connection_set_phase (HeadwayHttpConnection *self, HeadwayHttpPhase phase)
{
  gint64 allowed_us = phase_allows_us (phase);

  self->phase = phase;
  self->deadline_us = allowed_us > 0 ? g_get_monotonic_time () + allowed_us : 0;
  if (phase == HEADWAY_HTTP_PHASE_HANDLING)
    flush_output (self);
  if (phase != HEADWAY_HTTP_PHASE_IDLE)
    return;
  self->is_first = FALSE;
  self->is_begun = FALSE;
  /* Whoever held back the rest of a request holds back no other. */
  headway_http_connection_release (self);
}

HeadwayHttpPhase
headway_http_connection_get_phase (HeadwayHttpConnection *self)
{
  return self->phase;
}

/* Nobody is there any more to read an answer: a peer that has only closed its side to write still is. */
static gboolean
is_cut (int fd)
{
  struct pollfd watched = { .fd = fd };

  return poll (&watched, 1, 0) > 0 && (watched.revents & (POLLERR | POLLHUP)) != 0;
}

gboolean
headway_http_connection_is_late (HeadwayHttpConnection *self, gint64 now_us)
{
  return (self->deadline_us > 0 && now_us >= self->deadline_us) || (self->is_held && self->fd >= 0 && is_cut (self->fd));
}

guint
headway_http_connection_get_refusal (HeadwayHttpConnection *self)
{
  return self->refusal;
}

static void
note_progress (HeadwayHttpConnection *self)
{
  if (self->phase == HEADWAY_HTTP_PHASE_BODY)
    self->deadline_us = g_get_monotonic_time () + PROGRESS_US;
}

void
headway_http_connection_begin_body (HeadwayHttpConnection *self, gboolean is_chunked)
{
  headway_http_inbox_begin_body (&self->inbox, is_chunked);
  headway_http_connection_set_phase (self, HEADWAY_HTTP_PHASE_BODY);
}

void
headway_http_connection_hold (HeadwayHttpConnection *self)
{
  self->is_held = TRUE;
}

void
headway_http_connection_release (HeadwayHttpConnection *self)
{
  self->is_held = FALSE;
  if (self->held_wait == NULL)
    return;

  headway_http_wait_end (self->held_wait);
  g_clear_pointer (&self->held_wait, g_source_unref);
}

void
headway_http_connection_end (HeadwayHttpConnection *self)
{
  if (self->fd < 0)
    return;

  self->is_ended = TRUE;
  self->is_dropped = TRUE;
  /* Wakes whatever libsoup waits on. */
  shutdown (self->fd, SHUT_RDWR);
  headway_http_connection_release (self);
}

void
headway_http_connection_finish (HeadwayHttpConnection *self)
{
  if (self->fd < 0)
    return;

  self->is_ended = TRUE;
  shutdown (self->fd, SHUT_RD);
  headway_http_connection_release (self);
}

void
headway_http_connection_set_message (HeadwayHttpConnection *self, SoupServerMessage *message)
{
  g_set_weak_pointer (&self->message, message);
}

SoupServerMessage *
headway_http_connection_get_message (HeadwayHttpConnection *self)
{
  return self->message;
}

static gboolean
output_ready (int fd, GIOCondition condition, gpointer user_data)
{
  HeadwayHttpConnection *self = user_data;

  self->flush_id = 0;
  flush_output (self);
  return G_SOURCE_REMOVE;
}

/* Sends the answers that wait; what the socket does not take now follows when it can. */
static void
flush_output (HeadwayHttpConnection *self)
{
  if (self->fd < 0 || self->flush_id != 0 || headway_http_outbox_flush (&self->outbox, self->fd))
    return;

  if (errno == EAGAIN || errno == EWOULDBLOCK)
    self->flush_id = g_unix_fd_add (self->fd, G_IO_OUT, output_ready, self);
  else
    headway_http_outbox_clear (&self->outbox);
}

int
headway_http_connection_take_fd (HeadwayHttpConnection *self)
{
  int fd = headway_http_connection_steal_fd (self);

  self->refusal = 0;
  headway_http_connection_set_phase (self, HEADWAY_HTTP_PHASE_HANDLING);
  headway_http_connection_release (self);
  return fd;
}

int
headway_http_connection_steal_fd (HeadwayHttpConnection *self)
{
  if (self->fd < 0)
    return -1;

  g_clear_handle_id (&self->flush_id, g_source_remove);
  if (headway_http_outbox_flush (&self->outbox, self->fd))
    return g_steal_fd (&self->fd);

  /* A client that asks for more and more without reading any answer. */
  headway_http_outbox_clear (&self->outbox);
  headway_http_connection_end (self);
  return -1;
}

static gssize
set_socket_error (GError **error, int code)
{
  g_set_error_literal (error, G_IO_ERROR, g_io_error_from_errno (code), g_strerror (code));
  return -1;
}

static gssize
set_closed_error (GError **error)
{
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_CONNECTION_CLOSED, "the connection is closed");
  return -1;
}

/* What libsoup gets once no more input comes. Between two requests it would not react to an error
 * either: it has to see a request begin first. */
static gssize
read_end (HeadwayHttpConnection *self, char *buffer, GError **error)
{
  if (self->is_first || self->is_begun || self->is_prodded)
    return set_closed_error (error);

  self->is_prodded = TRUE;
  buffer[0] = '\n';
  return 1;
}

/* Not from within a read or a write: libsoup is in the middle of it. */
static gboolean
tell_refused (gpointer user_data)
{
  HeadwayHttpConnection *self = user_data;

  if (self->fd >= 0)
    g_signal_emit (self, signals[SIGNAL_REFUSED], 0);
  return G_SOURCE_REMOVE;
}

/* libsoup answers by itself what it cannot parse, without a body and before any check of ours. That
 * answer is kept back for good, and somebody else is told to give one. */
static gssize
hold_back (HeadwayHttpConnection *self, GError **error)
{
  if (!self->is_malformed)
    g_idle_add_full (G_PRIORITY_DEFAULT, tell_refused, g_object_ref (self), g_object_unref);
  self->is_malformed = TRUE;
  return set_socket_error (error, EAGAIN);
}

/* Whether libsoup waits for a header block, not for a body. */
static gboolean
wants_header (HeadwayHttpConnection *self)
{
  return self->phase == HEADWAY_HTTP_PHASE_HEADERS || self->phase == HEADWAY_HTTP_PHASE_IDLE;
}

static void
refuse (HeadwayHttpConnection *self, guint status)
{
  self->refusal = status;
  g_idle_add_full (G_PRIORITY_DEFAULT, tell_refused, g_object_ref (self), g_object_unref);
}

/* How much libsoup may have of what comes next; reads from the socket what that takes. */
static gsize
find_input (HeadwayHttpConnection *self, gsize count)
{
  gsize n = 0;
  guint status;

  if (wants_header (self))
    {
      status = headway_http_inbox_read_block (&self->inbox, self->fd);
      n = MIN (count, self->inbox.block_bytes);
      /* The timer runs from the first byte. */
      if (self->phase == HEADWAY_HTTP_PHASE_IDLE && headway_http_inbox_has_begun (&self->inbox))
        headway_http_connection_set_phase (self, HEADWAY_HTTP_PHASE_HEADERS);
    }
  else
    {
      status = headway_http_inbox_read_body (&self->inbox, self->fd, count, &n);
    }
  if (status == 0)
    return n;
  refuse (self, status);
  return 0;
}

gssize
headway_http_connection_read (HeadwayHttpConnection *self, void *buffer, gsize count, GError **error)
{
  gsize n;

  if (self->fd < 0 || self->is_ended)
    return read_end (self, buffer, error);
  if (self->is_held || self->refusal != 0 || self->turn_bytes >= TURN_BYTES)
    return set_socket_error (error, EAGAIN);

  /* It has the whole block, and wants the body of a request that it has not shown us: one that it answers by itself. */
  if (self->phase == HEADWAY_HTTP_PHASE_HEADERS && self->is_begun && self->inbox.block_bytes == 0)
    return hold_back (self, error);

  n = find_input (self, count);
  if (n == 0)
    return self->inbox.is_ended && self->refusal == 0 ? read_end (self, buffer, error) : set_socket_error (error, EAGAIN);

  headway_http_inbox_take (&self->inbox, buffer, n);
  self->is_begun = TRUE;
  self->turn_bytes += n;
  note_progress (self);
  return (gssize) n;
}

gssize
headway_http_connection_write (HeadwayHttpConnection *self, const void *buffer, gsize count, GError **error)
{
  gssize n;

  if (self->fd < 0)
    return set_closed_error (error);
  if (self->phase == HEADWAY_HTTP_PHASE_HEADERS)
    return hold_back (self, error);

  n = headway_http_outbox_put (&self->outbox, self->fd, buffer, count);
  if (n < 0)
    return set_socket_error (error, errno);
  note_progress (self);
  return n;
}

static GSource *
new_ended_wait (gpointer stream)
{
  GSource *wait = headway_http_wait_new (stream, -1, 0, NULL);

  headway_http_wait_end (wait);
  return wait;
}

GSource *
headway_http_connection_create_read_source (HeadwayHttpConnection *self, GPollableInputStream *stream, GCancellable *cancellable)
{
  gboolean may_read = !self->is_held && self->refusal == 0;
  GSource *wait;

  self->turn_bytes = 0;
  if (self->fd < 0 || self->is_ended || (may_read && self->inbox.is_ended))
    return new_ended_wait (stream);
  if (may_read && (wants_header (self) ? headway_http_inbox_has_block (&self->inbox) : headway_http_inbox_has_body (&self->inbox)))
    return new_ended_wait (stream);
  /* Nothing more to do for now. */
  flush_output (self);
  if (may_read)
    return headway_http_wait_new (stream, self->fd, G_IO_IN | G_IO_HUP | G_IO_ERR, cancellable);

  wait = headway_http_wait_new (stream, -1, 0, cancellable);
  g_clear_pointer (&self->held_wait, g_source_unref);
  self->held_wait = g_source_ref (wait);
  return wait;
}

GSource *
headway_http_connection_create_write_source (HeadwayHttpConnection *self, GPollableOutputStream *stream, GCancellable *cancellable)
{
  if (self->fd < 0)
    return new_ended_wait (stream);
  return headway_http_wait_new (stream, self->fd, G_IO_OUT | G_IO_HUP | G_IO_ERR, cancellable);
}

void
headway_http_connection_close (HeadwayHttpConnection *self)
{
  if (self->fd < 0)
    return;

  g_clear_handle_id (&self->flush_id, g_source_remove);
  if (!headway_http_outbox_flush (&self->outbox, self->fd) && (errno == EAGAIN || errno == EWOULDBLOCK) && !self->is_dropped)
    {
      g_autoptr (GByteArray) rest = headway_http_outbox_steal (&self->outbox);

      headway_http_farewell (g_steal_fd (&self->fd), g_string_new_len ((const char *) rest->data, rest->len),
                             headway_http_connection_released, g_object_ref (self));
      return;
    }
  close (g_steal_fd (&self->fd));
  g_signal_emit (self, signals[SIGNAL_CLOSED], 0);
}

void
headway_http_connection_released (gpointer connection)
{
  g_autoptr (HeadwayHttpConnection) self = connection;

  g_signal_emit (self, signals[SIGNAL_CLOSED], 0);
}
