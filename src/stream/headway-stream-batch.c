/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "stream/headway-stream-batch.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* Longer batches are left in pieces: copying them would cost what it saves. */
#define JOINT_BYTES_MAX (64 * 1024)

/* A Unix socket takes so much in one go, or nothing of it: what it copies into one buffer. Without chunks a
 * reader cannot tell a frame that was cut from the end, so frames are written in groups of such a size: a
 * reader that stops has whole frames, but for one that is larger itself. */
#define GROUP_BYTES_MAX (32 * 1024)

#define SEND_FLAGS (MSG_NOSIGNAL | MSG_DONTWAIT)

void
headway_stream_batch_clear (HeadwayStreamBatch *self)
{
  for (guint i = 0; i < self->count; i++)
    headway_sse_frame_unref (self->frames[i]);
  self->count = 0;
  self->bytes = 0;
  self->offset = 0;
}

void
headway_stream_batch_keep_begun (HeadwayStreamBatch *self)
{
  g_return_if_fail (self->count > 0 && self->offset > 0);

  for (guint i = 1; i < self->count; i++)
    headway_sse_frame_unref (self->frames[i]);
  self->count = 1;
  self->bytes = self->frames[0]->length;
}

void
headway_stream_joint_forget (HeadwayStreamJoint *self)
{
  for (guint i = 0; i < self->count; i++)
    headway_sse_frame_unref (self->frames[i]);
  self->count = 0;
  if (self->bytes != NULL)
    g_byte_array_set_size (self->bytes, 0);
}

void
headway_stream_joint_clear (HeadwayStreamJoint *self)
{
  headway_stream_joint_forget (self);
  g_clear_pointer (&self->bytes, g_byte_array_unref);
}

/* The batch in one piece, or NULL where it has not come twice in a row. */
static const GByteArray *
joint_get (HeadwayStreamJoint *self, const HeadwayStreamBatch *batch, HeadwayStreamFormat format)
{
  gsize size = batch->count * sizeof batch->frames[0];

  if (batch->bytes > JOINT_BYTES_MAX || batch->offset > 0)
    return NULL;

  if (self->count != batch->count || self->format != format || memcmp (self->frames, batch->frames, size) != 0)
    {
      headway_stream_joint_forget (self);
      memcpy (self->frames, batch->frames, size);
      self->count = batch->count;
      self->format = format;
      for (guint i = 0; i < self->count; i++)
        headway_sse_frame_ref (self->frames[i]);
      return NULL;
    }

  if (self->bytes == NULL)
    self->bytes = g_byte_array_new ();
  if (self->bytes->len > 0)
    return self->bytes;
  for (guint i = 0; i < self->count; i++)
    {
      struct iovec pieces[HEADWAY_SSE_FRAME_PIECES];
      guint n = headway_sse_frame_get_pieces (self->frames[i], format, pieces);

      for (guint j = 0; j < n; j++)
        g_byte_array_append (self->bytes, pieces[j].iov_base, (guint) pieces[j].iov_len);
    }
  return self->bytes;
}

/* How many frames go out in one write. */
static guint
get_group (const HeadwayStreamBatch *self, HeadwayStreamFormat format)
{
  gsize bytes;
  guint n;

  /* No format has more bytes of a frame than a chunk. */
  if (format == HEADWAY_STREAM_FORMAT_SSE_CHUNKED || self->bytes <= GROUP_BYTES_MAX)
    return self->count;

  bytes = headway_sse_frame_get_length (self->frames[0], format) - self->offset;
  for (n = 1; n < self->count; n++)
    {
      bytes += headway_sse_frame_get_length (self->frames[n], format);
      if (bytes > GROUP_BYTES_MAX)
        break;
    }
  return n;
}

static gssize
send_pieces (const HeadwayStreamBatch *self, guint n, int fd, HeadwayStreamFormat format, gsize *offered)
{
  struct iovec pieces[HEADWAY_STREAM_BATCH_FRAMES * HEADWAY_SSE_FRAME_PIECES];
  struct msghdr message = { .msg_iov = pieces };
  gsize offset = self->offset;

  for (guint i = 0; i < n; i++)
    message.msg_iovlen += headway_sse_frame_get_pieces (self->frames[i], format, pieces + message.msg_iovlen);
  /* What is written already ends within the first frame. */
  while (offset >= message.msg_iov->iov_len)
    {
      offset -= message.msg_iov->iov_len;
      message.msg_iov++;
      message.msg_iovlen--;
    }
  message.msg_iov->iov_base = (char *) message.msg_iov->iov_base + offset;
  message.msg_iov->iov_len -= offset;
  *offered = 0;
  for (guint i = 0; i < message.msg_iovlen; i++)
    *offered += message.msg_iov[i].iov_len;
  return sendmsg (fd, &message, SEND_FLAGS);
}

/* @offered: (out): bytes of the @n frames that are not written yet. */
static gssize
send_once (const HeadwayStreamBatch *self,
           guint n,
           int fd,
           HeadwayStreamFormat format,
           HeadwayStreamJoint *joint,
           gsize *offered)
{
  const GByteArray *whole;

  if (n == 1 && self->frames[0]->rest == NULL)
    {
      struct iovec pieces[HEADWAY_SSE_FRAME_PIECES];

      headway_sse_frame_get_pieces (self->frames[0], format, pieces);
      *offered = pieces[0].iov_len - self->offset;
      return send (fd, (const char *) pieces[0].iov_base + self->offset, *offered, SEND_FLAGS);
    }

  whole = n == self->count ? joint_get (joint, self, format) : NULL;
  if (whole == NULL)
    return send_pieces (self, n, fd, format, offered);
  *offered = whole->len;
  return send (fd, whole->data, whole->len, SEND_FLAGS);
}

/* Drops what the kernel has taken. */
static void
consume (HeadwayStreamBatch *self, gsize written, HeadwayStreamFormat format)
{
  guint done = 0;

  written += self->offset;
  while (done < self->count && written >= headway_sse_frame_get_length (self->frames[done], format))
    {
      written -= headway_sse_frame_get_length (self->frames[done], format);
      self->bytes -= self->frames[done]->length;
      headway_sse_frame_unref (self->frames[done++]);
    }
  self->offset = written;
  self->count -= done;
  if (self->count > 0 && done > 0)
    memmove (self->frames, self->frames + done, self->count * sizeof self->frames[0]);
}

HeadwayStreamWrite
headway_stream_batch_write (HeadwayStreamBatch *self,
                            int fd,
                            HeadwayStreamFormat format,
                            HeadwayStreamJoint *joint,
                            HeadwayStreamStats *stats,
                            gsize *written)
{
  *written = 0;
  while (self->count > 0)
    {
      guint group = get_group (self, format);
      guint before = self->count;
      gsize offered;
      gssize n;

      do
        n = send_once (self, group, fd, format, joint, &offered);
      while (n < 0 && errno == EINTR);

      stats->writes++;
      if (n < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? HEADWAY_STREAM_WRITE_BLOCKED
                                                                           : HEADWAY_STREAM_WRITE_FAILED;

      *written += (gsize) n;
      stats->bytes += (guint64) n;
      /* Of a reader that keeps up all is gone at once: no frame need be asked for its length. */
      if ((gsize) n == offered && group == before)
        {
          headway_stream_batch_clear (self);
          break;
        }
      consume (self, (gsize) n, format);
      /* A short write is a full socket; asking again would only say so. */
      if (before - self->count < group)
        return HEADWAY_STREAM_WRITE_BLOCKED;
    }
  return HEADWAY_STREAM_WRITE_DONE;
}
