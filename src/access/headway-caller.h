/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-principal.h"

G_BEGIN_DECLS

#define HEADWAY_UID_NOBODY ((guint32) -1)

/**
 * HeadwayCaller:
 * @uid: user id from the bus driver or SO_PEERCRED; HEADWAY_UID_NOBODY over TCP
 * @principal: (nullable): the caller's own principal; NULL: the system principal
 * @may_name_principals: whether another principal may be named (dbus-api.md, Access)
 * @is_administrator: root, headwayd's own user, or who holds its token
 *
 * Who calls, never taken from an argument of the call.
 */
typedef struct
{
  guint32 uid;
  HeadwayPrincipal *principal; /* owned, nullable */
  gboolean may_name_principals;
  gboolean is_administrator;
} HeadwayCaller;

void headway_caller_clear (HeadwayCaller *self);

/* A local user: principal `uid:<n>`. @is_session: same-user callers may name principals and administrate. */
void headway_caller_init_user (HeadwayCaller *self,
                               guint32 uid,
                               gboolean is_session,
                               HeadwayPrincipalTable *principals);
/* Whoever holds the HTTP token; @has_auth FALSE (--http-auth=none): the system principal. */
void headway_caller_init_token (HeadwayCaller *self, gboolean has_auth, HeadwayPrincipalTable *principals);

/**
 * headway_caller_choose_principal:
 * @is_named: whether the publisher named one
 * @name: (nullable): the name; NULL or "" is the system principal (decisions.md 1)
 *
 * Returns: (transfer full) (nullable): NULL with NOT_AUTHORIZED or INVALID_PRINCIPAL.
 */
HeadwayPrincipal *headway_caller_choose_principal (const HeadwayCaller *self,
                                                   gboolean is_named,
                                                   const char *name,
                                                   HeadwayPrincipalTable *principals,
                                                   GError **error);

/* Whether the caller may close a bus whose creator is @creator (decisions.md 2). */
gboolean headway_caller_may_close (const HeadwayCaller *self, guint32 creator);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (HeadwayCaller, headway_caller_clear)

G_END_DECLS
