/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "wire/headway-error-json.h"

#include "engine/headway-error.h"
#include "engine/headway-json.h"
#include "wire/headway-json-body.h"

#include <string.h>

static const char *const codes[] = {
  [HEADWAY_ERROR_INVALID_NAME] = "invalid_name",
  [HEADWAY_ERROR_INVALID_TOPIC] = "invalid_topic",
  [HEADWAY_ERROR_INVALID_PATTERN] = "invalid_pattern",
  [HEADWAY_ERROR_INVALID_TYPE] = "invalid_type",
  [HEADWAY_ERROR_INVALID_DATA] = "invalid_json",
  [HEADWAY_ERROR_INVALID_OPTION] = "invalid_option",
  [HEADWAY_ERROR_INVALID_PRINCIPAL] = "invalid_principal",
  [HEADWAY_ERROR_TOO_LARGE] = "too_large",
  [HEADWAY_ERROR_RATE_LIMITED] = "rate_limited",
  [HEADWAY_ERROR_QUOTA_EXCEEDED] = "quota_exceeded",
  [HEADWAY_ERROR_SUBSCRIBER_LIMIT] = "subscriber_limit_exceeded",
  [HEADWAY_ERROR_BUS_EXISTS] = "bus_exists",
  [HEADWAY_ERROR_NO_SUCH_BUS] = "session_not_found",
  [HEADWAY_ERROR_CLOSED] = "closed",
  [HEADWAY_ERROR_NOT_OWNER] = "not_owner",
  [HEADWAY_ERROR_NOT_AUTHORIZED] = "not_authorized",
  [HEADWAY_ERROR_NOT_SUPPORTED] = "not_supported",
  [HEADWAY_ERROR_UNAVAILABLE] = "unavailable",
  [HEADWAY_ERROR_DENIED] = "denied",
  [HEADWAY_ERROR_BUSY] = "busy",
};

G_STATIC_ASSERT (G_N_ELEMENTS (codes) == HEADWAY_N_ERRORS);

const char *
headway_error_json_get_code (const GError *error)
{
  if (g_error_matches (error, HEADWAY_JSON_BODY_ERROR, HEADWAY_JSON_BODY_ERROR_INVALID_REQUEST))
    return "invalid_request";
  if (error->domain != HEADWAY_ERROR || (guint) error->code >= HEADWAY_N_ERRORS)
    return NULL;
  return codes[error->code];
}

GString *
headway_error_json_begin_text (const char *code, const char *text)
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
headway_error_json_begin (const GError *error, const char *code)
{
  HeadwayErrorDetails *details = headway_error_get_details (error);
  GString *json = headway_error_json_begin_text (code, error->message);

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
      gsize length = strlen (error->message);
      gsize reason_length = details->reason_length >= 0 ? (gsize) details->reason_length : length;

      g_string_append (json, ",\"reason\":");
      headway_json_append_string (json, error->message + length - reason_length, reason_length);
    }
  return json;
}
