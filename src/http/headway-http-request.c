/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-request.h"

#include "engine/headway-error.h"
#include "http/headway-http-farewell.h"
#include "http/headway-http-header.h"
#include "wire/headway-error-json.h"

#include <string.h>

#define CONTENT_TYPE "application/json; charset=utf-8"

/* A body that says it is no larger needs no signal for its pieces, and no part of what large ones share. */
#define WHOLE_BODY_MAX (8 * 1024)

/* --- Life ----------------------------------------------------------------------------------- */

static GQuark
request_quark (void)
{
  return g_quark_from_static_string ("headway-http-request");
}

/* The message goes, or its client does: whatever is answered now reaches nobody. */
static void
forget_message (HeadwayHttpRequest *self)
{
  if (self->message == NULL)
    return;

  if (headway_http_connection_get_message (self->connection) == self->message)
    headway_http_connection_set_message (self->connection, NULL);
  g_signal_handlers_disconnect_by_data (self->message, self);
  self->message = NULL;
}

static void
message_destroyed (gpointer data)
{
  HeadwayHttpRequest *self = data;

  /* Its signals are gone by now. */
  self->message = NULL;
  headway_http_request_unref (self);
}

HeadwayHttpRequest *
headway_http_request_ref (HeadwayHttpRequest *self)
{
  self->ref++;
  return self;
}

void
headway_http_request_unref (gpointer data)
{
  HeadwayHttpRequest *self = data;

  if (--self->ref > 0)
    return;

  if (self->free_data != NULL)
    self->free_data (self->data);
  if (self->body != NULL)
    headway_http_server_unreserve (self->server, self->body->len);
  g_clear_pointer (&self->body, g_byte_array_unref);
  g_clear_pointer (&self->query, headway_http_query_free);
  g_strfreev (self->segments);
  if (self->bus_name != NULL)
    g_string_free (self->bus_name, TRUE);
  headway_caller_clear (&self->caller);
  g_object_unref (self->connection);
  g_object_unref (self->server);
  g_free (self);
}

static char **
split_path (const char *path)
{
  gsize length = strlen (path);
  g_autofree char *trimmed = NULL;

  if (*path == '/')
    {
      path++;
      length--;
    }
  if (length > 0 && path[length - 1] == '/')
    length--;
  trimmed = g_strndup (path, length);
  return g_strsplit (trimmed, "/", -1);
}

HeadwayHttpRequest *
headway_http_request_new (HeadwayHttpServer *server, HeadwayHttpConnection *connection, SoupServerMessage *message)
{
  HeadwayHttpRequest *self = g_new0 (HeadwayHttpRequest, 1);
  SoupMessageHeaders *headers = soup_server_message_get_request_headers (message);
  GUri *uri = soup_server_message_get_uri (message);
  SoupEncoding encoding = soup_message_headers_get_encoding (headers);

  self->ref = 1;
  self->server = g_object_ref (server);
  self->connection = g_object_ref (connection);
  self->message = message;
  self->method = soup_server_message_get_method (message);
  self->segments = split_path (uri != NULL ? g_uri_get_path (uri) : "");
  self->query = headway_http_query_new (uri != NULL ? g_uri_get_query (uri) : NULL);
  self->has_body = encoding == SOUP_ENCODING_CHUNKED ||
                   (encoding == SOUP_ENCODING_CONTENT_LENGTH && soup_message_headers_get_content_length (headers) > 0);
  self->is_body_complete = !self->has_body;
  soup_message_body_set_accumulate (soup_server_message_get_request_body (message), FALSE);
  g_object_set_qdata_full (G_OBJECT (message), request_quark (), self, message_destroyed);
  return self;
}

HeadwayHttpRequest *
headway_http_request_from_message (SoupServerMessage *message)
{
  return g_object_get_qdata (G_OBJECT (message), request_quark ());
}

gboolean
headway_http_request_is_open (const HeadwayHttpRequest *self)
{
  return self->message != NULL && !self->is_answered;
}

/* --- The request ---------------------------------------------------------------------------- */

const char *
headway_http_request_get_header (const HeadwayHttpRequest *self, const char *name)
{
  return soup_message_headers_get_list (soup_server_message_get_request_headers (self->message), name);
}

gboolean
headway_http_request_is_type (const HeadwayHttpRequest *self, const char *type)
{
  SoupMessageHeaders *headers = soup_server_message_get_request_headers (self->message);
  const char *given = soup_message_headers_get_content_type (headers, NULL);

  return given != NULL && g_ascii_strcasecmp (given, type) == 0;
}

static void
answer_too_large (HeadwayHttpRequest *self, gsize max)
{
  g_autoptr (GError) error = NULL;

  headway_set_error_with_limit (&error, HEADWAY_ERROR_TOO_LARGE, (gint64) max,
                                "the body is larger than %" G_GSIZE_FORMAT " bytes", max);
  headway_http_request_answer_error (self, error);
}

