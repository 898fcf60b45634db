/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-bus-table.h"

G_BEGIN_DECLS

/**
 * HeadwayStormWatch:
 *
 * Looks at the events of every bus of a table and writes to the journal who floods (routing.md 1.0,
 * case 158): once when a storm begins; while it lasts only for those who ask for more.
 */
typedef struct _HeadwayStormWatch HeadwayStormWatch;

/* Before the table has buses. */
HeadwayStormWatch *headway_storm_watch_new (HeadwayBusTable *table);
/* Says nothing more; the table may live on. */
void headway_storm_watch_free (HeadwayStormWatch *self);
/* Once a second or so: ends a window that is over. */
void headway_storm_watch_tick (HeadwayStormWatch *self, HeadwayInstant now);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayStormWatch, headway_storm_watch_free)

G_END_DECLS
