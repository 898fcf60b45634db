/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-bus.h"

G_BEGIN_DECLS

#define HEADWAY_TYPE_BUS_STORE (headway_bus_store_get_type ())
G_DECLARE_INTERFACE (HeadwayBusStore, headway_bus_store, HEADWAY, BUS_STORE, GObject)

/**
 * HeadwayBusStoreInterface:
 * @get_mark: the last id that an earlier bus of that name may have used
 * @reserve: makes ids up to @up_to safe to use, off the main loop, and answers with
 *   headway_bus_table_ids_granted() or headway_bus_table_ids_refused(), never from within this call
 * @forget: the bus is closed for good; its last id becomes the mark of its name
 *
 * What keeps buses and their ids over the end of the daemon (decisions.md 3, 4).
 */
struct _HeadwayBusStoreInterface
{
  GTypeInterface parent;
  guint64 (*get_mark) (HeadwayBusStore *self, const char *name);
  void (*reserve) (HeadwayBusStore *self, HeadwayBus *bus, guint64 up_to);
  void (*forget) (HeadwayBusStore *self, HeadwayBus *bus);
};

guint64 headway_bus_store_get_mark (HeadwayBusStore *self, const char *name);
void headway_bus_store_reserve (HeadwayBusStore *self, HeadwayBus *bus, guint64 up_to);
void headway_bus_store_forget (HeadwayBusStore *self, HeadwayBus *bus);

G_END_DECLS
