/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-chunks.h"

#include <string.h>

#define TRAILER_BYTES_MAX (16 * 1024)

/* More than any body may have, and far from the end of any integer. */
#define SIZE_DIGITS_MAX 12

/* Bytes up to the next LF and with it; 0: it is not there. */
static gsize
find_line (const GByteArray *input)
{
  const guint8 *end = memchr (input->data, '\n', input->len);

  return end != NULL ? (gsize) (end - input->data) + 1 : 0;
}

/* `1*HEXDIG [ blanks ] [ ";" … ] [ CR ] LF`. */
static gboolean
parse_size (const guint8 *line, gsize length, guint64 *size)
{
  gsize at = 0;

  *size = 0;
  for (; at < length && g_ascii_isxdigit (line[at]); at++)
    *size = *size << 4 | (guint64) g_ascii_xdigit_value (line[at]);
  if (at == 0 || at > SIZE_DIGITS_MAX)
    return FALSE;

  while (line[at] == ' ' || line[at] == '\t')
    at++;
  return line[at] == '\n' || line[at] == ';' || (line[at] == '\r' && line[at + 1] == '\n');
}

static gssize
next_size (HeadwayHttpChunks *self, GByteArray *input)
{
  gsize length = find_line (input);

  if (length == 0)
    return input->len < HEADWAY_HTTP_CHUNKS_LINE_MAX ? 0 : -1;
  if (length > HEADWAY_HTTP_CHUNKS_LINE_MAX || !parse_size (input->data, length, &self->left))
    return -1;

  self->state = self->left > 0 ? HEADWAY_HTTP_CHUNKS_DATA : HEADWAY_HTTP_CHUNKS_TRAILER;
  return (gssize) length;
}

static gssize
next_data (HeadwayHttpChunks *self, GByteArray *input, gsize count)
{
  gsize n = (gsize) MIN (self->left, MIN (count, input->len));

  self->left -= n;
  if (self->left == 0)
    self->state = HEADWAY_HTTP_CHUNKS_END;
  return (gssize) n;
}

/* An empty line: 0 while it is not there, -1 if it is something else. */
static gssize
match_empty_line (const GByteArray *input)
{
  if (input->len > 0 && input->data[0] == '\n')
    return 1;
  if (input->len == 0 || (input->len == 1 && input->data[0] == '\r'))
    return 0;
  return input->data[0] == '\r' && input->data[1] == '\n' ? 2 : -1;
}

static gssize
next_end (HeadwayHttpChunks *self, GByteArray *input)
{
  gssize n = match_empty_line (input);

  if (n > 0)
    self->state = HEADWAY_HTTP_CHUNKS_SIZE;
  return n;
}

static gssize
next_trailer (HeadwayHttpChunks *self, GByteArray *input)
{
  gssize n;

  while ((n = match_empty_line (input)) < 0)
    {
      gsize length = find_line (input);

      if (self->trailer_bytes + input->len > TRAILER_BYTES_MAX)
        return -1;
      if (length == 0)
        return 0;
      self->trailer_bytes += length;
      g_byte_array_remove_range (input, 0, (guint) length);
    }
  if (n > 0)
    self->state = HEADWAY_HTTP_CHUNKS_DONE;
  return n;
}

gssize
headway_http_chunks_next (HeadwayHttpChunks *self, GByteArray *input, gsize count)
{
  if (input->len == 0)
    return 0;

  switch (self->state)
    {
    case HEADWAY_HTTP_CHUNKS_SIZE:
      return next_size (self, input);
    case HEADWAY_HTTP_CHUNKS_DATA:
      return next_data (self, input, count);
    case HEADWAY_HTTP_CHUNKS_END:
      return next_end (self, input);
    case HEADWAY_HTTP_CHUNKS_TRAILER:
      return next_trailer (self, input);
    case HEADWAY_HTTP_CHUNKS_DONE:
      return 0;
    default:
      g_return_val_if_reached (-1);
    }
}
