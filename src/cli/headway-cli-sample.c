/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-sample.h"

#include "cli/headway-cli-connection.h"

#include <string.h>

/* More of what waits than this times its fair share, and a principal floods. */
#define FLOOD_FACTOR 1.5

static void
bus_free (HeadwayCliSampleBus *bus)
{
  headway_cli_bus_info_clear (&bus->info);
  g_free (bus);
}

static void
subscription_free (HeadwayCliSampleSubscription *subscription)
{
  g_free (subscription->bus);
  g_free (subscription->owner);
  g_free (subscription->mode);
  g_free (subscription->sink);
  g_free (subscription);
}

static void
principal_free (HeadwayCliSamplePrincipal *principal)
{
  g_free (principal->name);
  g_free (principal);
}

static void
loss_free (HeadwayCliSampleLoss *loss)
{
  g_free (loss->family);
  g_free (loss->reason);
  g_free (loss->whom);
  g_free (loss);
}

/**
 * headway_cli_sample_new:
 * @time_us: now, monotonic
 *
 * Returns: (transfer full): a sample with nothing in it
 */
HeadwayCliSample *
headway_cli_sample_new (gint64 time_us)
{
  HeadwayCliSample *self = g_new0 (HeadwayCliSample, 1);

  self->time_us = time_us;
  self->buses = g_ptr_array_new_with_free_func ((GDestroyNotify) bus_free);
  self->subscriptions = g_ptr_array_new_with_free_func ((GDestroyNotify) subscription_free);
  self->principals = g_ptr_array_new_with_free_func ((GDestroyNotify) principal_free);
  self->principals_by_name = g_hash_table_new (g_str_hash, g_str_equal);
  self->losses = g_ptr_array_new_with_free_func ((GDestroyNotify) loss_free);
  self->published_per_second = HEADWAY_CLI_RATE_UNKNOWN;
  self->bytes_per_second = HEADWAY_CLI_RATE_UNKNOWN;
  return self;
}

/**
 * headway_cli_sample_free:
 * @self: a sample
 *
 * Frees it.
 */
void
headway_cli_sample_free (HeadwayCliSample *self)
{
  g_ptr_array_unref (self->buses);
  g_ptr_array_unref (self->subscriptions);
  g_hash_table_unref (self->principals_by_name);
  g_ptr_array_unref (self->principals);
  g_ptr_array_unref (self->losses);
  g_free (self);
}

/**
 * headway_cli_sample_add_buses:
 * @self: a sample
 * @objects: what GetManagedObjects answers, a{oa{sa{sv}}}
 *
 * Takes the buses in.
 */
void
headway_cli_sample_add_buses (HeadwayCliSample *self,
                              GVariant *objects)
{
  GVariantIter iter;
  GVariant *interfaces;

  g_variant_iter_init (&iter, objects);
  while (g_variant_iter_loop (&iter, "{&o@a{sa{sv}}}", NULL, &interfaces))
    {
      g_autoptr (GVariant) properties = g_variant_lookup_value (interfaces, HEADWAY_CLI_BUS_INTERFACE, G_VARIANT_TYPE_VARDICT);
      HeadwayCliSampleBus *bus;

      if (properties == NULL)
        continue;
      bus = g_new0 (HeadwayCliSampleBus, 1);
      headway_cli_bus_info_init_from_properties (&bus->info, properties);
      bus->events_per_second = HEADWAY_CLI_RATE_UNKNOWN;
      g_ptr_array_add (self->buses, bus);
    }
}

static HeadwayCliSamplePrincipal *
get_principal (HeadwayCliSample *self,
               const char *name)
{
  HeadwayCliSamplePrincipal *principal;

  principal = g_hash_table_lookup (self->principals_by_name, name);
  if (principal != NULL)
    return principal;
  principal = g_new0 (HeadwayCliSamplePrincipal, 1);
  principal->name = g_strdup (name);
  g_ptr_array_add (self->principals, principal);
  g_hash_table_insert (self->principals_by_name, principal->name, principal);
  return principal;
}

static void
add_principals (HeadwayCliSample *self,
                GVariant *principals)
{
  GVariantIter iter;
  const char *name;
  guint32 queued;
  guint64 bytes;
  guint64 untold;

  g_variant_iter_init (&iter, principals);
  while (g_variant_iter_next (&iter, "(&suttt)", &name, &queued, &bytes, &untold, NULL))
    {
      HeadwayCliSamplePrincipal *principal = get_principal (self, name);

      principal->n_subscriptions++;
      principal->queued += queued;
      principal->queued_bytes += bytes;
      principal->untold += untold;
    }
}

static char *
dup_text (GVariant *dict,
          const char *key)
{
  const char *text = "";

  g_variant_lookup (dict, key, "&s", &text);
  return g_strdup (text);
}

/**
 * headway_cli_sample_add_subscriptions:
 * @self: a sample
 * @bus: name of the bus
 * @subscriptions: what its ListSubscriptions answers, aa{sv}
 *
 * Takes the subscriptions of one bus in, and the principals that wait in them.
 */
