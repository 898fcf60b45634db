/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* How an error is said in JSON (http-api.md, Errors; decisions.md 18): in the body of an HTTP answer and
 * on the lines that answer those of a publisher stream. */

/* The word for @error, of HEADWAY_ERROR or HEADWAY_JSON_BODY_ERROR, such as "invalid_topic"; NULL for any
 * other. */
const char *headway_error_json_get_code (const GError *error);

/**
 * headway_error_json_begin:
 * @code: (nullable): the word, mostly that of headway_error_json_get_code()
 *
 * Returns: (transfer full): `{"error":…,"code":…` and the details of @error that are set, without the
 *   closing brace, so that the caller can add members.
 */
GString *headway_error_json_begin (const GError *error, const char *code);
/* The same for a text that is no GError. @code: (nullable). (transfer full) */
GString *headway_error_json_begin_text (const char *code, const char *text);

G_END_DECLS
