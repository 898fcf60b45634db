/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-json.h"

#include "engine/headway-error.h"
#include "engine/headway-json-scan.h"

#include <math.h>
#include <string.h>

/* Everything here trusts its text to have passed the validator, but reads nothing beyond the slice
 * that it was given. */

/* Longer numbers than this are read from a copy on the heap. */
#define NUMBER_ON_STACK 64

/* Behind the closing quote of the string whose opening quote is at @at. */
static const char *
find_string_end (const char *at, const char *end)
{
  at = headway_json_find_special (at + 1, end, 0);
  while (at < end && *at != '"')
    at = headway_json_find_special (MIN (at + 2, end), end, 0);

  return at < end ? at + 1 : end;
}

static const char *
find_value_end (const char *at, const char *end)
{
  guint depth = 0;

  if (*at == '"')
    return find_string_end (at, end);

  while (at < end)
    {
      if (*at == '"')
        {
          at = find_string_end (at, end);
          continue;
        }
      if (*at == '{' || *at == '[')
        depth++;
      else if (depth == 0 && (*at == ',' || headway_json_is_space (*at)))
        return at;
      else if ((*at == '}' || *at == ']') && --depth == 0)
        return at + 1;
      at++;
    }

  return end;
}

void
headway_json_iter_init (HeadwayJsonIter *iter, const HeadwayJson *container)
{
  g_return_if_fail (iter != NULL && container != NULL);

  iter->is_object = container->type == HEADWAY_JSON_OBJECT;
  iter->at = container->text;
  iter->end = container->text;
  if (!iter->is_object && container->type != HEADWAY_JSON_ARRAY)
    return;

  iter->at = container->text + 1;
  iter->end = container->text + container->length - 1;
}

static HeadwayJson
take_value (HeadwayJsonIter *iter)
{
  const char *start = iter->at;

  iter->at = find_value_end (start, iter->end);

  return (HeadwayJson){ start, (gsize) (iter->at - start), headway_json_type_of (*start) };
}

gboolean
headway_json_iter_next (HeadwayJsonIter *iter, HeadwayJson *name, HeadwayJson *value)
{
  g_return_val_if_fail (iter != NULL && value != NULL, FALSE);

  iter->at = headway_json_skip_space (iter->at, iter->end);
  if (iter->at == iter->end)
    return FALSE;

  if (iter->is_object)
    {
      HeadwayJson member = take_value (iter);

      if (name != NULL)
        *name = member;
      iter->at = headway_json_skip_space (iter->at, iter->end) + 1;
      iter->at = headway_json_skip_space (iter->at, iter->end);
    }

  *value = take_value (iter);
  iter->at = headway_json_skip_space (iter->at, iter->end);
  if (iter->at < iter->end)
    iter->at++;

  return TRUE;
}

static guint
read_hex4 (const char *at)
{
  guint value = 0;

  for (guint i = 0; i < 4; i++)
    value = value << 4 | (guint) g_ascii_xdigit_value (at[i]);

  return value;
}

/* The code point of a `\u` escape or of two that make a pair; U+FFFD for half a pair. */
static gunichar
read_unicode_escape (const char **at, const char *end)
{
  guint high = read_hex4 (*at + 2);
  guint low;

  *at += 6;
  if (high < 0xd800 || high > 0xdfff)
    return high;
  if (high > 0xdbff || end - *at < 6 || (*at)[0] != '\\' || (*at)[1] != 'u')
    return 0xfffd;

  low = read_hex4 (*at + 2);
  if (low < 0xdc00 || low > 0xdfff)
    return 0xfffd;

  *at += 6;

  return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

/* @at stands on a backslash and is moved behind the escape. */
static gunichar
read_escape (const char **at, const char *end)
{
  char kind = (*at)[1];

  if (kind == 'u')
    return read_unicode_escape (at, end);

  *at += 2;
  switch (kind)
    {
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return (guchar) kind;
    }
}

gboolean
headway_json_string_equals (const HeadwayJson *string, const char *text)
{
  const char *at;
  const char *end;

  g_return_val_if_fail (string != NULL && text != NULL, FALSE);

  if (string->type != HEADWAY_JSON_STRING)
    return FALSE;

  at = string->text + 1;
  end = string->text + string->length - 1;
  while (at < end)
    {
      const char *stop = headway_json_find_special (at, end, 0);
      gsize run = (gsize) (stop - at);
      char decoded[6];

      /* A text that ends within the run differs from it at its NUL, which no run holds. */
      if (strncmp (text, at, run) != 0)
        return FALSE;

      text += run;
      at = stop;
      if (at == end)
        break;

      run = (gsize) g_unichar_to_utf8 (read_escape (&at, end), decoded);
      if (decoded[0] == '\0' || strncmp (text, decoded, run) != 0)
        return FALSE;
      text += run;
    }

  return *text == '\0';
}

gboolean
headway_json_decode_string (const HeadwayJson *string, char *to, GError **error)
{
  const char *at;
  const char *end;

  g_return_val_if_fail (string != NULL && to != NULL, FALSE);

  if (string->type != HEADWAY_JSON_STRING)
    {
      g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_DATA, "expected a string");
      return FALSE;
    }

  at = string->text + 1;
  end = string->text + string->length - 1;
  for (;;)
    {
      const char *stop = headway_json_find_special (at, end, 0);
      gunichar character;

      memcpy (to, at, (gsize) (stop - at));
      to += stop - at;
      at = stop;
      if (at == end)
        break;

      character = read_escape (&at, end);
      if (character == 0)
        {
          g_set_error (error,
                       HEADWAY_ERROR,
                       HEADWAY_ERROR_INVALID_DATA,
                       "expected a string without U+0000");
          return FALSE;
        }
      to += g_unichar_to_utf8 (character, to);
    }
  *to = '\0';

  return TRUE;
}

