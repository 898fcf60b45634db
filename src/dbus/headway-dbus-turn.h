/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Calls @func in the next turn of the loop, before anything less urgent than what comes from sockets, until it
 * returns G_SOURCE_REMOVE. @name: static. (transfer full): for headway_dbus_turn_clear(). */
GSource *headway_dbus_turn_new (const char *name, GSourceFunc func, gpointer user_data);

/* Ends a turn, or any other source, and forgets it. @turn: (inout): may be NULL inside. */
void headway_dbus_turn_clear (GSource **turn);

G_END_DECLS
