/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-receiver.h"

#define RECEIVE_EVENTS_MAX 1024
#define RECEIVE_WAIT_MS    20000

typedef struct
{
  HeadwayCliSubscriber *subscriber; /* borrowed, outlives self */
} HeadwayCliReceiver;

static void
on_received (GObject *source,
             GAsyncResult *result,
             gpointer user_data)
{
  HeadwayCliReceiver *self = user_data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GVariant) reply = NULL;
  g_autoptr (GVariantIter) events = NULL;
  GVariant *event;

  if (!headway_cli_subscriber_finish (source, result, &reply, NULL, &error))
    return;
  if (reply == NULL)
    {
      headway_cli_subscriber_call_failed (self->subscriber, error);
      return;
    }
  g_variant_get (reply, "(a(tsssxsa{sv}))", &events);
  while ((event = g_variant_iter_next_value (events)) != NULL)
    {
      headway_cli_subscriber_take_variant (self->subscriber, event);
      g_variant_unref (event);
    }
  headway_cli_subscriber_flush (self->subscriber);
}

static void
receive (gpointer user_data)
{
  HeadwayCliReceiver *self = user_data;
  guint wanted = headway_cli_reader_get_wanted (headway_cli_subscriber_get_reader (self->subscriber), RECEIVE_EVENTS_MAX);

  headway_cli_subscriber_call (self->subscriber, "Receive", g_variant_new ("(ui)", wanted, RECEIVE_WAIT_MS), "(a(tsssxsa{sv}))", on_received, self);
}

static gpointer
receiver_open (HeadwayCliSubscriber *subscriber)
{
  HeadwayCliReceiver *self = g_new0 (HeadwayCliReceiver, 1);

  self->subscriber = subscriber;
  receive (self);
  return self;
}

const HeadwayCliWay headway_cli_receiver_way = {
  .open = receiver_open,
  .proceed = receive,
  .close = g_free,
};
