/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-handler-queue.h"

HeadwayHandlerQueue *
headway_handler_queue_new (HeadwayPrincipal *principal)
{
  HeadwayHandlerQueue *self = g_new0 (HeadwayHandlerQueue, 1);

  self->principal = headway_principal_ref (principal);
  self->weight_link.data = self;
  self->weight = -1;
  self->idle_link.data = self;
  self->idle_since_us = -1;
  return self;
}

void
headway_handler_queue_free (HeadwayHandlerQueue *self)
{
  g_clear_pointer (&self->gap, headway_gap_free);
  headway_principal_unref (self->principal);
  g_free (self);
}

void
headway_handler_add_loss (HeadwayGap **gap, HeadwayGapReason reason, const HeadwayEvent *event)
{
  if (*gap == NULL)
    {
      *gap = headway_gap_new (reason, event, headway_event_get_id (event));
      return;
    }
  headway_gap_add (*gap, event);
  (*gap)->place.id = MIN ((*gap)->place.id, headway_event_get_id (event));
}

void
headway_handler_queue_put_back_gap (HeadwayHandlerQueue *self, HeadwayGap *gap)
{
  if (self->gap != NULL)
    {
      gap->place.id = MIN (gap->place.id, self->gap->place.id);
      headway_gap_absorb (gap, self->gap);
      headway_gap_free (self->gap);
    }
  self->gap = gap;
}
