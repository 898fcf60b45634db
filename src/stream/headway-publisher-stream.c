/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "stream/headway-publisher-stream.h"

#include "engine/headway-error.h"
#include "engine/headway-dispatcher.h"
#include "engine/headway-rate-limiter.h"
#include "stream/headway-publisher-flight.h"
#include "wire/headway-clock.h"
#include "wire/headway-line-buffer.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* Lines become flights: take_flight() cuts and decodes them, publish() hands their events to the bus as one
 * batch, settle() writes the answers of those that have ended, oldest first. What the bus does later, for want of
 * ids or for a handler, leaves its flight pending and the others go on until the window is full. */

#define READ_BYTES (64 * 1024)
/* In a turn: a read and a window of lines. */
#define STEPS_PER_TURN (1 + HEADWAY_PUBLISHER_WINDOW / HEADWAY_DISPATCH_EVENTS)
/* A batch of that cost is large enough. */
#define BATCH_BYTES (HEADWAY_PUBLISHER_WINDOW_BYTES / 4)
/* What is still read of a client that has left: more than a socket holds. */
#define LEFT_BYTES (1024 * 1024)

struct _HeadwayPublisherStream
{
  guint ref_count;
  HeadwayBusTable *table; /* owned, nullable: until it closes */
  HeadwayBus *bus;        /* weak, nullable: it is gone */
  char *bus_name;         /* owned */
  HeadwayEventMaker maker;
  HeadwayPrincipal *principal; /* owned, nullable */
  char *client;                /* owned, nullable */
  gconstpointer origin;        /* never followed */
  gboolean refuses;
  gboolean stops;
  HeadwayPublisherClosed closed;
  gpointer user_data;

  int fd;          /* owned, -1: closed */
  GSource *source; /* owned, nullable */
  gpointer tag;    /* of `fd` in `source`, nullable: not watched */
  GIOCondition condition;

  HeadwayLineBuffer input;
  gsize left_bytes; /* what may still be read of a client that has left */
  GString *answers; /* owned */
  gsize sent;       /* of `answers` */

  GQueue flights; /* HeadwayPublisherFlight (owned), in the order of their lines */
  guint n_lines;  /* of the flights, and their cost */
  guint64 cost;
  HeadwayPublisherFlight *held; /* borrowed, nullable: waits for the rates, or for room before handlers */
  HeadwayBatch *held_batch;     /* owned, nullable: its events */
  guint held_lines;             /* of `held`, from the first: have gone, each for itself */
  guint held_events;            /* of `held_batch`: theirs */
  gint64 due_us;                /* when it may go on */

  gboolean is_running;
  gboolean is_dry;        /* nothing more to read in this turn */
  gboolean is_input_over; /* nothing is read any more */
  gboolean is_exhausted;  /* and all lines are taken */
  gboolean is_over;       /* no line is taken or answered any more */
  gboolean is_deaf;       /* the client reads no answers any more: there are none */
  gboolean is_stopping;
  gboolean has_left;
};

typedef struct
{
  GSource source;
  HeadwayPublisherStream *stream; /* borrowed: destroys self */
} PublisherSource;

static HeadwayPublisherStream *
stream_ref (HeadwayPublisherStream *self)
{
  self->ref_count++;
  return self;
}

void
headway_publisher_stream_unref (HeadwayPublisherStream *self)
{
  if (--self->ref_count > 0)
    return;
  headway_publisher_stream_close (self);
  while (!g_queue_is_empty (&self->flights))
    headway_publisher_flight_free (g_queue_pop_head_link (&self->flights)->data);
  headway_line_buffer_clear (&self->input);
  g_string_free (self->answers, TRUE);
  g_clear_pointer (&self->principal, headway_principal_unref);
  g_free (self->client);
  g_free (self->bus_name);
  g_free (self);
}

/* --- Answers -------------------------------------------------------------------------------- */

static gsize
get_unsent (HeadwayPublisherStream *self)
{
  return self->answers->len - self->sent;
}

