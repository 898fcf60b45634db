/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-output.h"

struct _HeadwayHttpOutput
{
  GOutputStream parent_instance;

  HeadwayHttpConnection *connection; /* owned */
};

static void headway_http_output_pollable_init (GPollableOutputStreamInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (HeadwayHttpOutput,
                               headway_http_output,
                               G_TYPE_OUTPUT_STREAM,
                               G_IMPLEMENT_INTERFACE (G_TYPE_POLLABLE_OUTPUT_STREAM, headway_http_output_pollable_init))

/* Never waits, like everything here: libsoup's server only makes non-blocking writes. */
static gssize
headway_http_output_write (GOutputStream *stream, const void *buffer, gsize count, GCancellable *cancellable, GError **error)
{
  return headway_http_connection_write (HEADWAY_HTTP_OUTPUT (stream)->connection, buffer, count, error);
}

static gssize
headway_http_output_write_nonblocking (GPollableOutputStream *stream, const void *buffer, gsize count, GError **error)
{
  return headway_http_connection_write (HEADWAY_HTTP_OUTPUT (stream)->connection, buffer, count, error);
}

static gboolean
headway_http_output_is_writable (GPollableOutputStream *stream)
{
  return TRUE;
}

static GSource *
headway_http_output_create_source (GPollableOutputStream *stream, GCancellable *cancellable)
{
  return headway_http_connection_create_write_source (HEADWAY_HTTP_OUTPUT (stream)->connection, stream, cancellable);
}

static gboolean
headway_http_output_close (GOutputStream *stream, GCancellable *cancellable, GError **error)
{
  headway_http_connection_close (HEADWAY_HTTP_OUTPUT (stream)->connection);
  return TRUE;
}

static void
headway_http_output_finalize (GObject *object)
{
  g_clear_object (&HEADWAY_HTTP_OUTPUT (object)->connection);
  G_OBJECT_CLASS (headway_http_output_parent_class)->finalize (object);
}

static void
headway_http_output_class_init (HeadwayHttpOutputClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = headway_http_output_finalize;
  G_OUTPUT_STREAM_CLASS (klass)->write_fn = headway_http_output_write;
  G_OUTPUT_STREAM_CLASS (klass)->close_fn = headway_http_output_close;
}

static void
headway_http_output_pollable_init (GPollableOutputStreamInterface *iface)
{
  iface->is_writable = headway_http_output_is_writable;
  iface->write_nonblocking = headway_http_output_write_nonblocking;
  iface->create_source = headway_http_output_create_source;
}

static void
headway_http_output_init (HeadwayHttpOutput *self)
{
}

GOutputStream *
headway_http_output_new (HeadwayHttpConnection *connection)
{
  HeadwayHttpOutput *self = g_object_new (HEADWAY_TYPE_HTTP_OUTPUT, NULL);

  self->connection = g_object_ref (connection);
  return G_OUTPUT_STREAM (self);
}
