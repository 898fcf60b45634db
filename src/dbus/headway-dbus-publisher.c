/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-publisher.h"

#include "dbus/headway-dbus-error.h"
#include "stream/headway-publisher-stream.h"
#include "wire/headway-clock.h"
#include "wire/headway-options.h"

#include <errno.h>
#include <gio/gunixfdlist.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FORMAT "ndjson"

/* One that is open, in the list of the context. */
typedef struct
{
  HeadwayDBusCharge charge;    /* first: leads back here */
  HeadwayDBusContext *context; /* owned */
  HeadwayDBusPeer *peer;       /* owned: has the caller that the stream borrows */
  HeadwayPublisherStream *stream;
  GList link;
} Publisher;

typedef struct
{
  const char *principal;
  const char *client;
  const char *on_limit;
  const char *on_error;
} OpenOptions;

static const char *const on_limit_words[] = { "wait", "refuse", NULL };
static const char *const on_error_words[] = { "continue", "stop", NULL };

static const HeadwayOptionSpec specs[] = {
  /* The engine knows what a principal is by an error of its own. */
  { "principal", HEADWAY_OPTION_STRING, G_STRUCT_OFFSET (OpenOptions, principal), 0, G_MAXUINT32 },
  { "client", HEADWAY_OPTION_STRING, G_STRUCT_OFFSET (OpenOptions, client), 1, HEADWAY_CLIENT_MAX, "A-Z a-z 0-9 . _ : -" },
  { "on-limit", HEADWAY_OPTION_STRING, G_STRUCT_OFFSET (OpenOptions, on_limit), 0, 0, NULL, on_limit_words },
  { "on-error", HEADWAY_OPTION_STRING, G_STRUCT_OFFSET (OpenOptions, on_error), 0, 0, NULL, on_error_words },
  { NULL },
};

static void
publisher_free (Publisher *self)
{
  headway_dbus_charge_release (&self->charge);
  g_queue_unlink (&self->context->publishers, &self->link);
  g_clear_pointer (&self->stream, headway_publisher_stream_unref);
  headway_dbus_peer_unref (self->peer);
  headway_dbus_context_unref (self->context);
  g_free (self);
}

static void
on_closed (HeadwayPublisherStream *stream, gpointer user_data)
{
  publisher_free (user_data);
}

static void
on_peer_left (HeadwayDBusCharge *charge)
{
  headway_publisher_stream_leave (((Publisher *) charge)->stream);
}

static gboolean
check_format (const char *format, GError **error)
{
  g_autofree char *shown = NULL;

  if (strcmp (format, FORMAT) == 0)
    return TRUE;
  shown = g_strescape (format, NULL);
  g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION, "format \"%.64s\" is not known, it takes: " FORMAT, shown);
  return FALSE;
}

/* What makes no sense to look further: the bus has gone, or no descriptor can be sent. */
static gboolean
check_open (HeadwayDBusContext *context, HeadwayBus *bus, GError **error)
{
  GDBusCapabilityFlags capabilities = g_dbus_connection_get_capabilities (context->connection);

  if (headway_bus_is_closing (bus))
    {
      g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_CLOSED, "bus \"%s\" is closed", headway_bus_get_name (bus));
      return FALSE;
    }
  if ((capabilities & G_DBUS_CAPABILITY_FLAGS_UNIX_FD_PASSING) == 0)
    {
      g_set_error_literal (error, HEADWAY_ERROR, HEADWAY_ERROR_NOT_SUPPORTED, "this message bus passes no file descriptors");
      return FALSE;
    }
  return TRUE;
}

/* @principal: (out) (transfer full) (nullable): that of the options. */
static gboolean
choose_principal (HeadwayDBusContext *context,
                  const HeadwayDBusPeer *peer,
                  const OpenOptions *values,
                  HeadwayPrincipal **principal,
                  GError **error)
{
  if (values->principal == NULL)
    return TRUE;
  *principal = headway_caller_choose_principal (&peer->caller, TRUE, values->principal,
                                                headway_bus_table_get_principals (context->table), error);
  return *principal != NULL;
}

/* @fds: (out): ours, and the client's. */
static gboolean
make_pair (int fds[2], GError **error)
{
  if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0)
    return TRUE;
  g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE, "no socket pair: %s", g_strerror (errno));
  return FALSE;
}

/* Makes a publisher of @peer, or nothing at all. @client_fd: (out) (transfer full) */
static gboolean
open_publisher (HeadwayDBusContext *context,
                HeadwayBus *bus,
                HeadwayDBusPeer *peer,
                const HeadwayPublisherOptions *options,
                int *client_fd,
                GError **error)
{
  Publisher *self = g_new0 (Publisher, 1);
  int fds[2];

  if (!headway_dbus_charge_take (&self->charge, peer, HEADWAY_DBUS_CHARGE_PUBLISHER, 0, on_peer_left, error) ||
      !make_pair (fds, error))
    {
      headway_dbus_charge_release (&self->charge);
      g_free (self);
      return FALSE;
    }
  self->context = headway_dbus_context_ref (context);
  self->peer = headway_dbus_peer_ref (peer);
  self->stream = headway_publisher_stream_new (fds[0], options, on_closed, self);
  self->link.data = self;
  g_queue_push_tail_link (&context->publishers, &self->link);
  *client_fd = fds[1];
  return TRUE;
}

void
headway_dbus_publisher_open (HeadwayDBusContext *context,
                             HeadwayBus *bus,
                             GDBusMethodInvocation *invocation,
                             const char *format,
                             GVariant *options)
{
  HeadwayDBusPeer *peer = headway_dbus_peers_get (context->peers, invocation);
  OpenOptions values = { .on_limit = on_limit_words[0], .on_error = on_error_words[0] };
  g_autoptr (HeadwayPrincipal) principal = NULL;
  HeadwayPublisherOptions wanted = { .table = context->table, .bus = bus, .caller = &peer->caller, .origin = peer };
  g_autoptr (GUnixFDList) list = NULL;
  GError *error = NULL;
  int fd = -1;

  if (!check_format (format, &error) || !headway_options_parse (options, specs, &values, NULL, &error) ||
      !check_open (context, bus, &error) || !choose_principal (context, peer, &values, &principal, &error))
    {
      headway_dbus_error_answer (invocation, error);
      return;
    }
  wanted.principal = principal;
  wanted.client = values.client;
  wanted.stops = strcmp (values.on_error, "stop") == 0;
  wanted.refuses = strcmp (values.on_limit, "refuse") == 0;
  if (!open_publisher (context, bus, peer, &wanted, &fd, &error))
    {
      headway_dbus_error_answer (invocation, error);
      return;
    }
  list = g_unix_fd_list_new_from_array (&fd, 1);
  g_dbus_method_invocation_return_value_with_unix_fd_list (invocation, g_variant_new ("(h)", 0), list);
}

void
headway_dbus_publisher_stop_all (HeadwayDBusContext *context)
{
  for (GList *at = context->publishers.head; at != NULL; at = at->next)
    headway_publisher_stream_stop (((Publisher *) at->data)->stream);
}

void
headway_dbus_publisher_close_all (HeadwayDBusContext *context)
{
  Publisher *self;

  while ((self = g_queue_peek_head (&context->publishers)) != NULL)
    {
      headway_publisher_stream_close (self->stream);
      publisher_free (self);
    }
}
