/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-session.h"

#include "engine/headway-error.h"
#include "engine/headway-ring.h"
#include "engine/headway-topic.h"
#include "wire/headway-clock.h"
#include "wire/headway-json-body.h"

#include <string.h>

#define OPTIONS_BYTES_MAX (64 * 1024)

static HeadwayBusTable *
get_table (HeadwayHttpRequest *request)
{
  return headway_http_server_get_table (request->server);
}

static void
append_bus (GString *json, HeadwayBus *bus)
{
  const HeadwayRing *ring = headway_bus_get_ring (bus);
  const char *name = headway_bus_get_name (bus);

  g_string_append (json, "{\"name\":");
  headway_json_append_string (json, name, strlen (name));
  g_string_append_printf (json,
                          ",\"epoch\":\"%s\",\"lastEventId\":%" G_GUINT64_FORMAT ",\"firstEventId\":%" G_GUINT64_FORMAT
                          ",\"ringSize\":%u,\"ringBytes\":%" G_GUINT64_FORMAT ",\"subscribers\":%u}",
                          headway_bus_get_epoch (bus),
                          headway_bus_get_last_id (bus),
                          headway_ring_get_first_id (ring),
                          headway_bus_get_options (bus)->ring_size,
                          headway_ring_get_bytes (ring),
                          headway_bus_get_subscriber_count (bus));
}

static void
answer_bus (HeadwayHttpRequest *request, guint status, HeadwayBus *bus)
{
  GString *json = g_string_new (NULL);

  append_bus (json, bus);
  headway_http_request_answer (request, status, json);
}

/* --- PUT ------------------------------------------------------------------------------------ */

/* What a PUT asks for. */
typedef struct
{
  HeadwayBusOptions options;
  GArray *named; /* owned: HeadwayNamedOption */
} Creation;

static void
creation_free (gpointer data)
{
  Creation *self = data;

  g_array_unref (self->named);
  g_free (self);
}

/* There is one already: fine, if it is what was asked for (decisions.md 5). */
static void
answer_existing (HeadwayHttpRequest *request, HeadwayBus *bus, const GError *exists)
{
  Creation *creation = request->data;

  for (guint i = 0; i < creation->named->len; i++)
    {
      const HeadwayNamedOption *option = &g_array_index (creation->named, HeadwayNamedOption, i);

      if (headway_bus_options_get (headway_bus_get_options (bus), option->spec) != option->value)
        {
          headway_http_request_answer_error (request, exists);
          return;
        }
    }
  answer_bus (request, 200, bus);
}

static void
bus_created (HeadwayBus *bus, const GError *error, gpointer user_data)
{
  g_autoptr (HeadwayHttpRequest) request = user_data;

  if (bus != NULL)
    {
      answer_bus (request, 201, bus);
      return;
    }
  if (g_error_matches (error, HEADWAY_ERROR, HEADWAY_ERROR_BUS_EXISTS))
    bus = headway_bus_table_lookup (get_table (request), request->bus_name->str, NULL);
  if (bus != NULL)
    answer_existing (request, bus, error);
  else
    headway_http_request_answer_error (request, error);
}

static void
create_body (HeadwayHttpRequest *request)
{
  Creation *creation = request->data;
  g_autoptr (GError) error = NULL;
  GByteArray *body = request->body;

  creation->options = headway_bus_table_get_limits (get_table (request))->bus;
  if (!headway_json_body_parse_bus_options ((const char *) body->data, body->len, &creation->options, creation->named, &error))
    {
      headway_http_request_answer_error (request, error);
      return;
    }
  headway_bus_table_create (get_table (request), request->bus_name->str, &creation->options, request->caller.uid,
                            headway_clock_now (), bus_created, headway_http_request_ref (request));
}

static gboolean
check_json (HeadwayHttpRequest *request)
{
  if (!request->has_body || headway_http_request_is_type (request, "application/json"))
    return TRUE;
  headway_http_request_answer_text (request, 415, "unsupported_media_type", "Content-Type is not application/json");
  return FALSE;
}

