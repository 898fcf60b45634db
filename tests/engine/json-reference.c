/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "json-reference.h"

#include <string.h>

typedef struct
{
  const guchar *text;
  gsize length;
  gsize at;
  guint max_depth;
} Reference;

static gboolean
is_at (Reference *self, const char *set)
{
  return self->at < self->length && self->text[self->at] != 0 &&
         strchr (set, self->text[self->at]) != NULL;
}

static gboolean
eat (Reference *self, const char *set)
{
  if (!is_at (self, set))
    return FALSE;
  self->at++;

  return TRUE;
}

static void
take_space (Reference *self)
{
  while (eat (self, " \t\r\n"))
    ;
}

/* Table 3-7 of the Unicode standard. */
static gboolean
take_character (Reference *self)
{
  static const guchar rows[][8] = {
    { 0x20, 0x7f },
    { 0xc2, 0xdf, 0x80, 0xbf },
    { 0xe0, 0xe0, 0xa0, 0xbf, 0x80, 0xbf },
    { 0xe1, 0xec, 0x80, 0xbf, 0x80, 0xbf },
    { 0xed, 0xed, 0x80, 0x9f, 0x80, 0xbf },
    { 0xee, 0xef, 0x80, 0xbf, 0x80, 0xbf },
    { 0xf0, 0xf0, 0x90, 0xbf, 0x80, 0xbf, 0x80, 0xbf },
    { 0xf1, 0xf3, 0x80, 0xbf, 0x80, 0xbf, 0x80, 0xbf },
    { 0xf4, 0xf4, 0x80, 0x8f, 0x80, 0xbf, 0x80, 0xbf },
  };

  for (gsize row = 0; row < G_N_ELEMENTS (rows); row++)
    {
      guchar first = self->text[self->at];

      if (first < rows[row][0] || first > rows[row][1])
        continue;
      for (gsize i = 0; i < 8 && rows[row][i] != 0; i += 2, self->at++)
        {
          guchar byte = self->at < self->length ? self->text[self->at] : 0;

          if (byte < rows[row][i] || byte > rows[row][i + 1])
            return FALSE;
        }
      return TRUE;
    }

  return FALSE;
}

static gboolean
take_string (Reference *self)
{
  if (!eat (self, "\""))
    return FALSE;

  while (self->at < self->length)
    {
      if (eat (self, "\""))
        return TRUE;
      if (!eat (self, "\\"))
        {
          if (!take_character (self))
            return FALSE;
          continue;
        }
      if (eat (self, "\"\\/bfnrt"))
        continue;
      if (!eat (self, "u"))
        return FALSE;
      for (guint i = 0; i < 4; i++)
        {
          if (!eat (self, "0123456789abcdefABCDEF"))
            return FALSE;
        }
    }

  return FALSE;
}

static gboolean
take_digits (Reference *self)
{
  gsize start = self->at;

  while (eat (self, "0123456789"))
    ;

  return self->at > start;
}

static gboolean
take_number (Reference *self)
{
  eat (self, "-");
  if (!eat (self, "0") && !take_digits (self))
    return FALSE;
  if (eat (self, ".") && !take_digits (self))
    return FALSE;
  if (!eat (self, "eE"))
    return TRUE;
  eat (self, "+-");

  return take_digits (self);
}

static gboolean
take_value (Reference *self, guint depth)
{
  static const char *const words[] = { "true", "false", "null" };
  gboolean is_object = is_at (self, "{");

  for (gsize i = 0; i < G_N_ELEMENTS (words); i++)
    {
      char first[] = { words[i][0], '\0' };

      if (!is_at (self, first))
        continue;
      for (const char *letter = words[i]; *letter != '\0'; letter++)
        {
          if (!eat (self, (char[]){ *letter, '\0' }))
            return FALSE;
        }
      return TRUE;
    }
  if (is_at (self, "\""))
    return take_string (self);
  if (is_at (self, "-0123456789"))
    return take_number (self);
  if (!is_at (self, "[{") || depth == self->max_depth)
    return FALSE;

  self->at++;
  take_space (self);
  if (eat (self, is_object ? "}" : "]"))
    return TRUE;
  for (;;)
    {
      if (is_object)
        {
          if (!take_string (self))
            return FALSE;
          take_space (self);
          if (!eat (self, ":"))
            return FALSE;
          take_space (self);
        }
      if (!take_value (self, depth + 1))
        return FALSE;
      take_space (self);
      if (eat (self, is_object ? "}" : "]"))
        return TRUE;
      if (!eat (self, ","))
        return FALSE;
      take_space (self);
    }
}

gint64
json_reference_check (const char *text, gsize length, guint max_depth)
{
  Reference self = { (const guchar *) text, length, 0, max_depth };

  take_space (&self);
  if (!take_value (&self, 0))
    return (gint64) self.at;
  take_space (&self);

  return self.at == length ? JSON_REFERENCE_VALID : (gint64) self.at;
}
