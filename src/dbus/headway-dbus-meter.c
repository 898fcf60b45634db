/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-meter.h"

#include "dbus/headway-dbus-names.h"
#include "dbus/headway-dbus-turn.h"
#include "engine/headway-error.h"

#define STATS_INTERFACE "org.freedesktop.DBus.Debug.Stats"
#define PEER_INTERFACE  "org.freedesktop.DBus.Peer"

/* A peer is asked at once when it may have left so much unread, else after a while. */
#define ASK_BYTES      (1024 * 1024)
#define ASK_OUTPUT     (512 * 1024)
#define PAUSE_FIRST_US (10 * G_TIME_SPAN_MILLISECOND)
#define PAUSE_MAX_US   G_TIME_SPAN_SECOND

struct _HeadwayDBusMeter
{
  GObject parent_instance;

  GDBusConnection *connection; /* owned */
  GCancellable *cancellable;   /* owned: of all questions */
  GHashTable *accounts;        /* unique name (borrowed) → HeadwayDBusAccount (borrowed) */
  GQueue turns;                /* HeadwayDBusAccount (borrowed): those with waiters, next first */
  guint64 unread;              /* of all accounts */
  guint64 output;              /* bytes handed to GDBus so far */
  guint64 output_gone;         /* of them, those that the message bus has read */
  gboolean is_output_asked;
  gboolean has_no_stats;
  GSource *run;  /* owned, nullable: lets the next waiter go */
  GSource *tick; /* owned: asks, ends what has waited too long */
};

/* One that is under way. */
typedef struct
{
  HeadwayDBusMeter *self; /* owned */
  char *name;             /* owned, nullable: the driver itself */
  guint64 sent;           /* to that peer when it was asked */
  guint64 output;
  gboolean is_stats;
} Question;

G_DEFINE_FINAL_TYPE (HeadwayDBusMeter, headway_dbus_meter, G_TYPE_OBJECT)

