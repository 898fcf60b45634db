/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-json.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

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

#ifdef __SSE2__
/* As headway_json_mark_special(), a bit for each of 16 bytes; @also as of headway_json_find_special(). */
static inline guint
headway_json_mark_special_16 (const char *at, guint64 also)
{
  __m128i bytes = _mm_loadu_si128 ((const __m128i *) (const void *) at);
  __m128i controls = _mm_cmpeq_epi8 (_mm_min_epu8 (bytes, _mm_set1_epi8 (0x1f)), bytes);
  __m128i quotes = _mm_cmpeq_epi8 (bytes, _mm_set1_epi8 ('"'));
  __m128i backslashes = _mm_cmpeq_epi8 (bytes, _mm_set1_epi8 ('\\'));
  guint marks = (guint) _mm_movemask_epi8 (_mm_or_si128 (controls, _mm_or_si128 (quotes, backslashes)));

  return also != 0 ? marks | (guint) _mm_movemask_epi8 (bytes) : marks;
}
#endif

/* The first special byte, or with HEADWAY_JSON_HIGHS as @also the first that is special or no ASCII;
 * @end if there is none. */
static inline const char *
headway_json_find_special (const char *at, const char *end, guint64 also)
{
  guint64 word;

#ifdef __SSE2__
  for (; end - at >= 16; at += 16)
    {
      guint marks = headway_json_mark_special_16 (at, also);

      if (marks != 0)
        return at + __builtin_ctz (marks);
    }
#endif
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
