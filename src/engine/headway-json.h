/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-types.h"

G_BEGIN_DECLS

typedef enum
{
  HEADWAY_JSON_NULL,
  HEADWAY_JSON_BOOLEAN,
  HEADWAY_JSON_NUMBER,
  HEADWAY_JSON_STRING,
  HEADWAY_JSON_ARRAY,
  HEADWAY_JSON_OBJECT,
} HeadwayJsonType;

/**
 * HeadwayJson:
 * @text: first byte of the value, within the source text; not ended by NUL
 * @length: bytes of the value, without white space around it
 * @type: its type
 *
 * A slice of JSON text that has been validated. Borrowed from the source.
 */
typedef struct
{
  const char *text;
  gsize length;
  HeadwayJsonType type;
} HeadwayJson;

/**
 * headway_json_validate:
 * @text: JSON text, need not end in NUL
 * @length: bytes of @text
 * @max_depth: containers that may nest, 1 … 1024
 * @json: (out): the value, without white space around it
 *
 * The strict validator that sees everything from outside before any library does (decisions.md
 * 10): RFC 8259, UTF-8 without surrogates or overlong forms, no byte-order mark, no NUL, no
 * recursion. Duplicate names, `1e400` and escapes of lone surrogates are legal.
 *
 * Returns: FALSE with HEADWAY_ERROR_INVALID_DATA, whose details hold the byte position.
 */
gboolean headway_json_validate (const char *text,
                                gsize length,
                                guint max_depth,
                                HeadwayJson *json,
                                GError **error);

/* Walks the members of a validated object or the elements of a validated array, in order. */
typedef struct
{
  const char *at;
  const char *end;
  gboolean is_object;
} HeadwayJsonIter;

void headway_json_iter_init (HeadwayJsonIter *iter, const HeadwayJson *container);
/* @name: (out) (optional): the member's name as a string slice with its quotes; object only.
 * @value: (out). Returns FALSE at the end. */
gboolean headway_json_iter_next (HeadwayJsonIter *iter, HeadwayJson *name, HeadwayJson *value);

/* Whether the string slice @string, once its escapes are decoded, is exactly @text. */
gboolean headway_json_string_equals (const HeadwayJson *string, const char *text);

/* Decodes a string slice into @to, which takes the length of the slice: that is enough, with the NUL, as
 * no escape is shorter than what it stands for. Otherwise as headway_json_dup_string(). */
gboolean headway_json_decode_string (const HeadwayJson *string, char *to, GError **error);

/* Decodes a string slice. A lone surrogate becomes U+FFFD. Returns (transfer full) (nullable):
 * NULL with HEADWAY_ERROR_INVALID_DATA if it is no string or holds U+0000, which no name may. */
char *headway_json_dup_string (const HeadwayJson *string, GError **error);

/* Reads a non-negative integer without sign, fraction or exponent. FALSE if it is anything else or
 * over @maximum. */
gboolean headway_json_get_uint (const HeadwayJson *number, guint64 maximum, guint64 *value);
/* FALSE if @json is not `true` or `false`. */
gboolean headway_json_get_boolean (const HeadwayJson *json, gboolean *value);
/* Whether @json is a number that a double holds without becoming infinite. */
gboolean headway_json_is_finite (const HeadwayJson *json);

/* Copies @length bytes of validated JSON to @to, CR and LF (which stand only between tokens)
 * replaced by spaces, so that it fits on one `data:` line. */
void headway_json_copy_line (char *to, const char *text, gsize length);

/* Appends @text as a JSON string with its quotes: quotes, backslash and U+0000 … U+001F escaped,
 * everything else raw. @text is valid UTF-8 of @length bytes. */
void headway_json_append_string (GString *json, const char *text, gsize length);

G_END_DECLS
