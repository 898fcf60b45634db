/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* The place of something that its reader has not been told of: a queued event, or a gap. */
typedef struct
{
  GList link; /* `data` is the place itself */
  guint64 id; /* of the event; of a gap the first that was lost */
} HeadwayPlace;

/**
 * HeadwayLowWater:
 *
 * The low-water mark of a reader whose events overtake each other (routing.md 3.2, decisions.md 32):
 * everything up to it was delivered, or told as a gap. All places in the order of their ids; ids are
 * only ever appended, and what is lost leaves its place to the gap that tells of it, so that the list
 * stays sorted and every step is O(1). Plain, embedded in its route.
 */
typedef struct
{
  GQueue places; /* borrowed HeadwayPlace, by id */
} HeadwayLowWater;

void headway_low_water_init (HeadwayLowWater *self);
/* @id: larger than that of every place so far. */
void headway_low_water_append (HeadwayLowWater *self, HeadwayPlace *place, guint64 id);
void headway_low_water_remove (HeadwayLowWater *self, HeadwayPlace *place);
/* @place, which stands nowhere, comes to stand just before @other and gets its id; @other stays. */
void headway_low_water_insert_at (HeadwayLowWater *self, HeadwayPlace *place, const HeadwayPlace *other);
/* @last_id: what the mark is when nothing is left. */
guint64 headway_low_water_get (const HeadwayLowWater *self, guint64 last_id);

G_END_DECLS
