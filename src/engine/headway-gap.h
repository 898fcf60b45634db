/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-event.h"
#include "engine/headway-low-water.h"

G_BEGIN_DECLS

/* Why events were lost: a closed set, also of metrics labels (decisions.md 28). */
typedef enum
{
  HEADWAY_GAP_BUDGET,    /* over the bytes of the route */
  HEADWAY_GAP_COUNT_CAP, /* over the events of a principal or of the route */
  HEADWAY_GAP_OVERSIZE,  /* the event alone is over the bytes of the route */
  HEADWAY_GAP_LAGGED,    /* a `broadcast` reader fell out of its window */
  HEADWAY_GAP_FULL,      /* the queue of a handler */
  HEADWAY_N_GAP_REASONS
} HeadwayGapReason;

/* The word of the `gap` event and of labels, such as "count_cap". */
const char *headway_gap_reason_get_name (HeadwayGapReason reason);

/**
 * HeadwayGap:
 *
 * One loss, or several in one place, that the reader has not been told of (routing.md 3.4,
 * decisions.md 28). It only knows its numbers; where it hangs, its route knows.
 */
typedef struct
{
  HeadwayPlace place; /* its id is the first id that was lost */
  guint64 last_id;
  guint64 count;
  guint64 bytes;               /* cost; 0: unknown */
  guint64 opened_at;           /* id of the publish that cost the first event; for the reason */
  HeadwayPrincipal *principal; /* owned, nullable: NULL where there are several */
  HeadwayGapReason reason;     /* of the first loss */
  gboolean is_filtered;        /* at most `count`: events that the filter holds back are in it */
} HeadwayGap;

/* @opened_at: id of the event that was being published when @event was lost. */
HeadwayGap *headway_gap_new (HeadwayGapReason reason, const HeadwayEvent *event, guint64 opened_at);
void headway_gap_free (HeadwayGap *self);
/* Counts one more loss. Its first id is up to whoever keeps the place. */
void headway_gap_add (HeadwayGap *self, const HeadwayEvent *event);
/* Two records of one place become one. The reason is that of the older; both of one publish: of @self. */
void headway_gap_absorb (HeadwayGap *self, const HeadwayGap *other);

/**
 * headway_gap_to_event:
 *
 * Returns: (transfer full): the synthetic event `gap` (http-api.md). `principal` is left out where it
 *   is the system principal or there are several. Never longer than HEADWAY_NOTICE_SIZE_MAX.
 */
HeadwayEvent *headway_gap_to_event (const HeadwayGap *self, HeadwayPrincipal *system, HeadwayInstant now);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayGap, headway_gap_free)

G_END_DECLS