static void
turn_deaf (HeadwayPublisherStream *self)
{
  self->is_deaf = TRUE;
  g_string_truncate (self->answers, 0);
  self->sent = 0;
}

/* Sends what the socket takes. A client that has closed it is not told, but what it wrote before is
 * published. */
static void
flush (HeadwayPublisherStream *self)
{
  while (self->fd >= 0 && get_unsent (self) > 0)
    {
      gssize n = send (self->fd, self->answers->str + self->sent, get_unsent (self), MSG_NOSIGNAL | MSG_DONTWAIT);

      if (n < 0 && errno == EINTR)
        continue;
      if (n < 0 && errno != EAGAIN)
        turn_deaf (self);
      if (n < 0)
        return;
      self->sent += (gsize) n;
    }
  g_string_truncate (self->answers, 0);
  self->sent = 0;
}

static void
wake (HeadwayPublisherStream *self)
{
  if (self->source != NULL && !self->is_running)
    g_source_set_ready_time (self->source, 0);
}

/* Nothing is taken behind a line that is refused, if that is wanted. What has been, is published. */
static void
heed_refusal (HeadwayPublisherStream *self)
{
  self->is_input_over = self->is_input_over || self->stops;
  self->is_exhausted = self->is_exhausted || self->stops;
}

static void
answer_line (HeadwayPublisherStream *self, const HeadwayPublisherFlight *flight, const HeadwayPublisherLine *line)
{
  if (self->is_over)
    return;
  if (line->error != NULL)
    {
      const HeadwayCaller *caller = self->maker.caller;

      headway_bus_table_add_refusal (self->table, self->bus_name, caller->uid, caller->principal, line->error,
                                     headway_clock_now ());
      heed_refusal (self);
      self->is_over = flight->is_last || g_error_matches (line->error, HEADWAY_ERROR, HEADWAY_ERROR_CLOSED) ||
                      (self->is_stopping && g_error_matches (line->error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE));
    }
  if (!self->is_deaf)
    headway_publisher_line_append_answer (line, self->answers);
}

/* Answers the flights that have ended, up to the first one that has not. */
static void
settle (HeadwayPublisherStream *self)
{
  HeadwayPublisherFlight *flight;

  while ((flight = g_queue_peek_head (&self->flights)) != NULL && flight->n_pending == 0)
    {
      for (guint i = 0; i < flight->n_lines; i++)
        answer_line (self, flight, &flight->lines[i]);
      self->n_lines -= flight->n_lines;
      self->cost -= flight->cost;
      g_queue_unlink (&self->flights, &flight->link);
      headway_publisher_flight_free (flight);
    }
  wake (self);
}

/* One thing that @flight waited for has ended. Takes over the reference that it had. */
static void
end_pending (HeadwayPublisherFlight *flight)
{
  g_autoptr (HeadwayPublisherStream) self = flight->stream;

  flight->n_pending--;
  if (self->fd >= 0)
    settle (self);
}

/* --- Publishing ----------------------------------------------------------------------------- */

static void
flight_done (HeadwayBatch *batch, const GError *error, gpointer user_data)
{
  HeadwayPublisherFlight *flight = user_data;

  if (error == NULL)
    headway_publisher_flight_set_ids (flight, headway_batch_get_first_id (batch));
  else
    headway_publisher_flight_refuse (flight, error);
  end_pending (flight);
}

static void
line_done (HeadwayBatch *batch, const GError *error, gpointer user_data)
{
  HeadwayPublisherLine *line = user_data;

  if (error == NULL)
    line->id = headway_batch_get_first_id (batch);
  else
    line->error = g_error_copy (error);
  end_pending (line->flight);
}

static void
hand_over (HeadwayPublisherStream *self, HeadwayPublisherFlight *flight, HeadwayBatch *batch, HeadwayInstant now)
{
  g_autoptr (HeadwayBus) bus = g_object_ref (self->bus);

  flight->n_pending++;
  stream_ref (self);
  headway_bus_table_publish (self->table, bus, self->maker.caller->uid, batch, now);
}

