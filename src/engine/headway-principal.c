/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-principal.h"

#include "engine/headway-topic.h"

#include <string.h>

struct _HeadwayPrincipal
{
  guint ref_count;
  HeadwayPrincipalClass class;
  HeadwayPrincipalTable *table; /* weak: NULL once the table is gone */
  char name[];
};

struct _HeadwayPrincipalTable
{
  guint ref_count;
  GHashTable *principals;   /* name (owned by the value) → HeadwayPrincipal (weak) */
  HeadwayPrincipal *system; /* owned */
  HeadwayPrincipal *last;   /* weak, nullable: the one interned last; who publishes comes again */
};

static HeadwayPrincipal *
principal_new (HeadwayPrincipalTable *table, const char *name, HeadwayPrincipalClass class)
{
  gsize size = strlen (name) + 1;
  HeadwayPrincipal *self = g_malloc (sizeof *self + size);

  self->ref_count = 1;
  self->class = class;
  self->table = table;
  memcpy (self->name, name, size);
  return self;
}

HeadwayPrincipal *
headway_principal_ref (HeadwayPrincipal *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  self->ref_count++;
  return self;
}

void
headway_principal_unref (HeadwayPrincipal *self)
{
  g_return_if_fail (self != NULL);

  if (--self->ref_count > 0)
    return;
  if (self->table != NULL && self->table->last == self)
    self->table->last = NULL;
  if (self->table != NULL && self->class != HEADWAY_PRINCIPAL_SYSTEM)
    g_hash_table_remove (self->table->principals, self->name);
  g_free (self);
}

const char *
headway_principal_get_name (HeadwayPrincipal *self)
{
  return self->name;
}

HeadwayPrincipalClass
headway_principal_get_class (HeadwayPrincipal *self)
{
  return self->class;
}

gboolean
headway_principal_is_system (HeadwayPrincipal *self)
{
  return self->class == HEADWAY_PRINCIPAL_SYSTEM;
}

HeadwayPrincipalTable *
headway_principal_table_new (void)
{
  HeadwayPrincipalTable *self = g_new0 (HeadwayPrincipalTable, 1);

  self->ref_count = 1;
  self->principals = g_hash_table_new (g_str_hash, g_str_equal);
  self->system = principal_new (self, "", HEADWAY_PRINCIPAL_SYSTEM);
  return self;
}

HeadwayPrincipalTable *
headway_principal_table_ref (HeadwayPrincipalTable *self)
{
  self->ref_count++;
  return self;
}

void
headway_principal_table_unref (HeadwayPrincipalTable *self)
{
  GHashTableIter iter;
  gpointer value;

  if (--self->ref_count > 0)
    return;
  /* Events may outlive the table: what is left must not reach back into it. */
  g_hash_table_iter_init (&iter, self->principals);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    ((HeadwayPrincipal *) value)->table = NULL;
  self->system->table = NULL;
  g_hash_table_unref (self->principals);
  headway_principal_unref (self->system);
  g_free (self);
}

HeadwayPrincipal *
headway_principal_table_get_system (HeadwayPrincipalTable *self)
{
  return self->system;
}

HeadwayPrincipal *
headway_principal_table_intern (HeadwayPrincipalTable *self, const char *name, GError **error)
{
  HeadwayPrincipal *principal;
  gboolean is_agent;

  if (self->last != NULL && strcmp (self->last->name, name) == 0)
    return headway_principal_ref (self->last);
  principal = g_hash_table_lookup (self->principals, name);
  if (principal != NULL)
    {
      self->last = principal;
      return headway_principal_ref (principal);
    }
  if (!headway_principal_check (name, strlen (name), error))
    return NULL;

  is_agent = g_str_has_prefix (name, "agent.") || g_str_has_prefix (name, "agent:");
  principal = principal_new (self, name, is_agent ? HEADWAY_PRINCIPAL_AGENT : HEADWAY_PRINCIPAL_USER);
  g_hash_table_insert (self->principals, principal->name, principal);
  return principal;
}

guint
headway_principal_table_size (HeadwayPrincipalTable *self)
{
  return g_hash_table_size (self->principals);
}
