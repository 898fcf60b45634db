/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-json.h"

#include "engine/headway-error.h"
#include "engine/headway-json-scan.h"

#include <string.h>

/* The validator is a loop with one bit per open container instead of a recursion. Whatever it
 * refuses, everything before the reported byte could still have become valid JSON, and the text up
 * to and with that byte could not; a text that merely stops too early is refused at its length. */

#define DEPTH_CEILING 1024
#define BITS          64

typedef struct
{
  const char *start;
  const char *at; /* the offending byte, once something is refused */
  const char *end;
  const char *expected; /* what would have been right there */
  guint depth;
  guint max_depth;
  gboolean too_deep;                     /* refused for this alone: the text may be good JSON */
  guint64 objects[DEPTH_CEILING / BITS]; /* bit per open container: it is an object */
} Validator;

static gboolean
refuse (Validator *self, const char *expected)
{
  self->expected = expected;

  return FALSE;
}

/* What stands at the cursor, or NUL at the end, where a NUL in the text is refused as well. */
static inline char
peek (Validator *self)
{
  return self->at < self->end ? *self->at : '\0';
}

static gboolean
skip_multibyte (Validator *self)
{
  guchar lead = (guchar) *self->at;
  guchar low = 0x80;
  guchar high = 0xbf;
  guint more;

  /* The first continuation byte is where overlong forms, surrogates and what lies beyond U+10FFFF
   * show (RFC 3629, section 4). */
  if (lead >= 0xc2 && lead <= 0xdf)
    {
      more = 1;
    }
  else if (lead >= 0xe0 && lead <= 0xef)
    {
      more = 2;
      low = lead == 0xe0 ? 0xa0 : 0x80;
      high = lead == 0xed ? 0x9f : 0xbf;
    }
  else if (lead >= 0xf0 && lead <= 0xf4)
    {
      more = 3;
      low = lead == 0xf0 ? 0x90 : 0x80;
      high = lead == 0xf4 ? 0x8f : 0xbf;
    }
  else
    {
      return refuse (self, "valid UTF-8");
    }

  for (self->at++; more > 0; more--, self->at++)
    {
      if (self->at == self->end || (guchar) *self->at < low || (guchar) *self->at > high)
        return refuse (self, "valid UTF-8");
      low = 0x80;
      high = 0xbf;
    }

  return TRUE;
}

static gboolean
skip_escape (Validator *self)
{
  self->at++;
  switch (peek (self))
    {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
      self->at++;
      return TRUE;
    case 'u':
      self->at++;
      break;
    default:
      return refuse (self, "an escape");
    }

  for (guint digits = 4; digits > 0; digits--, self->at++)
    {
      if (!g_ascii_isxdigit (peek (self)))
        return refuse (self, "a hexadecimal digit");
    }

  return TRUE;
}

static gboolean
skip_string (Validator *self)
{
  for (self->at++;;)
    {
      guchar byte;

      self->at = headway_json_find_special (self->at, self->end, HEADWAY_JSON_HIGHS);
      if (self->at == self->end)
        return refuse (self, "the end of a string");

      byte = (guchar) *self->at;
      if (byte == '"')
        {
          self->at++;
          return TRUE;
        }
      if (byte < 0x20)
        return refuse (self, "an escape instead of a control character");
      if (byte == '\\' && !skip_escape (self))
        return FALSE;

      /* Other scripts than Latin come in runs; looking eight bytes ahead would find nothing. */
      while (self->at < self->end && (guchar) *self->at >= 0x80)
        {
          if (!skip_multibyte (self))
            return FALSE;
        }
    }
}

static gboolean
skip_digits (Validator *self)
{
  if (!g_ascii_isdigit (peek (self)))
    return refuse (self, "a digit");

  while (self->at < self->end && g_ascii_isdigit (*self->at))
    self->at++;

  return TRUE;
}

static gboolean
skip_number (Validator *self)
{
  if (*self->at == '-')
    self->at++;

  if (peek (self) == '0')
    self->at++;
  else if (!skip_digits (self))
    return FALSE;

  if (peek (self) == '.')
    {
      self->at++;
      if (!skip_digits (self))
        return FALSE;
    }

  if (peek (self) != 'e' && peek (self) != 'E')
    return TRUE;

  self->at++;
  if (peek (self) == '+' || peek (self) == '-')
    self->at++;

  return skip_digits (self);
}

static gboolean
skip_literal (Validator *self, const char *literal)
{
  for (const char *expected = literal; *expected != '\0'; expected++, self->at++)
    {
      if (peek (self) != *expected)
        return refuse (self, literal);
    }

  return TRUE;
}

