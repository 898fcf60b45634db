/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-publish.h"

#include "engine/headway-error.h"
#include "engine/headway-topic.h"
#include "http/headway-http-ndjson.h"
#include "wire/headway-clock.h"
#include "wire/headway-error-json.h"
#include "wire/headway-line-buffer.h"

#include <string.h>

/* The containers around `data`: the object, and the array of objects. */
#define DEPTH_IN_OBJECT (HEADWAY_JSON_DEPTH_MAX + 1)
#define DEPTH_IN_ARRAY  (HEADWAY_JSON_DEPTH_MAX + 2)

#define CLIENT_HEADER "X-Qwen-Client-Id"

/* What a POST with a whole body is about. */
typedef struct
{
  HeadwayBatch *batch; /* owned until it is published */
  gboolean is_array;
  gboolean is_seed;
} Publish;

static void
publish_free (gpointer data)
{
  Publish *self = data;

  g_clear_pointer (&self->batch, headway_batch_free);
  g_free (self);
}

static const HeadwayLimits *
get_limits (HeadwayHttpRequest *request)
{
  return headway_bus_table_get_limits (headway_http_server_get_table (request->server));
}

gsize
headway_http_publish_object_max (HeadwayHttpRequest *request)
{
  return (gsize) get_limits (request)->event_max_bytes + HEADWAY_LINE_SLACK;
}

HeadwayEventMaker
headway_http_publish_get_maker (HeadwayHttpRequest *request)
{
  return (HeadwayEventMaker){
    .caller = &request->caller,
    .principals = headway_bus_table_get_principals (headway_http_server_get_table (request->server)),
    .cost_max = get_limits (request)->event_max_bytes,
    .client = request->message != NULL ? headway_http_request_get_header (request, CLIENT_HEADER) : NULL,
  };
}

void
headway_http_publish_add_refusal (HeadwayHttpRequest *request, const GError *error)
{
  headway_bus_table_add_refusal (headway_http_server_get_table (request->server), request->bus_name->str,
                                 request->caller.uid, request->caller.principal, error, headway_clock_now ());
}

static void
refuse (HeadwayHttpRequest *request, const GError *error)
{
  headway_http_publish_add_refusal (request, error);
  headway_http_request_answer_error (request, error);
}

/* --- Answers -------------------------------------------------------------------------------- */

static void
batch_done (HeadwayBatch *batch, const GError *error, gpointer user_data)
{
  g_autoptr (HeadwayHttpRequest) request = user_data;
  Publish *publish = request->data;
  guint64 first_id = headway_batch_get_first_id (batch);
  guint count = headway_batch_get_count (batch);
  GString *json;

  if (error != NULL)
    {
      refuse (request, error);
      return;
    }
  json = g_string_sized_new (96);
  if (publish->is_array)
    g_string_printf (json, "{\"firstId\":%" G_GUINT64_FORMAT ",\"lastId\":%" G_GUINT64_FORMAT ",\"count\":%u}",
                     first_id, first_id + count - 1, count);
  else
    g_string_printf (json, "{\"id\":%" G_GUINT64_FORMAT "}", first_id);
  headway_http_request_answer (request, 200, json);
}

static void
bus_ready (HeadwayBus *bus, const GError *error, gpointer user_data)
{
  g_autoptr (HeadwayHttpRequest) request = user_data;
  Publish *publish = request->data;

  if (bus == NULL)
    {
      refuse (request, error);
      return;
    }
  /* Who left before the bus was there has published nothing. */
  if (!headway_http_request_is_open (request))
    return;
  if (publish->is_seed && !headway_caller_may_close (&request->caller, headway_bus_get_creator (bus)))
    {
      headway_http_request_answer_text (request, 403, "not_authorized", "only the creator of a bus may seed it");
      return;
    }
  /* For batch_done(). */
  headway_http_request_ref (request);
  headway_bus_table_publish (headway_http_server_get_table (request->server), bus, request->caller.uid,
                             g_steal_pointer (&publish->batch), headway_clock_now ());
}