static gboolean
may_hold (HeadwayPublisherStream *self)
{
  return !self->refuses && !self->has_left;
}

/* @batch: (transfer full): goes on after @wait_us, behind the first @n_lines and their @n_events. */
static void
hold (HeadwayPublisherStream *self, HeadwayPublisherFlight *flight, HeadwayBatch *batch, guint n_lines, guint n_events, gint64 wait_us)
{
  self->held = flight;
  self->held_batch = batch;
  self->held_lines = n_lines;
  self->held_events = n_events;
  self->due_us = g_get_monotonic_time () + wait_us;
}

/* Each line for itself, from those on that are named: they do not share what is wrong with one of them. The first that has
 * to wait holds up those behind it. @batch: (transfer full). Called while @flight is pending. */
static void
publish_singly (HeadwayPublisherStream *self, HeadwayPublisherFlight *flight, HeadwayBatch *batch, guint n_lines, guint n_events)
{
  g_autoptr (HeadwayBatch) owned = batch;
  HeadwayInstant now = headway_clock_now ();

  for (guint i = n_lines; i < flight->n_lines; i++)
    {
      HeadwayPublisherLine *line = &flight->lines[i];
      g_autoptr (HeadwayBatch) single = NULL;
      gint64 wait_us;

      if (line->error == NULL && self->bus == NULL)
        line->error = g_error_new (HEADWAY_ERROR, HEADWAY_ERROR_CLOSED, "bus \"%s\" is closed", self->bus_name);
      if (line->error != NULL)
        continue;
      single = headway_batch_new (1, line_done, line);
      headway_batch_set_origin (single, self->origin);
      headway_batch_add (single, headway_event_ref (headway_batch_get_event (batch, n_events)));
      wait_us = headway_bus_table_get_wait_us (self->table, self->bus, self->maker.caller->uid, single, now);
      if (wait_us > 0 && wait_us != HEADWAY_RATE_NEVER && may_hold (self))
        {
          hold (self, flight, g_steal_pointer (&owned), i, n_events, wait_us);
          return;
        }
      n_events++;
      hand_over (self, flight, g_steal_pointer (&single), now);
    }
}

/* @batch: (transfer full): the events of @flight, which is pending. */
static void
publish (HeadwayPublisherStream *self, HeadwayPublisherFlight *flight, HeadwayBatch *batch)
{
  HeadwayInstant now = headway_clock_now ();
  gint64 wait_us;

  /* What a handler denies is one line's. */
  if (self->bus == NULL || headway_dispatcher_has_pre (headway_bus_table_get_dispatcher (self->table), self->bus))
    {
      publish_singly (self, flight, batch, 0, 0);
      return;
    }
  headway_batch_set_origin (batch, self->origin);
  wait_us = headway_bus_table_get_wait_us (self->table, self->bus, self->maker.caller->uid, batch, now);
  if (wait_us == 0)
    hand_over (self, flight, batch, now);
  else if (wait_us == HEADWAY_RATE_NEVER || !may_hold (self))
    publish_singly (self, flight, batch, 0, 0);
  else
    hold (self, flight, batch, 0, 0, wait_us);
}

/* Publishes @flight as far as it is possible, with @batch, (transfer full) (nullable): its events. */
static void
start (HeadwayPublisherStream *self, HeadwayPublisherFlight *flight, HeadwayBatch *batch)
{
  flight->n_pending++;
  stream_ref (self);
  if (batch != NULL)
    publish (self, flight, batch);
  if (self->held == NULL)
    end_pending (flight);
}

/* FALSE: it still has to wait. */
static gboolean
retry_held (HeadwayPublisherStream *self)
{
  HeadwayPublisherFlight *flight = self->held;

  if (!self->has_left && !self->is_stopping && g_get_monotonic_time () < self->due_us)
    return FALSE;
  self->held = NULL;
  if (self->held_lines > 0)
    publish_singly (self, flight, g_steal_pointer (&self->held_batch), self->held_lines, self->held_events);
  else
    publish (self, flight, g_steal_pointer (&self->held_batch));
  if (self->held != NULL)
    return FALSE;
  end_pending (flight);
  return TRUE;
}

