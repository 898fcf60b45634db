/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "handler/headway-handler-target.h"

#include "wire/headway-clock.h"
#include "wire/headway-variant.h"

#include <string.h>

#define HANDLER_INTERFACE "org.headway.Headway1.Handler"
#define REPLY_TYPE        "(ssa{sv})"

/* Of a call beside the event: names, paths, what frames them. */
#define CALL_SLACK 512

struct _HeadwayHandlerTarget
{
  HeadwayHandlerLine *line; /* owned */
  char *object_path;        /* owned */
  char *bus_path;           /* owned */
  char *path;               /* owned, nullable until it is registered */
  HeadwayHandler *handler;  /* owned, nullable until it is registered */
  HeadwayHandlerSeat seat;
  HeadwayHandlerEnded ended;
  gpointer user_data;
  GHashTable *calls; /* HeadwayHandlerCall (borrowed from the value) → Question (borrowed: GDBus has it) */
};

/* A call that is on the message bus. */
typedef struct
{
  HeadwayHandlerTarget *target; /* owned */
  HeadwayHandlerCall *call;     /* owned, NULL once it was abandoned */
  gsize bytes;
} Question;

HeadwayHandlerTarget *
headway_handler_target_new (HeadwayHandlerCaller *caller,
                            const HeadwayHandlerPlace *place,
                            HeadwayHandlerEnded ended,
                            gpointer user_data)
{
  HeadwayHandlerTarget *self = g_rc_box_new0 (HeadwayHandlerTarget);

  self->line = headway_handler_line_get (caller, place->owner);
  self->object_path = g_strdup (place->object_path);
  self->bus_path = g_strdup (place->bus_path);
  self->seat.owed_max = place->parallel;
  self->ended = ended;
  self->user_data = user_data;
  self->calls = g_hash_table_new (NULL, NULL);
  return self;
}

HeadwayHandlerTarget *
headway_handler_target_ref (HeadwayHandlerTarget *self)
{
  return g_rc_box_acquire (self);
}

static void
target_clear (gpointer data)
{
  HeadwayHandlerTarget *self = data;

  g_assert (g_hash_table_size (self->calls) == 0);
  g_hash_table_unref (self->calls);
  g_clear_object (&self->handler);
  headway_handler_line_unref (self->line);
  g_free (self->object_path);
  g_free (self->bus_path);
  g_free (self->path);
}

void
headway_handler_target_unref (HeadwayHandlerTarget *self)
{
  g_rc_box_release_full (self, target_clear);
}

HeadwayHandler *
headway_handler_target_get_handler (HeadwayHandlerTarget *self)
{
  return self->handler;
}

const char *
headway_handler_target_get_path (HeadwayHandlerTarget *self)
{
  return self->path;
}

/* --- Answers -------------------------------------------------------------------------------- */

static void
give_back_failed (HeadwayHandlerCall *call, const GError *error, const char *name, HeadwayInstant now)
{
  g_autofree char *reason = NULL;

  if (g_strcmp0 (name, "org.freedesktop.DBus.Error.LimitsExceeded") == 0)
    headway_handler_call_retry (call, now);
  else if (g_strcmp0 (name, "org.headway.Headway1.Error.NotSupported") == 0 ||
           g_strcmp0 (name, "org.freedesktop.DBus.Error.NotSupported") == 0)
    headway_handler_call_skip (call, now);
  else
    {
      reason = g_strdup_printf ("%s: %s", name != NULL ? name : "the call failed", error->message);
      headway_handler_call_fail (call, reason, now);
    }
}

static void
give_back_answered (HeadwayHandlerCall *call, GVariant *reply, HeadwayInstant now)
{
  g_autofree char *reason = NULL;
  const char *verdict;
  const char *data;

  if (!g_variant_is_of_type (reply, G_VARIANT_TYPE (REPLY_TYPE)))
    {
      reason = g_strdup_printf ("answered %s, not " REPLY_TYPE, g_variant_get_type_string (reply));
      headway_handler_call_fail (call, reason, now);
      return;
    }
  g_variant_get (reply, "(&s&sa{sv})", &verdict, &data, NULL);
  headway_handler_call_finish (call, verdict, data, strlen (data), now);
}

