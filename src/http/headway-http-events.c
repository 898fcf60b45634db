/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-events.h"

#include "engine/headway-error.h"
#include "engine/headway-topic.h"
#include "http/headway-http-publish.h"
#include "wire/headway-clock.h"
#include "wire/headway-error-json.h"

#include <string.h>

#define ALLOWED_METHODS "GET, HEAD, POST, OPTIONS"

/* --- Parameters, in the order of decisions.md 17 -------------------------------------------- */

typedef struct
{
  HeadwaySubscribeOptions options;
  HeadwayFilter *filter;   /* owned, nullable */
  HeadwayPrincipal *scope; /* owned, nullable */
} StreamQuery;

static void
stream_query_clear (StreamQuery *self)
{
  g_clear_pointer (&self->filter, headway_filter_unref);
  g_clear_pointer (&self->scope, headway_principal_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (StreamQuery, stream_query_clear)

/* @code: (nullable): the word instead of the one that the error has. */
static gboolean
refuse (HeadwayHttpRequest *request, const GError *error, const char *code)
{
  GString *json;

  if (code == NULL)
    {
      headway_http_request_answer_error (request, error);
      return FALSE;
    }
  json = headway_error_json_begin (error, code);
  g_string_append_c (json, '}');
  headway_http_request_answer (request, 400, json);
  return FALSE;
}

static gboolean
parse_max_queued (HeadwayHttpRequest *request, StreamQuery *query)
{
  g_autoptr (GError) error = NULL;
  guint n = headway_http_query_count (request->query, "maxQueued");
  const char *value = n == 1 ? headway_http_query_get (request->query, "maxQueued", 0) : NULL;

  if (n == 0 || headway_sse_parse_max_queued (value, &query->options.max_queued, &error))
    return TRUE;
  return refuse (request, error, "invalid_max_queued");
}

static gboolean
parse_mode (HeadwayHttpRequest *request, StreamQuery *query)
{
  static const char *const words[] = { "stream", "routed", "broadcast" };
  static const HeadwayMode modes[] = { HEADWAY_MODE_STREAM, HEADWAY_MODE_ROUTED, HEADWAY_MODE_BROADCAST };
  guint n = headway_http_query_count (request->query, "mode");
  const char *value = n == 1 ? headway_http_query_get (request->query, "mode", 0) : NULL;

  if (n == 0)
    return TRUE;
  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    {
      if (g_strcmp0 (value, words[i]) == 0)
        {
          query->options.mode = modes[i];
          return TRUE;
        }
    }
  headway_http_request_answer_text (request, 400, "invalid_mode", n == 1 ? "mode is none of stream, routed, broadcast" : "mode is given more than once");
  return FALSE;
}

static gboolean
parse_filter (HeadwayHttpRequest *request, StreamQuery *query)
{
  g_autoptr (GStrvBuilder) topics = g_strv_builder_new ();
  g_autoptr (GStrvBuilder) types = g_strv_builder_new ();
  g_auto (GStrv) topic_list = NULL;
  g_auto (GStrv) type_list = NULL;
  g_autoptr (GError) error = NULL;
  guint n_topics = headway_http_query_count (request->query, "topic");
  guint n_types = headway_http_query_count (request->query, "types");

  /* What is no text becomes "", which is neither a pattern nor a type. */
  for (guint i = 0; i < n_topics; i++)
    {
      const char *value = headway_http_query_get (request->query, "topic", i);
      g_strv_builder_add (topics, value != NULL ? value : "");
    }
  for (guint i = 0; i < n_types; i++)
    {
      const char *value = headway_http_query_get (request->query, "types", i);
      g_auto (GStrv) parts = g_strsplit (value != NULL ? value : "", ",", -1);

      if (parts[0] == NULL)
        g_strv_builder_add (types, "");
      g_strv_builder_addv (types, (const char **) parts);
    }
  if (n_topics == 0 && n_types == 0)
    return TRUE;

  topic_list = g_strv_builder_end (topics);
  type_list = g_strv_builder_end (types);
  query->filter = headway_filter_new ((const char *const *) topic_list, (const char *const *) type_list, &error);
  query->options.filter = query->filter;
  return query->filter != NULL || refuse (request, error, NULL);
}

/* FALSE: not given, or answered already; @is_refused says which. Only a routed subscription has these. */
static gboolean
get_routed_only (HeadwayHttpRequest *request, StreamQuery *query, const char *key, const char **value, gboolean *is_refused)
{
  guint n = headway_http_query_count (request->query, key);

  *is_refused = n > 0 && (n > 1 || query->options.mode != HEADWAY_MODE_ROUTED);
  if (*is_refused)
    headway_http_request_answer_text (request, 400, "invalid_option", "%s is allowed once, with mode=routed", key);
  *value = headway_http_query_get (request->query, key, 0);
  return n == 1 && !*is_refused;
}

static gboolean
parse_scope (HeadwayHttpRequest *request, StreamQuery *query)
{
  HeadwayPrincipalTable *principals = headway_bus_table_get_principals (headway_http_server_get_table (request->server));
  g_autoptr (GError) error = NULL;
  gboolean is_refused;
  const char *value;

  if (!get_routed_only (request, query, "scope", &value, &is_refused))
    return !is_refused;
  if (value == NULL)
    g_set_error (&error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_PRINCIPAL, "scope is not text");
  else if (*value == '\0')
    query->scope = headway_principal_ref (headway_principal_table_get_system (principals));
  else
    query->scope = headway_principal_table_intern (principals, value, &error);
  if (query->scope == NULL)
    return refuse (request, error, NULL);
  query->options.scope = (HeadwayScope){ HEADWAY_SCOPE_EXACT, query->scope };
  return TRUE;
}

static gboolean
parse_eviction (HeadwayHttpRequest *request, StreamQuery *query)
{
  gboolean is_refused;
  const char *value;

  if (!get_routed_only (request, query, "eviction", &value, &is_refused))
    return !is_refused;
  if (g_strcmp0 (value, "fair") == 0)
    query->options.route.eviction = HEADWAY_EVICTION_FAIR;
  else if (g_strcmp0 (value, "oldest") != 0)
    {
      headway_http_request_answer_text (request, 400, "invalid_option", "eviction is neither oldest nor fair");
      return FALSE;
    }
  return TRUE;
}

static gboolean
parse_query (HeadwayHttpRequest *request, StreamQuery *query)
{
  HeadwayBusTable *table = headway_http_server_get_table (request->server);

  headway_subscribe_options_init (&query->options);
  headway_route_options_init (&query->options.route, headway_bus_table_get_limits (table));
  if (!parse_max_queued (request, query) || !parse_mode (request, query) || !parse_filter (request, query) ||
      !parse_scope (request, query) || !parse_eviction (request, query))
    return FALSE;

  query->options.wants_snapshot = headway_http_query_count (request->query, "snapshot") == 1 &&
                                  g_strcmp0 (headway_http_query_get (request->query, "snapshot", 0), "1") == 0;
  return TRUE;
}

/* The headers never make an error: what is malformed is as if it were not there. */
static void
parse_cursor (HeadwayHttpRequest *request, HeadwayCursor *cursor)
{
  const char *epoch = headway_http_request_get_header (request, "X-Qwen-Event-Epoch");

  cursor->is_set = headway_sse_parse_last_event_id (headway_http_request_get_header (request, "Last-Event-ID"),
                                                    &cursor->last_event_id);
  cursor->epoch = headway_sse_is_epoch (epoch) ? epoch : NULL;
}

/* --- The stream ----------------------------------------------------------------------------- */

/* Passes on what the gate has set for browsers. */
static void
append_browser_headers (HeadwayHttpRequest *request, GString *head)
{
  static const char *const names[] = { "Vary", "Access-Control-Allow-Origin", "Access-Control-Expose-Headers" };
  SoupMessageHeaders *headers = soup_server_message_get_response_headers (request->message);

  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    {
      const char *value = soup_message_headers_get_one (headers, names[i]);

      if (value != NULL)
        g_string_append_printf (head, "%s: %s\r\n", names[i], value);
    }
}

static GString *
build_head (HeadwayHttpRequest *request, HeadwayBus *bus, gboolean is_chunked)
{
  GString *head = g_string_sized_new (512);
  g_autofree char *stream_id = g_uuid_string_random ();
  g_autofree char *date = headway_http_date ();

  g_string_append_printf (head,
                          "HTTP/1.%d 200 OK\r\n"
                          "Content-Type: text/event-stream\r\n"
                          "Cache-Control: no-cache, no-transform\r\n"
                          "Connection: %s\r\n"
                          "X-Accel-Buffering: no\r\n"
                          "X-Qwen-Event-Epoch: %s\r\n"
                          "X-Qwen-SSE-Stream-Id: %s\r\n",
                          is_chunked ? 1 : 0, is_chunked ? "keep-alive" : "close",
                          headway_bus_get_epoch (bus), stream_id);
  append_browser_headers (request, head);
  g_string_append_printf (head, "Date: %s\r\n%s\r\n", date, is_chunked ? "Transfer-Encoding: chunked\r\n" : "");
  return head;
}

static void
set_owner (HeadwayHttpRequest *request, HeadwaySubscription *subscription)
{
  HeadwayPrincipal *principal = request->caller.principal;
  const char *owner = principal != NULL ? headway_principal_get_name (principal) : "http";

  headway_subscription_set_owner (subscription, owner, request->caller.uid);
  headway_subscription_set_sink_kind (subscription, "sse");
}

static void
start_stream (HeadwayHttpRequest *request, HeadwayBus *bus, HeadwaySubscription *subscription)
{
  gboolean is_chunked = soup_server_message_get_http_version (request->message) != SOUP_HTTP_1_0;
  HeadwayStreamHub *hub = headway_http_server_get_hub (request->server);
  HeadwayHttpConnection *connection = NULL;
  GString *head = build_head (request, bus, is_chunked);
  int fd;

  set_owner (request, subscription);
  fd = headway_http_request_steal (request, &connection);
  if (fd >= 0)
    headway_stream_hub_adopt (hub, fd, subscription, head, is_chunked, headway_http_connection_released, connection);
  else
    g_object_unref (subscription);
  g_string_free (head, TRUE);
}

static void
answer_head (HeadwayHttpRequest *request, HeadwayBus *bus)
{
  SoupMessageHeaders *headers = soup_server_message_get_response_headers (request->message);
  gboolean is_old = soup_server_message_get_http_version (request->message) == SOUP_HTTP_1_0;
  g_autofree char *stream_id = g_uuid_string_random ();

  headway_http_request_set_header (request, "Content-Type", "text/event-stream");
  headway_http_request_set_header (request, "Cache-Control", "no-cache, no-transform");
  headway_http_request_set_header (request, "X-Accel-Buffering", "no");
  headway_http_request_set_header (request, "X-Qwen-Event-Epoch", headway_bus_get_epoch (bus));
  headway_http_request_set_header (request, "X-Qwen-SSE-Stream-Id", stream_id);
  soup_message_headers_set_encoding (headers, is_old ? SOUP_ENCODING_EOF : SOUP_ENCODING_CHUNKED);
  headway_http_request_answer (request, 200, NULL);
}

static void
handle_stream (HeadwayHttpRequest *request)
{
  g_auto (StreamQuery) query = { 0 };
  g_autoptr (GError) error = NULL;
  HeadwaySubscription *subscription;
  HeadwayBus *bus;

  if (!parse_query (request, &query))
    return;
  bus = headway_http_request_lookup (request);
  if (bus == NULL)
    return;
  if (request->method == SOUP_METHOD_HEAD)
    {
      answer_head (request, bus);
      return;
    }

  parse_cursor (request, &query.options.cursor);
  subscription = headway_bus_subscribe (bus, &query.options, headway_clock_now (), &error);
  if (subscription == NULL)
    headway_http_request_answer_error (request, error);
  else
    start_stream (request, bus, subscription);
}

void
headway_http_events_handle (HeadwayHttpRequest *request)
{
  if (request->method == SOUP_METHOD_GET || request->method == SOUP_METHOD_HEAD)
    {
      handle_stream (request);
      return;
    }
  if (request->method == SOUP_METHOD_POST)
    {
      headway_http_publish_handle (request);
      return;
    }
  if (request->method != SOUP_METHOD_OPTIONS)
    {
      headway_http_request_answer_method (request, ALLOWED_METHODS);
      return;
    }
  headway_http_request_set_header (request, "Allow", ALLOWED_METHODS);
  headway_http_request_answer (request, 200, NULL);
}
