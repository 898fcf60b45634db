/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-principal-queue.h"

#include "engine/headway-intrusive.h"

void
headway_principal_queue_init (HeadwayPrincipalQueue *self, HeadwayPrincipal *principal)
{
  *self = (HeadwayPrincipalQueue){
    .principal = principal,
    .ring.data = self,
    .class_link.data = self,
    .size_class = -1,
  };
}

void
headway_principal_queue_push (HeadwayPrincipalQueue *self, HeadwayQueueNode *node)
{
  node->queue = self;
  node->fifo.data = node;
  headway_queue_push (&self->fifo, &node->fifo);
  self->bytes += node->cost;
  if (node->is_spared)
    self->spared_bytes += node->cost;
  else if (self->ordinary == NULL)
    self->ordinary = &node->fifo;
}

void
headway_principal_queue_remove (HeadwayPrincipalQueue *self, HeadwayQueueNode *node)
{
  /* The mark only ever moves towards the end, so that each spared event is passed once. */
  if (self->ordinary == &node->fifo)
    do
      self->ordinary = self->ordinary->next;
    while (self->ordinary != NULL && ((HeadwayQueueNode *) self->ordinary->data)->is_spared);
  headway_queue_unlink (&self->fifo, &node->fifo);
  self->bytes -= node->cost;
  if (node->is_spared)
    self->spared_bytes -= node->cost;
}
