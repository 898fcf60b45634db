/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-types.h"

G_BEGIN_DECLS

/* The closed set of labels of a principal (routing.md 1.0). */
typedef enum
{
  HEADWAY_PRINCIPAL_SYSTEM,
  HEADWAY_PRINCIPAL_AGENT,
  HEADWAY_PRINCIPAL_USER,
} HeadwayPrincipalClass;

/* For tables by HeadwayPrincipalClass. */
#define HEADWAY_N_PRINCIPAL_CLASSES (HEADWAY_PRINCIPAL_USER + 1)

/**
 * HeadwayPrincipal:
 *
 * The identity an event acts for, interned in a HeadwayPrincipalTable: two of one table are the
 * same if and only if their pointers are. Reference-counted, owned by the engine's thread.
 */
HeadwayPrincipal *headway_principal_ref (HeadwayPrincipal *self);
void headway_principal_unref (HeadwayPrincipal *self);
/* "" for the system principal, never NULL. */
const char *headway_principal_get_name (HeadwayPrincipal *self);
HeadwayPrincipalClass headway_principal_get_class (HeadwayPrincipal *self);
gboolean headway_principal_is_system (HeadwayPrincipal *self);

/* Holds its principals weakly: one that nobody references is forgotten. */
HeadwayPrincipalTable *headway_principal_table_new (void);
HeadwayPrincipalTable *headway_principal_table_ref (HeadwayPrincipalTable *self);
void headway_principal_table_unref (HeadwayPrincipalTable *self);

/* Returns: (transfer none): the system principal, which has no name (decisions.md 1). */
HeadwayPrincipal *headway_principal_table_get_system (HeadwayPrincipalTable *self);
/* @name: a name that passes headway_principal_check(); the empty one is HEADWAY_ERROR_INVALID_PRINCIPAL:
 * adapters map it to the system principal. Returns: (transfer full) (nullable). */
HeadwayPrincipal *headway_principal_table_intern (HeadwayPrincipalTable *self,
                                                  const char *name,
                                                  GError **error);
/* How many principals beside the system one are alive. */
guint headway_principal_table_size (HeadwayPrincipalTable *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayPrincipal, headway_principal_unref)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayPrincipalTable, headway_principal_table_unref)

G_END_DECLS
