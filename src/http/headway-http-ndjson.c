/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-ndjson.h"

#include "engine/headway-dispatcher.h"
#include "engine/headway-error.h"
#include "engine/headway-rate-limiter.h"
#include "http/headway-http-publish.h"
#include "wire/headway-clock.h"
#include "wire/headway-error-json.h"
#include "wire/headway-line-buffer.h"

typedef struct
{
  HeadwayHttpRequest *request; /* borrowed: owns self */
  HeadwayBus *bus;             /* owned, nullable: until the first event */
  HeadwayBatch *batch;         /* owned, nullable: waits for the bus, or for the rates to allow it */
  HeadwayLineBuffer input;     /* what is not published yet */
  guint taken;                 /* lines taken in this turn */
  guint64 batch_line;          /* that of the first event of the batch under way */
  guint64 failed_line;
  GError *failure; /* owned, nullable: answered when what stands before it is published */
  guint64 published;
  guint64 first_id;
  guint64 last_id;
  guint turn_id;
  guint rate_id; /* until the rates allow `batch` */
  gboolean is_running;
  gboolean is_waiting; /* for the bus, for the rates, or for a batch */
} Ndjson;

static void ndjson_run (Ndjson *self);

static void
ndjson_free (gpointer data)
{
  Ndjson *self = data;

  g_clear_handle_id (&self->turn_id, g_source_remove);
  g_clear_handle_id (&self->rate_id, g_source_remove);
  g_clear_object (&self->bus);
  g_clear_pointer (&self->batch, headway_batch_free);
  g_clear_error (&self->failure);
  headway_line_buffer_clear (&self->input);
  g_free (self);
}

/* --- Lines ---------------------------------------------------------------------------------- */

static void
fail (Ndjson *self, guint64 line, GError *error)
{
  if (self->failure != NULL)
    {
      g_error_free (error);
      return;
    }
  self->failed_line = line;
  self->failure = error;
}

static void
fail_too_long (Ndjson *self, guint64 line, gsize max)
{
  GError *error = NULL;

  headway_line_buffer_set_too_long (&error, max);
  fail (self, line, error);
}

static void
fail_stopping (Ndjson *self, guint64 line)
{
  fail (self, line, headway_error_new_stopping ());
}

static HeadwayEvent *
parse_line (Ndjson *self, const char *text, gsize length, HeadwayInstant now)
{
  HeadwayEventMaker maker = headway_http_publish_get_maker (self->request);
  GError *error = NULL;
  HeadwayEvent *event = headway_event_maker_make_from_text (&maker, text, length, now, &error);

  if (event == NULL)
    fail (self, self->input.line, error);
  return event;
}

static void batch_done (HeadwayBatch *batch, const GError *error, gpointer user_data);

/* Many lines at once must not be refused where each of them alone would only wait. */
static gboolean
fits_batch (Ndjson *self, HeadwayBatch *batch, HeadwayEvent *event)
{
  return headway_bus_table_fits_rates (headway_http_server_get_table (self->request->server),
                                       headway_batch_get_cost (batch) + headway_event_get_cost (event),
                                       headway_batch_get_count (batch) + 1);
}

/* What a handler denies is one line's: each is published alone where one may be asked. */
static guint
get_batch_max (Ndjson *self)
{
  HeadwayBusTable *table = headway_http_server_get_table (self->request->server);

  return self->bus != NULL && !headway_dispatcher_has_pre (headway_bus_table_get_dispatcher (table), self->bus)
           ? HEADWAY_DISPATCH_EVENTS
           : 1;
}

/* Whole lines, as many as this turn may take. NULL: none that holds an event. */
static HeadwayBatch *
take_lines (Ndjson *self)
{
  guint batch_max = get_batch_max (self);
  gsize max = headway_http_publish_object_max (self->request);
  HeadwayInstant now = headway_clock_now ();
  HeadwayBatch *batch = NULL;
  const char *text;
  gsize length;

  while (self->failure == NULL && self->taken < HEADWAY_DISPATCH_EVENTS &&
         (batch == NULL || headway_batch_get_count (batch) < batch_max))
    {
      HeadwayLineKind kind = headway_line_buffer_next (&self->input, max, &text, &length);
      HeadwayEvent *event;

      if (kind == HEADWAY_LINE_NONE)
        break;
      self->taken++;
      if (kind == HEADWAY_LINE_TOO_LONG)
        fail_too_long (self, self->input.line, max);
      if (kind != HEADWAY_LINE_TEXT)
        continue;
      event = parse_line (self, text, length, now);
      if (event == NULL)
        break;
      if (batch != NULL && !fits_batch (self, batch, event))
        {
          headway_event_unref (event);
          headway_line_buffer_give_back (&self->input);
          self->taken--;
          break;
        }
      if (batch == NULL)
        {
          self->batch_line = self->input.line;
          batch = headway_batch_new (HEADWAY_DISPATCH_EVENTS, batch_done, self);
        }
      headway_batch_add (batch, event);
    }
  return batch;
}

