/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-gcra.h"
#include "engine/headway-principal.h"

G_BEGIN_DECLS

/* What one key has charged. */
typedef struct
{
  HeadwayGcra bytes;
  HeadwayGcra events;
} HeadwayQuota;

/**
 * HeadwayQuotaTable:
 *
 * The quotas of many keys, a key being two pointers that are only compared. Forgetting is without
 * loss: an idle quota says the same as none, so such keys are taken out, the one
 * charged longest ago first (routing.md 3.6). A table that is full gives new keys one quota in common,
 * which nobody else's suffer from.
 */
typedef struct _HeadwayQuotaTable HeadwayQuotaTable;

/* @max_keys: from 1 */
HeadwayQuotaTable *headway_quota_table_new (guint max_keys);
void headway_quota_table_free (HeadwayQuotaTable *self);

/* Returns: (transfer none) (nullable): until something is added, reclaimed or forgotten. */
HeadwayQuota *headway_quota_table_lookup (HeadwayQuotaTable *self, gconstpointer scope, gconstpointer who);

/* @principal: (nullable): kept alive as long as the key is, so that its address stays its own.
 * @scope and @who have no quota yet; a full table returns the common one. */
HeadwayQuota *headway_quota_table_add (HeadwayQuotaTable *self,
                                       gconstpointer scope,
                                       gconstpointer who,
                                       HeadwayPrincipal *principal);
/* @quota: of this table. It was charged now: the last to be looked at by reclaim. */
void headway_quota_table_touch (HeadwayQuotaTable *self, HeadwayQuota *quota);

/* Takes out those of the @n keys charged longest ago that are idle at @now_ns. */
void headway_quota_table_reclaim (HeadwayQuotaTable *self, guint n, guint64 now_ns);
/* The same, but for the one charged last: a lone publisher would lose its key and get it back at each event. */
void headway_quota_table_reclaim_others (HeadwayQuotaTable *self, guint n, guint64 now_ns);
/* Takes out the keys of @scope, whatever they have charged: as much work as there are. */
void headway_quota_table_forget (HeadwayQuotaTable *self, gconstpointer scope);

guint headway_quota_table_size (const HeadwayQuotaTable *self);
/* How many keys may still be added. */
guint headway_quota_table_room (const HeadwayQuotaTable *self);
/* The quota that keys beyond the last one share. */
HeadwayQuota *headway_quota_table_get_common (HeadwayQuotaTable *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayQuotaTable, headway_quota_table_free)

G_END_DECLS
