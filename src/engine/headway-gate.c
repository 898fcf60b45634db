/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-gate.h"

#include "engine/headway-error.h"
#include "engine/headway-topic.h"

#include <string.h>

struct _HeadwayGate
{
  guint ref_count;
  HeadwayGateState state;
  HeadwayGateTable *table; /* weak, nullable: NULL once the table is gone */
  char *owner;             /* owned, nullable: NULL outside of a table */
  char name[];
};

struct _HeadwayGateTable
{
  GHashTable *gates; /* HeadwayGate (weak) as a set, by owner and name */
};

static guint
gate_hash (gconstpointer key)
{
  const HeadwayGate *gate = key;

  return g_str_hash (gate->owner) * 31 + g_str_hash (gate->name);
}

static gboolean
gate_equal (gconstpointer a, gconstpointer b)
{
  const HeadwayGate *first = a;
  const HeadwayGate *second = b;

  return strcmp (first->name, second->name) == 0 && strcmp (first->owner, second->owner) == 0;
}

HeadwayGate *
headway_gate_new (const char *name)
{
  gsize size = strlen (name) + 1;
  HeadwayGate *self = g_malloc0 (sizeof *self + size);

  self->ref_count = 1;
  memcpy (self->name, name, size);
  return self;
}

HeadwayGate *
headway_gate_ref (HeadwayGate *self)
{
  self->ref_count++;
  return self;
}

void
headway_gate_unref (HeadwayGate *self)
{
  if (--self->ref_count > 0)
    return;
  if (self->table != NULL)
    g_hash_table_remove (self->table->gates, self);
  g_free (self->owner);
  g_free (self);
}

HeadwayGateState
headway_gate_get_state (const HeadwayGate *self)
{
  return self->state;
}

const char *
headway_gate_get_name (const HeadwayGate *self)
{
  return self->name;
}

gboolean
headway_gate_is_open (const HeadwayGate *self)
{
  return self->state == HEADWAY_GATE_OPEN;
}

gboolean
headway_gate_open (HeadwayGate *self, GError **error)
{
  /* What passed by while it was retired would be missing without a word: stage a new one instead. */
  if (self->state == HEADWAY_GATE_RETIRED)
    {
      g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION,
                   "gate \"%s\" is retired and does not open again", self->name);
      return FALSE;
    }
  self->state = HEADWAY_GATE_OPEN;
  return TRUE;
}

void
headway_gate_retire (HeadwayGate *self)
{
  self->state = HEADWAY_GATE_RETIRED;
}

gboolean
headway_gate_swap (HeadwayGate *from, HeadwayGate *to, GError **error)
{
  if (from == to)
    {
      g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION,
                   "gate \"%s\" cannot be swapped for itself", to->name);
      return FALSE;
    }
  if (!headway_gate_open (to, error))
    return FALSE;
  headway_gate_retire (from);
  return TRUE;
}

HeadwayGateTable *
headway_gate_table_new (void)
{
  HeadwayGateTable *self = g_new0 (HeadwayGateTable, 1);

  self->gates = g_hash_table_new (gate_hash, gate_equal);
  return self;
}

void
headway_gate_table_free (HeadwayGateTable *self)
{
  GHashTableIter iter;
  gpointer gate;

  g_hash_table_iter_init (&iter, self->gates);
  while (g_hash_table_iter_next (&iter, &gate, NULL))
    ((HeadwayGate *) gate)->table = NULL;
  g_hash_table_unref (self->gates);
  g_free (self);
}

/* A gate that only serves as a key of a look-up. */
static HeadwayGate *
new_key (const char *owner, const char *name)
{
  HeadwayGate *key = headway_gate_new (name);

  key->owner = g_strdup (owner);
  return key;
}

HeadwayGate *
headway_gate_table_ensure (HeadwayGateTable *self, const char *owner, const char *name, GError **error)
{
  g_autoptr (HeadwayGate) gate = NULL;
  HeadwayGate *found;

  if (!headway_client_check (name, strlen (name), error))
    {
      g_prefix_error_literal (error, "gate: ");
      return NULL;
    }
  gate = new_key (owner, name);
  found = g_hash_table_lookup (self->gates, gate);
  if (found != NULL)
    return headway_gate_ref (found);
  gate->table = self;
  g_hash_table_add (self->gates, gate);
  return g_steal_pointer (&gate);
}

HeadwayGate *
headway_gate_table_lookup (HeadwayGateTable *self, const char *owner, const char *name, GError **error)
{
  g_autoptr (HeadwayGate) key = new_key (owner, name);
  HeadwayGate *found = g_hash_table_lookup (self->gates, key);

  if (found == NULL)
    g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION,
                 "no subscription of yours has a gate \"%s\"", name);
  return found;
}

guint
headway_gate_table_size (HeadwayGateTable *self)
{
  return g_hash_table_size (self->gates);
}
