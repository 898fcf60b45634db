/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-wait.h"

typedef struct
{
  GSource source;
  GObject *stream; /* owned */
  gpointer tag;    /* nullable: of the descriptor */
  gboolean is_over;
} Wait;

static gboolean
wait_prepare (GSource *source, int *timeout)
{
  *timeout = -1;
  return ((Wait *) source)->is_over;
}

static gboolean
wait_check (GSource *source)
{
  Wait *self = (Wait *) source;

  return self->is_over || (self->tag != NULL && g_source_query_unix_fd (source, self->tag) != 0);
}

static gboolean
wait_dispatch (GSource *source, GSourceFunc callback, gpointer user_data)
{
  if (callback == NULL)
    return G_SOURCE_CONTINUE;
  return ((GPollableSourceFunc) (void (*) (void)) callback) (((Wait *) source)->stream, user_data);
}

static void
wait_finalize (GSource *source)
{
  g_clear_object (&((Wait *) source)->stream);
}

/* What g_source_set_closure() makes the callback. */
static gboolean
invoke_closure (GObject *stream, gpointer closure)
{
  g_auto (GValue) again = G_VALUE_INIT;
  g_auto (GValue) argument = G_VALUE_INIT;

  g_value_init (&again, G_TYPE_BOOLEAN);
  g_value_init (&argument, G_TYPE_OBJECT);
  g_value_set_object (&argument, stream);
  g_closure_invoke (closure, &again, 1, &argument, NULL);
  return g_value_get_boolean (&again);
}

static GSourceFuncs wait_funcs = {
  wait_prepare,
  wait_check,
  wait_dispatch,
  wait_finalize,
  (GSourceFunc) (void (*) (void)) invoke_closure,
  NULL,
};

GSource *
headway_http_wait_new (gpointer stream, int fd, GIOCondition condition, GCancellable *cancellable)
{
  GSource *source = g_source_new (&wait_funcs, sizeof (Wait));
  Wait *self = (Wait *) source;

  g_source_set_static_name (source, "headway-http-wait");
  /* Nothing here iterates the main context from within a dispatch. A source that may not recurse is blocked and
   * unblocked around each dispatch, with a write to GLib's eventfd each time. */
  g_source_set_can_recurse (source, TRUE);
  self->stream = g_object_ref (stream);
  if (fd >= 0)
    self->tag = g_source_add_unix_fd (source, fd, condition);
  if (cancellable != NULL)
    {
      g_autoptr (GSource) cancelled = g_cancellable_source_new (cancellable);

      g_source_set_dummy_callback (cancelled);
      g_source_add_child_source (source, cancelled);
    }
  return source;
}

void
headway_http_wait_end (GSource *wait)
{
  ((Wait *) wait)->is_over = TRUE;
}
