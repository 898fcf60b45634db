/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-batch-private.h"

HeadwayBatch *
headway_batch_new (guint reserve, HeadwayBatchDone done, gpointer user_data)
{
  HeadwayBatch *self = g_new0 (HeadwayBatch, 1);

  self->events = g_ptr_array_new_full (reserve, (GDestroyNotify) headway_event_unref);
  self->done = done;
  self->user_data = user_data;
  return self;
}

void
headway_batch_free (HeadwayBatch *self)
{
  g_ptr_array_unref (self->events);
  g_free (self);
}

void
headway_batch_set_seed (HeadwayBatch *self, gboolean is_seed)
{
  self->is_seed = is_seed;
}

void
headway_batch_set_origin (HeadwayBatch *self, gconstpointer origin)
{
  self->origin = origin;
}

void
headway_batch_add (HeadwayBatch *self, HeadwayEvent *event)
{
  self->cost += headway_event_get_cost (event);
  g_ptr_array_add (self->events, event);
}

void
headway_batch_replace (HeadwayBatch *self, guint index, HeadwayEvent *event)
{
  HeadwayEvent *old = g_ptr_array_index (self->events, index);

  self->cost = self->cost - headway_event_get_cost (old) + headway_event_get_cost (event);
  g_ptr_array_index (self->events, index) = headway_event_ref (event);
  headway_event_unref (old);
}

guint
headway_batch_get_count (const HeadwayBatch *self)
{
  return self->events->len;
}

HeadwayEvent *
headway_batch_get_event (const HeadwayBatch *self, guint index)
{
  return g_ptr_array_index (self->events, index);
}

guint64
headway_batch_get_cost (const HeadwayBatch *self)
{
  return self->cost;
}

guint64
headway_batch_get_first_id (const HeadwayBatch *self)
{
  return self->first_id;
}

const HeadwayOutcome *
headway_batch_get_outcome (const HeadwayBatch *self)
{
  return &self->outcome;
}

void
headway_batch_finish (HeadwayBatch *self, const GError *error)
{
  if (self->done != NULL)
    self->done (self, error, self->user_data);
  headway_batch_free (self);
}
