/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-route-options.h"

#include "engine/headway-error.h"

void
headway_route_options_init (HeadwayRouteOptions *self, const HeadwayLimits *limits)
{
  *self = (HeadwayRouteOptions){
    .eviction = HEADWAY_EVICTION_OLDEST,
    .budget_bytes = MAX (limits->route_budget_bytes, limits->event_max_bytes),
    .quantum_bytes = limits->route_quantum_bytes,
    .principal_messages = limits->route_principal_messages,
    .messages = limits->route_messages,
    .principals = limits->route_principals,
  };
}

gboolean
headway_route_options_check (const HeadwayRouteOptions *self, GError **error)
{
  g_return_val_if_fail (self->quantum_bytes > 0 && self->principal_messages > 0, FALSE);
  g_return_val_if_fail (self->messages > 0 && self->principals > 0, FALSE);

  if (self->budget_bytes >= 1 && self->budget_bytes <= HEADWAY_ID_MAX)
    return TRUE;
  headway_set_error_with_limit (error, HEADWAY_ERROR_INVALID_OPTION, HEADWAY_ID_MAX,
                                "budget-bytes %" G_GUINT64_FORMAT " is out of range, 1 to %" G_GUINT64_FORMAT,
                                self->budget_bytes, HEADWAY_ID_MAX);
  return FALSE;
}
