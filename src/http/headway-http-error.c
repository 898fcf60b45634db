/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-error.h"

#include "engine/headway-error.h"
#include "engine/headway-json.h"
#include "wire/headway-json-body.h"

#include <string.h>

/* What a client is told to wait when nothing says how long (sse-contract.md 1.2, row 7). */
#define RETRY_AFTER_S 5

static HeadwayHttpAnswer
get_engine_answer (HeadwayError code)
{
  switch (code)
    {
    case HEADWAY_ERROR_INVALID_NAME:
      return (HeadwayHttpAnswer){ 400, "invalid_name", 0 };
    case HEADWAY_ERROR_INVALID_TOPIC:
      return (HeadwayHttpAnswer){ 400, "invalid_topic", 0 };
    case HEADWAY_ERROR_INVALID_PATTERN:
      return (HeadwayHttpAnswer){ 400, "invalid_pattern", 0 };
    case HEADWAY_ERROR_INVALID_TYPE:
      return (HeadwayHttpAnswer){ 400, "invalid_type", 0 };
    case HEADWAY_ERROR_INVALID_DATA:
      return (HeadwayHttpAnswer){ 400, "invalid_json", 0 };
    case HEADWAY_ERROR_INVALID_OPTION:
      return (HeadwayHttpAnswer){ 400, "invalid_option", 0 };
    case HEADWAY_ERROR_INVALID_PRINCIPAL:
      return (HeadwayHttpAnswer){ 400, "invalid_principal", 0 };
    case HEADWAY_ERROR_TOO_LARGE:
      return (HeadwayHttpAnswer){ 413, "too_large", 0 };
    case HEADWAY_ERROR_RATE_LIMITED:
      return (HeadwayHttpAnswer){ 429, "rate_limited", 1 };
    case HEADWAY_ERROR_QUOTA_EXCEEDED:
      return (HeadwayHttpAnswer){ 413, "quota_exceeded", 0 };
    case HEADWAY_ERROR_SUBSCRIBER_LIMIT:
      return (HeadwayHttpAnswer){ 429, "subscriber_limit_exceeded", RETRY_AFTER_S };
    case HEADWAY_ERROR_BUS_EXISTS:
      return (HeadwayHttpAnswer){ 409, "bus_exists", 0 };
    case HEADWAY_ERROR_NO_SUCH_BUS:
      return (HeadwayHttpAnswer){ 404, "session_not_found", 0 };
    case HEADWAY_ERROR_CLOSED:
      return (HeadwayHttpAnswer){ 410, "closed", 0 };
    case HEADWAY_ERROR_NOT_OWNER:
      return (HeadwayHttpAnswer){ 403, "not_owner", 0 };
    case HEADWAY_ERROR_NOT_AUTHORIZED:
      return (HeadwayHttpAnswer){ 403, "not_authorized", 0 };
    case HEADWAY_ERROR_NOT_SUPPORTED:
      return (HeadwayHttpAnswer){ 501, "not_supported", 0 };
    case HEADWAY_ERROR_UNAVAILABLE:
      return (HeadwayHttpAnswer){ 503, "unavailable", RETRY_AFTER_S };
    case HEADWAY_ERROR_DENIED:
      return (HeadwayHttpAnswer){ 403, "denied", 0 };
    case HEADWAY_ERROR_BUSY:
      return (HeadwayHttpAnswer){ 409, "busy", 0 };
    case HEADWAY_N_ERRORS:
    default:
      return (HeadwayHttpAnswer){ 500, NULL, 0 };
    }
}

HeadwayHttpAnswer
headway_http_error_get_answer (const GError *error)
{
  HeadwayErrorDetails *details = headway_error_get_details (error);
  HeadwayHttpAnswer answer;

  if (g_error_matches (error, HEADWAY_JSON_BODY_ERROR, HEADWAY_JSON_BODY_ERROR_INVALID_REQUEST))
    return (HeadwayHttpAnswer){ 400, "invalid_request", 0 };
  if (details == NULL)
    return (HeadwayHttpAnswer){ 500, NULL, 0 };

  answer = get_engine_answer ((HeadwayError) error->code);
  if (details->retry_after_ms >= 0)
    answer.retry_after_s = (guint) MIN ((details->retry_after_ms + 999) / 1000, G_MAXINT);
  return answer;
}

GString *
headway_http_error_begin_text (const char *code, const char *text)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  GString *json = g_string_new ("{\"error\":");

  headway_json_append_string (json, valid, strlen (valid));
  if (code != NULL)
    g_string_append_printf (json, ",\"code\":\"%s\"", code);
  return json;
}

static void
append_detail (GString *json, const char *name, gint64 value)
{
  if (value >= 0)
    g_string_append_printf (json, ",\"%s\":%" G_GINT64_FORMAT, name, value);
}

GString *
headway_http_error_begin (const GError *error, const char *code)
{
  HeadwayErrorDetails *details = headway_error_get_details (error);
  GString *json = headway_http_error_begin_text (code, error->message);

  if (details == NULL)
    return json;
  append_detail (json, "position", details->position);
  append_detail (json, "limit", details->limit);
  append_detail (json, "index", details->index);
  append_detail (json, "retryAfterMs", details->retry_after_ms);
  if (g_error_matches (error, HEADWAY_ERROR, HEADWAY_ERROR_SUBSCRIBER_LIMIT))
    g_string_append (json, ",\"scope\":\"bus\"");
  if (g_error_matches (error, HEADWAY_ERROR, HEADWAY_ERROR_DENIED))
    {
      g_string_append (json, ",\"reason\":");
      headway_json_append_string (json, error->message, strlen (error->message));
    }
  return json;
}