static void
handle_create (HeadwayHttpRequest *request)
{
  static const HeadwayHttpRequestClass klass = { NULL, create_body };
  g_autoptr (GError) error = NULL;
  Creation *creation;

  if (!headway_bus_name_check (request->bus_name->str, request->bus_name->len, &error))
    {
      headway_http_request_answer_error (request, error);
      return;
    }
  if (!check_json (request))
    return;
  creation = g_new0 (Creation, 1);
  creation->named = g_array_new (FALSE, FALSE, sizeof (HeadwayNamedOption));
  request->data = creation;
  request->free_data = creation_free;
  if (headway_http_request_collect (request, OPTIONS_BYTES_MAX))
    headway_http_request_read (request, &klass);
}

/* --- GET, DELETE ---------------------------------------------------------------------------- */

static void
handle_close (HeadwayHttpRequest *request)
{
  HeadwayBus *bus = headway_http_request_lookup (request);

  if (bus == NULL)
    return;
  if (!headway_caller_may_close (&request->caller, headway_bus_get_creator (bus)))
    {
      headway_bus_table_add_security (headway_http_server_get_table (request->server), HEADWAY_SECURITY_NOT_AUTHORIZED,
                                      headway_bus_get_name (bus), request->caller.uid, NULL, headway_clock_now ());
      headway_http_request_answer_text (request, 403, "not_authorized",
                                        "only the creator of a bus or an administrator may close it");
      return;
    }
  headway_bus_close_session (bus, headway_clock_now ());
  headway_http_request_answer (request, 204, NULL);
}

static void
handle_info (HeadwayHttpRequest *request)
{
  HeadwayBus *bus = headway_http_request_lookup (request);

  if (bus != NULL)
    answer_bus (request, 200, bus);
}

void
headway_http_session_handle (HeadwayHttpRequest *request)
{
  if (request->method == SOUP_METHOD_PUT)
    handle_create (request);
  else if (request->method == SOUP_METHOD_DELETE)
    handle_close (request);
  else if (request->method == SOUP_METHOD_GET || request->method == SOUP_METHOD_HEAD)
    handle_info (request);
  else
    headway_http_request_answer_method (request, "GET, HEAD, PUT, DELETE");
}

void
headway_http_session_handle_list (HeadwayHttpRequest *request)
{
  g_autoptr (GPtrArray) buses = NULL;
  GString *json;

  if (request->method != SOUP_METHOD_GET && request->method != SOUP_METHOD_HEAD)
    {
      headway_http_request_answer_method (request, "GET, HEAD");
      return;
    }
  buses = headway_bus_table_list (get_table (request));
  json = g_string_new ("[");
  for (guint i = 0; i < buses->len; i++)
    {
      if (i > 0)
        g_string_append_c (json, ',');
      append_bus (json, g_ptr_array_index (buses, i));
    }
  g_string_append_c (json, ']');
  headway_http_request_answer (request, 200, json);
}

/* --- The snapshot --------------------------------------------------------------------------- */

static void
snapshot_body (HeadwayHttpRequest *request)
{
  guint64 max = headway_bus_table_get_limits (get_table (request))->event_max_bytes;
  HeadwayBus *bus = headway_http_request_lookup (request);
  g_autoptr (GError) error = NULL;

  if (bus == NULL)
    return;
  if (headway_bus_set_snapshot (bus, (const char *) request->body->data, request->body->len, max, &error))
    headway_http_request_answer (request, 204, NULL);
  else
    headway_http_request_answer_error (request, error);
}

void
headway_http_session_handle_snapshot (HeadwayHttpRequest *request)
{
  static const HeadwayHttpRequestClass klass = { NULL, snapshot_body };
  guint64 max = headway_bus_table_get_limits (get_table (request))->event_max_bytes;

  if (request->method != SOUP_METHOD_PUT)
    {
      headway_http_request_answer_method (request, "PUT");
      return;
    }
  if (!check_json (request) || headway_http_request_lookup (request) == NULL)
    return;
  if (!request->has_body)
    {
      headway_http_request_answer_text (request, 400, "invalid_request", "the body is empty, a JSON object is needed");
      return;
    }
  if (headway_http_request_collect (request, (gsize) max))
    headway_http_request_read (request, &klass);
}
