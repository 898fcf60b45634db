/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * HeadwayHttpAnswer:
 * @status: HTTP status
 * @code: the word in the body, NULL for none
 * @retry_after_s: seconds for `Retry-After`, 0: no such header
 *
 * How HTTP says an error (http-api.md, Errors; decisions.md 18).
 */
typedef struct
{
  guint status;
  const char *code;
  guint retry_after_s;
} HeadwayHttpAnswer;

/* @error: of HEADWAY_ERROR or HEADWAY_JSON_BODY_ERROR; anything else is a 500. */
HeadwayHttpAnswer headway_http_error_get_answer (const GError *error);

G_END_DECLS
