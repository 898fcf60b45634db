/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads a bus over HTTP: asks where it stands, opens the stream of server-sent events, and
 * reads piece by piece, each only after what came before is written. A stream that ends or
 * breaks is opened again behind the reader's cursor, with growing pauses.
 *
 * A connection whose other side is gone without a word is noticed by the missing heartbeats,
 * once their pace is known.
 */
#include "config.h"

#include "cli/headway-cli-event-source.h"

#include "cli/headway-cli-bus-info.h"
#include "cli/headway-cli-envelope.h"
#include "cli/headway-cli-error.h"
#include "cli/headway-cli-http.h"
#include "cli/headway-cli-sse-parser.h"

#include <glib/gi18n.h>
#include <string.h>

#define PIECE_BYTES      (64 * 1024)
#define DELAY_MAX_MS     3000
#define WATCH_SECONDS    5
#define SILENCE_FACTOR   4
#define SILENCE_LEAST_US (20 * G_USEC_PER_SEC)

struct _HeadwayCliEventSource
{
  HeadwayCliHttp *http;                /* owned */
  const HeadwayCliSubOptions *options; /* borrowed, outlives self */
  HeadwayCliReader *reader;            /* borrowed, outlives self */
  GCancellable *cancellable;           /* owned: what is under way */
  SoupMessage *message;                /* owned, nullable */
  GInputStream *stream;                /* owned, nullable */
  HeadwayCliSseParser *parser;         /* owned, nullable */
  char *piece;                         /* owned, PIECE_BYTES */
  guint64 last_id;                     /* of the bus, just before the stream was opened */
  guint retry_source;
  guint watch_source;
  gboolean is_reading;
  gint64 read_start_us;   /* since when nothing came */
  gint64 last_comment_us; /* when the last heartbeat came, or the stream opened */
  gint64 silence_us;      /* longest silence that is believed; 0: any */
  guint64 n_comments;
};

static void open_stream (HeadwayCliEventSource *self);
static void read_piece (gpointer user_data);

static void
close_stream (HeadwayCliEventSource *self)
{
  g_cancellable_cancel (self->cancellable);
  g_clear_object (&self->cancellable);
  g_clear_object (&self->stream);
  g_clear_object (&self->message);
  g_clear_pointer (&self->parser, headway_cli_sse_parser_free);
  g_clear_handle_id (&self->watch_source, g_source_remove);
}

static gboolean
on_retry (gpointer user_data)
{
  HeadwayCliEventSource *self = user_data;

  self->retry_source = 0;
  open_stream (self);
  return G_SOURCE_REMOVE;
}

static void
wait_and_retry (HeadwayCliEventSource *self,
                const GError *reason,
                guint delay_max_ms)
{
  headway_cli_reader_waiting (self->reader, reason);
  self->retry_source = g_timeout_add (headway_cli_reader_next_delay_ms (self->reader, delay_max_ms), on_retry, self);
}

/* Nothing could be opened. */
static void
refuse (HeadwayCliEventSource *self,
        const GError *error)
{
  close_stream (self);
  if (headway_cli_reader_may_wait (self->reader, error))
    wait_and_retry (self, error, DELAY_MAX_MS);
  else
    headway_cli_reader_fail (self->reader, error);
}

static void
stream_ended (HeadwayCliEventSource *self,
              const GError *reason)
{
  guint delay_max_ms = headway_cli_sse_parser_get_retry_ms (self->parser);

  close_stream (self);
  if (headway_cli_reader_end (self->reader))
    return;
  if (headway_cli_reader_was_evicted (self->reader))
    open_stream (self);
  else
    wait_and_retry (self, reason, delay_max_ms > 0 ? MIN (delay_max_ms, 60000) : DELAY_MAX_MS);
}

static guint64
parse_id (const char *text)
{
  guint64 id;

  return text != NULL && g_ascii_string_to_unsigned (text, 10, 0, G_MAXUINT64, &id, NULL) ? id : 0;
}

static void
on_frame (const HeadwayCliSseFrame *frame,
          gpointer user_data)
{
  HeadwayCliEventSource *self = user_data;
  g_auto (HeadwayCliEnvelope) envelope = { 0 };

  if (!g_utf8_validate_len (frame->data, frame->length, NULL))
    {
      headway_cli_say (_ ("a frame that is no UTF-8 was skipped"));
      return;
    }
  headway_cli_envelope_init (&envelope, (HeadwayCliSlice){ frame->data, frame->length });
  if (frame->id != NULL || g_strcmp0 (self->options->mode, "routed") == 0)
    envelope.event.resume_id = parse_id (frame->id);
  if (*envelope.event.type == '\0')
    envelope.event.type = frame->event;
  headway_cli_reader_take (self->reader, &envelope.event);
}

