/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-principal-queue.h"

G_BEGIN_DECLS

/**
 * HeadwayPrincipalMap:
 *
 * The queue of a principal, by the address of the interned principal. Open addressing with linear
 * probes, and removal that moves followers up instead of leaving a mark: where ten thousand
 * principals send now and then, a queue comes and goes with each event, and a GHashTable would
 * rehash its marks again and again. Plain, embedded in its route.
 */
typedef struct
{
  struct _HeadwayPrincipalMapSlot *slots; /* owned, `mask` + 1 of them, at most a quarter in use: what collides is mispredicted */
  gsize mask;
  guint length;
} HeadwayPrincipalMap;

void headway_principal_map_init (HeadwayPrincipalMap *self);
/* Forgets all; the queues are the owner's. */
void headway_principal_map_clear (HeadwayPrincipalMap *self);
/* Returns: (transfer none) (nullable). */
HeadwayPrincipalQueue *headway_principal_map_lookup (const HeadwayPrincipalMap *self, const HeadwayPrincipal *principal);
/**
 * headway_principal_map_place:
 * @principal: lives as long as it stands here
 *
 * Returns: (transfer none): where the queue of @principal stands, until the map changes; NULL in there: it has none,
 *   and gets what the caller puts there, which he must.
 */
HeadwayPrincipalQueue **headway_principal_map_place (HeadwayPrincipalMap *self, const HeadwayPrincipal *principal);
/* @principal has a queue. */
void headway_principal_map_remove (HeadwayPrincipalMap *self, const HeadwayPrincipal *principal);

G_END_DECLS
