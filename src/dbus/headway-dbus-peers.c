/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-peers.h"

#include "dbus/headway-dbus-error.h"
#include "dbus/headway-dbus-names.h"
#include "dbus/headway-dbus-turn.h"

/* A call that waits until its peer is known, or reads what it was sent. */
typedef struct
{
  GDBusMethodInvocation *invocation; /* owned until it is handled */
  GDBusInterfaceMethodCallFunc func;
  gpointer object; /* owned */
  gsize bytes;
  gint64 since_us;
} HeldCall;

/* What is kept of a peer beside what others see of it. */
typedef struct
{
  HeadwayDBusPeers *owner; /* borrowed, outlives self */
  HeadwayDBusPeer *peer;   /* owned */
  HeadwayDBusWaiter waiter;
  HeadwayDBusWaiter refusal;
  GArray *refused; /* owned: guint32: serials of calls that are to be refused */
  gboolean is_known;
  guint watch; /* signal subscription */
  GQueue held; /* HeldCall (owned) */
  guint64 held_bytes;
  GSource *release; /* owned, nullable: handles the next of what is held */
} Entry;

struct _HeadwayDBusPeers
{
  GObject parent_instance;

  GDBusConnection *connection;       /* owned */
  HeadwayDBusMeter *meter;           /* owned */
  HeadwayPrincipalTable *principals; /* owned */
  gboolean is_session;
  GHashTable *entries;       /* unique name (borrowed from the peer) → Entry (owned) */
  GCancellable *cancellable; /* owned: of all questions to the message bus */
};

/* A question that is under way. */
typedef struct
{
  HeadwayDBusPeers *self; /* owned */
  char *name;             /* owned */
} Question;

G_DEFINE_FINAL_TYPE (HeadwayDBusPeers, headway_dbus_peers, G_TYPE_OBJECT)

static void
held_call_free (HeldCall *call)
{
  if (call->invocation != NULL)
    headway_dbus_error_refuse (call->invocation, HEADWAY_ERROR_UNAVAILABLE, "the call was dropped before it was handled");
  g_object_unref (call->object);
  g_free (call);
}

static void
question_free (Question *question)
{
  g_object_unref (question->self);
  g_free (question->name);
  g_free (question);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeldCall, held_call_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Question, question_free)

static void
entry_free (Entry *entry)
{
  headway_dbus_turn_clear (&entry->release);
  g_dbus_connection_signal_unsubscribe (entry->owner->connection, entry->watch);
  headway_dbus_waiter_cancel (&entry->waiter);
  headway_dbus_waiter_cancel (&entry->refusal);
  headway_dbus_peer_leave (entry->peer);
  g_array_unref (entry->refused);
  g_queue_clear_full (&entry->held, (GDestroyNotify) held_call_free);
  headway_dbus_peer_unref (entry->peer);
  g_free (entry);
}

static void
forget (HeadwayDBusPeers *self, const char *name)
{
  gpointer stolen = NULL;

  /* Out of the table first: what it had may call back into us. */
  if (g_hash_table_steal_extended (self->entries, name, NULL, &stolen))
    entry_free (stolen);
}

static void
handle (Entry *entry,
        GDBusInterfaceMethodCallFunc func,
        GDBusMethodInvocation *invocation,
        gpointer object)
{
  headway_dbus_account_send (&entry->peer->account, HEADWAY_DBUS_CALL_BYTES);
  func (g_dbus_method_invocation_get_connection (invocation),
        g_dbus_method_invocation_get_sender (invocation),
        g_dbus_method_invocation_get_object_path (invocation),
        g_dbus_method_invocation_get_interface_name (invocation),
        g_dbus_method_invocation_get_method_name (invocation),
        g_dbus_method_invocation_get_parameters (invocation),
        invocation,
        object);
}

static void
handle_next (Entry *entry)
{
  g_autoptr (HeldCall) call = g_queue_pop_head (&entry->held);

  entry->held_bytes -= call->bytes;
  handle (entry, call->func, g_steal_pointer (&call->invocation), call->object);
}

/* What is held goes one by one, each in its turn among the replies of all peers. */
static void
wait_for_room (Entry *entry)
{
  HeldCall *next = g_queue_peek_head (&entry->held);

  if (next != NULL)
    headway_dbus_waiter_wait (&entry->waiter, &entry->peer->account, 0, next->since_us);
}

static void
on_room (HeadwayDBusWaiter *waiter)
{
  Entry *entry = (Entry *) ((char *) waiter - G_STRUCT_OFFSET (Entry, waiter));

  handle_next (entry);
  wait_for_room (entry);
}

