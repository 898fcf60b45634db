/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * HeadwayHttpQuery:
 *
 * The parameters of a request, decoded (`+` is a blank), in order, repeated ones kept. Keys are
 * case-sensitive.
 */
typedef struct _HeadwayHttpQuery HeadwayHttpQuery;

/* @query: (nullable): what stands behind the question mark. */
HeadwayHttpQuery *headway_http_query_new (const char *query);
void headway_http_query_free (HeadwayHttpQuery *self);

/* How often @key is given. */
guint headway_http_query_count (const HeadwayHttpQuery *self, const char *key);

/* The value of the @nth occurrence of @key. NULL if there is none, if it has no `=`, or if it is not
 * text: a bad escape, no UTF-8, or U+0000. (transfer none) (nullable) */
const char *headway_http_query_get (const HeadwayHttpQuery *self, const char *key, guint nth);

/**
 * headway_http_unescape:
 * @is_form: whether `+` is a blank
 *
 * Decodes percent-escapes once. Returns: (transfer full) (nullable): NULL for a bad escape or what is
 * not UTF-8; U+0000 is allowed.
 */
GString *headway_http_unescape (const char *text, gsize length, gboolean is_form);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayHttpQuery, headway_http_query_free)

G_END_DECLS