/* --- Lines ---------------------------------------------------------------------------------- */

/* Many lines at once must not be refused where each of them alone would only wait. */
static gboolean
fits_batch (HeadwayPublisherStream *self, const HeadwayBatch *batch, const HeadwayEvent *event)
{
  return headway_bus_table_fits_rates (self->table, headway_batch_get_cost (batch) + headway_event_get_cost (event),
                                       headway_batch_get_count (batch) + 1);
}

/* FALSE: @flight is to go first, if need be without the line, which is given back. @batch: (inout). */
static gboolean
add_line (HeadwayPublisherStream *self,
          HeadwayPublisherFlight *flight,
          const char *text,
          gsize length,
          HeadwayInstant now,
          HeadwayBatch **batch)
{
  GError *error = NULL;
  HeadwayEvent *event = headway_event_maker_make_from_text (&self->maker, text, length, now, &error);

  if (event == NULL)
    {
      headway_publisher_flight_add (flight, self->input.line, error);
      heed_refusal (self);
      return !self->stops;
    }
  if (*batch != NULL && !fits_batch (self, *batch, event))
    {
      headway_event_unref (event);
      headway_line_buffer_give_back (&self->input);
      return FALSE;
    }
  if (*batch == NULL)
    *batch = headway_batch_new (HEADWAY_DISPATCH_EVENTS, flight_done, flight);
  headway_batch_add (*batch, event);
  headway_publisher_flight_add (flight, self->input.line, NULL);
  return headway_batch_get_cost (*batch) < BATCH_BYTES;
}

/* Likewise. */
static gboolean
add_long_line (HeadwayPublisherStream *self, HeadwayPublisherFlight *flight, gsize max)
{
  GError *error = NULL;

  headway_line_buffer_set_too_long (&error, max);
  headway_publisher_flight_add (flight, self->input.line, error);
  heed_refusal (self);
  return !self->stops;
}

/* The next line is the last one that is answered. */
static void
add_last_line (HeadwayPublisherStream *self, HeadwayPublisherFlight *flight)
{
  flight->is_last = TRUE;
  headway_publisher_flight_add (flight, self->input.line, headway_error_new_stopping ());
}

/* Takes whole lines, blank ones too: at most as many as a flight has. Returns how many. */
static guint
fill_flight (HeadwayPublisherStream *self, HeadwayPublisherFlight *flight, HeadwayBatch **batch)
{
  guint64 event_max = headway_bus_table_get_limits (self->table)->event_max_bytes;
  HeadwayInstant now = headway_clock_now ();
  gsize max = event_max + HEADWAY_LINE_SLACK;
  gboolean has_room = TRUE;
  guint n_taken = 0;

  self->maker.cost_max = event_max;
  while (has_room && n_taken < HEADWAY_DISPATCH_EVENTS)
    {
      const char *text = NULL;
      gsize length = 0;
      HeadwayLineKind kind = headway_line_buffer_next (&self->input, max, &text, &length);

      if (kind == HEADWAY_LINE_NONE)
        break;
      n_taken++;
      if (kind == HEADWAY_LINE_BLANK)
        continue;
      if (self->is_stopping)
        {
          add_last_line (self, flight);
          break;
        }
      if (kind == HEADWAY_LINE_TOO_LONG)
        has_room = add_long_line (self, flight, max);
      else
        has_room = add_line (self, flight, text, length, now, batch);
    }
  return n_taken;
}

/* FALSE: there was no whole line. */
static gboolean
take_flight (HeadwayPublisherStream *self)
{
  HeadwayPublisherFlight *flight = headway_publisher_flight_new (self);
  HeadwayBatch *batch = NULL;
  guint n_taken = fill_flight (self, flight, &batch);

  if (flight->n_lines == 0)
    {
      headway_publisher_flight_free (flight);
      return n_taken > 0;
    }
  flight->cost = batch != NULL ? headway_batch_get_cost (batch) : 0;
  self->n_lines += flight->n_lines;
  self->cost += flight->cost;
  g_queue_push_tail_link (&self->flights, &flight->link);
  start (self, flight, batch);
  return TRUE;
}

