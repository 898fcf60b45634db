/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-limits.h"

G_BEGIN_DECLS

/* Who pays when a route is full (decisions.md 30). */
typedef enum
{
  HEADWAY_EVICTION_OLDEST, /* the event that has waited longest, whoever sent it */
  HEADWAY_EVICTION_FAIR,   /* whoever holds more than an equal share, heaviest first */
} HeadwayEviction;

/**
 * HeadwayRouteOptions:
 *
 * The bounds of one `routed` subscription (routing.md 1.0, 3.1.5). All count from 1.
 */
typedef struct
{
  HeadwayEviction eviction;
  guint64 budget_bytes;     /* cost of all that waits, 1 … HEADWAY_ID_MAX */
  guint64 quantum_bytes;    /* that a turn adds */
  guint principal_messages; /* events of one principal */
  guint messages;           /* events of all */
  guint principals;         /* with a queue of their own; the others share one */
} HeadwayRouteOptions;

/* What the settings say: the budget is at least what one event may cost (decisions.md 9). */
void headway_route_options_init (HeadwayRouteOptions *self, const HeadwayLimits *limits);
/* FALSE with INVALID_OPTION, naming the value and the range. */
gboolean headway_route_options_check (const HeadwayRouteOptions *self, GError **error);

G_END_DECLS
