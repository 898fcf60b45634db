/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-reply.h"

#include "wire/headway-variant.h"

void
headway_dbus_reply_init (HeadwayDBusReply *self, HeadwayDBusPeer *peer, guint max_events, gboolean has_resume_ids)
{
  *self = (HeadwayDBusReply){
    .peer = headway_dbus_peer_ref (peer),
    .max_events = CLAMP (max_events, 1, HEADWAY_REPLY_EVENTS),
    .has_resume_ids = has_resume_ids,
  };
  g_variant_builder_init (&self->builder, G_VARIANT_TYPE (HEADWAY_VARIANT_EVENTS));
}

gboolean
headway_dbus_reply_begin (HeadwayDBusReply *self, gsize bytes)
{
  if (self->count == 0)
    self->bytes_max = MIN (headway_dbus_account_get_room (&self->peer->account, bytes), HEADWAY_REPLY_BYTES);
  return self->bytes_max > 0;
}

static void
add (HeadwayDBusReply *self, HeadwayEvent *event, guint64 resume_id)
{
  g_variant_builder_add_value (&self->builder,
                               headway_variant_new_event (event, self->has_resume_ids ? resume_id : 0));
  self->count++;
  self->bytes += headway_event_get_size (event);
  headway_dbus_account_collect (&self->peer->account, (gssize) headway_event_get_size (event));
  self->is_full = self->count >= self->max_events || self->bytes >= self->bytes_max;
}

gboolean
headway_dbus_reply_offer (HeadwayDBusReply *self, HeadwayEvent *event, guint64 resume_id)
{
  if (self->is_full || !headway_dbus_reply_begin (self, headway_event_get_size (event)))
    return FALSE;
  if (self->count > 0 && self->bytes + headway_event_get_size (event) > self->bytes_max)
    {
      self->is_full = TRUE;
      return FALSE;
    }
  add (self, event, resume_id);
  return TRUE;
}

void
headway_dbus_reply_add (HeadwayDBusReply *self, const HeadwayDelivery *deliveries, guint n)
{
  for (guint i = 0; i < n; i++)
    {
      add (self, deliveries[i].event, deliveries[i].resume_id);
      headway_event_unref (deliveries[i].event);
    }
}

void
headway_dbus_reply_send (HeadwayDBusReply *self, GDBusMethodInvocation *invocation)
{
  GVariant *events = g_variant_builder_end (&self->builder);

  if (self->count > 0)
    headway_dbus_account_send (&self->peer->account, g_variant_get_size (events));
  g_dbus_method_invocation_return_value (invocation, g_variant_new_tuple (&events, 1));
  headway_dbus_reply_clear (self);
}

void
headway_dbus_reply_clear (HeadwayDBusReply *self)
{
  g_variant_builder_clear (&self->builder);
  if (self->peer != NULL)
    headway_dbus_account_collect (&self->peer->account, -(gssize) self->bytes);
  g_clear_pointer (&self->peer, headway_dbus_peer_unref);
  self->bytes = 0;
  self->is_full = TRUE;
}