char *
headway_json_dup_string (const HeadwayJson *string, GError **error)
{
  g_autofree char *decoded = NULL;

  g_return_val_if_fail (string != NULL, NULL);

  decoded = g_malloc (string->length);
  if (!headway_json_decode_string (string, decoded, error))
    return NULL;

  return g_steal_pointer (&decoded);
}

gboolean
headway_json_get_uint (const HeadwayJson *number, guint64 maximum, guint64 *value)
{
  guint64 sum = 0;

  g_return_val_if_fail (number != NULL && value != NULL, FALSE);

  if (number->type != HEADWAY_JSON_NUMBER)
    return FALSE;

  for (gsize i = 0; i < number->length; i++)
    {
      if (!g_ascii_isdigit (number->text[i]) ||
          !g_uint64_checked_mul (&sum, sum, 10) ||
          !g_uint64_checked_add (&sum, sum, (guint64) (number->text[i] - '0')))
        return FALSE;
    }
  if (sum > maximum)
    return FALSE;

  *value = sum;

  return TRUE;
}

gboolean
headway_json_get_boolean (const HeadwayJson *json, gboolean *value)
{
  g_return_val_if_fail (json != NULL && value != NULL, FALSE);

  if (json->type != HEADWAY_JSON_BOOLEAN)
    return FALSE;

  *value = json->text[0] == 't';

  return TRUE;
}

gboolean
headway_json_is_finite (const HeadwayJson *json)
{
  g_autofree char *copy = NULL;
  char buffer[NUMBER_ON_STACK];

  g_return_val_if_fail (json != NULL, FALSE);

  if (json->type != HEADWAY_JSON_NUMBER)
    return FALSE;
  if (json->length >= sizeof buffer)
    {
      copy = g_strndup (json->text, json->length);
      return isfinite (g_ascii_strtod (copy, NULL));
    }

  memcpy (buffer, json->text, json->length);
  buffer[json->length] = '\0';

  return isfinite (g_ascii_strtod (buffer, NULL));
}

void
headway_json_copy_line (char *to, const char *text, gsize length)
{
  static const char breaks[] = { '\n', '\r' };
  char *end = to + length;

  if (length == 0)
    return;

  memcpy (to, text, length);
  for (gsize i = 0; i < G_N_ELEMENTS (breaks); i++)
    {
      char *at = to;

      while ((at = memchr (at, breaks[i], (gsize) (end - at))) != NULL)
        *at++ = ' ';
    }
}

static void
append_escape (GString *json, guchar byte)
{
  static const char short_escapes[0x20] = {
    ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'
  };
  char escape[2] = { '\\', (char) byte };

  if (byte < 0x20 && short_escapes[byte] == '\0')
    {
      g_string_append_printf (json, "\\u%04x", byte);
      return;
    }

  if (byte < 0x20)
    escape[1] = short_escapes[byte];
  g_string_append_len (json, escape, sizeof escape);
}

void
headway_json_append_string (GString *json, const char *text, gsize length)
{
  const char *end = text + length;

  g_return_if_fail (json != NULL);
  g_return_if_fail (text != NULL || length == 0);

  g_string_append_c (json, '"');
  while (text < end)
    {
      const char *stop = headway_json_find_special (text, end, 0);

      g_string_append_len (json, text, stop - text);
      if (stop < end)
        append_escape (json, (guchar) *stop++);
      text = stop;
    }
  g_string_append_c (json, '"');
}
