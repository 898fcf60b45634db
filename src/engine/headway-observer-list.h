/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-bus.h"

G_BEGIN_DECLS

/**
 * HeadwayObserverList:
 *
 * The observers of a bus. They may add and remove observers, themselves included, while they are
 * being told: one that is removed is not told any more, one that is added is told of the next event.
 * Plain, embedded in its bus.
 */
typedef struct
{
  GArray *observers; /* owned */
  guint last_id;
  gboolean is_notifying;
} HeadwayObserverList;

void headway_observer_list_init (HeadwayObserverList *self);
void headway_observer_list_clear (HeadwayObserverList *self);
guint headway_observer_list_add (HeadwayObserverList *self,
                                 HeadwayObserver func,
                                 gpointer user_data,
                                 GDestroyNotify destroy);
void headway_observer_list_remove (HeadwayObserverList *self, guint id);
/* Does not nest: an observer's publish waits. */
void headway_observer_list_notify (HeadwayObserverList *self, HeadwayBus *bus, HeadwayEvent *event, HeadwayInstant now);

G_END_DECLS
