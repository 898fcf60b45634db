/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-ndjson.h"

#include "engine/headway-error.h"
#include "engine/headway-rate-limiter.h"
#include "http/headway-http-publish.h"
#include "wire/headway-clock.h"

#include <string.h>

#define DEPTH_IN_LINE (HEADWAY_JSON_DEPTH_MAX + 1)

typedef struct
{
  HeadwayHttpRequest *request; /* borrowed: owns self */
  HeadwayBus *bus;             /* owned, nullable: until the first event */
  HeadwayBatch *batch;         /* owned, nullable: waits for the bus, or for the rates to allow it */
  GString *input;              /* owned: what is not published yet */
  gsize at;                    /* where the next line starts in it */
  gsize searched;              /* where the search for its end goes on */
  guint taken;                 /* lines taken in this turn */
  guint64 line;                /* number of the last line taken, from 1 */
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
  g_string_free (self->input, TRUE);
  g_free (self);
}

/* --- Lines ---------------------------------------------------------------------------------- */

/* The next whole line, without its LF; at the end of the body the rest is one. */
static gboolean
next_line (Ndjson *self, const char **text, gsize *length)
{
  const char *start = self->input->str + self->at;
  const char *end = memchr (self->input->str + self->searched, '\n', self->input->len - self->searched);

  if (end == NULL)
    {
      self->searched = self->input->len;
      if (!self->request->is_body_complete || self->at == self->input->len)
        return FALSE;
      end = self->input->str + self->input->len;
    }
  *text = start;
  *length = (gsize) (end - start);
  self->at = MIN (self->at + *length + 1, self->input->len);
  self->searched = self->at;
  self->line++;
  self->taken++;
  return TRUE;
}

/* As if next_line() had not been called. */
static void
give_back_line (Ndjson *self, gsize at)
{
  self->at = at;
  self->searched = at;
  self->line--;
  self->taken--;
}

static gboolean
is_blank (const char *text, gsize length)
{
  for (gsize i = 0; i < length; i++)
    {
      if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r')
        return FALSE;
    }
  return TRUE;
}

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

  headway_set_error_with_limit (&error, HEADWAY_ERROR_TOO_LARGE, (gint64) max,
                                "the line is longer than %" G_GSIZE_FORMAT " bytes", max);
  fail (self, line, error);
}

static HeadwayEvent *
parse_line (Ndjson *self, const char *text, gsize length, HeadwayInstant now)
{
  GError *error = NULL;
  HeadwayEvent *event = NULL;
  HeadwayJson json;

  if (headway_json_validate (text, length, DEPTH_IN_LINE, &json, &error))
    event = headway_http_publish_make_event (self->request, &json, now, &error);
  if (event == NULL)
    fail (self, self->line, error);
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

/* Whole lines, as many as this turn may take. NULL: none that holds an event. */
static HeadwayBatch *
take_lines (Ndjson *self)
{
  gsize max = headway_http_publish_object_max (self->request);
  HeadwayInstant now = headway_clock_now ();
  HeadwayBatch *batch = NULL;
  const char *text;
  gsize length;
  gsize at = self->at;

  for (; self->failure == NULL && self->taken < HEADWAY_DISPATCH_EVENTS && next_line (self, &text, &length); at = self->at)
    {
      HeadwayEvent *event = NULL;

      if (length > max)
        fail_too_long (self, self->line, max);
      else if (is_blank (text, length))
        continue;
      else
        event = parse_line (self, text, length, now);
      if (event == NULL)
        break;
      if (batch != NULL && !fits_batch (self, batch, event))
        {
          headway_event_unref (event);
          give_back_line (self, at);
          break;
        }
      if (batch == NULL)
        {
          self->batch_line = self->line;
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
  GString *json = headway_http_error_begin (self->failure, answer.code);

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

/* Drops what is published, and looks whether the line that has begun may still become one. */
static void
tidy_input (Ndjson *self)
{
  gsize max = headway_http_publish_object_max (self->request);

  g_string_erase (self->input, 0, (gssize) self->at);
  self->searched -= self->at;
  self->at = 0;
  if (self->input->len > max)
    fail_too_long (self, self->line + 1, max);
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
  if (self->failure == NULL)
    tidy_input (self);
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

  g_string_append_len (self->input, bytes, (gssize) length);
  ndjson_run (self);
}

static void
ndjson_body (HeadwayHttpRequest *request)
{
  ndjson_run (request->data);
}

static const HeadwayHttpRequestClass ndjson_class = { ndjson_chunk, ndjson_body };

void
headway_http_ndjson_handle (HeadwayHttpRequest *request)
{
  Ndjson *self = g_new0 (Ndjson, 1);

  self->request = request;
  self->input = g_string_new (NULL);
  request->data = self;
  request->free_data = ndjson_free;
  headway_http_connection_set_phase (request->connection, HEADWAY_HTTP_PHASE_STREAM);
  headway_http_request_read (request, &ndjson_class);
}
