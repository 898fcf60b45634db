/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-principal-queue.h"

G_BEGIN_DECLS

/**
 * HeadwaySizeClasses:
 *
 * The queues of a route by weight, for eviction `fair` (routing.md 3.1.4, decisions.md 30): a list
 * for each power of two of queued bytes, and a bit for each list that is not empty. A queue moves
 * only when its bytes cross a power of two.
 */
typedef struct
{
  GQueue lists[64]; /* borrowed HeadwayPrincipalQueue, by class_link */
  guint64 used;     /* bit n: lists[n] is not empty */
} HeadwaySizeClasses;

HeadwaySizeClasses *headway_size_classes_new (void);
void headway_size_classes_free (HeadwaySizeClasses *self);

/* The bytes of @queue have changed; with 0 it leaves. */
void headway_size_classes_update (HeadwaySizeClasses *self, HeadwayPrincipalQueue *queue);

/**
 * headway_size_classes_heaviest:
 * @share: bytes; only queues above it count
 * @except: (nullable): a queue to leave out
 * @wants_ordinary: only queues that hold something that eviction does not spare
 *
 * Looks at the first few of the highest class that has such a queue: exact where few principals
 * compete, within a power of two always. Of equals the one whose head is older.
 *
 * Returns: (transfer none) (nullable).
 */
HeadwayPrincipalQueue *headway_size_classes_heaviest (HeadwaySizeClasses *self,
                                                      guint64 share,
                                                      const HeadwayPrincipalQueue *except,
                                                      gboolean wants_ordinary);

G_END_DECLS
