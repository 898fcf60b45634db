/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-scope.h"

gboolean
headway_scope_admits (const HeadwayScope *self, const HeadwayEvent *event)
{
  HeadwayPrincipal *principal;

  if (self->kind == HEADWAY_SCOPE_ALL || headway_event_passes_filters (event))
    return TRUE;
  principal = headway_event_get_principal (event);
  if (principal == self->principal)
    return TRUE;
  return self->kind == HEADWAY_SCOPE_PRINCIPAL_OR_SYSTEM && headway_principal_is_system (principal);
}
