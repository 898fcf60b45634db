/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-peer.h"

#include "engine/headway-error.h"

static const struct
{
  guint maximum;
  const char *what;
} limits[] = {
  [HEADWAY_DBUS_CHARGE_SUBSCRIPTION] = { HEADWAY_DBUS_SUBSCRIPTIONS_MAX, "subscriptions" },
  [HEADWAY_DBUS_CHARGE_HANDLER] = { HEADWAY_DBUS_HANDLERS_MAX, "handlers" },
  [HEADWAY_DBUS_CHARGE_CALL] = { HEADWAY_DBUS_CALLS_MAX, "pending calls" },
  [HEADWAY_DBUS_CHARGE_PUBLISH] = { HEADWAY_DBUS_PUBLISHES_MAX, "pending publishes" },
  [HEADWAY_DBUS_CHARGE_PUBLISHER] = { HEADWAY_DBUS_PUBLISHERS_MAX, "publishers" },
};

G_STATIC_ASSERT (G_N_ELEMENTS (limits) == HEADWAY_DBUS_N_CHARGES);

HeadwayDBusPeer *
headway_dbus_peer_new (const char *name)
{
  HeadwayDBusPeer *self = g_rc_box_new0 (HeadwayDBusPeer);

  self->name = g_strdup (name);
  self->caller.uid = HEADWAY_UID_NOBODY;
  g_queue_init (&self->charges);
  return self;
}

HeadwayDBusPeer *
headway_dbus_peer_ref (HeadwayDBusPeer *self)
{
  return g_rc_box_acquire (self);
}

static void
peer_clear (gpointer data)
{
  HeadwayDBusPeer *self = data;

  g_assert (g_queue_is_empty (&self->charges));
  headway_caller_clear (&self->caller);
  g_free (self->name);
}

void
headway_dbus_peer_unref (HeadwayDBusPeer *self)
{
  g_rc_box_release_full (self, peer_clear);
}

void
headway_dbus_peer_leave (HeadwayDBusPeer *self)
{
  g_autoptr (HeadwayDBusPeer) keep = headway_dbus_peer_ref (self);

  self->has_left = TRUE;
  headway_dbus_account_close (&self->account);
  while (!g_queue_is_empty (&self->charges))
    {
      HeadwayDBusCharge *charge = g_queue_peek_head (&self->charges);
      void (*peer_left) (HeadwayDBusCharge * charge) = charge->peer_left;

      headway_dbus_charge_release (charge);
      if (peer_left != NULL)
        peer_left (charge);
    }
}

static gboolean
check_bytes (HeadwayDBusPeer *peer, guint64 bytes, GError **error)
{
  /* The first one is let in whatever it has: its own limit was checked. */
  if (peer->publish_bytes == 0 || bytes <= HEADWAY_DBUS_PUBLISH_BYTES_MAX - MIN (peer->publish_bytes, HEADWAY_DBUS_PUBLISH_BYTES_MAX))
    return TRUE;
  headway_set_error_with_limit (error, HEADWAY_ERROR_QUOTA_EXCEEDED, HEADWAY_DBUS_PUBLISH_BYTES_MAX,
                                "connection %s has publishes of %" G_GUINT64_FORMAT " bytes pending and this one has "
                                "%" G_GUINT64_FORMAT ", at most %d are allowed",
                                peer->name, peer->publish_bytes, bytes, HEADWAY_DBUS_PUBLISH_BYTES_MAX);
  return FALSE;
}

gboolean
headway_dbus_charge_take (HeadwayDBusCharge *self,
                          HeadwayDBusPeer *peer,
                          HeadwayDBusChargeKind kind,
                          guint64 bytes,
                          void (*peer_left) (HeadwayDBusCharge *self),
                          GError **error)
{
  g_return_val_if_fail (self->peer == NULL, FALSE);

  if (peer->has_left)
    {
      g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE, "connection %s has left", peer->name);
      return FALSE;
    }
  if (peer->counts[kind] >= limits[kind].maximum)
    {
      headway_set_error_with_limit (error, HEADWAY_ERROR_QUOTA_EXCEEDED, limits[kind].maximum,
                                    "connection %s has %u %s, at most %u are allowed",
                                    peer->name, peer->counts[kind], limits[kind].what, limits[kind].maximum);
      return FALSE;
    }
  if (kind == HEADWAY_DBUS_CHARGE_PUBLISH && !check_bytes (peer, bytes, error))
    return FALSE;

  *self = (HeadwayDBusCharge){ headway_dbus_peer_ref (peer), kind, bytes, { self, NULL, NULL }, peer_left };
  peer->counts[kind]++;
  peer->publish_bytes += kind == HEADWAY_DBUS_CHARGE_PUBLISH ? bytes : 0;
  g_queue_push_tail_link (&peer->charges, &self->link);
  return TRUE;
}

void
headway_dbus_charge_release (HeadwayDBusCharge *self)
{
  g_autoptr (HeadwayDBusPeer) peer = g_steal_pointer (&self->peer);

  if (peer == NULL)
    return;
  g_queue_unlink (&peer->charges, &self->link);
  peer->counts[self->kind]--;
  peer->publish_bytes -= self->kind == HEADWAY_DBUS_CHARGE_PUBLISH ? self->bytes : 0;
}
