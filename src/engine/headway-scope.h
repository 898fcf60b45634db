/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-event.h"

G_BEGIN_DECLS

typedef enum
{
  HEADWAY_SCOPE_ALL,
  HEADWAY_SCOPE_EXACT, /* one principal, which may be the system principal */
  HEADWAY_SCOPE_PRINCIPAL_OR_SYSTEM,
} HeadwayScopeKind;

/**
 * HeadwayScope:
 * @principal: (nullable): NULL with ALL
 *
 * Whose events a subscription admits (routing.md 1.6): it decides before cost, budget and wake-up, so
 * that the events of others take nothing from its owner. Whoever embeds it says who owns @principal.
 */
typedef struct
{
  HeadwayScopeKind kind;
  HeadwayPrincipal *principal;
} HeadwayScope;

/* session_closed passes every scope (decisions.md 2). */
gboolean headway_scope_admits (const HeadwayScope *self, const HeadwayEvent *event);

G_END_DECLS
