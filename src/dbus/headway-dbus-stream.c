/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-stream.h"

#include "dbus/headway-dbus-error.h"
#include "wire/headway-options.h"

#include <gio/gunixfdlist.h>

/* Streams of owners who have left, for which nobody is charged any more: so many of all streams may wait for
 * their readers, then such a one is cut at once. */
#define DRAINING_MAX 1024

struct _HeadwayDBusStream
{
  HeadwayStreamWriter *writer;       /* borrowed: it tells when it goes */
  HeadwaySubscription *subscription; /* owned */
  HeadwayDBusPeer *owner;            /* owned */
  HeadwayDBusCharge charge;          /* once its D-Bus object, which has one, is gone */
  HeadwayDBusStreamDone done;        /* nullable */
  gpointer user_data;
};

gboolean
headway_dbus_stream_check (HeadwayDBusContext *context,
                           const char *word,
                           GVariant *options,
                           HeadwayStreamFormat *format,
                           GError **error)
{
  static const HeadwayOptionSpec specs[] = { { NULL } };
  g_autofree char *shown = NULL;

  if (!g_str_equal (word, "sse") && !g_str_equal (word, "ndjson"))
    {
      shown = g_strescape (word, NULL);
      g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION,
                   "format \"%.64s\" is not known, it takes: sse, ndjson", shown);
      return FALSE;
    }
  *format = *word == 's' ? HEADWAY_STREAM_FORMAT_SSE : HEADWAY_STREAM_FORMAT_NDJSON;
  if (!headway_options_parse (options, specs, NULL, NULL, error))
    return FALSE;
  if ((g_dbus_connection_get_capabilities (context->connection) & G_DBUS_CAPABILITY_FLAGS_UNIX_FD_PASSING) != 0)
    return TRUE;
  g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_NOT_SUPPORTED,
               "no descriptor can be passed over this message bus: use Receive(), or HTTP");
  return FALSE;
}

/* Our end is closed. */
static void
on_released (gpointer user_data)
{
  HeadwayDBusStream *self = user_data;

  if (self->done != NULL)
    self->done (self, self->user_data);
  headway_dbus_charge_release (&self->charge);
  headway_dbus_peer_unref (self->owner);
  g_object_unref (self->subscription);
  g_free (self);
}

HeadwayDBusStream *
headway_dbus_stream_new (HeadwayDBusContext *context,
                         HeadwaySubscription *subscription,
                         HeadwayDBusPeer *owner,
                         HeadwayStreamFormat format,
                         HeadwayDBusStreamDone done,
                         gpointer user_data,
                         int *fd,
                         GError **error)
{
  HeadwayDBusStream *self = g_new0 (HeadwayDBusStream, 1);

  self->writer = headway_stream_hub_open (context->hub, subscription, format, on_released, self, fd, error);
  if (self->writer == NULL)
    {
      g_free (self);
      return NULL;
    }
  self->subscription = g_object_ref (subscription);
  self->owner = headway_dbus_peer_ref (owner);
  self->done = done;
  self->user_data = user_data;
  headway_subscription_set_sink_kind (subscription, "stream");
  return self;
}

/* Its owner has left: nobody is charged. */
static void
orphan (HeadwayDBusStream *self)
{
  headway_stream_writer_disown (self->writer);
  if (headway_stream_hub_get_n_draining (self->writer->hub) >= DRAINING_MAX)
    headway_stream_writer_expire (self->writer);
}

static void
on_owner_left (HeadwayDBusCharge *charge)
{
  orphan ((HeadwayDBusStream *) ((char *) charge - G_STRUCT_OFFSET (HeadwayDBusStream, charge)));
}

void
headway_dbus_stream_end (HeadwayDBusStream *self)
{
  gboolean is_charged = headway_dbus_charge_take (&self->charge, self->owner, HEADWAY_DBUS_CHARGE_SUBSCRIPTION, 0, on_owner_left, NULL);

  self->done = NULL;
  headway_subscription_close (self->subscription);
  if (!is_charged)
    orphan (self);
}

void
headway_dbus_stream_answer (GDBusMethodInvocation *invocation, int fd)
{
  g_autoptr (GUnixFDList) fds = g_unix_fd_list_new_from_array (&fd, 1);

  g_dbus_method_invocation_return_value_with_unix_fd_list (invocation, g_variant_new ("(h)", 0), fds);
}
