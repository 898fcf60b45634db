/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-publish.h"

#include "dbus/headway-dbus-error.h"
#include "wire/headway-clock.h"
#include "wire/headway-options.h"
#include "wire/headway-variant.h"

/* A call whose batch is on its way. */
typedef struct
{
  GDBusMethodInvocation *invocation; /* owned until it is answered */
  HeadwayDBusContext *context;       /* owned */
  HeadwayDBusPeer *peer;             /* owned */
  HeadwayBus *bus;                   /* owned */
  HeadwayDBusCharge charge;
  gboolean is_many;
} PendingPublish;

typedef struct
{
  gboolean is_seed;
} ManyOptions;

static const HeadwayOptionSpec many_specs[] = {
  { "seed", HEADWAY_OPTION_BOOLEAN, G_STRUCT_OFFSET (ManyOptions, is_seed) },
  { NULL },
};

static GVariant *
new_outcome (const HeadwayOutcome *outcome)
{
  GVariantBuilder builder;

  g_variant_builder_init (&builder, G_VARIANT_TYPE_VARDICT);
  g_variant_builder_add (&builder, "{sv}", "subscriptions", g_variant_new_uint32 (outcome->subscriptions));
  g_variant_builder_add (&builder, "{sv}", "refused", g_variant_new_uint32 (outcome->refused));
  g_variant_builder_add (&builder, "{sv}", "evicted", g_variant_new_uint32 (outcome->evicted));
  return g_variant_builder_end (&builder);
}

/* (transfer none) */
static GVariant *
get_outcome (HeadwayDBusContext *context, const HeadwayOutcome *outcome)
{
  const HeadwayOutcome *last = &context->outcome_values;

  if (context->outcome != NULL && outcome->subscriptions == last->subscriptions && outcome->refused == last->refused &&
      outcome->evicted == last->evicted)
    return context->outcome;
  g_clear_pointer (&context->outcome, g_variant_unref);
  context->outcome = g_variant_ref_sink (new_outcome (outcome));
  context->outcome_values = *outcome;
  return context->outcome;
}

static PendingPublish *
pending_new (HeadwayDBusContext *context, HeadwayBus *bus, GDBusMethodInvocation *invocation)
{
  PendingPublish *pending = g_new0 (PendingPublish, 1);

  pending->invocation = invocation;
  pending->context = headway_dbus_context_ref (context);
  pending->peer = headway_dbus_peer_ref (headway_dbus_peers_get (context->peers, invocation));
  pending->bus = g_object_ref (bus);
  return pending;
}

static void
pending_free (PendingPublish *pending)
{
  headway_dbus_charge_release (&pending->charge);
  headway_dbus_peer_unref (pending->peer);
  g_object_unref (pending->bus);
  headway_dbus_context_unref (pending->context);
  g_free (pending);
}

/* @error: (transfer full) */
static void
answer_refusal (PendingPublish *pending, GError *error)
{
  const HeadwayCaller *caller = &pending->peer->caller;

  headway_bus_table_add_refusal (pending->context->table, headway_bus_get_name (pending->bus), caller->uid, caller->principal,
                                 error, headway_clock_now ());
  headway_dbus_error_answer (g_steal_pointer (&pending->invocation), error);
}

static void
on_done (HeadwayBatch *batch, const GError *error, gpointer user_data)
{
  PendingPublish *pending = user_data;
  GVariant *outcome;

  if (error != NULL)
    answer_refusal (pending, g_error_copy (error));
  else
    {
      outcome = get_outcome (pending->context, headway_batch_get_outcome (batch));
      if (pending->is_many)
        outcome = g_variant_new ("(tu@a{sv})", headway_batch_get_first_id (batch), headway_batch_get_count (batch), outcome);
      else
        outcome = g_variant_new ("(t@a{sv})", headway_batch_get_first_id (batch), outcome);
      g_dbus_method_invocation_return_value (g_steal_pointer (&pending->invocation), outcome);
    }
  pending_free (pending);
}

/* Adds one event to @batch, once it is checked. */
static gboolean
add_event (HeadwayDBusContext *context,
           const HeadwayCaller *caller,
           HeadwayBatch *batch,
           const char *topic,
           const char *data,
           GVariant *options,
           HeadwayInstant now,
           GError **error)
{
  guint64 cost_max = headway_bus_table_get_limits (context->table)->event_max_bytes;
  g_autoptr (HeadwayPrincipal) principal = NULL;
  HeadwayVariantPublication read;
  HeadwayEvent *event;

  if (!headway_variant_read_publication (&read, topic, data, options, error))
    return FALSE;
  principal = headway_caller_choose_principal (caller, read.names_principal, read.principal,
                                               headway_bus_table_get_principals (context->table), error);
  if (principal == NULL)
    return FALSE;
  read.publication.principal = principal;
  event = headway_event_new (&read.publication, cost_max, now, error);
  if (event == NULL)
    return FALSE;
  headway_batch_add (batch, event);
  return TRUE;
}

