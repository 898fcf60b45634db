/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* Bytes that all peers together may leave unread. One peer may leave an eighth of what is free: 7 MiB
 * if it is alone, less the more others leave, so that some is free for whoever reads. */
#define HEADWAY_DBUS_UNREAD_MAX (64 * 1024 * 1024)
/* Up to here a peer is not held whatever the others do, and gets replies of HEADWAY_DBUS_SMALL_REPLY. */
#define HEADWAY_DBUS_UNREAD_MIN  (64 * 1024)
#define HEADWAY_DBUS_SMALL_REPLY (16 * 1024)
/* Bytes that may wait in this process for the message bus to read them, before large replies wait. */
#define HEADWAY_DBUS_OUTPUT_MAX (2 * 1024 * 1024)
/* What a message has in this process until it is written, beside its bytes. */
#define HEADWAY_DBUS_MESSAGE_BYTES 1024
/* What a call is charged for its answer, beside the events and lists in it. */
#define HEADWAY_DBUS_CALL_BYTES 256
/* What waits for its peer to read waits no longer, once that reads no more. */
#define HEADWAY_DBUS_UNREAD_WAIT_US (20 * G_TIME_SPAN_SECOND)

#define HEADWAY_DBUS_TYPE_METER (headway_dbus_meter_get_type ())
G_DECLARE_FINAL_TYPE (HeadwayDBusMeter, headway_dbus_meter, HEADWAY_DBUS, METER, GObject)

typedef struct _HeadwayDBusWaiter HeadwayDBusWaiter;

/**
 * HeadwayDBusAccount:
 * @name: (nullable): unique name of the peer; NULL: it is not metered, all is allowed
 *
 * What one peer was sent and has not been seen to read. Embedded in HeadwayDBusPeer.
 */
typedef struct
{
  HeadwayDBusMeter *meter; /* borrowed, outlives the account's time in it */
  const char *name;        /* borrowed from the peer */
  guint64 sent;            /* bytes so far */
  guint64 read;            /* of them, as evidence says */
  guint64 collecting;      /* of replies that are being put together */
  gboolean is_asked;       /* a question for evidence is under way */
  gint64 ask_us;           /* when to ask next, at the earliest */
  gint64 pause_us;         /* between two questions */
  gint64 progress_us;      /* when it was last seen to read */
  GQueue waiters;          /* HeadwayDBusWaiter (borrowed) */
  GList turn;              /* in the meter's queue, while there are waiters */
} HeadwayDBusAccount;

/**
 * HeadwayDBusWaiter:
 * @go: there is room, perhaps; it may wait again
 * @expire: its time is over
 *
 * Something that waits until its peer reads. Embedded in what waits, zeroed at first. It waits no
 * longer when it is told one or the other.
 */
struct _HeadwayDBusWaiter
{
  HeadwayDBusAccount *account; /* borrowed, NULL while it does not wait */
  gsize first_bytes;
  gint64 since_us;
  GList link;
  void (*go) (HeadwayDBusWaiter *self);
  void (*expire) (HeadwayDBusWaiter *self);
};

/**
 * HeadwayDBusMeter:
 *
 * GDBus and the message bus take whatever we send, without bound, and a bus whose bound is reached
 * stops reading us for all. So replies are counted here: those that have left this process (the
 * driver has answered a call behind them), and those that their receiver has read. Of that the
 * driver's own statistics tell; where they are not to be had, an answer of the peer to a Ping behind
 * the replies, which programs without a main loop do not give.
 */
HeadwayDBusMeter *headway_dbus_meter_new (GDBusConnection *connection);
/* Asks and tells nothing more. */
void headway_dbus_meter_stop (HeadwayDBusMeter *self);
void headway_dbus_meter_add (HeadwayDBusMeter *self, HeadwayDBusAccount *account, const char *name);

/* Its peer has left: nothing of it counts any more, nobody is told. Any number of times. */
void headway_dbus_account_close (HeadwayDBusAccount *self);
guint64 headway_dbus_account_get_unread (HeadwayDBusAccount *self);
/* TRUE: its calls must wait their turn, so that they stay in order. */
gboolean headway_dbus_account_is_held (HeadwayDBusAccount *self);
/* How large a reply that begins with @first_bytes may be, 0: it must wait. */
gsize headway_dbus_account_get_room (HeadwayDBusAccount *self, gsize first_bytes);
/* A reply that is being put together has grown by @bytes, which may be negative. */
void headway_dbus_account_collect (HeadwayDBusAccount *self, gssize bytes);
/* @bytes have been handed to GDBus. */
void headway_dbus_account_send (HeadwayDBusAccount *self, gsize bytes);
/* The peer says that it has read all up to @sent, a former value of the account's. It could say so without
 * having read: where the driver tells statistics, those count alone. */
void headway_dbus_account_claim (HeadwayDBusAccount *self, guint64 sent);

/* Behind the other waiters of the peer, until there is room for @first_bytes. @since_us: when it began to
 * wait; 0: now. */
void headway_dbus_waiter_wait (HeadwayDBusWaiter *self, HeadwayDBusAccount *account, gsize first_bytes, gint64 since_us);
/* Any number of times. */
void headway_dbus_waiter_cancel (HeadwayDBusWaiter *self);
/* HEADWAY_ERROR_QUOTA_EXCEEDED, with what helps. Returns: (transfer full). */
GError *headway_dbus_account_new_error (HeadwayDBusAccount *self);

G_END_DECLS
