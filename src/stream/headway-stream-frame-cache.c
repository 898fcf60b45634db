/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "stream/headway-stream-frame-cache.h"

#define SLOTS 1024

/* What the cache alone may keep alive. Readers hold references to what they still have to send, so
 * dropping everything costs at most that slow readers build a frame again. */
#define BYTES_MAX (8 * 1024 * 1024)

typedef struct
{
  HeadwayEvent *event;     /* owned, nullable */
  HeadwaySseFrame *frame;  /* owned, nullable */
  HeadwaySseFrame *headed; /* owned, nullable: with that of `event` as the id to resume from */
} Slot;

struct _HeadwayStreamFrameCache
{
  Slot slots[SLOTS];
  Slot *last; /* borrowed, nullable: the slot of the last hit; one event goes to all readers in a row */
  gsize bytes;
  guint64 built;
};

HeadwayStreamFrameCache *
headway_stream_frame_cache_new (void)
{
  return g_new0 (HeadwayStreamFrameCache, 1);
}

void
headway_stream_frame_cache_free (HeadwayStreamFrameCache *self)
{
  headway_stream_frame_cache_clear (self);
  g_free (self);
}

static void
slot_clear (HeadwayStreamFrameCache *self, Slot *slot)
{
  if (slot->event == NULL)
    return;

  self->bytes -= slot->frame->length;
  g_clear_pointer (&slot->event, headway_event_unref);
  g_clear_pointer (&slot->headed, headway_sse_frame_unref);
  g_clear_pointer (&slot->frame, headway_sse_frame_unref);
}

void
headway_stream_frame_cache_clear (HeadwayStreamFrameCache *self)
{
  for (guint i = 0; i < SLOTS; i++)
    slot_clear (self, &self->slots[i]);
  self->last = NULL;
}

guint64
headway_stream_frame_cache_get_built (const HeadwayStreamFrameCache *self)
{
  return self->built;
}

static guint
hash_event (const HeadwayEvent *event)
{
  /* Fibonacci hashing; allocations differ in the middle bits. */
  return (guint) (((guint64) (gsize) event * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15)) >> 54) % SLOTS;
}

static HeadwaySseFrame *
build (HeadwayStreamFrameCache *self, Slot *slot, HeadwayEvent *event, guint64 resume_id)
{
  HeadwaySseFrame *frame = headway_sse_frame_new (event, resume_id);

  self->built++;
  slot_clear (self, slot);
  if (self->bytes + frame->length > BYTES_MAX)
    headway_stream_frame_cache_clear (self);
  /* Larger than all of the cache: goes to each reader by itself. */
  if (frame->length > BYTES_MAX)
    return frame;

  slot->event = headway_event_ref (event);
  slot->frame = headway_sse_frame_ref (frame);
  self->bytes += frame->length;
  self->last = slot;
  return frame;
}

/* Apart, so that a hit has no registers to save. */
G_NO_INLINE static HeadwaySseFrame *
look_up (HeadwayStreamFrameCache *self, HeadwayEvent *event, guint64 resume_id)
{
  Slot *slot;

  /* A notice goes to one reader. */
  if (resume_id == 0 || resume_id != headway_event_get_id (event))
    return headway_sse_frame_new (event, resume_id);

  slot = &self->slots[hash_event (event)];
  if (slot->event != event)
    return build (self, slot, event, resume_id);
  self->last = slot;
  return headway_sse_frame_ref (slot->frame);
}

HeadwaySseFrame *
headway_stream_frame_cache_get (HeadwayStreamFrameCache *self, HeadwayEvent *event, guint64 resume_id)
{
  Slot *slot = self->last;

  if (G_LIKELY (slot != NULL && slot->event == event && resume_id == headway_event_get_id (event)))
    return headway_sse_frame_ref (slot->frame);
  return look_up (self, event, resume_id);
}

/* Who keeps up resumes from what he got last, and so do all who keep up. */
HeadwaySseFrame *
headway_stream_frame_cache_get_headed (HeadwayStreamFrameCache *self, HeadwayEvent *event, guint64 resume_id)
{
  guint64 id = headway_event_get_id (event);
  g_autoptr (HeadwaySseFrame) shared = headway_stream_frame_cache_get (self, event, id);
  Slot *slot = self->last;
  HeadwaySseFrame *frame;

  if (resume_id == id && slot != NULL && slot->event == event && slot->headed != NULL)
    return headway_sse_frame_ref (slot->headed);
  frame = headway_sse_frame_new_headed (shared, event, resume_id);
  self->built++;
  if (resume_id == id && slot != NULL && slot->event == event)
    slot->headed = headway_sse_frame_ref (frame);
  return frame;
}