static void
collect_chunk (HeadwayHttpRequest *self, const char *bytes, gsize length)
{
  if (self->body->len + length > self->body_max)
    {
      answer_too_large (self, self->body_max);
      return;
    }
  if (!headway_http_server_reserve (self->server, length))
    {
      headway_http_request_answer_text (self, 503, "unavailable", "too many large bodies are coming in");
      return;
    }
  g_byte_array_append (self->body, (const guint8 *) bytes, (guint) length);
}

gboolean
headway_http_request_collect (HeadwayHttpRequest *self, gsize max)
{
  SoupMessageHeaders *headers = soup_server_message_get_request_headers (self->message);
  guint64 length;

  self->body_max = max;
  if (self->body == NULL)
    self->body = g_byte_array_new ();
  if (soup_message_headers_get_encoding (headers) != SOUP_ENCODING_CONTENT_LENGTH)
    return TRUE;

  length = (guint64) soup_message_headers_get_content_length (headers);
  if (length > max)
    {
      answer_too_large (self, max);
      return FALSE;
    }
  if (length <= WHOLE_BODY_MAX)
    {
      self->is_whole = TRUE;
      soup_message_body_set_accumulate (soup_server_message_get_request_body (self->message), TRUE);
    }
  return TRUE;
}

static void
collect_whole (HeadwayHttpRequest *self)
{
  g_autoptr (GBytes) bytes = soup_message_body_flatten (soup_server_message_get_request_body (self->message));
  gsize length;
  const char *data = g_bytes_get_data (bytes, &length);

  if (length > 0)
    collect_chunk (self, data, length);
}

static void
got_chunk (SoupServerMessage *message, GBytes *chunk, HeadwayHttpRequest *self)
{
  g_autoptr (HeadwayHttpRequest) alive = headway_http_request_ref (self);
  gsize length;
  const char *bytes = g_bytes_get_data (chunk, &length);

  if (!headway_http_request_is_open (self))
    return;
  if (self->klass->chunk != NULL)
    self->klass->chunk (self, bytes, length);
  else
    collect_chunk (self, bytes, length);
}

/* For those that others may hold while libsoup waits: of a client that leaves before, all that goes is the message. */
static void
watch_client (HeadwayHttpRequest *self)
{
  if (self->is_watched)
    return;

  self->is_watched = TRUE;
  g_signal_connect_swapped (self->message, "disconnected", G_CALLBACK (forget_message), self);
}

void
headway_http_request_read (HeadwayHttpRequest *self, const HeadwayHttpRequestClass *klass)
{
  self->klass = klass;
  if (!self->has_body || self->is_whole)
    return;

  watch_client (self);
  g_signal_connect (self->message, "got-chunk", G_CALLBACK (got_chunk), self);
}

void
headway_http_request_body_done (HeadwayHttpRequest *self)
{
  g_autoptr (HeadwayHttpRequest) alive = headway_http_request_ref (self);

  self->is_body_complete = TRUE;
  if (self->is_whole && headway_http_request_is_open (self))
    collect_whole (self);
  if (!headway_http_request_is_open (self))
    return;

  if (self->klass != NULL && self->klass->body != NULL)
    self->klass->body (self);
  if (!headway_http_request_is_open (self))
    return;

  self->is_paused = TRUE;
  watch_client (self);
  headway_http_connection_set_phase (self->connection, HEADWAY_HTTP_PHASE_HANDLING);
  soup_server_message_pause (self->message);
}

void
headway_http_request_stop (HeadwayHttpRequest *self)
{
  g_autoptr (HeadwayHttpRequest) alive = headway_http_request_ref (self);

  if (!headway_http_request_is_open (self))
    return;
  if (self->klass != NULL && self->klass->stop != NULL)
    self->klass->stop (self);
  else if (!self->is_body_complete)
    headway_http_request_answer_text (self, 503, "unavailable", "the server is stopping");
}

/* --- Answers -------------------------------------------------------------------------------- */

char *
headway_http_date (void)
{
  g_autoptr (GDateTime) now = g_date_time_new_now_utc ();

  return soup_date_time_to_string (now, SOUP_DATE_HTTP);
}

void
headway_http_request_set_header (HeadwayHttpRequest *self, const char *name, const char *value)
{
  if (headway_http_request_is_open (self))
    soup_message_headers_replace (soup_server_message_get_response_headers (self->message), name, value);
}

int
headway_http_request_steal (HeadwayHttpRequest *self, HeadwayHttpConnection **connection)
{
  g_autoptr (GIOStream) stream = NULL;
  SoupServerMessage *message = self->message;
  int fd;

  if (!headway_http_request_is_open (self) || soup_server_message_get_http_version (message) >= SOUP_HTTP_2_0)
    return -1;

  self->is_answered = TRUE;
  /* First, so that the streams that libsoup lets go of do not close it. */
  fd = headway_http_connection_steal_fd (self->connection);
  if (fd < 0)
    return -1;
  *connection = g_object_ref (self->connection);
  forget_message (self);
  headway_http_connection_set_phase (*connection, HEADWAY_HTTP_PHASE_HANDLING);
  stream = soup_server_message_steal_connection (message);
  return fd;
}

