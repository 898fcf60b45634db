/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct _HeadwayCliSeen HeadwayCliSeen;

HeadwayCliSeen *headway_cli_seen_new (guint limit);
void headway_cli_seen_free (HeadwayCliSeen *self);
void headway_cli_seen_clear (HeadwayCliSeen *self);
gboolean headway_cli_seen_contains (HeadwayCliSeen *self,
                                    guint64 id);
void headway_cli_seen_add (HeadwayCliSeen *self,
                           guint64 id);
void headway_cli_seen_forget_up_to (HeadwayCliSeen *self,
                                    guint64 id);
guint headway_cli_seen_get_n_ids (HeadwayCliSeen *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayCliSeen, headway_cli_seen_free)

G_END_DECLS
