/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "handler/headway-handler-caller.h"

HeadwayHandlerCaller *
headway_handler_caller_new (GDBusConnection *connection)
{
  HeadwayHandlerCaller *self = g_rc_box_new0 (HeadwayHandlerCaller);

  self->connection = g_object_ref (connection);
  self->lines = g_hash_table_new (g_str_hash, g_str_equal);
  self->cancellable = g_cancellable_new ();
  return self;
}

HeadwayHandlerCaller *
headway_handler_caller_ref (HeadwayHandlerCaller *self)
{
  return g_rc_box_acquire (self);
}

static void
caller_clear (gpointer data)
{
  HeadwayHandlerCaller *self = data;

  g_assert (g_hash_table_size (self->lines) == 0);
  g_hash_table_unref (self->lines);
  g_object_unref (self->cancellable);
  g_object_unref (self->connection);
}

void
headway_handler_caller_unref (HeadwayHandlerCaller *self)
{
  g_rc_box_release_full (self, caller_clear);
}

void
headway_handler_caller_stop (HeadwayHandlerCaller *self)
{
  g_cancellable_cancel (self->cancellable);
}

guint
headway_handler_caller_get_share (const HeadwayHandlerCaller *self)
{
  guint overdue = MIN (self->overdue, HEADWAY_HANDLER_OWED_MAX);

  return MAX ((HEADWAY_HANDLER_OWED_MAX - overdue) / HEADWAY_HANDLER_SHARE, 1);
}