/* The answer to a request whose body is not read to its end: libsoup would read it first. */
static void
answer_and_close (HeadwayHttpRequest *self, guint status, const char *content_type, GString *json)
{
  SoupMessageHeaders *headers = soup_server_message_get_response_headers (self->message);
  gboolean is_old = soup_server_message_get_http_version (self->message) == SOUP_HTTP_1_0;
  g_autofree char *date = headway_http_date ();
  HeadwayHttpConnection *connection = NULL;
  SoupMessageHeadersIter iter;
  GString *text = g_string_new (NULL);
  const char *name;
  const char *value;
  int fd;

  /* What libsoup has set for an answer of its own. */
  soup_message_headers_remove (headers, "Content-Length");
  soup_message_headers_remove (headers, "Connection");
  soup_message_headers_replace (headers, "Date", date);
  g_string_printf (text, "HTTP/1.%d %u %s\r\n", is_old ? 0 : 1, status, headway_http_get_phrase (status));
  soup_message_headers_iter_init (&iter, headers);
  while (soup_message_headers_iter_next (&iter, &name, &value))
    g_string_append_printf (text, "%s: %s\r\n", name, value);
  g_string_append_printf (text, "Content-Type: %s\r\nContent-Length: %" G_GSIZE_FORMAT "\r\nConnection: close\r\n\r\n",
                          content_type, json != NULL ? json->len : 0);
  if (json != NULL)
    {
      if (self->method != SOUP_METHOD_HEAD)
        g_string_append_len (text, json->str, (gssize) json->len);
      g_string_free (json, TRUE);
    }

  fd = headway_http_request_steal (self, &connection);
  if (fd >= 0)
    headway_http_farewell (fd, text, headway_http_connection_released, connection);
  else
    g_string_free (text, TRUE);
}

void
headway_http_request_answer_as (HeadwayHttpRequest *self, guint status, const char *content_type, GString *json)
{
  SoupServerMessage *message = self->message;

  if (!headway_http_request_is_open (self))
    {
      if (json != NULL)
        g_string_free (json, TRUE);
      return;
    }
  if (!self->is_body_complete)
    {
      answer_and_close (self, status, content_type, json);
      return;
    }

  self->is_answered = TRUE;
  soup_server_message_set_status (message, status, headway_http_get_phrase (status));
  if (headway_http_server_is_shut_down (self->server))
    soup_message_headers_replace (soup_server_message_get_response_headers (message), "Connection", "close");
  if (json != NULL)
    {
      gsize length = json->len;
      soup_server_message_set_response (message, content_type, SOUP_MEMORY_TAKE, g_string_free (json, FALSE), length);
    }
  headway_http_connection_set_phase (self->connection, HEADWAY_HTTP_PHASE_BODY);
  if (!self->is_paused)
    return;
  self->is_paused = FALSE;
  soup_server_message_unpause (message);
}

void
headway_http_request_answer (HeadwayHttpRequest *self, guint status, GString *json)
{
  headway_http_request_answer_as (self, status, CONTENT_TYPE, json);
}

void
headway_http_request_answer_error (HeadwayHttpRequest *self, const GError *error)
{
  HeadwayHttpAnswer answer = headway_http_error_get_answer (error);
  GString *json = headway_error_json_begin (error, answer.code);

  if (answer.retry_after_s > 0)
    {
      g_autofree char *seconds = g_strdup_printf ("%u", answer.retry_after_s);
      headway_http_request_set_header (self, "Retry-After", seconds);
    }
  g_string_append_c (json, '}');
  headway_http_request_answer (self, answer.status, json);
}

void
headway_http_request_answer_text (HeadwayHttpRequest *self, guint status, const char *code, const char *format, ...)
{
  g_autofree char *text = NULL;
  GString *json;
  va_list args;

  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  json = headway_error_json_begin_text (code, text);
  g_string_append_c (json, '}');
  headway_http_request_answer (self, status, json);
}

void
headway_http_request_answer_no_bus (HeadwayHttpRequest *self)
{
  GString *json = headway_error_json_begin_text ("session_not_found", "no bus of this name");

  g_string_append (json, ",\"sessionId\":");
  headway_json_append_string (json, self->bus_name->str, self->bus_name->len);
  g_string_append_c (json, '}');
  headway_http_request_answer (self, 404, json);
}

void
headway_http_request_answer_method (HeadwayHttpRequest *self, const char *allow)
{
  headway_http_request_set_header (self, "Allow", allow);
  headway_http_request_answer_text (self, 405, "method_not_allowed", "%s is not allowed here, %s are", self->method, allow);
}

HeadwayBus *
headway_http_request_lookup (HeadwayHttpRequest *self)
{
  HeadwayBus *bus = NULL;

  /* A name that no bus can have is the name of no bus; so is that of a bus that drains. */
  if (strlen (self->bus_name->str) == self->bus_name->len)
    bus = headway_bus_table_lookup (headway_http_server_get_table (self->server), self->bus_name->str, NULL);
  if (bus == NULL)
    headway_http_request_answer_no_bus (self);
  return bus;
}
