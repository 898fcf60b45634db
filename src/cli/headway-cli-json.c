/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the pieces of a JSON text and hands them out as slices of it, so that data and _meta
 * pass through byte for byte: a parser such as json-glib would change large numbers and is
 * not safe on deep nesting (decisions.md 10).
 *
 * This is no validator: the daemon has the one strict one. What it does promise, on any
 * input: no read outside the text, no recursion, and that a slice that is handed out is one
 * whole value for every strict parser that accepts the text around it. Strings are skipped
 * as such and brackets are counted, so nothing inside a value can end it early.
 */
#include "config.h"

#include "cli/headway-cli-json.h"

#include <string.h>

static gboolean
is_space (char c)
{
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static const char *
skip_space (const char *p,
            const char *end)
{
  while (p < end && is_space (*p))
    p++;
  return p;
}

/* Returns the place behind the string that starts at @p, or NULL if it does not end. */
static const char *
skip_string (const char *p,
             const char *end)
{
  for (p++; p < end; p++)
    {
      if (*p == '"')
        return p + 1;
      if (*p == '\\')
        p++;
    }
  return NULL;
}

static const char *
skip_nested (const char *p,
             const char *end)
{
  gsize depth = 0;

  while (p < end)
    {
      if (*p == '"')
        {
          p = skip_string (p, end);
          if (p == NULL)
            return NULL;
          continue;
        }
      if (*p == '{' || *p == '[')
        depth++;
      else if ((*p == '}' || *p == ']') && --depth == 0)
        return p + 1;
      p++;
    }
  return NULL;
}

/* Returns the place behind the value that starts at @p, or NULL if there is none. */
static const char *
skip_value (const char *p,
            const char *end)
{
  const char *start = p;

  if (p == end)
    return NULL;
  if (*p == '"')
    return skip_string (p, end);
  if (*p == '{' || *p == '[')
    return skip_nested (p, end);
  while (p < end && !is_space (*p) && *p != '\0' && strchr (",:{}[]\"", *p) == NULL)
    p++;
  return p > start ? p : NULL;
}

/**
 * headway_cli_json_iter_init:
 * @iter: an iterator
 * @json: text of an object or an array; outlives @iter
 *
 * Starts at the first member.
 *
 * Returns: FALSE if @json is neither; then nothing may be read
 */
gboolean
headway_cli_json_iter_init (HeadwayCliJsonIter *iter,
                            HeadwayCliSlice json)
{
  const char *end = json.text + json.length;
  const char *p = skip_space (json.text, end);

  *iter = (HeadwayCliJsonIter){ .cursor = end, .end = end };
  if (p == end || (*p != '{' && *p != '['))
    return FALSE;
  *iter = (HeadwayCliJsonIter){
    .cursor = p + 1,
    .end = end,
    .close = *p == '{' ? '}' : ']',
    .first = TRUE,
  };
  return TRUE;
}

/* Goes to the next member; NULL at the end and where there is none. */
static const char *
enter_member (HeadwayCliJsonIter *iter)
{
  const char *p = skip_space (iter->cursor, iter->end);

  if (p == iter->end || iter->closed)
    return NULL;
  if (*p == iter->close)
    {
      iter->closed = TRUE;
      iter->cursor = p + 1;
      return NULL;
    }
  if (iter->first)
    {
      iter->first = FALSE;
      return p;
    }
  if (*p != ',')
    return NULL;
  return skip_space (p + 1, iter->end);
}

/**
 * headway_cli_json_iter_next:
 * @iter: an iterator
 * @name: (out): name of the member with its quotes; empty in an array
 * @value: (out): its value
 *
 * Returns: FALSE at the end, and where the text is broken: see
 *   headway_cli_json_iter_is_complete()
 */
gboolean
headway_cli_json_iter_next (HeadwayCliJsonIter *iter,
                            HeadwayCliSlice *name,
                            HeadwayCliSlice *value)
{
  const char *p = enter_member (iter);
  const char *after;

  *name = (HeadwayCliSlice){ NULL, 0 };
  if (p == NULL)
    return FALSE;
  if (iter->close == '}')
    {
      after = p < iter->end && *p == '"' ? skip_string (p, iter->end) : NULL;
      if (after == NULL)
        return FALSE;
      *name = (HeadwayCliSlice){ p, (gsize) (after - p) };
      p = skip_space (after, iter->end);
      if (p == iter->end || *p != ':')
        return FALSE;
      p = skip_space (p + 1, iter->end);
    }
  after = skip_value (p, iter->end);
  if (after == NULL)
    return FALSE;
  *value = (HeadwayCliSlice){ p, (gsize) (after - p) };
  iter->cursor = after;
  return TRUE;
}

/**
 * headway_cli_json_iter_is_complete:
 * @iter: an iterator after its last member
 *
 * Returns: whether the closing bracket was read and nothing follows it
 */
gboolean
headway_cli_json_iter_is_complete (HeadwayCliJsonIter *iter)
{
  return iter->closed && skip_space (iter->cursor, iter->end) == iter->end;
}

static gboolean
name_equals (HeadwayCliSlice quoted,
             const char *name)
{
  g_autofree char *text = headway_cli_json_dup_string (quoted);

  return text != NULL && g_str_equal (text, name);
}

/**
 * headway_cli_json_get_member:
 * @object: text of an object
 * @name: name of a member
 * @value: (out): its value, a part of @object
 *
 * Returns: FALSE if @object is none, or has no such member
 */
gboolean
headway_cli_json_get_member (HeadwayCliSlice object,
                             const char *name,
                             HeadwayCliSlice *value)
{
  HeadwayCliJsonIter iter;
  HeadwayCliSlice key;

  if (!headway_cli_json_iter_init (&iter, object) || iter.close != '}')
    return FALSE;
  while (headway_cli_json_iter_next (&iter, &key, value))
    {
      if (name_equals (key, name))
        return TRUE;
    }
  return FALSE;
}

/**
 * headway_cli_json_get_uint64:
 * @value: text of a value
 * @number: (out): the number
 *
 * Returns: FALSE if @value is no whole number that fits
 */
gboolean
headway_cli_json_get_uint64 (HeadwayCliSlice value,
                             guint64 *number)
{
  char digits[24];

  if (value.length == 0 || value.length >= sizeof digits)
    return FALSE;
  memcpy (digits, value.text, value.length);
  digits[value.length] = '\0';
  return g_ascii_string_to_unsigned (digits, 10, 0, G_MAXUINT64, number, NULL);
}

static gboolean
read_hex4 (const char **p,
           const char *end,
           gunichar *unit)
{
  *unit = 0;
  if (end - *p < 4)
    return FALSE;
  for (int i = 0; i < 4; i++, (*p)++)
    {
      int digit = g_ascii_xdigit_value (**p);

      if (digit < 0)
        return FALSE;
      *unit = *unit * 16 + (gunichar) digit;
    }
  return TRUE;
}

/* Reads the four digits behind `\u`, and a second escape if both make a pair. A surrogate
 * alone cannot be said in UTF-8 and becomes U+FFFD. */
static gboolean
append_unicode_escape (GString *text,
                       const char **p,
                       const char *end)
{
  gunichar unit;
  gunichar low;
  const char *next;

  if (!read_hex4 (p, end, &unit))
    return FALSE;
  next = *p + 2;
  if (unit >= 0xd800 && unit < 0xdc00 && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u' && read_hex4 (&next, end, &low) &&
      low >= 0xdc00 && low < 0xe000)
    {
      unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
      *p = next;
    }
  if (unit >= 0xd800 && unit < 0xe000)
    unit = 0xfffd;
  g_string_append_unichar (text, unit);
  return TRUE;
}

static gboolean
append_escape (GString *text,
               const char **p,
               const char *end)
{
  static const char letters[] = "\"\\/bfnrt";
  static const char meanings[] = "\"\\/\b\f\n\r\t";
  const char *found;
  char letter;

  if (*p == end)
    return FALSE;
  letter = *(*p)++;
  if (letter == 'u')
    return append_unicode_escape (text, p, end);
  found = letter != '\0' ? strchr (letters, letter) : NULL;
  if (found == NULL)
    return FALSE;
  g_string_append_c (text, meanings[found - letters]);
  return TRUE;
}

/**
 * headway_cli_json_dup_string:
 * @value: text of a value
 *
 * Returns: (transfer full) (nullable): what the JSON string means; NULL if @value is no
 *   string, is broken, is no UTF-8, or has a NUL in it
 */
char *
headway_cli_json_dup_string (HeadwayCliSlice value)
{
  g_autoptr (GString) text = NULL;
  const char *p;
  const char *end;

  if (value.length < 2 || value.text[0] != '"' || value.text[value.length - 1] != '"')
    return NULL;
  p = value.text + 1;
  end = value.text + value.length - 1;
  text = g_string_sized_new (value.length);
  while (p < end)
    {
      if (*p == '"' || (guchar) *p < 0x20)
        return NULL;
      if (*p != '\\')
        {
          g_string_append_c (text, *p++);
          continue;
        }
      p++;
      if (!append_escape (text, &p, end))
        return NULL;
    }
  if (!g_utf8_validate_len (text->str, text->len, NULL))
    return NULL;
  return g_string_free (g_steal_pointer (&text), FALSE);
}

/**
 * headway_cli_json_is_one_value:
 * @json: a text
 * @position: (out): where it stops to be one, in bytes
 *
 * Whether @json may be put as a value into a larger JSON text without changing the meaning
 * of that. It may still be no JSON inside.
 *
 * Returns: TRUE if it is one value, with blanks around it at most
 */
gboolean
headway_cli_json_is_one_value (HeadwayCliSlice json,
                               gsize *position)
{
  const char *end = json.text + json.length;
  const char *p = skip_space (json.text, end);
  const char *after = skip_value (p, end);

  if (after == NULL)
    {
      *position = (gsize) (p == end || *p == '"' || *p == '{' || *p == '[' ? end - json.text : p - json.text);
      return FALSE;
    }
  after = skip_space (after, end);
  *position = (gsize) (after - json.text);
  return after == end;
}

static void
append_ascii (GString *json,
              char c)
{
  if (c == '"' || c == '\\')
    g_string_append_c (json, '\\');
  if ((guchar) c < 0x20)
    g_string_append_printf (json, "\\u%04x", (guint) c);
  else
    g_string_append_c (json, c);
}

/**
 * headway_cli_json_append_string:
 * @json: text to append to
 * @text: (array length=length): any bytes
 * @length: how many
 *
 * Appends @text as a JSON string. What is no UTF-8 becomes U+FFFD.
 *
 * Returns: how many times it did
 */
guint
headway_cli_json_append_string (GString *json,
                                const char *text,
                                gsize length)
{
  const char *end = text + length;
  guint repaired = 0;

  g_string_append_c (json, '"');
  for (const char *p = text; p < end;)
    {
      gunichar c;
      gsize size;

      if ((guchar) *p < 0x80)
        {
          append_ascii (json, *p++);
          continue;
        }
      c = g_utf8_get_char_validated (p, end - p);
      if (c == (gunichar) -1 || c == (gunichar) -2)
        {
          g_string_append (json, "\357\277\275");
          repaired++;
          p++;
          continue;
        }
      size = (gsize) (g_utf8_next_char (p) - p);
      g_string_append_len (json, p, (gssize) size);
      p += size;
    }
  g_string_append_c (json, '"');
  return repaired;
}