static void
on_late (HeadwayDBusWaiter *waiter)
{
  Entry *entry = (Entry *) ((char *) waiter - G_STRUCT_OFFSET (Entry, waiter));
  HeldCall *call = g_queue_pop_head (&entry->held);

  entry->held_bytes -= call->bytes;
  headway_dbus_account_send (&entry->peer->account, HEADWAY_DBUS_CALL_BYTES);
  headway_dbus_error_answer (g_steal_pointer (&call->invocation),
                             headway_dbus_account_new_error (&entry->peer->account));
  held_call_free (call);
  wait_for_room (entry);
}

/* Handles some of what was held. The peer cannot leave meanwhile: that takes a turn of the loop. */
static gboolean
release_held (gpointer user_data)
{
  Entry *entry = user_data;

  for (guint i = 0; i < HEADWAY_DISPATCH_EVENTS && !g_queue_is_empty (&entry->held) &&
                    !headway_dbus_account_is_held (&entry->peer->account);
       i++)
    handle_next (entry);
  if (!g_queue_is_empty (&entry->held) && !headway_dbus_account_is_held (&entry->peer->account))
    return G_SOURCE_CONTINUE;
  g_clear_pointer (&entry->release, g_source_unref);
  wait_for_room (entry);
  return G_SOURCE_REMOVE;
}

static void
on_uid (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (Question) question = user_data;
  HeadwayDBusPeers *self = question->self;
  g_autoptr (GError) error = NULL;
  g_autoptr (GVariant) reply = g_dbus_connection_call_finish (G_DBUS_CONNECTION (source), result, &error);
  Entry *entry = g_hash_table_lookup (self->entries, question->name);
  guint32 uid;

  if (entry == NULL)
    return;
  if (reply == NULL)
    {
      g_debug ("no user behind %s: %s", question->name, error->message);
      forget (self, question->name);
      return;
    }
  g_variant_get (reply, "(u)", &uid);
  headway_caller_init_user (&entry->peer->caller, uid, self->is_session, self->principals);
  entry->is_known = TRUE;
  entry->release = headway_dbus_turn_new ("headway held calls", release_held, entry);
}

static void
on_name_owner_changed (GDBusConnection *connection,
                       const char *sender,
                       const char *path,
                       const char *interface,
                       const char *signal,
                       GVariant *parameters,
                       gpointer user_data)
{
  HeadwayDBusPeers *self = user_data;
  const char *name;
  const char *new_owner;

  if (!g_variant_is_of_type (parameters, G_VARIANT_TYPE ("(sss)")))
    return;
  g_variant_get (parameters, "(&s&s&s)", &name, NULL, &new_owner);
  if (*new_owner == '\0')
    forget (self, name);
}

static void on_room_to_refuse (HeadwayDBusWaiter *waiter);
static void on_late_to_refuse (HeadwayDBusWaiter *waiter);

static Entry *
meet (HeadwayDBusPeers *self, const char *name)
{
  Entry *entry = g_new0 (Entry, 1);
  Question *question = g_new0 (Question, 1);

  entry->owner = self;
  entry->peer = headway_dbus_peer_new (name);
  entry->waiter.go = on_room;
  entry->waiter.expire = on_late;
  entry->refusal.go = on_room_to_refuse;
  entry->refusal.expire = on_late_to_refuse;
  entry->refused = g_array_new (FALSE, FALSE, sizeof (guint32));
  headway_dbus_meter_add (self->meter, &entry->peer->account, entry->peer->name);
  g_queue_init (&entry->held);
  /* The watch first: whoever leaves before the question is answered is noticed by one of them. */
  entry->watch = g_dbus_connection_signal_subscribe (self->connection,
                                                     HEADWAY_DBUS_DRIVER_NAME,
                                                     HEADWAY_DBUS_DRIVER_INTERFACE,
                                                     "NameOwnerChanged",
                                                     HEADWAY_DBUS_DRIVER_PATH,
                                                     name,
                                                     G_DBUS_SIGNAL_FLAGS_NONE,
                                                     on_name_owner_changed,
                                                     self,
                                                     NULL);
  question->self = g_object_ref (self);
  question->name = g_strdup (name);
  g_dbus_connection_call (self->connection,
                          HEADWAY_DBUS_DRIVER_NAME,
                          HEADWAY_DBUS_DRIVER_PATH,
                          HEADWAY_DBUS_DRIVER_INTERFACE,
                          "GetConnectionUnixUser",
                          g_variant_new ("(s)", name),
                          G_VARIANT_TYPE ("(u)"),
                          G_DBUS_CALL_FLAGS_NONE,
                          -1,
                          self->cancellable,
                          on_uid,
                          question);
  g_hash_table_insert (self->entries, entry->peer->name, entry);
  return entry;
}