/* --- Answers -------------------------------------------------------------------------------- */

static void
answer_success (Ndjson *self)
{
  GString *json = g_string_new ("{");

  if (self->published > 0)
    g_string_append_printf (json, "\"firstId\":%" G_GUINT64_FORMAT ",\"lastId\":%" G_GUINT64_FORMAT ",",
                            self->first_id, self->last_id);
  g_string_append_printf (json, "\"count\":%" G_GUINT64_FORMAT "}", self->published);
  headway_http_request_answer (self->request, 200, json);
}

static void
answer_failure (Ndjson *self)
{
  HeadwayHttpAnswer answer = headway_http_error_get_answer (self->failure);
  GString *json = headway_error_json_begin (self->failure, answer.code);

  headway_http_publish_add_refusal (self->request, self->failure);
  g_string_append_printf (json, ",\"line\":%" G_GUINT64_FORMAT ",\"published\":%" G_GUINT64_FORMAT,
                          self->failed_line, self->published);
  if (self->published > 0)
    g_string_append_printf (json, ",\"firstId\":%" G_GUINT64_FORMAT ",\"lastId\":%" G_GUINT64_FORMAT,
                            self->first_id, self->last_id);
  g_string_append_c (json, '}');
  headway_http_request_answer (self->request, answer.status, json);
}

/* --- Turns ---------------------------------------------------------------------------------- */

static gboolean
ndjson_turn (gpointer user_data)
{
  Ndjson *self = user_data;
  g_autoptr (HeadwayHttpRequest) alive = headway_http_request_ref (self->request);

  self->turn_id = 0;
  self->taken = 0;
  ndjson_run (self);
  return G_SOURCE_REMOVE;
}

static void
schedule_turn (Ndjson *self)
{
  headway_http_connection_hold (self->request->connection);
  if (self->turn_id == 0)
    self->turn_id = g_idle_add_full (G_PRIORITY_DEFAULT, ndjson_turn, self, NULL);
}

static void
batch_done (HeadwayBatch *batch, const GError *error, gpointer user_data)
{
  Ndjson *self = user_data;
  g_autoptr (HeadwayHttpRequest) request = self->request;
  guint count = headway_batch_get_count (batch);

  self->is_waiting = FALSE;
  if (error == NULL)
    {
      if (self->published == 0)
        self->first_id = headway_batch_get_first_id (batch);
      self->last_id = headway_batch_get_first_id (batch) + count - 1;
      self->published += count;
    }
  else
    {
      /* It stands before whatever was found wrong behind it. */
      g_clear_error (&self->failure);
      fail (self, self->batch_line, g_error_copy (error));
    }
  if (!self->is_running && headway_http_request_is_open (request))
    schedule_turn (self);
}

static gboolean rates_allow (gpointer user_data);

/* @batch: (transfer full). Over the rate it is kept until it is allowed, and nothing more is read
 * (decisions.md 13). */
static void
publish (Ndjson *self, HeadwayBatch *batch)
{
  HeadwayBusTable *table = headway_http_server_get_table (self->request->server);
  guint32 uid = self->request->caller.uid;
  HeadwayInstant now = headway_clock_now ();
  gint64 wait_us = headway_bus_table_get_wait_us (table, self->bus, uid, batch, now);

  self->is_waiting = TRUE;
  if (wait_us > 0 && wait_us != HEADWAY_RATE_NEVER)
    {
      self->batch = batch;
      self->rate_id = g_timeout_add ((guint) MIN (wait_us / 1000 + 1, G_MAXINT), rates_allow, self);
      return;
    }
  headway_http_request_ref (self->request);
  headway_bus_table_publish (table, self->bus, uid, batch, now);
}

