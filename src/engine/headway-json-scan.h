/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-json.h"

#include <string.h>

/* The scanning that the validator and the readers of validated text share. Not for others. */

G_BEGIN_DECLS

#define HEADWAY_JSON_ONES  G_GUINT64_CONSTANT (0x0101010101010101)
#define HEADWAY_JSON_HIGHS (HEADWAY_JSON_ONES * 0x80)

/* Marks with its high bit each byte that cannot stand as it is in a string: quote, backslash,
 * control. Borrows may mark bytes above the first one wrongly, never the first. */
static inline guint64
headway_json_mark_special (guint64 word)
{
  guint64 quotes = word ^ (HEADWAY_JSON_ONES * '"');
  guint64 backslashes = word ^ (HEADWAY_JSON_ONES * '\\');

  guint64 marks = (word - HEADWAY_JSON_ONES * 0x20) |
                  (quotes - HEADWAY_JSON_ONES) |
                  (backslashes - HEADWAY_JSON_ONES);

  return marks & ~word & HEADWAY_JSON_HIGHS;
}

/* The first special byte, or with HEADWAY_JSON_HIGHS as @also the first that is special or no ASCII;
 * @end if there is none. */
static inline const char *
headway_json_find_special (const char *at, const char *end, guint64 also)
{
  guint64 word;

  while (end - at >= (gssize) sizeof word)
    {
      guint64 marks;

      memcpy (&word, at, sizeof word);
      word = GUINT64_FROM_LE (word);
      marks = headway_json_mark_special (word) | (word & also);
      if (marks != 0)
        return at + (__builtin_ctzll (marks) >> 3);
      at += sizeof word;
    }

  for (; at < end; at++)
    {
      guchar byte = (guchar) *at;

      if (byte < 0x20 || byte == '"' || byte == '\\' || (byte & also) != 0)
        return at;
    }

  return end;
}

static inline gboolean
headway_json_is_space (char byte)
{
  return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

static inline const char *
headway_json_skip_space (const char *at, const char *end)
{
  while (at < end && headway_json_is_space (*at))
    at++;

  return at;
}

/* The type of a valid value by its first byte. */
static inline HeadwayJsonType
headway_json_type_of (char first)
{
  switch (first)
    {
    case '{':
      return HEADWAY_JSON_OBJECT;
    case '[':
      return HEADWAY_JSON_ARRAY;
    case '"':
      return HEADWAY_JSON_STRING;
    case 't':
    case 'f':
      return HEADWAY_JSON_BOOLEAN;
    case 'n':
      return HEADWAY_JSON_NULL;
    default:
      return HEADWAY_JSON_NUMBER;
    }
}

G_END_DECLS
