/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "access/headway-caller.h"

#include "engine/headway-error.h"

#include <unistd.h>

void
headway_caller_clear (HeadwayCaller *self)
{
  g_clear_pointer (&self->principal, headway_principal_unref);
}

void
headway_caller_init_user (HeadwayCaller *self,
                          guint32 uid,
                          gboolean is_session,
                          HeadwayPrincipalTable *principals)
{
  char name[32];

  g_snprintf (name, sizeof name, "uid:%u", uid);
  self->uid = uid;
  self->principal = headway_principal_table_intern (principals, name, NULL);
  self->is_administrator = uid == 0 || uid == (guint32) getuid ();
  self->may_name_principals = uid == 0 || (is_session && uid == (guint32) getuid ());
}

void
headway_caller_init_token (HeadwayCaller *self, gboolean has_auth, HeadwayPrincipalTable *principals)
{
  self->uid = HEADWAY_UID_NOBODY;
  self->principal = has_auth ? headway_principal_table_intern (principals, "http:token", NULL) : NULL;
  self->is_administrator = TRUE;
  self->may_name_principals = TRUE;
}

HeadwayPrincipal *
headway_caller_choose_principal (const HeadwayCaller *self,
                                 gboolean is_named,
                                 const char *name,
                                 HeadwayPrincipalTable *principals,
                                 GError **error)
{
  HeadwayPrincipal *system = headway_principal_table_get_system (principals);
  g_autoptr (HeadwayPrincipal) principal = NULL;

  if (!is_named)
    return headway_principal_ref (self->principal != NULL ? self->principal : system);

  if (name == NULL || *name == '\0')
    principal = headway_principal_ref (system);
  else
    principal = headway_principal_table_intern (principals, name, error);
  if (principal == NULL)
    return NULL;

  if (!self->may_name_principals && principal != self->principal)
    {
      g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_NOT_AUTHORIZED,
                   "user %u may not publish as principal \"%s\", only as its own",
                   self->uid, headway_principal_get_name (principal));
      return NULL;
    }
  return g_steal_pointer (&principal);
}

gboolean
headway_caller_may_close (const HeadwayCaller *self, guint32 creator)
{
  return self->is_administrator || (self->uid != HEADWAY_UID_NOBODY && self->uid == creator);
}