static void
learn_silence (HeadwayCliEventSource *self)
{
  guint64 n_comments = headway_cli_sse_parser_get_n_comments (self->parser);
  gint64 now = g_get_monotonic_time ();

  if (n_comments == self->n_comments)
    return;
  self->silence_us = MAX (SILENCE_LEAST_US, SILENCE_FACTOR * (now - self->last_comment_us));
  self->n_comments = n_comments;
  self->last_comment_us = now;
}

static void
on_piece (GObject *source,
          GAsyncResult *result,
          gpointer user_data)
{
  HeadwayCliEventSource *self = user_data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) reason = NULL;
  gssize size = g_input_stream_read_finish (G_INPUT_STREAM (source), result, &error);

  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    return;
  self->is_reading = FALSE;
  if (error != NULL)
    reason = headway_cli_http_convert_error (error);
  if (size <= 0)
    {
      stream_ended (self, reason);
      return;
    }
  if (!headway_cli_sse_parser_feed (self->parser, self->piece, (gsize) size, &error))
    {
      headway_cli_reader_fail (self->reader, error);
      return;
    }
  learn_silence (self);
  headway_cli_reader_flush (self->reader, read_piece, self);
}

static void
read_piece (gpointer user_data)
{
  HeadwayCliEventSource *self = user_data;

  self->is_reading = TRUE;
  self->read_start_us = g_get_monotonic_time ();
  g_input_stream_read_async (self->stream, self->piece, PIECE_BYTES, G_PRIORITY_DEFAULT, self->cancellable, on_piece, self);
}

static gboolean
on_watch (gpointer user_data)
{
  HeadwayCliEventSource *self = user_data;
  g_autoptr (GError) error = NULL;

  if (!self->is_reading || self->silence_us == 0 || g_get_monotonic_time () - self->read_start_us < self->silence_us)
    return G_SOURCE_CONTINUE;
  self->watch_source = 0;
  self->is_reading = FALSE;
  error = g_error_new_literal (HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_UNREACHABLE, _ ("the heartbeats have stopped"));
  stream_ended (self, error);
  return G_SOURCE_REMOVE;
}

static void
on_refusal_read (GObject *source,
                 GAsyncResult *result,
                 gpointer user_data)
{
  HeadwayCliEventSource *self = user_data;
  g_autoptr (GError) error = NULL;
  gsize size = 0;

  if (!g_input_stream_read_all_finish (G_INPUT_STREAM (source), result, &size, &error) && g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    return;
  g_clear_error (&error);
  error = headway_cli_error_from_http (soup_message_get_status (self->message), self->piece, size, NULL);
  refuse (self, error);
}

static gboolean
is_event_stream (SoupMessage *message)
{
  const char *type = soup_message_headers_get_content_type (soup_message_get_response_headers (message), NULL);

  return type != NULL && g_ascii_strcasecmp (type, "text/event-stream") == 0;
}

static void
on_opened (GObject *source,
           GAsyncResult *result,
           gpointer user_data)
{
  HeadwayCliEventSource *self = user_data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) converted = NULL;
  g_autoptr (GInputStream) stream = soup_session_send_finish (SOUP_SESSION (source), result, &error);

  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    return;
  if (stream == NULL)
    {
      converted = headway_cli_http_convert_error (error);
      refuse (self, converted);
      return;
    }
  self->stream = g_steal_pointer (&stream);
  if (!SOUP_STATUS_IS_SUCCESSFUL (soup_message_get_status (self->message)))
    {
      g_input_stream_read_all_async (self->stream, self->piece, PIECE_BYTES, G_PRIORITY_DEFAULT, self->cancellable, on_refusal_read, self);
      return;
    }
  if (!is_event_stream (self->message))
    {
      converted = g_error_new_literal (HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_FAILED, _ ("the answer is no event stream: is this a headwayd?"));
      headway_cli_reader_fail (self->reader, converted);
      return;
    }
  self->parser = headway_cli_sse_parser_new (on_frame, self);
  self->n_comments = 0;
  self->silence_us = 0;
  self->last_comment_us = g_get_monotonic_time ();
  self->watch_source = g_timeout_add_seconds (WATCH_SECONDS, on_watch, self);
  headway_cli_reader_opened (self->reader, soup_message_headers_get_one (soup_message_get_response_headers (self->message), "X-Qwen-Event-Epoch"), self->last_id, TRUE);
  read_piece (self);
}

static void
append_parameter (GString *path,
                  const char *name,
                  const char *value)
{
  g_autofree char *escaped = NULL;

  if (value == NULL)
    return;
  escaped = g_uri_escape_string (value, NULL, FALSE);
  g_string_append_printf (path, "%c%s=%s", strchr (path->str, '?') != NULL ? '&' : '?', name, escaped);
}