/* --- The body ------------------------------------------------------------------------------- */

static void
refuse_event (HeadwayHttpRequest *request, const GError *error, guint index)
{
  Publish *publish = request->data;
  HeadwayErrorDetails *details = headway_error_get_details (error);
  HeadwayHttpAnswer answer = headway_http_error_get_answer (error);
  GString *json;

  headway_http_publish_add_refusal (request, error);
  if (!publish->is_array || details != NULL)
    {
      if (publish->is_array)
        details->index = index;
      headway_http_request_answer_error (request, error);
      return;
    }
  json = headway_error_json_begin (error, answer.code);
  g_string_append_printf (json, ",\"index\":%u}", index);
  headway_http_request_answer (request, answer.status, json);
}

static gboolean
add_event (HeadwayHttpRequest *request, const HeadwayJson *json, HeadwayInstant now)
{
  HeadwayEventMaker maker = headway_http_publish_get_maker (request);
  Publish *publish = request->data;
  g_autoptr (GError) error = NULL;
  guint index = headway_batch_get_count (publish->batch);
  HeadwayEvent *event = NULL;

  if (index >= HEADWAY_BATCH_EVENTS_MAX)
    headway_set_error_with_limit (&error, HEADWAY_ERROR_TOO_LARGE, HEADWAY_BATCH_EVENTS_MAX,
                                  "more than %d events in one call", HEADWAY_BATCH_EVENTS_MAX);
  else
    event = headway_event_maker_make (&maker, json, now, &error);
  if (event == NULL)
    {
      refuse_event (request, error, index);
      return FALSE;
    }
  headway_batch_add (publish->batch, event);
  return TRUE;
}

static gboolean
add_events (HeadwayHttpRequest *request, const HeadwayJson *json, HeadwayInstant now)
{
  Publish *publish = request->data;
  HeadwayJsonIter iter;
  HeadwayJson element;

  publish->is_array = json->type == HEADWAY_JSON_ARRAY;
  publish->batch = headway_batch_new (1, batch_done, request);
  headway_batch_set_seed (publish->batch, publish->is_seed);
  if (!publish->is_array)
    return add_event (request, json, now);

  headway_json_iter_init (&iter, json);
  while (headway_json_iter_next (&iter, NULL, &element))
    {
      if (!add_event (request, &element, now))
        return FALSE;
    }
  return TRUE;
}

static gboolean
starts_array (const GByteArray *body)
{
  gsize at = 0;

  while (at < body->len && g_ascii_isspace (body->data[at]))
    at++;
  return at < body->len && body->data[at] == '[';
}

static void
publish_body (HeadwayHttpRequest *request)
{
  HeadwayBusTable *table = headway_http_server_get_table (request->server);
  g_autoptr (GError) error = NULL;
  Publish *publish = request->data;
  gboolean is_array = starts_array (request->body);
  HeadwayInstant now = headway_clock_now ();
  HeadwayJson json;

  if (!is_array && request->body->len > headway_http_publish_object_max (request))
    {
      gsize max = headway_http_publish_object_max (request);
      headway_set_error_with_limit (&error, HEADWAY_ERROR_TOO_LARGE, (gint64) max,
                                    "the body is larger than %" G_GSIZE_FORMAT " bytes", max);
      refuse (request, error);
      return;
    }
  if (!headway_json_validate ((const char *) request->body->data, request->body->len,
                              is_array ? DEPTH_IN_ARRAY : DEPTH_IN_OBJECT, &json, &error))
    {
      refuse (request, error);
      return;
    }
  if (!add_events (request, &json, now))
    return;
  if (headway_batch_get_count (publish->batch) == 0)
    {
      headway_http_request_answer (request, 200, g_string_new ("{\"count\":0}"));
      return;
    }
  headway_bus_table_ensure (table, request->bus_name->str, request->caller.uid, now, bus_ready,
                            headway_http_request_ref (request));
}

