/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Asks headwayd for one sample: its buses, then the subscriptions of each, then its metrics. A
 * few calls are under way at a time, since the system bus allows no more than 128 of a connection.
 */
#include "config.h"

#include "cli/headway-cli-sampler.h"

#include "cli/headway-cli-connection.h"
#include "cli/headway-cli-error.h"
#include "cli/headway-cli-metrics-text.h"

#define CALLS_MAX       16
#define CALL_TIMEOUT_MS 5000

struct _HeadwayCliSampler
{
  GDBusConnection *connection; /* owned */
  HeadwayCliSamplerFunc func;
  gpointer user_data;        /* borrowed, outlives self */
  GCancellable *cancellable; /* owned */
  HeadwayCliSample *sample;  /* owned, nullable: being filled */
  guint next_bus;
  guint n_calls; /* under way */
  gboolean was_answered;
};

/* The bus that a call is about; the name outlives a bus that goes. */
typedef struct
{
  HeadwayCliSampler *sampler; /* borrowed; gone if the call was cancelled */
  char *bus;                  /* owned */
} BusCall;

static void
bus_call_free (BusCall *call)
{
  g_free (call->bus);
  g_free (call);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BusCall, bus_call_free)

static void proceed (HeadwayCliSampler *self);

/**
 * headway_cli_sampler_new:
 * @connection: a message bus
 * @func: called once for each headway_cli_sampler_start(), from the main loop
 * @user_data: passed to it
 *
 * Returns: (transfer full): a sampler that does nothing yet
 */
HeadwayCliSampler *
headway_cli_sampler_new (GDBusConnection *connection,
                         HeadwayCliSamplerFunc func,
                         gpointer user_data)
{
  HeadwayCliSampler *self = g_new0 (HeadwayCliSampler, 1);

  self->connection = g_object_ref (connection);
  self->func = func;
  self->user_data = user_data;
  self->cancellable = g_cancellable_new ();
  return self;
}

/**
 * headway_cli_sampler_free:
 * @self: a sampler
 *
 * Frees it. What is under way is not answered any more.
 */
void
headway_cli_sampler_free (HeadwayCliSampler *self)
{
  g_cancellable_cancel (self->cancellable);
  g_clear_object (&self->cancellable);
  g_clear_object (&self->connection);
  g_clear_pointer (&self->sample, headway_cli_sample_free);
  g_free (self);
}

/* The daemon is started for the first sample, if the message bus can; who stops it later shall succeed. */
static void
call (HeadwayCliSampler *self,
      const char *path,
      const char *interface,
      const char *method,
      const char *reply_type,
      GAsyncReadyCallback callback,
      gpointer user_data)
{
  GDBusCallFlags flags = self->was_answered ? G_DBUS_CALL_FLAGS_NO_AUTO_START : G_DBUS_CALL_FLAGS_NONE;

  g_dbus_connection_call (self->connection, HEADWAY_CLI_DBUS_NAME, path, interface, method, NULL, G_VARIANT_TYPE (reply_type),
                          flags, CALL_TIMEOUT_MS, self->cancellable, callback, user_data);
}

static void
on_metrics (GObject *source,
            GAsyncResult *result,
            gpointer user_data)
{
  HeadwayCliSampler *self = user_data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GVariant) reply = g_dbus_connection_call_finish (G_DBUS_CONNECTION (source), result, &error);
  g_autoptr (GVariant) metrics = NULL;

  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    return;
  if (reply != NULL)
    {
      metrics = g_variant_get_child_value (reply, 0);
      headway_cli_sample_add_metrics (self->sample, metrics);
    }
  self->func (g_steal_pointer (&self->sample), NULL, self->user_data);
}

static void
on_subscriptions (GObject *source,
                  GAsyncResult *result,
                  gpointer user_data)
{
  g_autoptr (BusCall) bus_call = user_data;
  HeadwayCliSampler *self = bus_call->sampler;
  g_autoptr (GError) error = NULL;
  g_autoptr (GVariant) reply = g_dbus_connection_call_finish (G_DBUS_CONNECTION (source), result, &error);

  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    return;
  if (reply != NULL)
    {
      g_autoptr (GVariant) subscriptions = g_variant_get_child_value (reply, 0);

      headway_cli_sample_add_subscriptions (self->sample, bus_call->bus, subscriptions);
    }
  else
    {
      g_autofree char *name = g_dbus_error_get_remote_error (error);

      if (name != NULL && g_str_has_suffix (name, ".NotAuthorized"))
        self->sample->is_refused = TRUE;
    }
  self->n_calls--;
  proceed (self);
}

static void
proceed (HeadwayCliSampler *self)
{
  while (self->next_bus < self->sample->buses->len && self->n_calls < CALLS_MAX)
    {
      const HeadwayCliSampleBus *bus = g_ptr_array_index (self->sample->buses, self->next_bus++);
      g_autofree char *path = NULL;
      BusCall *bus_call;

      if (bus->info.name == NULL)
        continue;
      path = headway_cli_connection_get_bus_path (bus->info.name);
      bus_call = g_new0 (BusCall, 1);
      bus_call->sampler = self;
      bus_call->bus = g_strdup (bus->info.name);
      self->n_calls++;
      call (self, path, HEADWAY_CLI_BUS_INTERFACE, "ListSubscriptions", "(aa{sv})", on_subscriptions, bus_call);
    }
  if (self->n_calls == 0)
    call (self, HEADWAY_CLI_DBUS_PATH, HEADWAY_CLI_MANAGER_INTERFACE, "ListMetrics", "(" HEADWAY_CLI_METRICS_TYPE ")", on_metrics, self);
}

static void
on_objects (GObject *source,
            GAsyncResult *result,
            gpointer user_data)
{
  HeadwayCliSampler *self = user_data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) converted = NULL;
  g_autoptr (GVariant) reply = g_dbus_connection_call_finish (G_DBUS_CONNECTION (source), result, &error);
  g_autoptr (GVariant) objects = NULL;

  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    return;
  if (reply == NULL)
    {
      g_clear_pointer (&self->sample, headway_cli_sample_free);
      converted = headway_cli_error_from_dbus (error, NULL);
      self->func (NULL, converted, self->user_data);
      return;
    }
  self->was_answered = TRUE;
  objects = g_variant_get_child_value (reply, 0);
  headway_cli_sample_add_buses (self->sample, objects);
  proceed (self);
}

/**
 * headway_cli_sampler_start:
 * @self: a sampler with nothing under way
 *
 * Asks for one sample.
 */
void
headway_cli_sampler_start (HeadwayCliSampler *self)
{
  g_return_if_fail (self->sample == NULL);

  self->sample = headway_cli_sample_new (g_get_monotonic_time ());
  self->next_bus = 0;
  self->n_calls = 0;
  call (self, HEADWAY_CLI_DBUS_PATH, HEADWAY_CLI_OBJECTS_INTERFACE, "GetManagedObjects", "(a{oa{sa{sv}}})", on_objects, self);
}
