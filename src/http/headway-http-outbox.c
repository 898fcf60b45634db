/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-outbox.h"

#include <errno.h>
#include <sys/socket.h>

static gssize
send_now (int fd, const void *bytes, gsize count)
{
  gssize n;

  do
    n = send (fd, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);
  while (n < 0 && errno == EINTR);
  return n;
}

gboolean
headway_http_outbox_flush (HeadwayHttpOutbox *self, int fd)
{
  while (self->bytes != NULL)
    {
      gssize n = send_now (fd, self->bytes->data, self->bytes->len);

      if (n < 0)
        return FALSE;
      if ((gsize) n == self->bytes->len)
        g_clear_pointer (&self->bytes, g_byte_array_unref);
      else
        g_byte_array_remove_range (self->bytes, 0, (guint) n);
    }
  return TRUE;
}

gssize
headway_http_outbox_put (HeadwayHttpOutbox *self, int fd, const void *bytes, gsize count)
{
  gsize waiting = self->bytes != NULL ? self->bytes->len : 0;

  if (waiting + count > HEADWAY_HTTP_OUTBOX_BYTES)
    {
      if (!headway_http_outbox_flush (self, fd))
        return -1;
      if (count > HEADWAY_HTTP_OUTBOX_BYTES)
        return send_now (fd, bytes, count);
    }
  if (self->bytes == NULL)
    self->bytes = g_byte_array_sized_new (512);
  g_byte_array_append (self->bytes, bytes, (guint) count);
  /* What the socket refuses is told by the next write, or whoever flushes. */
  if (self->bytes->len >= HEADWAY_HTTP_OUTBOX_FLUSH_BYTES)
    headway_http_outbox_flush (self, fd);
  return (gssize) count;
}

GByteArray *
headway_http_outbox_steal (HeadwayHttpOutbox *self)
{
  return g_steal_pointer (&self->bytes);
}

void
headway_http_outbox_clear (HeadwayHttpOutbox *self)
{
  g_clear_pointer (&self->bytes, g_byte_array_unref);
}
