/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "dbus/headway-dbus-peer.h"
#include "engine/headway-sink.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/**
 * HeadwayDBusReply:
 *
 * The events of one answer: at most HEADWAY_REPLY_EVENTS and HEADWAY_REPLY_BYTES of event size, at
 * least one whatever its size (decisions.md 12), fewer where the peers leave much unread
 * (HeadwayDBusMeter). Plain, embedded in who answers.
 */
typedef struct
{
  HeadwayDBusPeer *peer; /* owned */
  GVariantBuilder builder;
  guint max_events;
  guint count;
  gsize bytes;
  gsize bytes_max; /* once it has begun */
  gboolean is_full;
  gboolean has_resume_ids;
} HeadwayDBusReply;

/* @max_events: from 1; @has_resume_ids: whether `extra` says where to resume (routed mode). */
void headway_dbus_reply_init (HeadwayDBusReply *self, HeadwayDBusPeer *peer, guint max_events, gboolean has_resume_ids);
/* Begins with a first event of @bytes, if it has not begun. FALSE: it must wait for room. */
gboolean headway_dbus_reply_begin (HeadwayDBusReply *self, gsize bytes);
/* FALSE: it does not fit, and from then on nothing does, so that nothing is skipped; or it must wait for
 * room. */
gboolean headway_dbus_reply_offer (HeadwayDBusReply *self, HeadwayEvent *event, guint64 resume_id);
/* Adds what was taken from a subscription under the same bounds; the events are (transfer full). */
void headway_dbus_reply_add (HeadwayDBusReply *self, const HeadwayDelivery *deliveries, guint n);
/* Answers @invocation, (transfer full), and clears @self. */
void headway_dbus_reply_send (HeadwayDBusReply *self, GDBusMethodInvocation *invocation);
void headway_dbus_reply_clear (HeadwayDBusReply *self);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (HeadwayDBusReply, headway_dbus_reply_clear)

G_END_DECLS
