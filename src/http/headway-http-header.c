/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-header.h"

#include <libsoup/soup.h>
#include <string.h>

gsize
headway_http_find_block (const char *text, gsize length)
{
  const char *end = text + length;
  const char *at = text;

  while (at < end && (at = memchr (at, '\n', (gsize) (end - at))) != NULL)
    {
      at++;
      if (at < end && *at == '\n')
        return (gsize) (at + 1 - text);
      if (end - at >= 2 && at[0] == '\r' && at[1] == '\n')
        return (gsize) (at + 2 - text);
    }
  return 0;
}

/* --- Framing -------------------------------------------------------------------------------- */

static gboolean
is_blank (char byte)
{
  return byte == ' ' || byte == '\t';
}

/* The value of the header line @line if its name is @name, without blanks around it. */
static gboolean
match_header (const char *line, gsize length, const char *name, const char **value, gsize *value_length)
{
  gsize name_length = strlen (name);
  const char *at = line + name_length + 1;
  const char *end = line + length;

  if (length <= name_length || line[name_length] != ':' || g_ascii_strncasecmp (line, name, name_length) != 0)
    return FALSE;

  while (at < end && is_blank (*at))
    at++;
  while (end > at && (is_blank (end[-1]) || end[-1] == '\r'))
    end--;
  *value = at;
  *value_length = (gsize) (end - at);
  return TRUE;
}

/* What the lines of a block say about the body. */
typedef struct
{
  guint n_lengths;
  guint n_encodings;
  gboolean is_bad_length;
  gboolean is_strange_encoding;
  /* What two parsers read differently: a line that goes on in the next one, and a blank before the colon. */
  gboolean is_ambiguous;
} Framing;

static void
look_at_line (Framing *self, const char *line, gsize length)
{
  const char *colon = memchr (line, ':', length);
  const char *value;
  gsize value_length;

  if (length > 0 && is_blank (line[0]))
    self->is_ambiguous = TRUE;
  if (colon != NULL && colon > line && is_blank (colon[-1]))
    self->is_ambiguous = TRUE;
  if (match_header (line, length, "Content-Length", &value, &value_length))
    {
      self->n_lengths++;
      /* 18 digits fit in 63 bits. */
      self->is_bad_length |= value_length == 0 || value_length > 18;
      for (gsize i = 0; i < value_length; i++)
        self->is_bad_length |= !g_ascii_isdigit (value[i]);
    }
  if (match_header (line, length, "Transfer-Encoding", &value, &value_length))
    {
      self->n_encodings++;
      self->is_strange_encoding |= value_length != strlen ("chunked") || g_ascii_strncasecmp (value, "chunked", value_length) != 0;
    }
}

guint
headway_http_check_block (const char *block, gsize length)
{
  const char *end = block + length;
  const char *line = memchr (block, '\n', length);
  Framing framing = { 0 };

  if (memchr (block, '\0', length) != NULL)
    return SOUP_STATUS_BAD_REQUEST;

  while (line != NULL && ++line < end)
    {
      const char *next = memchr (line, '\n', (gsize) (end - line));

      look_at_line (&framing, line, next != NULL ? (gsize) (next - line) : (gsize) (end - line));
      line = next;
    }
  if (framing.is_strange_encoding && framing.n_lengths == 0)
    return SOUP_STATUS_NOT_IMPLEMENTED;
  if (framing.is_bad_length || framing.is_strange_encoding || framing.is_ambiguous || framing.n_lengths + framing.n_encodings > 1)
    return SOUP_STATUS_BAD_REQUEST;
  return 0;
}

/* --- The target ----------------------------------------------------------------------------- */

/* Whether the byte at @at, before @end, cannot stand in a target as it is. */
static gboolean
needs_mending (const guint8 *at, const guint8 *end)
{
  if (*at >= 0x80)
    return TRUE;
  return *at == '%' && (end - at < 3 || !g_ascii_isxdigit (at[1]) || !g_ascii_isxdigit (at[2]));
}

/* The second word of the request line; FALSE if there is nothing to mend in it. */
static gboolean
find_target (const GByteArray *block, gsize *start, gsize *end)
{
  const guint8 *line_end = block->len > 0 ? memchr (block->data, '\n', block->len) : NULL;
  gsize length = line_end != NULL ? (gsize) (line_end - block->data) : block->len;
  gsize at = 0;

  while (at < length && block->data[at] != ' ' && block->data[at] != '\t')
    at++;
  while (at < length && (block->data[at] == ' ' || block->data[at] == '\t'))
    at++;
  *start = at;
  while (at < length && block->data[at] != ' ' && block->data[at] != '\t' && block->data[at] != '\r')
    at++;
  *end = at;

  for (gsize i = *start; i < *end; i++)
    {
      if (needs_mending (block->data + i, block->data + *end))
        return TRUE;
    }
  return FALSE;
}

gsize
headway_http_mend_target (GByteArray *block)
{
  g_autoptr (GByteArray) tail = NULL;
  gsize length = block->len;
  gsize start;
  gsize end;

  if (!find_target (block, &start, &end))
    return 0;

  tail = g_byte_array_new ();
  g_byte_array_append (tail, block->data + start, (guint) (length - start));
  g_byte_array_set_size (block, (guint) start);
  for (gsize i = 0; i < end - start; i++)
    {
      const guint8 *at = tail->data + i;
      char escape[4];

      if (needs_mending (at, tail->data + (end - start)))
        {
          g_snprintf (escape, sizeof escape, "%%%02X", *at == '%' ? 0xff : *at);
          g_byte_array_append (block, (const guint8 *) escape, 3);
        }
      else
        {
          g_byte_array_append (block, at, 1);
        }
    }
  g_byte_array_append (block, tail->data + (end - start), (guint) (tail->len - (end - start)));
  return block->len - length;
}

const char *
headway_http_get_phrase (guint status)
{
  switch (status)
    {
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return soup_status_get_phrase (status);
    }
}
