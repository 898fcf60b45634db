/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "handler/headway-handler-clock.h"

#include "wire/headway-clock.h"

struct _HeadwayHandlerClock
{
  HeadwayDispatcher *dispatcher; /* owned */
  GSource *source;               /* owned */
};

static void
wind (HeadwayHandlerClock *self)
{
  g_source_set_ready_time (self->source, headway_dispatcher_get_next_deadline_us (self->dispatcher));
}

static gboolean
on_due (gpointer user_data)
{
  HeadwayHandlerClock *self = user_data;

  headway_dispatcher_run (self->dispatcher, headway_clock_now ());
  wind (self);
  return G_SOURCE_CONTINUE;
}

static gboolean
dispatch (GSource *source, GSourceFunc callback, gpointer user_data)
{
  return callback (user_data);
}

HeadwayHandlerClock *
headway_handler_clock_new (HeadwayDispatcher *dispatcher)
{
  static GSourceFuncs funcs = { .dispatch = dispatch };
  HeadwayHandlerClock *self = g_new0 (HeadwayHandlerClock, 1);

  self->dispatcher = g_object_ref (dispatcher);
  self->source = g_source_new (&funcs, sizeof (GSource));
  g_source_set_static_name (self->source, "headway handlers' deadlines");
  g_source_set_callback (self->source, on_due, self, NULL);
  g_source_attach (self->source, g_main_context_get_thread_default ());
  g_signal_connect_swapped (dispatcher, "deadline-changed", G_CALLBACK (wind), self);
  wind (self);
  return self;
}

void
headway_handler_clock_free (HeadwayHandlerClock *self)
{
  g_signal_handlers_disconnect_by_data (self->dispatcher, self);
  g_source_destroy (self->source);
  g_source_unref (self->source);
  g_object_unref (self->dispatcher);
  g_free (self);
}
