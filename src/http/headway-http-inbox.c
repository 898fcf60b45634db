/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-inbox.h"

#include "http/headway-http-header.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define READ_BYTES       (8 * 1024)
#define HEADER_TOO_LARGE 431
#define MALFORMED        400

void
headway_http_inbox_clear (HeadwayHttpInbox *self)
{
  g_clear_pointer (&self->bytes, g_byte_array_unref);
  self->block_bytes = 0;
}

static void
drop (HeadwayHttpInbox *self, gsize n)
{
  if (n == self->bytes->len)
    g_clear_pointer (&self->bytes, g_byte_array_unref);
  else if (n > 0)
    g_byte_array_remove_range (self->bytes, 0, (guint) n);
}

/* Reads what is there. FALSE: nothing came. */
static gboolean
fill (HeadwayHttpInbox *self, int fd)
{
  guint8 chunk[READ_BYTES];
  gssize n;

  if (self->is_ended)
    return FALSE;

  do
    n = recv (fd, chunk, sizeof chunk, MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);

  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
    return FALSE;
  if (n <= 0)
    {
      self->is_ended = TRUE;
      return FALSE;
    }
  if (self->bytes == NULL)
    self->bytes = g_byte_array_new ();
  g_byte_array_append (self->bytes, chunk, (guint) n);
  return TRUE;
}

/* --- Header blocks -------------------------------------------------------------------------- */

/* Empty lines before a request are allowed and mean nothing. */
static void
drop_empty_lines (HeadwayHttpInbox *self)
{
  gsize n = 0;

  while (n < self->bytes->len && (self->bytes->data[n] == '\r' || self->bytes->data[n] == '\n'))
    n++;
  drop (self, n);
}

gboolean
headway_http_inbox_has_block (HeadwayHttpInbox *self)
{
  if (self->block_bytes > 0)
    return TRUE;
  if (self->bytes != NULL)
    drop_empty_lines (self);
  if (self->bytes == NULL)
    return FALSE;

  self->block_bytes = headway_http_find_block ((const char *) self->bytes->data, self->bytes->len);
  return self->block_bytes > 0;
}

gboolean
headway_http_inbox_has_begun (const HeadwayHttpInbox *self)
{
  return self->bytes != NULL;
}

guint
headway_http_inbox_read_block (HeadwayHttpInbox *self, int fd)
{
  guint status;

  /* The rest of one that was checked before. */
  if (self->block_bytes > 0)
    return 0;

  while (!headway_http_inbox_has_block (self))
    {
      if (self->bytes != NULL && self->bytes->len > HEADWAY_HTTP_HEADER_MAX)
        return HEADER_TOO_LARGE;
      if (!fill (self, fd))
        return 0;
    }
  if (self->block_bytes > HEADWAY_HTTP_HEADER_MAX)
    return HEADER_TOO_LARGE;

  status = headway_http_check_block ((const char *) self->bytes->data, self->block_bytes);
  if (status == 0)
    self->block_bytes += headway_http_mend_target (self->bytes);
  return status;
}

/* --- Bodies --------------------------------------------------------------------------------- */

void
headway_http_inbox_begin_body (HeadwayHttpInbox *self, gboolean is_chunked)
{
  self->is_chunked = is_chunked;
  self->is_short = FALSE;
  self->chunks = (HeadwayHttpChunks){ 0 };
}

gboolean
headway_http_inbox_has_body (const HeadwayHttpInbox *self)
{
  return self->bytes != NULL && !self->is_short;
}

/* How much of a body may be taken now, 0: nothing is there, -1: it is none. */
static gssize
find_body (HeadwayHttpInbox *self, gsize count)
{
  if (self->bytes == NULL)
    return 0;
  if (self->is_chunked)
    return headway_http_chunks_next (&self->chunks, self->bytes, count);
  return (gssize) MIN (count, self->bytes->len);
}

guint
headway_http_inbox_read_body (HeadwayHttpInbox *self, int fd, gsize count, gsize *n)
{
  gssize found = find_body (self, count);

  while (found == 0 && fill (self, fd))
    found = find_body (self, count);
  self->is_short = found == 0;
  *n = (gsize) MAX (found, 0);
  return found < 0 ? MALFORMED : 0;
}

void
headway_http_inbox_take (HeadwayHttpInbox *self, void *to, gsize n)
{
  memcpy (to, self->bytes->data, n);
  self->block_bytes -= MIN (n, self->block_bytes);
  drop (self, n);
}
