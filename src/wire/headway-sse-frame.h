/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-event.h"

G_BEGIN_DECLS

/* Bounds of `maxQueued` (sse-contract.md 1.1). */
#define HEADWAY_SSE_MAX_QUEUED_LEAST 16
#define HEADWAY_SSE_MAX_QUEUED_MOST  2048

/**
 * HeadwaySseFrame:
 * @ref: references; not atomic, frames stay in the engine's thread
 * @length: bytes of @bytes, chunk framing included
 * @body_offset: where the bytes of the stream itself start in @bytes
 * @body_length: how many they are
 * @is_last: the event behind it ends its bus (`session_closed`)
 *
 * One frame as it goes out: an HTTP/1.1 chunk around an SSE frame. A reader of HTTP/1.0 gets the
 * inner bytes alone. Built once and shared by all readers.
 */
typedef struct
{
  guint ref;
  gboolean is_last;
  gsize length;
  gsize body_offset;
  gsize body_length;
  char bytes[];
} HeadwaySseFrame;

/* The frame of an event (sse-contract.md 1.4). @resume_id is what the `id:` line says, 0: no such
 * line. (transfer full) */
HeadwaySseFrame *headway_sse_frame_new (const HeadwayEvent *event, guint64 resume_id);
/* A frame of stream bytes that are no event: `retry:` and the heartbeat. */
HeadwaySseFrame *headway_sse_frame_new_text (const char *text, gsize length);
/* Bytes that go out as they are whatever the version of HTTP: the header block, the final chunk. */
HeadwaySseFrame *headway_sse_frame_new_raw (const char *bytes, gsize length);

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
    g_free (self);
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