/* Refuses some of the calls for which there was no place. */
static void
answer_refused (Entry *entry)
{
  guint n = MIN (entry->refused->len, HEADWAY_DISPATCH_EVENTS);
  g_autofree char *text = NULL;

  text = g_strdup_printf ("%u calls of %" G_GUINT64_FORMAT " bytes are held, at most %d of %d bytes may be, for connection %s has "
                          "%" G_GUINT64_FORMAT " bytes of replies that it has not been seen to read",
                          g_queue_get_length (&entry->held), entry->held_bytes, HEADWAY_DBUS_HELD_MAX,
                          HEADWAY_DBUS_HELD_BYTES_MAX, entry->peer->name,
                          headway_dbus_account_get_unread (&entry->peer->account));
  for (guint i = 0; i < n; i++)
    {
      g_autoptr (GDBusMessage) reply = g_dbus_message_new ();

      g_dbus_message_set_message_type (reply, G_DBUS_MESSAGE_TYPE_ERROR);
      g_dbus_message_set_flags (reply, G_DBUS_MESSAGE_FLAGS_NO_REPLY_EXPECTED);
      g_dbus_message_set_reply_serial (reply, g_array_index (entry->refused, guint32, i));
      g_dbus_message_set_destination (reply, entry->peer->name);
      g_dbus_message_set_error_name (reply, HEADWAY_DBUS_ERROR_PREFIX "QuotaExceeded");
      g_dbus_message_set_body (reply, g_variant_new ("(s)", text));
      g_dbus_connection_send_message (entry->owner->connection, reply, G_DBUS_SEND_MESSAGE_FLAGS_NONE, NULL, NULL);
      headway_dbus_account_send (&entry->peer->account, 2 * HEADWAY_DBUS_CALL_BYTES);
    }
  g_array_remove_range (entry->refused, 0, n);
}

static void
wait_to_refuse (Entry *entry)
{
  if (entry->refused->len > 0)
    headway_dbus_waiter_wait (&entry->refusal, &entry->peer->account, 0, 0);
}

static void
on_room_to_refuse (HeadwayDBusWaiter *waiter)
{
  Entry *entry = (Entry *) ((char *) waiter - G_STRUCT_OFFSET (Entry, refusal));

  answer_refused (entry);
  wait_to_refuse (entry);
}

/* The message bus counts them as calls without an answer. */
static void
on_late_to_refuse (HeadwayDBusWaiter *waiter)
{
  g_array_set_size (((Entry *) ((char *) waiter - G_STRUCT_OFFSET (Entry, refusal)))->refused, 0);
}

static void
refuse (Entry *entry, guint32 serial)
{
  if (entry->refused->len < HEADWAY_DBUS_REFUSED_MAX)
    g_array_append_val (entry->refused, serial);
  wait_to_refuse (entry);
}

/* There is no place for the call. */
static void
refuse_call (Entry *entry, GDBusMethodInvocation *invocation)
{
  GDBusMessage *message = g_dbus_method_invocation_get_message (invocation);

  if ((g_dbus_message_get_flags (message) & G_DBUS_MESSAGE_FLAGS_NO_REPLY_EXPECTED) == 0)
    refuse (entry, g_dbus_message_get_serial (message));
  g_object_unref (invocation);
}

static void
hold (Entry *entry, GDBusMethodInvocation *invocation, GDBusInterfaceMethodCallFunc func, gpointer object)
{
  gsize bytes = g_variant_get_size (g_dbus_method_invocation_get_parameters (invocation));
  HeldCall *call;

  if (g_queue_get_length (&entry->held) >= HEADWAY_DBUS_HELD_MAX ||
      (entry->held_bytes > 0 && entry->held_bytes + bytes > HEADWAY_DBUS_HELD_BYTES_MAX))
    {
      refuse_call (entry, invocation);
      return;
    }
  call = g_new (HeldCall, 1);
  *call = (HeldCall){ invocation, func, g_object_ref (object), bytes, g_get_monotonic_time () };
  entry->held_bytes += bytes;
  g_queue_push_tail (&entry->held, call);
}