static char *
dup_stream_path (const HeadwayCliSubOptions *options)
{
  g_autofree char *route = headway_cli_http_get_bus_path (options->words[0], "/events");
  GString *path = g_string_new (route);

  for (gsize i = 1; options->words[i] != NULL; i++)
    append_parameter (path, "topic", options->words[i]);
  if (options->types != NULL)
    {
      g_autofree char *types = g_strjoinv (",", options->types);

      append_parameter (path, "types", types);
    }
  append_parameter (path, "mode", options->mode);
  append_parameter (path, "scope", options->scope);
  append_parameter (path, "eviction", options->eviction);
  append_parameter (path, "maxQueued", options->max_queued_text);
  return g_string_free (path, FALSE);
}

static SoupMessage *
create_message (HeadwayCliEventSource *self,
                GError **error)
{
  g_autofree char *path = dup_stream_path (self->options);
  const char *epoch = headway_cli_reader_get_epoch (self->reader);
  SoupMessage *message = headway_cli_http_create_message (self->http, "GET", path, NULL, error);
  SoupMessageHeaders *headers;
  guint64 cursor;

  if (message == NULL)
    return NULL;
  headers = soup_message_get_request_headers (message);
  soup_message_headers_replace (headers, "Accept", "text/event-stream");
  if (epoch != NULL)
    soup_message_headers_replace (headers, "X-Qwen-Event-Epoch", epoch);
  if (headway_cli_reader_get_cursor (self->reader, &cursor))
    {
      g_autofree char *text = g_strdup_printf ("%" G_GUINT64_FORMAT, cursor);

      soup_message_headers_replace (headers, "Last-Event-ID", text);
    }
  return message;
}

/* Where the bus stands is known; now the stream itself. */
static void
on_bus_told (GObject *source,
             GAsyncResult *result,
             gpointer user_data)
{
  HeadwayCliEventSource *self = user_data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) converted = NULL;
  g_autoptr (GBytes) body = soup_session_send_and_read_finish (SOUP_SESSION (source), result, &error);
  g_auto (HeadwayCliBusInfo) info = { 0 };
  HeadwayCliSlice json;

  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    return;
  if (body == NULL || !headway_cli_http_check_answer (self->message, body, NULL, &error))
    {
      converted = headway_cli_http_convert_error (error);
      refuse (self, converted);
      return;
    }
  json.text = g_bytes_get_data (body, &json.length);
  headway_cli_bus_info_init_from_json (&info, json);
  self->last_id = info.last_event_id;
  g_clear_object (&self->message);
  self->message = create_message (self, &error);
  if (self->message == NULL)
    refuse (self, error);
  else
    soup_session_send_async (headway_cli_http_get_session (self->http), self->message, G_PRIORITY_DEFAULT, self->cancellable, on_opened, self);
}

static void
open_stream (HeadwayCliEventSource *self)
{
  g_autofree char *path = headway_cli_http_get_bus_path (self->options->words[0], "");
  g_autoptr (GError) error = NULL;

  self->cancellable = g_cancellable_new ();
  self->message = headway_cli_http_create_message (self->http, "GET", path, NULL, &error);
  if (self->message == NULL)
    refuse (self, error);
  else
    soup_session_send_and_read_async (headway_cli_http_get_session (self->http), self->message, G_PRIORITY_DEFAULT, self->cancellable, on_bus_told, self);
}

/**
 * headway_cli_event_source_new:
 * @cli: the global options
 * @options: what to read; outlives the source
 * @reader: whom to give it to; outlives the source
 * @error: return location
 *
 * Starts to read, as soon as the main loop runs.
 *
 * Returns: (transfer full): a source, or NULL with an error of HEADWAY_CLI_ERROR
 */
HeadwayCliEventSource *
headway_cli_event_source_new (HeadwayCli *cli,
                              const HeadwayCliSubOptions *options,
                              HeadwayCliReader *reader,
                              GError **error)
{
  g_autoptr (HeadwayCliHttp) http = headway_cli_http_new (cli->http_url, cli->token_file, error);
  HeadwayCliEventSource *self;

  if (http == NULL)
    return NULL;
  self = g_new0 (HeadwayCliEventSource, 1);
  self->http = g_steal_pointer (&http);
  self->options = options;
  self->reader = reader;
  self->piece = g_malloc (PIECE_BYTES);
  open_stream (self);
  return self;
}

/**
 * headway_cli_event_source_free:
 * @self: a source
 *
 * Frees it and ends its stream.
 */
void
headway_cli_event_source_free (HeadwayCliEventSource *self)
{
  close_stream (self);
  g_clear_handle_id (&self->retry_source, g_source_remove);
  g_clear_object (&self->http);
  g_free (self->piece);
  g_free (self);
}
