/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-size-classes.h"

#include "engine/headway-intrusive.h"

/* Of how many in one class the heaviest is chosen. */
#define LOOKS 8

HeadwaySizeClasses *
headway_size_classes_new (void)
{
  return g_new0 (HeadwaySizeClasses, 1);
}

void
headway_size_classes_free (HeadwaySizeClasses *self)
{
  g_free (self);
}

static gint
class_of (guint64 bytes)
{
  return bytes > 0 ? 63 - __builtin_clzll (bytes) : -1;
}

void
headway_size_classes_update (HeadwaySizeClasses *self, HeadwayPrincipalQueue *queue)
{
  gint old = queue->size_class;
  gint new = class_of (queue->bytes);

  if (old == new)
    return;
  if (old >= 0)
    {
      headway_queue_unlink (&self->lists[old], &queue->class_link);
      if (self->lists[old].length == 0)
        self->used &= ~(G_GUINT64_CONSTANT (1) << old);
    }
  if (new >= 0)
    {
      headway_queue_push (&self->lists[new], &queue->class_link);
      self->used |= G_GUINT64_CONSTANT (1) << new;
    }
  queue->size_class = new;
}

static guint64
oldest_id (const HeadwayPrincipalQueue *queue)
{
  return headway_principal_queue_head (queue)->place.id;
}

static gboolean
is_heavier (const HeadwayPrincipalQueue *queue, const HeadwayPrincipalQueue *than)
{
  if (than == NULL || queue->bytes != than->bytes)
    return than == NULL || queue->bytes > than->bytes;
  return oldest_id (queue) < oldest_id (than);
}

/* Only the class of the share itself holds both queues above it and others. Those that are not go to
 * the end of the list as they are passed, so that the next search finds what this one found. */
static HeadwayPrincipalQueue *
heaviest_of_class (GQueue *list, guint64 share, const HeadwayPrincipalQueue *except, gboolean wants_ordinary)
{
  HeadwayPrincipalQueue *best = NULL;
  guint length = list->length;
  GList *link = list->head;

  for (guint i = 0, looks = 0; i < length && looks < LOOKS; i++)
    {
      HeadwayPrincipalQueue *queue = link->data;
      GList *next = link->next;

      if (queue == except || queue->bytes <= share || (wants_ordinary && queue->ordinary == NULL))
        {
          headway_queue_unlink (list, link);
          headway_queue_push (list, link);
        }
      else
        {
          looks++;
          best = is_heavier (queue, best) ? queue : best;
        }
      link = next;
    }
  return best;
}

HeadwayPrincipalQueue *
headway_size_classes_heaviest (HeadwaySizeClasses *self,
                               guint64 share,
                               const HeadwayPrincipalQueue *except,
                               gboolean wants_ordinary)
{
  gint lowest = MAX (class_of (share), 0);

  for (guint64 left = self->used >> lowest; left != 0;)
    {
      gint class = class_of (left);
      HeadwayPrincipalQueue *best =
        heaviest_of_class (&self->lists[lowest + class], share, except, wants_ordinary);

      if (best != NULL)
        return best;
      left &= ~(G_GUINT64_CONSTANT (1) << class);
    }
  return NULL;
}
