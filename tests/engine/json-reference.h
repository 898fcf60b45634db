/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

#define JSON_REFERENCE_VALID (-1)

/* A second JSON parser, slow, recursive and as simple as it can be, to compare the first with.
 * Returns the position of the first byte that no valid text can have there, or
 * JSON_REFERENCE_VALID. */
gint64 json_reference_check (const char *text, gsize length, guint max_depth);
