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
  const guint8 *line_end = memchr (block->data, '\n', block->len);
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
