/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-bus-store.h"

G_DEFINE_INTERFACE (HeadwayBusStore, headway_bus_store, G_TYPE_OBJECT)

static void
headway_bus_store_default_init (HeadwayBusStoreInterface *iface)
{
}

guint64
headway_bus_store_get_mark (HeadwayBusStore *self, const char *name)
{
  return HEADWAY_BUS_STORE_GET_IFACE (self)->get_mark (self, name);
}

void
headway_bus_store_reserve (HeadwayBusStore *self, HeadwayBus *bus, guint64 up_to)
{
  HEADWAY_BUS_STORE_GET_IFACE (self)->reserve (self, bus, up_to);
}

void
headway_bus_store_forget (HeadwayBusStore *self, HeadwayBus *bus)
{
  HEADWAY_BUS_STORE_GET_IFACE (self)->forget (self, bus);
}