static void
on_answer (GObject *source, GAsyncResult *result, gpointer user_data)
{
  Question *question = user_data;
  g_autoptr (HeadwayHandlerTarget) target = question->target;
  HeadwayHandlerCall *call = g_steal_pointer (&question->call);
  g_autoptr (GError) error = NULL;
  g_autoptr (GVariant) reply = g_dbus_connection_call_finish (G_DBUS_CONNECTION (source), result, &error);
  g_autofree char *name = error != NULL ? g_dbus_error_get_remote_error (error) : NULL;
  gboolean is_read = headway_handler_line_is_of_peer (error);
  HeadwayInstant now = headway_clock_now ();

  if (name != NULL)
    g_dbus_error_strip_remote_error (error);
  if (call != NULL)
    g_hash_table_remove (target->calls, call);
  /* Room first, so that the next call need not wait for another turn. */
  headway_handler_line_release (target->line, &target->seat, question->bytes, call == NULL, is_read, now);
  if (call != NULL && reply != NULL)
    give_back_answered (call, reply, now);
  else if (call != NULL)
    give_back_failed (call, error, name, now);
  g_free (question);
}

/* --- Calls ---------------------------------------------------------------------------------- */

static GVariant *
new_context (HeadwayHandlerTarget *self, HeadwayHandlerCall *call)
{
  HeadwayEvent *lost = headway_handler_call_get_lost (call);
  GVariantBuilder builder;

  g_variant_builder_init (&builder, G_VARIANT_TYPE_VARDICT);
  g_variant_builder_add (&builder, "{sv}", "bus", g_variant_new_object_path (self->bus_path));
  g_variant_builder_add (&builder, "{sv}", "registration", g_variant_new_object_path (self->path));
  g_variant_builder_add (&builder, "{sv}", "phase",
                         g_variant_new_string (headway_phase_get_name (headway_handler_get_phase (self->handler))));
  if (lost != NULL)
    {
      gsize length;
      const char *data = headway_event_get_data (lost, &length);

      g_variant_builder_add (&builder, "{sv}", "lost", g_variant_new_take_string (g_strndup (data, length)));
    }
  return g_variant_builder_end (&builder);
}

static void
transport_call (HeadwayHandler *handler, HeadwayHandlerCall *call, gpointer user_data)
{
  HeadwayHandlerTarget *self = user_data;
  HeadwayEvent *event = headway_handler_call_get_event (call);
  gsize bytes = headway_event_get_size (event) + CALL_SLACK;
  HeadwayInstant now = headway_clock_now ();
  Question *question;

  if (!headway_handler_line_take (self->line, &self->seat, bytes, now))
    {
      headway_handler_call_retry (call, now);
      return;
    }
  question = g_new (Question, 1);
  *question = (Question){ headway_handler_target_ref (self), call, bytes };
  g_hash_table_insert (self->calls, call, question);
  g_dbus_connection_call (self->line->caller->connection, self->line->owner, self->object_path, HANDLER_INTERFACE, "HandleEvent",
                          g_variant_new ("(@" HEADWAY_VARIANT_EVENT "@a{sv})", headway_variant_new_event (event, 0),
                                         new_context (self, call)),
                          NULL, G_DBUS_CALL_FLAGS_NO_AUTO_START, G_MAXINT,
                          self->line->caller->cancellable, on_answer, question);
}

static void
transport_abandon (HeadwayHandler *handler, HeadwayHandlerCall *call, gpointer user_data)
{
  HeadwayHandlerTarget *self = user_data;
  Question *question = g_hash_table_lookup (self->calls, call);
  HeadwayInstant now = headway_clock_now ();
  /* Else its handler is gone, and who has left is not silent. */
  gboolean is_late = now.monotonic_us >= headway_handler_call_get_deadline_us (call);

  g_return_if_fail (question != NULL);

  question->call = NULL;
  g_hash_table_remove (self->calls, call);
  headway_handler_line_give_up (self->line, is_late, now);
  headway_handler_call_fail (call, NULL, now);
}

static void
transport_ended (HeadwayHandler *handler, gpointer user_data)
{
  HeadwayHandlerTarget *self = user_data;
  g_autoptr (HeadwayHandlerTarget) keep = headway_handler_target_ref (self);

  headway_handler_line_stand_up (self->line, &self->seat);
  self->ended (self->user_data);
}

HeadwayHandler *
headway_handler_target_register (HeadwayHandlerTarget *self,
                                 HeadwayDispatcher *dispatcher,
                                 HeadwayBus *bus,
                                 const HeadwayHandlerOptions *options,
                                 const char *prefix,
                                 HeadwayInstant now,
                                 GError **error)
{
  static const HeadwayHandlerTransport transport = { transport_call, transport_abandon, transport_ended };

  g_return_val_if_fail (self->handler == NULL, NULL);

  self->handler = headway_dispatcher_register (dispatcher, bus, options, &transport, self, now, error);
  if (self->handler == NULL)
    return NULL;
  self->path = g_strdup_printf ("%s%u", prefix, headway_handler_get_number (self->handler));
  headway_handler_line_sit_down (self->line, &self->seat, self->handler, now);
  return self->handler;
}