static gboolean
has_window (HeadwayPublisherStream *self)
{
  return get_unsent (self) < HEADWAY_PUBLISHER_ANSWERS_MAX && self->cost < HEADWAY_PUBLISHER_WINDOW_BYTES &&
         self->n_lines + HEADWAY_DISPATCH_EVENTS <= HEADWAY_PUBLISHER_WINDOW;
}

/* --- Turns ---------------------------------------------------------------------------------- */

static void
end_input (HeadwayPublisherStream *self)
{
  self->is_input_over = TRUE;
  headway_line_buffer_end (&self->input);
}

/* FALSE: there is nothing to read at present. */
static gboolean
read_input (HeadwayPublisherStream *self)
{
  gsize room;
  char *to;
  gssize n;

  if (self->is_dry)
    return FALSE;
  to = headway_line_buffer_reserve (&self->input, READ_BYTES, &room);
  do
    n = recv (self->fd, to, room, MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);
  self->is_dry = n < (gssize) room;
  if (n > 0)
    headway_line_buffer_commit (&self->input, (gsize) n);
  else if (n == 0 || errno != EAGAIN)
    end_input (self);
  /* Of a client that has left a line without LF may be half a line. */
  else if (self->has_left)
    self->is_input_over = TRUE;
  if (self->has_left)
    {
      self->left_bytes -= MIN (self->left_bytes, (gsize) MAX (n, 0));
      self->is_input_over = self->is_input_over || self->left_bytes == 0;
      self->is_dry = FALSE;
    }
  return n > 0 || self->is_input_over;
}

/* FALSE: it has to wait for something. */
static gboolean
step (HeadwayPublisherStream *self)
{
  if (self->is_over)
    return FALSE;
  if (self->held != NULL)
    return retry_held (self);
  if (self->is_exhausted || !has_window (self))
    return FALSE;
  if (take_flight (self))
    return TRUE;
  if (!self->is_input_over)
    return read_input (self);
  self->is_exhausted = TRUE;
  return FALSE;
}

static void
watch (HeadwayPublisherStream *self, GIOCondition condition)
{
  if (condition == self->condition)
    return;
  /* A descriptor that is watched for nothing still wakes us when the other end is closed. */
  if (condition == 0)
    g_source_remove_unix_fd (self->source, g_steal_pointer (&self->tag));
  else if (self->tag == NULL)
    self->tag = g_source_add_unix_fd (self->source, self->fd, condition);
  else
    g_source_modify_unix_fd (self->source, self->tag, condition);
  self->condition = condition;
}

/* Nothing is left to be done, or nobody left to do it for. */
static gboolean
is_finished (HeadwayPublisherStream *self)
{
  gboolean is_answered = self->is_over || (self->is_exhausted && g_queue_is_empty (&self->flights));

  return is_answered && (get_unsent (self) == 0 || self->has_left);
}

static void
finish (HeadwayPublisherStream *self)
{
  HeadwayPublisherClosed closed = self->closed;

  headway_publisher_stream_close (self);
  closed (self, self->user_data);
}

/* Says what the next turn waits for. @is_more: nothing, it goes on at once. */
static void
rearm (HeadwayPublisherStream *self, gboolean is_more)
{
  gboolean may_read = !self->is_over && !self->is_input_over && self->held == NULL && has_window (self);
  GIOCondition condition = get_unsent (self) > 0 ? G_IO_OUT : 0;

  if (is_finished (self))
    {
      finish (self);
      return;
    }
  if (may_read)
    condition |= G_IO_IN;
  watch (self, condition);
  if (is_more)
    g_source_set_ready_time (self->source, 0);
  else
    g_source_set_ready_time (self->source, self->held != NULL ? self->due_us : -1);
  if (may_read && !is_more && self->input.size > 2 * READ_BYTES)
    headway_line_buffer_trim (&self->input);
}

