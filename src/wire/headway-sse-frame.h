/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-event.h"

#include <sys/uio.h>

G_BEGIN_DECLS

/* Bounds of `maxQueued` (sse-contract.md 1.1). */
#define HEADWAY_SSE_MAX_QUEUED_LEAST 16
#define HEADWAY_SSE_MAX_QUEUED_MOST  2048

/**
 * HeadwayStreamFormat:
 * @HEADWAY_STREAM_FORMAT_SSE_CHUNKED: SSE in chunks of HTTP/1.1
 * @HEADWAY_STREAM_FORMAT_SSE: SSE alone: HTTP/1.0, and `sse` of OpenStream()
 * @HEADWAY_STREAM_FORMAT_NDJSON: the envelope and a line feed (decisions.md 26)
 *
 * What a stream consists of. All of them are cut from the same frame.
 */
typedef enum
{
  HEADWAY_STREAM_FORMAT_SSE_CHUNKED,
  HEADWAY_STREAM_FORMAT_SSE,
  HEADWAY_STREAM_FORMAT_NDJSON,
  HEADWAY_N_STREAM_FORMATS
} HeadwayStreamFormat;

/**
 * HeadwaySseFrame:
 * @ref: references; not atomic, frames stay in the engine's thread
 * @length: bytes of @bytes, chunk framing included
 * @body_offset: where the bytes of the stream itself start in @bytes
 * @body_length: how many they are
 * @line_offset: in a frame of an event: where its envelope starts in @bytes, which with the first of the two line
 *   feeds behind it is its line of NDJSON; 0: it has none
 * @is_last: the event behind it ends its bus (`session_closed`)
 * @rest: (nullable): owned: the frame that this one ends like, from its @rest_offset on
 * @rest_offset: in a frame of an event with an id: what follows the id in its envelope
 *
 * One frame as it goes out: an HTTP/1.1 chunk around an SSE frame around the envelope. A reader of HTTP/1.0
 * gets the inner bytes alone, one of NDJSON a line of them. Built once and shared by all readers; where what they are told to resume from
 * differs, only the head of the frame is their own (decisions.md 32). Its lengths are those of the
 * whole.
 */
typedef struct _HeadwaySseFrame HeadwaySseFrame;

struct _HeadwaySseFrame
{
  guint ref;
  gboolean is_last;
  gsize length;
  gsize body_offset;
  gsize body_length;
  gsize line_offset;
  HeadwaySseFrame *rest;
  gsize rest_offset;
  char bytes[];
};

/* The frame of an event (sse-contract.md 1.4). @resume_id is what the `id:` line says, 0: no such
 * line. (transfer full) */
HeadwaySseFrame *headway_sse_frame_new (const HeadwayEvent *event, guint64 resume_id);
/**
 * headway_sse_frame_new_headed:
 * @shared: the frame of @event, which has an id, as headway_sse_frame_new() makes it
 * @resume_id: `id:` line and member `id`; 0: neither
 *
 * The frame of @event on a routed stream: its own id is the member `seq`. (transfer full)
 */
HeadwaySseFrame *headway_sse_frame_new_headed (HeadwaySseFrame *shared, const HeadwayEvent *event, guint64 resume_id);
/* A frame of stream bytes that are no event: `retry:` and the heartbeat. */
HeadwaySseFrame *headway_sse_frame_new_text (const char *text, gsize length);
/* Bytes that go out as they are whatever the version of HTTP: the header block, the final chunk. */
HeadwaySseFrame *headway_sse_frame_new_raw (const char *bytes, gsize length);

void headway_sse_frame_free (HeadwaySseFrame *self);

static inline HeadwaySseFrame *
headway_sse_frame_ref (HeadwaySseFrame *self)
{
  self->ref++;
  return self;
}

static inline void
headway_sse_frame_unref (HeadwaySseFrame *self)
{
  if (--self->ref == 0)
    headway_sse_frame_free (self);
}

/* Where the bytes of @format start; how many they are; and how many of the last ones it leaves out. */
static inline gsize
headway_sse_frame_get_offset (const HeadwaySseFrame *self, HeadwayStreamFormat format)
{
  if (format == HEADWAY_STREAM_FORMAT_SSE_CHUNKED)
    return 0;
  return format == HEADWAY_STREAM_FORMAT_SSE ? self->body_offset : self->line_offset;
}

static inline gsize
headway_sse_frame_get_tail (const HeadwaySseFrame *self, HeadwayStreamFormat format)
{
  gsize after = self->length - self->body_offset - self->body_length;

  if (format == HEADWAY_STREAM_FORMAT_SSE_CHUNKED)
    return 0;
  return format == HEADWAY_STREAM_FORMAT_SSE ? after : after + 1;
}

/* Bytes of the frame in @format; NDJSON has those of events only. */
static inline gsize
headway_sse_frame_get_length (const HeadwaySseFrame *self, HeadwayStreamFormat format)
{
  return self->length - headway_sse_frame_get_offset (self, format) - headway_sse_frame_get_tail (self, format);
}

/* Pieces that one frame may be in. */
#define HEADWAY_SSE_FRAME_PIECES 2

/**
 * headway_sse_frame_get_pieces:
 * @format: what of it is wanted
 * @pieces: (out caller-allocates): room for HEADWAY_SSE_FRAME_PIECES
 *
 * Returns: how many there are; their bytes are borrowed.
 */
static inline guint
headway_sse_frame_get_pieces (const HeadwaySseFrame *self, HeadwayStreamFormat format, struct iovec *pieces)
{
  const char *start = self->bytes + headway_sse_frame_get_offset (self, format);
  gsize length = headway_sse_frame_get_length (self, format);
  gsize rest;

  if (self->rest == NULL)
    {
      pieces[0] = (struct iovec){ (char *) start, length };
      return 1;
    }
  rest = self->rest->length - self->rest_offset - headway_sse_frame_get_tail (self, format);
  pieces[0] = (struct iovec){ (char *) start, length - rest };
  pieces[1] = (struct iovec){ self->rest->bytes + self->rest_offset, rest };
  return 2;
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwaySseFrame, headway_sse_frame_unref)

/**
 * headway_sse_parse_last_event_id:
 * @text: (nullable): the value of the header
 *
 * Returns: FALSE for whatever sse-contract.md 1.1 treats as absent.
 */
gboolean headway_sse_parse_last_event_id (const char *text, guint64 *id);

/* Whether @text is 1 … 64 of [A-Za-z0-9_-]; anything else counts as no epoch. */
gboolean headway_sse_is_epoch (const char *text);

/* Reads `maxQueued`: ASCII digits, HEADWAY_SSE_MAX_QUEUED_LEAST … _MOST. INVALID_OPTION otherwise. */
gboolean headway_sse_parse_max_queued (const char *text, guint *max_queued, GError **error);

G_END_DECLS
