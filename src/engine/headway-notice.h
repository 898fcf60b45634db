/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-event.h"

G_BEGIN_DECLS

typedef enum
{
  HEADWAY_RESYNC_RING_EVICTED,
  HEADWAY_RESYNC_EPOCH_RESET,
  HEADWAY_RESYNC_SEEDED_REPLAY_NOT_IN_RING,
  HEADWAY_RESYNC_REPLAY_BUDGET_EXCEEDED,
} HeadwayResyncReason;

typedef enum
{
  HEADWAY_NOTICE_RESYNC,
  HEADWAY_NOTICE_REPLAY_COMPLETE,
  HEADWAY_NOTICE_SLOW_CLIENT_WARNING,
  HEADWAY_NOTICE_EVICTED_OVERFLOW,
  HEADWAY_NOTICE_EVICTED_IDLE_WRITER,
} HeadwayNoticeKind;

/* What the two caps of a `stream` queue stood at (sse-contract.md 1.5). */
typedef struct
{
  guint queued;
  guint max_queued;
  guint64 queued_bytes;
  guint64 max_queued_bytes;
} HeadwayQueueLevels;

/**
 * HeadwayNotice:
 *
 * A synthetic event before it is written: only its numbers. It becomes an event, and gets its
 * time, when a reader takes it (sse-contract.md 1.4).
 */
typedef struct
{
  HeadwayNoticeKind kind;
  union
  {
    struct
    {
      HeadwayResyncReason reason;
      gboolean is_epoch_mismatch;
      guint64 last_delivered_id;
      guint64 earliest_available_id;
    } resync;
    struct
    {
      guint64 replayed_count;
      guint64 last_replayed_id; /* 0: nothing was replayed */
      gboolean is_filtered;
    } replay_complete;
    struct
    {
      HeadwayQueueLevels levels;
      guint64 last_event_id;
      gboolean is_over_frames;
      gboolean is_over_bytes;
    } warning;
    struct
    {
      HeadwayQueueLevels levels;
      guint64 dropped_id;
      gboolean is_over_bytes; /* else frames */
      gsize event_bytes;
    } overflow;
    struct
    {
      gint64 idle_ms;
      gint64 timeout_ms;
    } idle_writer;
  };
} HeadwayNotice;

/**
 * headway_notice_to_event:
 * @last_delivered_id: id of the last event handed to this reader, for `client_evicted`
 *
 * Returns: (transfer full): the synthetic event with exactly the fields of sse-contract.md 1.5.
 */
HeadwayEvent *headway_notice_to_event (const HeadwayNotice *self,
                                       guint64 last_delivered_id,
                                       HeadwayPrincipal *system,
                                       HeadwayInstant now);

/* The `session_snapshot` of decisions.md 39. @object: (nullable): a validated JSON object whose
 * members overlay the defaults. */
HeadwayEvent *headway_notice_snapshot (const char *bus_name,
                                       const HeadwayJson *object,
                                       HeadwayPrincipal *system,
                                       HeadwayInstant now);

/**
 * headway_notice_copy_snapshot:
 * @text: @length bytes from outside
 * @max_bytes: how many it may have
 * @json: (out): the object, a slice of what is returned
 *
 * Checks what is to overlay the defaults. Returns: (transfer full) (nullable): NULL with INVALID_DATA if it is no JSON
 *   object, TOO_LARGE.
 */
char *headway_notice_copy_snapshot (const char *text, gsize length, guint64 max_bytes, HeadwayJson *json, GError **error);

/* Longest envelope that headway_notice_to_event() makes, for callers that reserve room. */
#define HEADWAY_NOTICE_SIZE_MAX 512

G_END_DECLS