static void
question_free (Question *question)
{
  g_object_unref (question->self);
  g_free (question->name);
  g_free (question);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (Question, question_free)

/* --- Sums ----------------------------------------------------------------------------------- */

guint64
headway_dbus_account_get_unread (HeadwayDBusAccount *self)
{
  return self->sent - self->read + self->collecting;
}

static guint64
get_allowance (HeadwayDBusMeter *self)
{
  return (HEADWAY_DBUS_UNREAD_MAX - MIN (self->unread, HEADWAY_DBUS_UNREAD_MAX)) / 8;
}

static gboolean
is_output_full (HeadwayDBusMeter *self)
{
  return self->output - self->output_gone >= HEADWAY_DBUS_OUTPUT_MAX;
}

gboolean
headway_dbus_account_is_held (HeadwayDBusAccount *self)
{
  guint64 unread = headway_dbus_account_get_unread (self);

  if (self->meter == NULL)
    return FALSE;
  if (!g_queue_is_empty (&self->waiters))
    return TRUE;
  return unread >= HEADWAY_DBUS_UNREAD_MIN && (is_output_full (self->meter) || unread >= get_allowance (self->meter));
}

gsize
headway_dbus_account_get_room (HeadwayDBusAccount *self, gsize first_bytes)
{
  guint64 unread = headway_dbus_account_get_unread (self);
  guint64 room = 0;

  if (self->meter == NULL)
    return G_MAXSIZE;
  if (!is_output_full (self->meter) && unread < get_allowance (self->meter))
    room = get_allowance (self->meter);
  if (room <= HEADWAY_DBUS_SMALL_REPLY && unread < HEADWAY_DBUS_UNREAD_MIN && first_bytes <= HEADWAY_DBUS_SMALL_REPLY)
    room = HEADWAY_DBUS_SMALL_REPLY;
  return room;
}

/* --- Its clock ------------------------------------------------------------------------------ */

static void
schedule (HeadwayDBusMeter *self, gint64 at_us)
{
  gint64 present = g_source_get_ready_time (self->tick);

  if (present < 0 || at_us < present)
    g_source_set_ready_time (self->tick, at_us);
}

static gboolean
on_run (gpointer user_data)
{
  HeadwayDBusMeter *self = user_data;

  /* One account may go, the first that can; then others have their turn. */
  for (guint i = g_queue_get_length (&self->turns); i > 0; i--)
    {
      GList *turn = g_queue_pop_head_link (&self->turns);
      HeadwayDBusAccount *account = turn->data;
      HeadwayDBusWaiter *waiter = g_queue_peek_head (&account->waiters);

      g_queue_push_tail_link (&self->turns, turn);
      if (headway_dbus_account_get_room (account, waiter->first_bytes) == 0)
        continue;
      headway_dbus_waiter_cancel (waiter);
      waiter->go (waiter);
      return G_SOURCE_CONTINUE;
    }
  g_clear_pointer (&self->run, g_source_unref);
  return G_SOURCE_REMOVE;
}

/* There may be more room. */
static void
run (HeadwayDBusMeter *self)
{
  if (self->run != NULL || g_queue_is_empty (&self->turns))
    return;
  self->run = headway_dbus_turn_new ("headway waiting replies", on_run, self);
}

/* --- Evidence ------------------------------------------------------------------------------- */

static void
call (Question *question,
      const char *name,
      const char *interface,
      const char *method,
      GVariant *parameters,
      GAsyncReadyCallback callback)
{
  g_dbus_connection_call (question->self->connection, name, HEADWAY_DBUS_DRIVER_PATH, interface, method, parameters, NULL,
                          G_DBUS_CALL_FLAGS_NO_AUTO_START, G_MAXINT, question->self->cancellable, callback, question);
}

static Question *
question_new (HeadwayDBusMeter *self, HeadwayDBusAccount *account)
{
  Question *question = g_new0 (Question, 1);

  question->self = g_object_ref (self);
  question->name = account != NULL ? g_strdup (account->name) : NULL;
  question->sent = account != NULL ? account->sent : 0;
  question->output = self->output;
  return question;
}

static void ask_output (HeadwayDBusMeter *self);

static void
note_output (HeadwayDBusMeter *self, guint64 output)
{
  self->output_gone = MAX (self->output_gone, output);
  if (self->output - self->output_gone >= ASK_OUTPUT)
    ask_output (self);
}

static void
on_driver_answer (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (Question) question = user_data;
  HeadwayDBusMeter *self = question->self;
  g_autoptr (GVariant) reply = g_dbus_connection_call_finish (G_DBUS_CONNECTION (source), result, NULL);

  /* Without an answer the connection is gone. */
  self->is_output_asked = FALSE;
  if (g_cancellable_is_cancelled (self->cancellable) || reply == NULL)
    return;
  note_output (self, question->output);
  run (self);
}

static void
ask_output (HeadwayDBusMeter *self)
{
  if (self->is_output_asked || g_cancellable_is_cancelled (self->cancellable))
    return;
  self->is_output_asked = TRUE;
  call (question_new (self, NULL), HEADWAY_DBUS_DRIVER_NAME, HEADWAY_DBUS_DRIVER_INTERFACE, "GetId", NULL,
        on_driver_answer);
}

/* When @account is to be asked next, -1: not at all. */
static gint64
get_ask_time (HeadwayDBusMeter *self, HeadwayDBusAccount *account)
{
  guint64 unread = account->sent - account->read;

  if (account->is_asked || unread == 0)
    return -1;
  if (unread >= ASK_BYTES || !g_queue_is_empty (&account->waiters))
    return account->ask_us;
  if (unread >= HEADWAY_DBUS_UNREAD_MIN || self->unread >= HEADWAY_DBUS_UNREAD_MAX / 4)
    return account->ask_us + PAUSE_MAX_US;
  return -1;
}

static void
schedule_ask (HeadwayDBusAccount *account)
{
  gint64 at_us = get_ask_time (account->meter, account);

  if (at_us >= 0)
    schedule (account->meter, at_us);
}

/* All that was sent before the question was asked is read, but for @left bytes. */
static void
note_read (HeadwayDBusAccount *account, guint64 sent, guint64 left)
{
  HeadwayDBusMeter *self = account->meter;
  guint64 read = MAX (account->read, sent - MIN (left, sent));
  guint64 progress = read - account->read;

  account->read = read;
  self->unread -= progress;
  account->pause_us = progress > 0 ? PAUSE_FIRST_US : MIN (account->pause_us * 2, PAUSE_MAX_US);
  account->ask_us = g_get_monotonic_time () + account->pause_us;
  if (progress > 0)
    account->progress_us = g_get_monotonic_time ();
}

/* How much of what was sent before @question is still in the message bus, -1: it does not say. */
static gint64
get_left (Question *question, GVariant *reply, const GError *error)
{
  HeadwayDBusMeter *self = question->self;
  g_autoptr (GVariant) stats = NULL;
  guint left;

  /* A peer that answers a Ping with an error has read it all the same. */
  if (!question->is_stats)
    return reply != NULL || g_error_matches (error, G_DBUS_ERROR, G_DBUS_ERROR_UNKNOWN_METHOD) ? 0 : -1;
  if (reply != NULL && g_variant_is_of_type (reply, G_VARIANT_TYPE ("(a{sv})")))
    stats = g_variant_get_child_value (reply, 0);
  if (stats != NULL && g_variant_lookup (stats, "OutgoingBytes", "u", &left))
    return left;
  if (reply != NULL || (g_dbus_error_is_remote_error (error) &&
                        !g_error_matches (error, G_DBUS_ERROR, G_DBUS_ERROR_NAME_HAS_NO_OWNER) &&
                        !g_error_matches (error, G_DBUS_ERROR, G_DBUS_ERROR_LIMITS_EXCEEDED)))
    self->has_no_stats = TRUE;
  return -1;
}

static void
on_peer_answer (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (Question) question = user_data;
  HeadwayDBusMeter *self = question->self;
  g_autoptr (GError) error = NULL;
  g_autoptr (GVariant) reply = g_dbus_connection_call_finish (G_DBUS_CONNECTION (source), result, &error);
  HeadwayDBusAccount *account = g_hash_table_lookup (self->accounts, question->name);
  gint64 left;

  if (g_cancellable_is_cancelled (self->cancellable))
    return;
  left = get_left (question, reply, error);
  note_output (self, question->output);
  if (account != NULL)
    {
      account->is_asked = FALSE;
      note_read (account, left >= 0 ? question->sent : account->read, left >= 0 ? (guint64) left : 0);
      schedule_ask (account);
    }
  run (self);
}

static void
ask (HeadwayDBusAccount *account)
{
  HeadwayDBusMeter *self = account->meter;
  Question *question = question_new (self, account);

  account->is_asked = TRUE;
  question->is_stats = !self->has_no_stats;
  if (question->is_stats)
    call (question, HEADWAY_DBUS_DRIVER_NAME, STATS_INTERFACE, "GetConnectionStats", g_variant_new ("(s)", account->name),
          on_peer_answer);
  else
    call (question, account->name, PEER_INTERFACE, "Ping", NULL, on_peer_answer);
}

static gboolean
on_tick (gpointer user_data)
{
  HeadwayDBusMeter *self = user_data;
  gint64 now_us = g_get_monotonic_time ();
  GHashTableIter iter;
  gpointer value;
  HeadwayDBusWaiter *late = NULL;

  g_source_set_ready_time (self->tick, -1);
  g_hash_table_iter_init (&iter, self->accounts);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    {
      HeadwayDBusAccount *account = value;
      HeadwayDBusWaiter *waiter = g_queue_peek_head (&account->waiters);
      gint64 ask_us = get_ask_time (self, account);
      gint64 late_us;

      if (ask_us >= 0 && ask_us <= now_us)
        ask (account);
      else if (ask_us >= 0)
        schedule (self, ask_us);
      if (waiter == NULL)
        continue;
      late_us = MAX (waiter->since_us, account->progress_us) + HEADWAY_DBUS_UNREAD_WAIT_US;
      if (late_us <= now_us)
        late = waiter;
      else
        schedule (self, late_us);
    }
  if (late == NULL)
    return G_SOURCE_CONTINUE;
  /* One a turn: what it does may reach us again. */
  schedule (self, now_us);
  headway_dbus_waiter_cancel (late);
  late->expire (late);
  return G_SOURCE_CONTINUE;
}

/* --- What is counted ------------------------------------------------------------------------ */

void
headway_dbus_meter_add (HeadwayDBusMeter *self, HeadwayDBusAccount *account, const char *name)
{
  *account = (HeadwayDBusAccount){ .meter = self, .name = name, .pause_us = PAUSE_FIRST_US };
  account->turn.data = account;
  g_queue_init (&account->waiters);
  g_hash_table_insert (self->accounts, (char *) name, account);
}

void
headway_dbus_account_close (HeadwayDBusAccount *self)
{
  HeadwayDBusMeter *meter = self->meter;

  if (meter == NULL)
    return;
  while (!g_queue_is_empty (&self->waiters))
    headway_dbus_waiter_cancel (g_queue_peek_head (&self->waiters));
  meter->unread -= headway_dbus_account_get_unread (self);
  g_hash_table_remove (meter->accounts, self->name);
  self->meter = NULL;
  run (meter);
}

void
headway_dbus_account_collect (HeadwayDBusAccount *self, gssize bytes)
{
  if (self->meter == NULL)
    return;
  self->collecting += bytes;
  self->meter->unread += bytes;
}

void
headway_dbus_account_send (HeadwayDBusAccount *self, gsize bytes)
{
  if (self->meter == NULL)
    return;
  self->sent += bytes;
  self->meter->unread += bytes;
  self->meter->output += bytes + HEADWAY_DBUS_MESSAGE_BYTES;
  if (self->meter->output - self->meter->output_gone >= ASK_OUTPUT)
    ask_output (self->meter);
  /* The first time that it is worth asking counts from now. */
  if (self->sent - self->read == bytes)
    self->ask_us = MAX (self->ask_us, g_get_monotonic_time ());
  schedule_ask (self);
}

void
headway_dbus_account_claim (HeadwayDBusAccount *self, guint64 sent)
{
  if (self->meter == NULL || !self->meter->has_no_stats || sent <= self->read)
    return;
  note_read (self, sent, 0);
  run (self->meter);
}

GError *
headway_dbus_account_new_error (HeadwayDBusAccount *self)
{
  GError *error = NULL;

  headway_set_error_with_limit (&error, HEADWAY_ERROR_QUOTA_EXCEEDED, HEADWAY_DBUS_UNREAD_MAX / 8,
                                "connection %s has %" G_GUINT64_FORMAT " bytes of replies that it has not been seen to read, "
                                "at most %d are allowed, fewer while others leave much unread; it must read its replies, "
                                "and answer org.freedesktop.DBus.Peer.Ping where the message bus tells no statistics",
                                self->name != NULL ? self->name : "that has left", headway_dbus_account_get_unread (self),
                                HEADWAY_DBUS_UNREAD_MAX / 8);
  return error;
}

/* --- Waiters -------------------------------------------------------------------------------- */

void
headway_dbus_waiter_wait (HeadwayDBusWaiter *self, HeadwayDBusAccount *account, gsize first_bytes, gint64 since_us)
{
  if (self->account != NULL || account->meter == NULL)
    return;
  self->account = account;
  self->first_bytes = first_bytes;
  self->since_us = since_us > 0 ? since_us : g_get_monotonic_time ();
  self->link = (GList){ self, NULL, NULL };
  if (g_queue_is_empty (&account->waiters))
    g_queue_push_tail_link (&account->meter->turns, &account->turn);
  g_queue_push_tail_link (&account->waiters, &self->link);
  schedule (account->meter, self->since_us + HEADWAY_DBUS_UNREAD_WAIT_US);
  schedule_ask (account);
  run (account->meter);
}

void
headway_dbus_waiter_cancel (HeadwayDBusWaiter *self)
{
  HeadwayDBusAccount *account = self->account;

  if (account == NULL)
    return;
  self->account = NULL;
  g_queue_unlink (&account->waiters, &self->link);
  if (g_queue_is_empty (&account->waiters))
    g_queue_unlink (&account->meter->turns, &account->turn);
}

/* --- Its class ------------------------------------------------------------------------------ */

void
headway_dbus_meter_stop (HeadwayDBusMeter *self)
{
  g_cancellable_cancel (self->cancellable);
  g_source_set_ready_time (self->tick, -1);
  headway_dbus_turn_clear (&self->run);
}

static void
headway_dbus_meter_finalize (GObject *object)
{
  HeadwayDBusMeter *self = HEADWAY_DBUS_METER (object);

  g_assert (g_hash_table_size (self->accounts) == 0);
  headway_dbus_meter_stop (self);
  g_source_destroy (self->tick);
  g_source_unref (self->tick);
  g_hash_table_unref (self->accounts);
  g_object_unref (self->cancellable);
  g_object_unref (self->connection);
  G_OBJECT_CLASS (headway_dbus_meter_parent_class)->finalize (object);
}

static void
headway_dbus_meter_class_init (HeadwayDBusMeterClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = headway_dbus_meter_finalize;
}

static gboolean
dispatch_tick (GSource *source, GSourceFunc callback, gpointer user_data)
{
  return callback (user_data);
}

static void
headway_dbus_meter_init (HeadwayDBusMeter *self)
{
  static GSourceFuncs tick_funcs = { .dispatch = dispatch_tick };

  self->accounts = g_hash_table_new (g_str_hash, g_str_equal);
  self->cancellable = g_cancellable_new ();
  g_queue_init (&self->turns);
  self->tick = g_source_new (&tick_funcs, sizeof (GSource));
  g_source_set_static_name (self->tick, "headway unread replies");
  g_source_set_callback (self->tick, on_tick, self, NULL);
  g_source_attach (self->tick, g_main_context_get_thread_default ());
}

HeadwayDBusMeter *
headway_dbus_meter_new (GDBusConnection *connection)
{
  HeadwayDBusMeter *self = g_object_new (HEADWAY_DBUS_TYPE_METER, NULL);

  self->connection = g_object_ref (connection);
  return self;
}
