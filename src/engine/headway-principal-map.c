/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-principal-map.h"

#define SLOTS_MIN 16
/* A map that runs empty gives back more than this. */
#define SLOTS_KEPT 1024

typedef struct _HeadwayPrincipalMapSlot
{
  const HeadwayPrincipal *principal; /* NULL: free */
  HeadwayPrincipalQueue *queue;
} Slot;

/* Principals are allocated: the low bits say nothing, and neighbours must not cluster. Nobody outside
 * chooses addresses, so the hash needs no key. */
static inline gsize
home_of (const HeadwayPrincipalMap *self, const HeadwayPrincipal *principal)
{
  return (gsize) (((guint64) GPOINTER_TO_SIZE (principal) * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15)) >> 24) & self->mask;
}

void
headway_principal_map_init (HeadwayPrincipalMap *self)
{
  *self = (HeadwayPrincipalMap){ 0 };
}

void
headway_principal_map_clear (HeadwayPrincipalMap *self)
{
  g_free (self->slots);
  headway_principal_map_init (self);
}

static inline gsize
find (const HeadwayPrincipalMap *self, const HeadwayPrincipal *principal)
{
  gsize i = home_of (self, principal);

  while (self->slots[i].principal != NULL && self->slots[i].principal != principal)
    i = (i + 1) & self->mask;
  return i;
}

HeadwayPrincipalQueue *
headway_principal_map_lookup (const HeadwayPrincipalMap *self, const HeadwayPrincipal *principal)
{
  return self->slots != NULL ? self->slots[find (self, principal)].queue : NULL;
}

static void
resize (HeadwayPrincipalMap *self, gsize n_slots)
{
  Slot *old = self->slots;
  gsize old_size = old != NULL ? self->mask + 1 : 0;

  self->slots = g_new0 (Slot, n_slots);
  self->mask = n_slots - 1;
  for (gsize i = 0; i < old_size; i++)
    if (old[i].principal != NULL)
      self->slots[find (self, old[i].principal)] = old[i];
  g_free (old);
}

HeadwayPrincipalQueue **
headway_principal_map_place (HeadwayPrincipalMap *self, const HeadwayPrincipal *principal)
{
  Slot *slot;

  if (self->slots == NULL)
    resize (self, SLOTS_MIN);
  else if (self->length * 4 > self->mask)
    resize (self, (self->mask + 1) * 2);
  slot = &self->slots[find (self, principal)];
  if (slot->principal == NULL)
    {
      slot->principal = principal;
      self->length++;
    }
  return &slot->queue;
}

void
headway_principal_map_remove (HeadwayPrincipalMap *self, const HeadwayPrincipal *principal)
{
  gsize hole = find (self, principal);

  g_return_if_fail (self->slots[hole].principal == principal);

  if (--self->length == 0 && self->mask >= SLOTS_KEPT)
    {
      headway_principal_map_clear (self);
      return;
    }
  /* Each follower whose own place is not between the hole and itself moves up. */
  for (gsize i = (hole + 1) & self->mask; self->slots[i].principal != NULL; i = (i + 1) & self->mask)
    {
      gsize home = home_of (self, self->slots[i].principal);

      if (((i - home) & self->mask) < ((i - hole) & self->mask))
        continue;
      self->slots[hole] = self->slots[i];
      hole = i;
    }
  self->slots[hole] = (Slot){ NULL, NULL };
}
