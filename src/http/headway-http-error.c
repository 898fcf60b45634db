/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-error.h"

#include "engine/headway-error.h"
#include "wire/headway-error-json.h"

/* What a client is told to wait when nothing says how long (sse-contract.md 1.2, row 7). */
#define RETRY_AFTER_S 5

/* In the order of HeadwayError; 0 would be a code without a status. */
static const guint statuses[] = {
  [HEADWAY_ERROR_INVALID_NAME] = 400,
  [HEADWAY_ERROR_INVALID_TOPIC] = 400,
  [HEADWAY_ERROR_INVALID_PATTERN] = 400,
  [HEADWAY_ERROR_INVALID_TYPE] = 400,
  [HEADWAY_ERROR_INVALID_DATA] = 400,
  [HEADWAY_ERROR_INVALID_OPTION] = 400,
  [HEADWAY_ERROR_INVALID_PRINCIPAL] = 400,
  [HEADWAY_ERROR_TOO_LARGE] = 413,
  [HEADWAY_ERROR_RATE_LIMITED] = 429,
  [HEADWAY_ERROR_QUOTA_EXCEEDED] = 413,
  [HEADWAY_ERROR_SUBSCRIBER_LIMIT] = 429,
  [HEADWAY_ERROR_BUS_EXISTS] = 409,
  [HEADWAY_ERROR_NO_SUCH_BUS] = 404,
  [HEADWAY_ERROR_CLOSED] = 410,
  [HEADWAY_ERROR_NOT_OWNER] = 403,
  [HEADWAY_ERROR_NOT_AUTHORIZED] = 403,
  [HEADWAY_ERROR_NOT_SUPPORTED] = 501,
  [HEADWAY_ERROR_UNAVAILABLE] = 503,
  [HEADWAY_ERROR_DENIED] = 403,
  [HEADWAY_ERROR_BUSY] = 409,
};

G_STATIC_ASSERT (G_N_ELEMENTS (statuses) == HEADWAY_N_ERRORS);

/* Seconds, 0: none. */
static guint
get_retry_after (const GError *error)
{
  const HeadwayErrorDetails *details = headway_error_get_details (error);

  if (details->retry_after_ms >= 0)
    return (guint) MIN ((details->retry_after_ms + 999) / 1000, G_MAXINT);
  if (error->code == HEADWAY_ERROR_RATE_LIMITED)
    return 1;
  return error->code == HEADWAY_ERROR_SUBSCRIBER_LIMIT || error->code == HEADWAY_ERROR_UNAVAILABLE ? RETRY_AFTER_S : 0;
}

HeadwayHttpAnswer
headway_http_error_get_answer (const GError *error)
{
  const char *code = headway_error_json_get_code (error);

  if (code == NULL)
    return (HeadwayHttpAnswer){ 500, NULL, 0 };
  if (error->domain != HEADWAY_ERROR)
    return (HeadwayHttpAnswer){ 400, code, 0 };
  return (HeadwayHttpAnswer){ statuses[error->code], code, get_retry_after (error) };
}
