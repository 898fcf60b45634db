/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-ring.h"

/* Grows by doubling, so that a bus that is hardly used costs little whatever its ring size is. */
#define CAPACITY_FIRST 16

struct _HeadwayRing
{
  HeadwayEvent **events; /* owned; `capacity` slots, a power of two */
  guint capacity;
  guint head; /* slot of the first event */
  guint length;
  guint max_events;
  guint64 bytes;
  guint64 max_bytes;
  guint64 first_id;
};

HeadwayRing *
headway_ring_new (guint max_events, guint64 max_bytes)
{
  HeadwayRing *self = g_new0 (HeadwayRing, 1);

  self->max_events = MAX (max_events, 1);
  self->max_bytes = max_bytes;
  return self;
}

void
headway_ring_free (HeadwayRing *self)
{
  headway_ring_clear (self);
  g_free (self->events);
  g_free (self);
}

static void
ring_drop_first (HeadwayRing *self)
{
  HeadwayEvent *event = self->events[self->head];

  self->head = (self->head + 1) & (self->capacity - 1);
  self->length--;
  self->first_id++;
  self->bytes -= headway_event_get_size (event);
  headway_event_unref (event);
}

static void
ring_grow (HeadwayRing *self)
{
  guint capacity = self->capacity > 0 ? self->capacity * 2 : CAPACITY_FIRST;
  HeadwayEvent **events = g_new (HeadwayEvent *, capacity);

  for (guint i = 0; i < self->length; i++)
    events[i] = self->events[(self->head + i) & (self->capacity - 1)];
  g_free (self->events);
  self->events = events;
  self->capacity = capacity;
  self->head = 0;
}

void
headway_ring_append (HeadwayRing *self, HeadwayEvent *event)
{
  g_return_if_fail (self->length == 0 || headway_event_get_id (event) == self->first_id + self->length);

  if (self->length == self->max_events)
    ring_drop_first (self);
  if (self->length == self->capacity)
    ring_grow (self);
  if (self->length == 0)
    self->first_id = headway_event_get_id (event);

  self->events[(self->head + self->length) & (self->capacity - 1)] = headway_event_ref (event);
  self->length++;
  self->bytes += headway_event_get_size (event);
  while (self->bytes > self->max_bytes && self->length > 1)
    ring_drop_first (self);
}

void
headway_ring_clear (HeadwayRing *self)
{
  while (self->length > 0)
    ring_drop_first (self);
}

guint
headway_ring_get_length (const HeadwayRing *self)
{
  return self->length;
}

guint64
headway_ring_get_bytes (const HeadwayRing *self)
{
  return self->bytes;
}

guint64
headway_ring_get_first_id (const HeadwayRing *self)
{
  return self->length > 0 ? self->first_id : 0;
}

guint64
headway_ring_get_last_id (const HeadwayRing *self)
{
  return self->length > 0 ? self->first_id + self->length - 1 : 0;
}

HeadwayEvent *
headway_ring_lookup (const HeadwayRing *self, guint64 id)
{
  if (self->length == 0 || id < self->first_id || id - self->first_id >= self->length)
    return NULL;
  return self->events[(self->head + (guint) (id - self->first_id)) & (self->capacity - 1)];
}