static gboolean
skip_scalar (Validator *self)
{
  switch (peek (self))
    {
    case '"':
      return skip_string (self);
    case 't':
      return skip_literal (self, "true");
    case 'f':
      return skip_literal (self, "false");
    case 'n':
      return skip_literal (self, "null");
    case '-':
    case '0' ... '9':
      return skip_number (self);
    default:
      return refuse (self, "a value");
    }
}

static inline gboolean
is_in_object (Validator *self)
{
  guint top = self->depth - 1;

  return (self->objects[top / BITS] >> (top % BITS)) & 1;
}

static gboolean
open_container (Validator *self)
{
  guint64 bit = G_GUINT64_CONSTANT (1) << (self->depth % BITS);
  guint64 *word = &self->objects[self->depth / BITS];

  self->too_deep = self->depth == self->max_depth;
  if (self->too_deep)
    return FALSE;

  *word = *self->at == '{' ? *word | bit : *word & ~bit;
  self->depth++;
  self->at = headway_json_skip_space (self->at + 1, self->end);

  return TRUE;
}

/* A member's name and its colon, up to the value. */
static gboolean
skip_name (Validator *self, const char *expected)
{
  if (peek (self) != '"')
    return refuse (self, expected);
  if (!skip_string (self))
    return FALSE;

  self->at = headway_json_skip_space (self->at, self->end);
  if (peek (self) != ':')
    return refuse (self, "':'");

  self->at = headway_json_skip_space (self->at + 1, self->end);

  return TRUE;
}

/* Behind a value: closes what closes here, and stops where the next value starts or, with depth 0,
 * behind the outermost one. */
static gboolean
skip_separators (Validator *self)
{
  while (self->depth > 0)
    {
      gboolean in_object = is_in_object (self);

      self->at = headway_json_skip_space (self->at, self->end);
      if (peek (self) == ',')
        {
          self->at = headway_json_skip_space (self->at + 1, self->end);
          return !in_object || skip_name (self, "a name in double quotes");
        }
      if (peek (self) != (in_object ? '}' : ']'))
        return refuse (self, in_object ? "',' or '}'" : "',' or ']'");

      self->at++;
      self->depth--;
    }

  return TRUE;
}

/* From the start of a value to where the next one starts. A container counts as a value when it is
 * empty; else its first value is the next one. */
static gboolean
skip_value (Validator *self)
{
  char first = peek (self);

  if (first != '{' && first != '[')
    return skip_scalar (self) && skip_separators (self);

  if (!open_container (self))
    return FALSE;

  if (peek (self) == (first == '{' ? '}' : ']'))
    {
      self->depth--;
      self->at++;
      return skip_separators (self);
    }
  if (first == '{')
    return skip_name (self, "a name in double quotes or '}'");

  return TRUE;
}

static void
set_error (Validator *self, GError **error)
{
  g_autoptr (GError) local = NULL;
  g_autofree char *found = NULL;
  gsize position = (gsize) (self->at - self->start);

  if (self->at == self->end)
    found = g_strdup ("the end of the text");
  else if (g_ascii_isgraph (*self->at) || *self->at == ' ')
    found = g_strdup_printf ("'%c'", *self->at);
  else
    found = g_strdup_printf ("the byte 0x%02x", (guchar) *self->at);

  if (self->too_deep)
    local = g_error_new (HEADWAY_ERROR,
                         HEADWAY_ERROR_INVALID_DATA,
                         "expected at most %u nested containers at byte %" G_GSIZE_FORMAT ", found %s",
                         self->max_depth,
                         position,
                         found);
  else
    local = g_error_new (HEADWAY_ERROR,
                         HEADWAY_ERROR_INVALID_DATA,
                         "expected %s at byte %" G_GSIZE_FORMAT ", found %s",
                         self->expected,
                         position,
                         found);
  headway_error_get_details (local)->position = (gint64) position;
  g_propagate_error (error, g_steal_pointer (&local));
}

gboolean
headway_json_validate (const char *text,
                       gsize length,
                       guint max_depth,
                       HeadwayJson *json,
                       GError **error)
{
  Validator self = { .start = text != NULL ? text : "", .max_depth = max_depth };
  const char *value;
  const char *value_end;
  gboolean valid;

  g_return_val_if_fail (text != NULL || length == 0, FALSE);
  g_return_val_if_fail (max_depth >= 1 && max_depth <= DEPTH_CEILING, FALSE);

  self.end = self.start + length;
  self.at = value = headway_json_skip_space (self.start, self.end);

  do
    valid = skip_value (&self);
  while (valid && self.depth > 0);

  value_end = self.at;
  if (valid)
    {
      self.at = headway_json_skip_space (self.at, self.end);
      valid = self.at == self.end || refuse (&self, "the end of the text");
    }
  if (!valid)
    {
      set_error (&self, error);
      return FALSE;
    }

  if (json != NULL)
    *json = (HeadwayJson){ value, (gsize) (value_end - value), headway_json_type_of (*value) };

  return TRUE;
}
