/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* g_queue_push_tail_link(), g_queue_push_head_link() and g_queue_unlink() for links that are part of what they link, as inline
 * functions: an event of a routed subscription takes six of these steps, and as calls into GLib they
 * would be a third of its cost. */

static inline void
headway_queue_push (GQueue *queue, GList *link)
{
  link->next = NULL;
  link->prev = queue->tail;
  if (queue->tail != NULL)
    queue->tail->next = link;
  else
    queue->head = link;
  queue->tail = link;
  queue->length++;
}

static inline void
headway_queue_push_head (GQueue *queue, GList *link)
{
  link->prev = NULL;
  link->next = queue->head;
  if (queue->head != NULL)
    queue->head->prev = link;
  else
    queue->tail = link;
  queue->head = link;
  queue->length++;
}

static inline void
headway_queue_unlink (GQueue *queue, GList *link)
{
  if (link->prev != NULL)
    link->prev->next = link->next;
  else
    queue->head = link->next;
  if (link->next != NULL)
    link->next->prev = link->prev;
  else
    queue->tail = link->prev;
  queue->length--;
}

G_END_DECLS