static gboolean
dispatch (GSource *source, GSourceFunc callback, gpointer user_data)
{
  g_autoptr (HeadwayPublisherStream) self = stream_ref (((PublisherSource *) source)->stream);
  gboolean is_more = TRUE;

  self->is_running = TRUE;
  self->is_dry = FALSE;
  flush (self);
  /* What it had sent does not wait for somebody who reads no answers. */
  if (self->has_left && get_unsent (self) >= HEADWAY_PUBLISHER_ANSWERS_MAX)
    turn_deaf (self);
  for (guint i = 0; is_more && i < STEPS_PER_TURN; i++)
    is_more = step (self);
  flush (self);
  self->is_running = FALSE;
  if (self->fd >= 0)
    rearm (self, is_more);
  return G_SOURCE_CONTINUE;
}

/* --- Its life ------------------------------------------------------------------------------- */

HeadwayPublisherStream *
headway_publisher_stream_new (int fd, const HeadwayPublisherOptions *options, HeadwayPublisherClosed closed, gpointer user_data)
{
  static GSourceFuncs funcs = { .dispatch = dispatch };
  HeadwayPublisherStream *self = g_new0 (HeadwayPublisherStream, 1);

  self->ref_count = 1;
  self->table = g_object_ref (options->table);
  g_set_weak_pointer (&self->bus, options->bus);
  self->bus_name = g_strdup (headway_bus_get_name (options->bus));
  self->principal = options->principal != NULL ? headway_principal_ref (options->principal) : NULL;
  self->client = g_strdup (options->client);
  self->origin = options->origin;
  self->refuses = options->refuses;
  self->stops = options->stops;
  self->maker = (HeadwayEventMaker){
    .caller = options->caller,
    .principals = headway_bus_table_get_principals (options->table),
    .principal = self->principal,
    .client = self->client,
  };
  self->closed = closed;
  self->user_data = user_data;
  self->fd = fd;
  self->answers = g_string_new (NULL);
  g_queue_init (&self->flights);

  self->source = g_source_new (&funcs, sizeof (PublisherSource));
  ((PublisherSource *) self->source)->stream = self;
  g_source_set_static_name (self->source, "headway-publisher-stream");
  /* As in the hub. */
  g_source_set_can_recurse (self->source, TRUE);
  watch (self, G_IO_IN);
  g_source_attach (self->source, NULL);
  return self;
}

void
headway_publisher_stream_leave (HeadwayPublisherStream *self)
{
  self->has_left = TRUE;
  self->left_bytes = LEFT_BYTES;
  wake (self);
}

void
headway_publisher_stream_stop (HeadwayPublisherStream *self)
{
  self->is_stopping = TRUE;
  self->is_input_over = TRUE;
  wake (self);
}

/* With unread input in it a closed socket would be reset, and the client would find an error behind the last
 * answer instead of the end. */
static void
close_socket (int fd)
{
  char scratch[4096];
  gsize dropped = 0;
  gssize n;

  shutdown (fd, SHUT_RDWR);
  while (dropped < LEFT_BYTES && (n = recv (fd, scratch, sizeof scratch, MSG_DONTWAIT)) > 0)
    dropped += (gsize) n;
  close (fd);
}

void
headway_publisher_stream_close (HeadwayPublisherStream *self)
{
  HeadwayPublisherFlight *held = g_steal_pointer (&self->held);

  if (self->fd < 0)
    return;
  g_source_destroy (self->source);
  g_clear_pointer (&self->source, g_source_unref);
  self->tag = NULL;
  close_socket (self->fd);
  self->fd = -1;
  g_clear_pointer (&self->held_batch, headway_batch_free);
  g_clear_weak_pointer (&self->bus);
  g_clear_object (&self->table);
  if (held != NULL)
    end_pending (held);
}