static const HeadwayHttpRequestClass publish_class = { NULL, publish_body };

/* --- The header block ----------------------------------------------------------------------- */

static gboolean
check_client_id (HeadwayHttpRequest *request)
{
  const char *client = headway_http_request_get_header (request, CLIENT_HEADER);
  g_autoptr (GError) error = NULL;
  GString *json;

  if (client == NULL || headway_client_check (client, strlen (client), &error))
    return TRUE;

  json = headway_error_json_begin (error, "invalid_client_id");
  g_string_append_c (json, '}');
  headway_http_request_answer (request, 400, json);
  return FALSE;
}

static gboolean
parse_seed (HeadwayHttpRequest *request, gboolean *is_seed)
{
  guint n = headway_http_query_count (request->query, "seed");
  const char *value = headway_http_query_get (request->query, "seed", 0);

  *is_seed = n == 1 && g_strcmp0 (value, "1") == 0;
  if (n == 0 || *is_seed || (n == 1 && g_strcmp0 (value, "0") == 0))
    return TRUE;
  headway_http_request_answer_text (request, 400, "invalid_option", "seed is neither 0 nor 1");
  return FALSE;
}

static gboolean
check_name (HeadwayHttpRequest *request)
{
  g_autoptr (GError) error = NULL;

  if (headway_bus_name_check (request->bus_name->str, request->bus_name->len, &error))
    return TRUE;
  headway_http_request_answer_error (request, error);
  return FALSE;
}

/* JSON is UTF-8, and nothing is unpacked here: a small body could become a large one. */
static gboolean
check_coding (HeadwayHttpRequest *request)
{
  SoupMessageHeaders *headers = soup_server_message_get_request_headers (request->message);
  const char *coding = soup_message_headers_get_list (headers, "Content-Encoding");
  const char *type = soup_message_headers_get_one (headers, "Content-Type");
  g_autoptr (GHashTable) parameters = NULL;
  const char *charset = NULL;

  if (coding != NULL && g_ascii_strcasecmp (coding, "identity") != 0)
    {
      headway_http_request_answer_text (request, 415, "unsupported_media_type",
                                        "Content-Encoding is not supported, send the body as it is");
      return FALSE;
    }
  if (type != NULL && strchr (type, ';') != NULL && soup_message_headers_get_content_type (headers, &parameters) != NULL)
    charset = g_hash_table_lookup (parameters, "charset");
  if (charset != NULL && g_ascii_strcasecmp (charset, "utf-8") != 0 && g_ascii_strcasecmp (charset, "utf8") != 0)
    {
      headway_http_request_answer_text (request, 415, "unsupported_media_type",
                                        "the charset is not utf-8, which JSON is");
      return FALSE;
    }
  return TRUE;
}

void
headway_http_publish_handle (HeadwayHttpRequest *request)
{
  gboolean is_ndjson = headway_http_request_is_type (request, "application/x-ndjson");
  gboolean is_seed;
  Publish *publish;

  if (!check_name (request) || !check_client_id (request) || !parse_seed (request, &is_seed))
    return;
  if (!check_coding (request))
    return;
  if (!is_ndjson && !headway_http_request_is_type (request, "application/json"))
    {
      headway_http_request_answer_text (request, 415, "unsupported_media_type",
                                        "Content-Type is neither application/json nor application/x-ndjson");
      return;
    }
  if (is_ndjson && is_seed)
    {
      headway_http_request_answer_text (request, 400, "invalid_option", "seed=1 takes a JSON array, not NDJSON");
      return;
    }
  if (is_ndjson)
    {
      headway_http_ndjson_handle (request);
      return;
    }
  publish = g_new0 (Publish, 1);
  publish->is_seed = is_seed;
  request->data = publish;
  request->free_data = publish_free;
  if (headway_http_request_collect (request, HEADWAY_BATCH_BYTES_MAX))
    headway_http_request_read (request, &publish_class);
}