/* Adds all events of PublishMany(); the error of one names its index. */
static gboolean
add_events (HeadwayDBusContext *context,
            const HeadwayCaller *caller,
            HeadwayBatch *batch,
            GVariant *events,
            HeadwayInstant now,
            GError **error)
{
  gsize n = g_variant_n_children (events);

  /* Child by child: a format string is read anew for each event, which costs more than what it reads. */
  for (guint i = 0; i < n; i++)
    {
      g_autoptr (GVariant) event = g_variant_get_child_value (events, i);
      g_autoptr (GVariant) topic = g_variant_get_child_value (event, 0);
      g_autoptr (GVariant) data = g_variant_get_child_value (event, 1);
      g_autoptr (GVariant) options = g_variant_get_child_value (event, 2);
      gboolean is_added = add_event (context, caller, batch, g_variant_get_string (topic, NULL), g_variant_get_string (data, NULL),
                                     options, now, error);

      if (is_added && headway_batch_get_cost (batch) > HEADWAY_BATCH_BYTES_MAX)
        {
          headway_set_error_with_limit (error, HEADWAY_ERROR_TOO_LARGE, HEADWAY_BATCH_BYTES_MAX,
                                        "the events up to this one cost %" G_GUINT64_FORMAT " bytes, at most %d are allowed",
                                        headway_batch_get_cost (batch), HEADWAY_BATCH_BYTES_MAX);
          is_added = FALSE;
        }
      if (!is_added)
        {
          HeadwayErrorDetails *details = headway_error_get_details (*error);

          if (details != NULL)
            details->index = i;
          g_prefix_error (error, "event %u: ", i);
          return FALSE;
        }
    }
  return TRUE;
}

static void
refuse (PendingPublish *pending, HeadwayBatch *batch, GError *error)
{
  answer_refusal (pending, error);
  g_clear_pointer (&batch, headway_batch_free);
  pending_free (pending);
}

/* Hands over @batch, (transfer full), whose user data is @pending. */
static void
publish (HeadwayBatch *batch, PendingPublish *pending, HeadwayInstant now)
{
  GError *error = NULL;

  headway_batch_set_origin (batch, pending->peer);
  if (headway_dbus_charge_take (&pending->charge, pending->peer, HEADWAY_DBUS_CHARGE_PUBLISH,
                                headway_batch_get_cost (batch), NULL, &error))
    headway_bus_table_publish (pending->context->table, pending->bus, pending->peer->caller.uid, batch, now);
  else
    refuse (pending, batch, error);
}

void
headway_dbus_publish_one (HeadwayDBusContext *context,
                          HeadwayBus *bus,
                          GDBusMethodInvocation *invocation,
                          const char *topic,
                          const char *data,
                          GVariant *options)
{
  PendingPublish *pending = pending_new (context, bus, invocation);
  HeadwayBatch *batch = headway_batch_new (1, on_done, pending);
  HeadwayInstant now = headway_clock_now ();
  GError *error = NULL;

  if (add_event (context, &pending->peer->caller, batch, topic, data, options, now, &error))
    publish (batch, pending, now);
  else
    refuse (pending, batch, error);
}

/* Looks at numbers only: nothing is copied before this says yes. */
static gboolean
check_many (HeadwayBus *bus,
            const HeadwayCaller *caller,
            GVariant *events,
            const ManyOptions *options,
            GError **error)
{
  gsize count = g_variant_n_children (events);

  if (count == 0)
    {
      g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION,
                   "events is empty, it takes 1 to %d events", HEADWAY_BATCH_EVENTS_MAX);
      return FALSE;
    }
  if (count > HEADWAY_BATCH_EVENTS_MAX)
    {
      headway_set_error_with_limit (error, HEADWAY_ERROR_TOO_LARGE, HEADWAY_BATCH_EVENTS_MAX,
                                    "events has %" G_GSIZE_FORMAT " events, at most %d are allowed",
                                    count, HEADWAY_BATCH_EVENTS_MAX);
      return FALSE;
    }
  if (options->is_seed && !headway_caller_may_close (caller, headway_bus_get_creator (bus)))
    {
      g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_NOT_AUTHORIZED,
                   "option \"seed\" is for the creator of bus \"%s\" and administrators, user %u is neither",
                   headway_bus_get_name (bus), caller->uid);
      return FALSE;
    }
  return TRUE;
}

void
headway_dbus_publish_many (HeadwayDBusContext *context,
                           HeadwayBus *bus,
                           GDBusMethodInvocation *invocation,
                           GVariant *events,
                           GVariant *options)
{
  PendingPublish *pending = pending_new (context, bus, invocation);
  const HeadwayCaller *caller = &pending->peer->caller;
  HeadwayInstant now = headway_clock_now ();
  ManyOptions values = { 0 };
  HeadwayBatch *batch;
  GError *error = NULL;

  if (!headway_options_parse (options, many_specs, &values, NULL, &error) ||
      !check_many (bus, caller, events, &values, &error))
    {
      refuse (pending, NULL, error);
      return;
    }
  pending->is_many = TRUE;
  batch = headway_batch_new ((guint) g_variant_n_children (events), on_done, pending);
  headway_batch_set_seed (batch, values.is_seed);
  if (add_events (context, caller, batch, events, now, &error))
    publish (batch, pending, now);
  else
    refuse (pending, batch, error);
}