void
headway_dbus_peers_admit (HeadwayDBusPeers *self,
                          GDBusMethodInvocation *invocation,
                          GDBusInterfaceMethodCallFunc func,
                          gpointer object)
{
  const char *sender = g_dbus_method_invocation_get_sender (invocation);
  Entry *entry;

  if (sender == NULL || g_cancellable_is_cancelled (self->cancellable))
    {
      headway_dbus_error_refuse (invocation, HEADWAY_ERROR_UNAVAILABLE, "there is no message bus to say who calls");
      return;
    }
  entry = g_hash_table_lookup (self->entries, sender);
  if (entry == NULL)
    entry = meet (self, sender);
  if (entry->is_known && entry->release == NULL && g_queue_is_empty (&entry->held) &&
      !headway_dbus_account_is_held (&entry->peer->account))
    {
      handle (entry, func, invocation, object);
      return;
    }
  hold (entry, invocation, func, object);
  if (entry->is_known && entry->release == NULL)
    wait_for_room (entry);
}

HeadwayDBusPeer *
headway_dbus_peers_get (HeadwayDBusPeers *self, GDBusMethodInvocation *invocation)
{
  Entry *entry = g_hash_table_lookup (self->entries, g_dbus_method_invocation_get_sender (invocation));

  g_assert (entry != NULL && entry->is_known);
  return entry->peer;
}

guint32
headway_dbus_peers_get_uid (HeadwayDBusPeers *self, const char *name)
{
  Entry *entry = name != NULL ? g_hash_table_lookup (self->entries, name) : NULL;

  return entry != NULL ? entry->peer->caller.uid : HEADWAY_UID_NOBODY;
}

void
headway_dbus_peers_refuse (HeadwayDBusPeers *self, const char *name, GArray *serials)
{
  Entry *entry = g_hash_table_lookup (self->entries, name);

  for (guint i = 0; entry != NULL && i < serials->len; i++)
    refuse (entry, g_array_index (serials, guint32, i));
}

gboolean
headway_dbus_peers_is_idle (HeadwayDBusPeers *self)
{
  GHashTableIter iter;
  gpointer value;

  g_hash_table_iter_init (&iter, self->entries);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    {
      Entry *entry = value;

      if (!g_queue_is_empty (&entry->held) || !g_queue_is_empty (&entry->peer->charges))
        return FALSE;
    }
  return TRUE;
}

guint
headway_dbus_peers_get_size (HeadwayDBusPeers *self)
{
  return g_hash_table_size (self->entries);
}

void
headway_dbus_peers_clear (HeadwayDBusPeers *self)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  GHashTableIter iter;
  gpointer name;

  g_cancellable_cancel (self->cancellable);
  headway_dbus_meter_stop (self->meter);
  g_hash_table_iter_init (&iter, self->entries);
  while (g_hash_table_iter_next (&iter, &name, NULL))
    g_ptr_array_add (names, g_strdup (name));
  for (guint i = 0; i < names->len; i++)
    forget (self, g_ptr_array_index (names, i));
}

void
headway_dbus_peers_end_held (HeadwayDBusPeers *self)
{
  GHashTableIter iter;
  gpointer value;

  g_hash_table_iter_init (&iter, self->entries);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    {
      Entry *entry = value;

      if (!entry->is_known || entry->release != NULL)
        continue;
      headway_dbus_waiter_cancel (&entry->waiter);
      g_queue_clear_full (&entry->held, (GDestroyNotify) held_call_free);
      entry->held_bytes = 0;
    }
}

static void
headway_dbus_peers_dispose (GObject *object)
{
  headway_dbus_peers_clear (HEADWAY_DBUS_PEERS (object));
  G_OBJECT_CLASS (headway_dbus_peers_parent_class)->dispose (object);
}

static void
headway_dbus_peers_finalize (GObject *object)
{
  HeadwayDBusPeers *self = HEADWAY_DBUS_PEERS (object);

  g_hash_table_unref (self->entries);
  g_object_unref (self->meter);
  g_object_unref (self->cancellable);
  g_object_unref (self->connection);
  headway_principal_table_unref (self->principals);
  G_OBJECT_CLASS (headway_dbus_peers_parent_class)->finalize (object);
}

static void
headway_dbus_peers_class_init (HeadwayDBusPeersClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->dispose = headway_dbus_peers_dispose;
  object_class->finalize = headway_dbus_peers_finalize;
}

static void
headway_dbus_peers_init (HeadwayDBusPeers *self)
{
  self->entries = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, (GDestroyNotify) entry_free);
  self->cancellable = g_cancellable_new ();
}

HeadwayDBusPeers *
headway_dbus_peers_new (GDBusConnection *connection, gboolean is_session, HeadwayPrincipalTable *principals)
{
  HeadwayDBusPeers *self = g_object_new (HEADWAY_DBUS_TYPE_PEERS, NULL);

  self->connection = g_object_ref (connection);
  self->meter = headway_dbus_meter_new (connection);
  self->is_session = is_session;
  self->principals = headway_principal_table_ref (principals);
  return self;
}