static gboolean
rates_allow (gpointer user_data)
{
  Ndjson *self = user_data;
  g_autoptr (HeadwayHttpRequest) alive = headway_http_request_ref (self->request);

  self->rate_id = 0;
  self->is_waiting = FALSE;
  if (!headway_http_request_is_open (self->request))
    return G_SOURCE_REMOVE;
  publish (self, g_steal_pointer (&self->batch));
  return G_SOURCE_REMOVE;
}

static void
bus_ready (HeadwayBus *bus, const GError *error, gpointer user_data)
{
  Ndjson *self = user_data;
  g_autoptr (HeadwayHttpRequest) request = self->request;

  self->is_waiting = FALSE;
  if (!headway_http_request_is_open (request))
    return;
  if (bus != NULL)
    {
      self->bus = g_object_ref (bus);
      publish (self, g_steal_pointer (&self->batch));
    }
  else
    {
      g_clear_error (&self->failure);
      fail (self, self->batch_line, g_error_copy (error));
    }
  if (!self->is_running && !self->is_waiting)
    schedule_turn (self);
}

static void
open_bus (Ndjson *self, HeadwayBatch *batch)
{
  HeadwayHttpRequest *request = self->request;

  self->is_waiting = TRUE;
  self->batch = batch;
  headway_http_request_ref (request);
  headway_bus_table_ensure (headway_http_server_get_table (request->server), request->bus_name->str,
                            request->caller.uid, headway_clock_now (), bus_ready, self);
}

static void
run_lines (Ndjson *self)
{
  while (!self->is_waiting && self->failure == NULL && self->taken < HEADWAY_DISPATCH_EVENTS)
    {
      HeadwayBatch *batch = take_lines (self);

      if (batch == NULL)
        return;
      if (self->bus != NULL)
        publish (self, batch);
      else
        open_bus (self, batch);
    }
}

static void
ndjson_run (Ndjson *self)
{
  if (self->is_waiting || self->turn_id != 0 || !headway_http_request_is_open (self->request))
    return;

  self->is_running = TRUE;
  run_lines (self);
  self->is_running = FALSE;

  if (self->is_waiting)
    {
      headway_http_connection_hold (self->request->connection);
      return;
    }
  if (self->failure == NULL && self->taken >= HEADWAY_DISPATCH_EVENTS)
    {
      schedule_turn (self);
      return;
    }
  if (self->failure == NULL && !self->request->is_body_complete && headway_http_server_is_shut_down (self->request->server))
    fail_stopping (self, self->input.line + 1);
  if (self->failure != NULL)
    answer_failure (self);
  else if (self->request->is_body_complete)
    answer_success (self);
  else
    headway_http_connection_release (self->request->connection);
}

static void
ndjson_chunk (HeadwayHttpRequest *request, const char *bytes, gsize length)
{
  Ndjson *self = request->data;

  headway_line_buffer_append (&self->input, bytes, length);
  ndjson_run (self);
}

static void
ndjson_body (HeadwayHttpRequest *request)
{
  Ndjson *self = request->data;

  headway_line_buffer_end (&self->input);
  ndjson_run (self);
}

/* What is here goes out as far as it may at once. */
static void
ndjson_stop (HeadwayHttpRequest *request)
{
  Ndjson *self = request->data;

  g_clear_handle_id (&self->turn_id, g_source_remove);
  ndjson_run (self);
  if (self->rate_id == 0)
    return;
  g_clear_handle_id (&self->rate_id, g_source_remove);
  g_clear_pointer (&self->batch, headway_batch_free);
  self->is_waiting = FALSE;
  g_clear_error (&self->failure);
  fail_stopping (self, self->batch_line);
  answer_failure (self);
}

static const HeadwayHttpRequestClass ndjson_class = { ndjson_chunk, ndjson_body, ndjson_stop };

void
headway_http_ndjson_handle (HeadwayHttpRequest *request)
{
  Ndjson *self = g_new0 (Ndjson, 1);

  self->request = request;
  request->data = self;
  request->free_data = ndjson_free;
  headway_http_connection_set_phase (request->connection, HEADWAY_HTTP_PHASE_STREAM);
  headway_http_request_read (request, &ndjson_class);
}