void
headway_cli_sample_add_subscriptions (HeadwayCliSample *self,
                                      const char *bus,
                                      GVariant *subscriptions)
{
  GVariantIter iter;
  GVariant *dict;

  g_variant_iter_init (&iter, subscriptions);
  while (g_variant_iter_loop (&iter, "@a{sv}", &dict))
    {
      HeadwayCliSampleSubscription *subscription = g_new0 (HeadwayCliSampleSubscription, 1);
      g_autoptr (GVariant) principals = g_variant_lookup_value (dict, "principals", G_VARIANT_TYPE ("a(suttt)"));

      subscription->bus = g_strdup (bus);
      subscription->owner = dup_text (dict, "owner");
      subscription->mode = dup_text (dict, "mode");
      subscription->sink = dup_text (dict, "sink");
      g_variant_lookup (dict, "number", "u", &subscription->number);
      g_variant_lookup (dict, "queued", "u", &subscription->queued);
      g_variant_lookup (dict, "queued-bytes", "t", &subscription->queued_bytes);
      g_variant_lookup (dict, "dropped", "t", &subscription->dropped);
      g_variant_lookup (dict, "lag", "t", &subscription->lag);
      subscription->dropped_per_second = HEADWAY_CLI_RATE_UNKNOWN;
      g_ptr_array_add (self->subscriptions, subscription);
      if (principals != NULL)
        add_principals (self, principals);
    }
}

static gboolean
counts_losses (const char *family)
{
  const char *const families[] = {
    "headway_route_drops_total", "headway_receiver_lagged_total", "headway_stream_evictions_total",
    "headway_dispatch_drops_total", "headway_publish_rejected_total"
  };

  for (gsize i = 0; i < G_N_ELEMENTS (families); i++)
    {
      if (g_str_equal (family, families[i]))
        return TRUE;
    }
  return FALSE;
}

static void
add_loss (HeadwayCliSample *self,
          const char *family,
          GVariant *labels,
          double total)
{
  HeadwayCliSampleLoss *loss = g_new0 (HeadwayCliSampleLoss, 1);
  const char *subscriber = "";
  const char *principal = "";

  g_variant_lookup (labels, "subscriber", "&s", &subscriber);
  g_variant_lookup (labels, "principal_class", "&s", &principal);
  loss->family = g_strdup (family);
  loss->reason = dup_text (labels, "reason");
  loss->whom = g_strconcat (subscriber, *subscriber != '\0' && *principal != '\0' ? ", " : "", principal, NULL);
  loss->total = total;
  loss->per_second = HEADWAY_CLI_RATE_UNKNOWN;
  g_ptr_array_add (self->losses, loss);
}

/**
 * headway_cli_sample_add_metrics:
 * @self: a sample
 * @metrics: what ListMetrics answers, a(sa{ss}d)
 *
 * Takes in what was published, and what was lost and why.
 */
void
headway_cli_sample_add_metrics (HeadwayCliSample *self,
                                GVariant *metrics)
{
  GVariantIter iter;
  const char *name;
  GVariant *labels;
  double value;

  g_variant_iter_init (&iter, metrics);
  while (g_variant_iter_loop (&iter, "(&s@a{ss}d)", &name, &labels, &value))
    {
      if (g_str_equal (name, "headway_events_published_total"))
        self->published += value;
      else if (g_str_equal (name, "headway_publish_bytes_total"))
        self->published_bytes += value;
      else if (value > 0 && counts_losses (name))
        add_loss (self, name, labels, value);
    }
}

static double
get_rate (double before,
          double now,
          double seconds)
{
  return now >= before && seconds > 0 ? (now - before) / seconds : HEADWAY_CLI_RATE_UNKNOWN;
}

static void
compare_buses (HeadwayCliSample *self,
               const HeadwayCliSample *previous,
               double seconds)
{
  for (guint i = 0; i < self->buses->len; i++)
    {
      HeadwayCliSampleBus *bus = g_ptr_array_index (self->buses, i);

      for (guint j = 0; j < previous->buses->len; j++)
        {
          const HeadwayCliSampleBus *old = g_ptr_array_index (previous->buses, j);

          /* Over a restart ids jump, which is no publishing. */
          if (g_strcmp0 (old->info.name, bus->info.name) == 0 && g_strcmp0 (old->info.epoch, bus->info.epoch) == 0)
            bus->events_per_second = get_rate ((double) old->info.last_event_id, (double) bus->info.last_event_id, seconds);
        }
    }
}

