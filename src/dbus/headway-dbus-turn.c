/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-turn.h"

GSource *
headway_dbus_turn_new (const char *name, GSourceFunc func, gpointer user_data)
{
  GSource *turn = g_idle_source_new ();

  g_source_set_priority (turn, G_PRIORITY_DEFAULT);
  g_source_set_static_name (turn, name);
  g_source_set_callback (turn, func, user_data, NULL);
  g_source_attach (turn, g_main_context_get_thread_default ());
  return turn;
}

void
headway_dbus_turn_clear (GSource **turn)
{
  if (*turn == NULL)
    return;
  g_source_destroy (*turn);
  g_clear_pointer (turn, g_source_unref);
}
