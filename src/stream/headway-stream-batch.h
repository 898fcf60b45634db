/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "stream/headway-stream-stats.h"
#include "wire/headway-sse-frame.h"

G_BEGIN_DECLS

/* Bounds of what one reader has taken and not yet written (decisions.md 20). */
#define HEADWAY_STREAM_BATCH_FRAMES 32
#define HEADWAY_STREAM_BATCH_BYTES  (256 * 1024)

/* Frames on their way into one socket. Plain, embedded in the writer; all zero is empty. */
typedef struct
{
  guint count;
  gsize bytes;                                          /* of all frames; those of the first that are written already still count */
  gsize offset;                                         /* bytes of the first frame that are written */
  HeadwaySseFrame *frames[HEADWAY_STREAM_BATCH_FRAMES]; /* owned */
} HeadwayStreamBatch;

/**
 * HeadwayStreamJoint:
 *
 * The bytes of a whole batch in one piece. Readers that keep up have the same batch at the same
 * time, and one piece costs the kernel less than one per frame; so it is built when the same batch
 * comes a second time.
 */
typedef struct
{
  HeadwaySseFrame *frames[HEADWAY_STREAM_BATCH_FRAMES]; /* owned */
  guint count;
  HeadwayStreamFormat format;
  GByteArray *bytes; /* owned, nullable: empty until the batch has come twice */
} HeadwayStreamJoint;

typedef enum
{
  HEADWAY_STREAM_WRITE_DONE,    /* everything is in the kernel */
  HEADWAY_STREAM_WRITE_BLOCKED, /* the socket is full */
  HEADWAY_STREAM_WRITE_FAILED,  /* errno says why */
} HeadwayStreamWrite;

static inline gboolean
headway_stream_batch_is_full (const HeadwayStreamBatch *self)
{
  return self->count == HEADWAY_STREAM_BATCH_FRAMES || self->bytes >= HEADWAY_STREAM_BATCH_BYTES;
}

/* @frame: (transfer full). The batch is not full. */
static inline void
headway_stream_batch_append (HeadwayStreamBatch *self, HeadwaySseFrame *frame)
{
  g_assert (self->count < HEADWAY_STREAM_BATCH_FRAMES);
  self->frames[self->count++] = frame;
  self->bytes += frame->length;
}

void headway_stream_batch_clear (HeadwayStreamBatch *self);

/* Drops all frames but the first, which is partly written. */
void headway_stream_batch_keep_begun (HeadwayStreamBatch *self);

/* Writes as much as @fd takes now, never waiting. @written: (out): bytes it took. */
HeadwayStreamWrite headway_stream_batch_write (HeadwayStreamBatch *self,
                                               int fd,
                                               HeadwayStreamFormat format,
                                               HeadwayStreamJoint *joint,
                                               HeadwayStreamStats *stats,
                                               gsize *written);

/* Drops the frames, keeps the memory for the next batch. */
void headway_stream_joint_forget (HeadwayStreamJoint *self);
void headway_stream_joint_clear (HeadwayStreamJoint *self);

G_END_DECLS
