/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "access/headway-caller.h"
#include "dbus/headway-dbus-meter.h"

G_BEGIN_DECLS

/* What one connection may have at a time (decisions.md 6). */
#define HEADWAY_DBUS_SUBSCRIPTIONS_MAX 256
#define HEADWAY_DBUS_HANDLERS_MAX      256
#define HEADWAY_DBUS_CALLS_MAX         64
#define HEADWAY_DBUS_PUBLISHERS_MAX    64
/* Publishes that wait for ids or behind a long batch are no abuse, they come in bursts: a bound of
 * their own, in calls and in bytes. */
#define HEADWAY_DBUS_PUBLISHES_MAX     1024
#define HEADWAY_DBUS_PUBLISH_BYTES_MAX (32 * 1024 * 1024)

/* What a peer is charged for. */
typedef enum
{
  HEADWAY_DBUS_CHARGE_SUBSCRIPTION,
  HEADWAY_DBUS_CHARGE_HANDLER,
  HEADWAY_DBUS_CHARGE_CALL,    /* one that waits for its answer */
  HEADWAY_DBUS_CHARGE_PUBLISH, /* one that waits for its turn */
  HEADWAY_DBUS_CHARGE_PUBLISHER,
  HEADWAY_DBUS_N_CHARGES
} HeadwayDBusChargeKind;

/**
 * HeadwayDBusPeer:
 * @name: the unique name of its connection
 * @caller: who it is; the uid is HEADWAY_UID_NOBODY until the message bus has said so
 * @account: what it has not been seen to read
 *
 * A caller, from its first call until it leaves the message bus. Reference-counted.
 */
typedef struct
{
  char *name; /* owned */
  HeadwayCaller caller;
  HeadwayDBusAccount account;
  guint counts[HEADWAY_DBUS_N_CHARGES];
  guint64 publish_bytes;
  GQueue charges; /* HeadwayDBusCharge (borrowed) */
  gboolean has_left;
} HeadwayDBusPeer;

typedef struct _HeadwayDBusCharge HeadwayDBusCharge;

/**
 * HeadwayDBusCharge:
 * @peer_left: (nullable): the peer has left the message bus, and the charge is released already
 *
 * Something that a peer has waiting here. Embedded in what waits.
 */
struct _HeadwayDBusCharge
{
  HeadwayDBusPeer *peer; /* owned, NULL while nothing is charged */
  HeadwayDBusChargeKind kind;
  guint64 bytes;
  GList link;
  void (*peer_left) (HeadwayDBusCharge *self);
};

HeadwayDBusPeer *headway_dbus_peer_new (const char *name);
HeadwayDBusPeer *headway_dbus_peer_ref (HeadwayDBusPeer *self);
void headway_dbus_peer_unref (HeadwayDBusPeer *self);
/* Releases all charges and tells what was charged. */
void headway_dbus_peer_leave (HeadwayDBusPeer *self);

/* @bytes: for HEADWAY_DBUS_CHARGE_PUBLISH. HEADWAY_ERROR_QUOTA_EXCEEDED if the peer has enough. */
gboolean headway_dbus_charge_take (HeadwayDBusCharge *self,
                                   HeadwayDBusPeer *peer,
                                   HeadwayDBusChargeKind kind,
                                   guint64 bytes,
                                   void (*peer_left) (HeadwayDBusCharge *self),
                                   GError **error);
/* Any number of times. */
void headway_dbus_charge_release (HeadwayDBusCharge *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayDBusPeer, headway_dbus_peer_unref)

G_END_DECLS
