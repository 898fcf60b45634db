/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-low-water.h"

#include "engine/headway-intrusive.h"

void
headway_low_water_init (HeadwayLowWater *self)
{
  g_queue_init (&self->places);
}

void
headway_low_water_append (HeadwayLowWater *self, HeadwayPlace *place, guint64 id)
{
  place->id = id;
  place->link.data = place;
  headway_queue_push (&self->places, &place->link);
}

void
headway_low_water_remove (HeadwayLowWater *self, HeadwayPlace *place)
{
  headway_queue_unlink (&self->places, &place->link);
}

void
headway_low_water_insert_at (HeadwayLowWater *self, HeadwayPlace *place, const HeadwayPlace *other)
{
  place->id = other->id;
  place->link = (GList){ .data = place };
  g_queue_insert_before_link (&self->places, (GList *) &other->link, &place->link);
}

guint64
headway_low_water_get (const HeadwayLowWater *self, guint64 last_id)
{
  const HeadwayPlace *first;

  if (self->places.head == NULL)
    return last_id;
  first = self->places.head->data;
  return first->id - 1;
}