static void
compare_subscriptions (HeadwayCliSample *self,
                       const HeadwayCliSample *previous,
                       double seconds)
{
  g_autoptr (GHashTable) olds = g_hash_table_new (NULL, NULL); /* number: HeadwayCliSampleSubscription (borrowed) */

  for (guint i = 0; i < previous->subscriptions->len; i++)
    {
      HeadwayCliSampleSubscription *old = g_ptr_array_index (previous->subscriptions, i);

      g_hash_table_insert (olds, GUINT_TO_POINTER (old->number), old);
    }
  for (guint i = 0; i < self->subscriptions->len; i++)
    {
      HeadwayCliSampleSubscription *subscription = g_ptr_array_index (self->subscriptions, i);
      const HeadwayCliSampleSubscription *old = g_hash_table_lookup (olds, GUINT_TO_POINTER (subscription->number));

      if (old == NULL || !g_str_equal (old->bus, subscription->bus))
        continue;
      subscription->dropped_per_second = get_rate ((double) old->dropped, (double) subscription->dropped, seconds);
      subscription->is_slow = old->queued > 0 && subscription->queued > 0;
    }
}

static void
compare_losses (HeadwayCliSample *self,
                const HeadwayCliSample *previous,
                double seconds)
{
  for (guint i = 0; i < self->losses->len; i++)
    {
      HeadwayCliSampleLoss *loss = g_ptr_array_index (self->losses, i);
      double before = 0;

      for (guint j = 0; j < previous->losses->len; j++)
        {
          const HeadwayCliSampleLoss *old = g_ptr_array_index (previous->losses, j);

          if (g_str_equal (old->family, loss->family) && g_str_equal (old->reason, loss->reason) && g_str_equal (old->whom, loss->whom))
            before = old->total;
        }
      loss->per_second = get_rate (before, loss->total, seconds);
    }
}

static void
judge_principals (HeadwayCliSample *self)
{
  double total = 0;

  for (guint i = 0; i < self->principals->len; i++)
    total += (double) ((HeadwayCliSamplePrincipal *) g_ptr_array_index (self->principals, i))->queued_bytes;
  for (guint i = 0; i < self->principals->len; i++)
    {
      HeadwayCliSamplePrincipal *principal = g_ptr_array_index (self->principals, i);

      principal->share = total > 0 ? (double) principal->queued_bytes / total : 0;
      if (self->principals->len > 1)
        principal->is_flooding = principal->share * self->principals->len > FLOOD_FACTOR;
      else
        principal->is_flooding = principal->untold > 0;
    }
}

static int
compare (double a,
         double b)
{
  return (a < b) - (a > b);
}

static int
order_buses (gconstpointer a,
             gconstpointer b)
{
  const HeadwayCliSampleBus *first = *(const HeadwayCliSampleBus *const *) a;
  const HeadwayCliSampleBus *second = *(const HeadwayCliSampleBus *const *) b;
  int order = compare (first->events_per_second, second->events_per_second);

  return order != 0 ? order : g_strcmp0 (first->info.name, second->info.name);
}

static int
order_subscriptions (gconstpointer a,
                     gconstpointer b)
{
  const HeadwayCliSampleSubscription *first = *(const HeadwayCliSampleSubscription *const *) a;
  const HeadwayCliSampleSubscription *second = *(const HeadwayCliSampleSubscription *const *) b;
  int order = compare (first->dropped_per_second, second->dropped_per_second);

  if (order == 0)
    order = compare ((double) first->lag, (double) second->lag);
  if (order == 0)
    order = compare (first->queued, second->queued);
  return order != 0 ? order : compare (second->number, first->number);
}

static int
order_principals (gconstpointer a,
                  gconstpointer b)
{
  const HeadwayCliSamplePrincipal *first = *(const HeadwayCliSamplePrincipal *const *) a;
  const HeadwayCliSamplePrincipal *second = *(const HeadwayCliSamplePrincipal *const *) b;
  int order = compare ((double) first->queued_bytes, (double) second->queued_bytes);

  return order != 0 ? order : strcmp (first->name, second->name);
}

static int
order_losses (gconstpointer a,
              gconstpointer b)
{
  const HeadwayCliSampleLoss *first = *(const HeadwayCliSampleLoss *const *) a;
  const HeadwayCliSampleLoss *second = *(const HeadwayCliSampleLoss *const *) b;
  int order = compare (first->per_second, second->per_second);

  return order != 0 ? order : compare (first->total, second->total);
}

/**
 * headway_cli_sample_finish:
 * @self: a sample that has everything
 * @previous: (nullable): the one before
 *
 * Says how fast things change, and puts what matters most first.
 */
void
headway_cli_sample_finish (HeadwayCliSample *self,
                           const HeadwayCliSample *previous)
{
  if (previous != NULL)
    {
      double seconds = (double) (self->time_us - previous->time_us) / G_USEC_PER_SEC;

      self->published_per_second = get_rate (previous->published, self->published, seconds);
      self->bytes_per_second = get_rate (previous->published_bytes, self->published_bytes, seconds);
      compare_buses (self, previous, seconds);
      compare_subscriptions (self, previous, seconds);
      compare_losses (self, previous, seconds);
    }
  judge_principals (self);
  g_ptr_array_sort (self->buses, order_buses);
  g_ptr_array_sort (self->subscriptions, order_subscriptions);
  g_ptr_array_sort (self->principals, order_principals);
  g_ptr_array_sort (self->losses, order_losses);
}
