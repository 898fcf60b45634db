/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-input.h"

struct _HeadwayHttpInput
{
  GInputStream parent_instance;

  HeadwayHttpConnection *connection; /* owned */
};

static void headway_http_input_pollable_init (GPollableInputStreamInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (HeadwayHttpInput,
                               headway_http_input,
                               G_TYPE_INPUT_STREAM,
                               G_IMPLEMENT_INTERFACE (G_TYPE_POLLABLE_INPUT_STREAM, headway_http_input_pollable_init))

/* Never waits, like everything here: libsoup's server only makes non-blocking reads. */
static gssize
headway_http_input_read (GInputStream *stream, void *buffer, gsize count, GCancellable *cancellable, GError **error)
{
  return headway_http_connection_read (HEADWAY_HTTP_INPUT (stream)->connection, buffer, count, error);
}

static gssize
headway_http_input_read_nonblocking (GPollableInputStream *stream, void *buffer, gsize count, GError **error)
{
  return headway_http_connection_read (HEADWAY_HTTP_INPUT (stream)->connection, buffer, count, error);
}

static gboolean
headway_http_input_is_readable (GPollableInputStream *stream)
{
  return TRUE;
}

static GSource *
headway_http_input_create_source (GPollableInputStream *stream, GCancellable *cancellable)
{
  return headway_http_connection_create_read_source (HEADWAY_HTTP_INPUT (stream)->connection, stream, cancellable);
}

static gboolean
headway_http_input_close (GInputStream *stream, GCancellable *cancellable, GError **error)
{
  headway_http_connection_close (HEADWAY_HTTP_INPUT (stream)->connection);
  return TRUE;
}

static void
headway_http_input_finalize (GObject *object)
{
  g_clear_object (&HEADWAY_HTTP_INPUT (object)->connection);
  G_OBJECT_CLASS (headway_http_input_parent_class)->finalize (object);
}

static void
headway_http_input_class_init (HeadwayHttpInputClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = headway_http_input_finalize;
  G_INPUT_STREAM_CLASS (klass)->read_fn = headway_http_input_read;
  G_INPUT_STREAM_CLASS (klass)->close_fn = headway_http_input_close;
}

static void
headway_http_input_pollable_init (GPollableInputStreamInterface *iface)
{
  iface->is_readable = headway_http_input_is_readable;
  iface->read_nonblocking = headway_http_input_read_nonblocking;
  iface->create_source = headway_http_input_create_source;
}

static void
headway_http_input_init (HeadwayHttpInput *self)
{
}

GInputStream *
headway_http_input_new (HeadwayHttpConnection *connection)
{
  HeadwayHttpInput *self = g_object_new (HEADWAY_TYPE_HTTP_INPUT, NULL);

  self->connection = g_object_ref (connection);
  return G_INPUT_STREAM (self);
}
