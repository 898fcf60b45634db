/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-limits.h"

#include "engine/headway-error.h"

#include <string.h>

typedef struct
{
  const char *key;
  const char *json_name;
  gboolean is_uint64;
  guint64 minimum;
  guint64 maximum;
  guint64 initial;
} Expected;

static const Expected expected_options[] = {
  { "ring-size", "ringSize", FALSE, 1, 1000000, 8000 },
  { "ring-max-bytes", "ringMaxBytes", TRUE, 1, HEADWAY_ID_MAX, 33554432 },
  { "max-subscribers", "maxSubscribers", FALSE, 1, G_MAXUINT32, 64 },
  { "max-queued-bytes", "maxQueuedBytes", TRUE, 1, HEADWAY_ID_MAX, 2097152 },
  { "channel-capacity", "channelCapacity", FALSE, 1, 1000000, 1024 },
  { "replay-budget-bytes", "replayBudgetBytes", TRUE, 0, HEADWAY_ID_MAX, 0 },
};

static const HeadwayBusOptionSpec *
find_spec (const char *key)
{
  for (const HeadwayBusOptionSpec *spec = headway_bus_option_specs (); spec->key != NULL; spec++)
    {
      if (strcmp (spec->key, key) == 0)
        return spec;
    }

  return NULL;
}

static void
test_defaults_are_those_of_the_settings (void)
{
  HeadwayLimits limits;

  memset (&limits, 0xff, sizeof limits);
  headway_limits_init (&limits);

  g_assert_true (limits.auto_create_buses);
  g_assert_cmpuint (limits.max_buses, ==, 1024);
  g_assert_cmpuint (limits.bus_expire_seconds, ==, 604800);
  g_assert_cmpuint (limits.event_max_bytes, ==, 1048576);
  g_assert_cmpuint (limits.route_budget_bytes, ==, 1048576);
  g_assert_cmpuint (limits.route_quantum_bytes, ==, 4096);
  g_assert_cmpuint (limits.route_principal_messages, ==, 16384);
  g_assert_cmpuint (limits.route_messages, ==, 65536);
  g_assert_cmpuint (limits.route_principals, ==, 10000);
  g_assert_cmpuint (limits.principal_bytes_per_second, ==, 10485760);
  g_assert_cmpuint (limits.principal_events_per_second, ==, 20000);
  g_assert_cmpuint (limits.uid_bytes_per_second, ==, 104857600);
  g_assert_cmpuint (limits.uid_events_per_second, ==, 200000);
  g_assert_cmpuint (limits.handler_queue, ==, 64);
  g_assert_cmpuint (limits.handler_principals, ==, 10000);
  g_assert_cmpuint (limits.handler_idle_grace_ms, ==, 60000);
}

static void
test_options_are_those_of_create_bus (void)
{
  const HeadwayBusOptionSpec *specs = headway_bus_option_specs ();
  HeadwayLimits limits;

  headway_limits_init (&limits);
  for (gsize i = 0; i < G_N_ELEMENTS (expected_options); i++)
    {
      const Expected *expected = &expected_options[i];

      g_assert_cmpstr (specs[i].key, ==, expected->key);
      g_assert_cmpstr (specs[i].json_name, ==, expected->json_name);
      g_assert_cmpint (specs[i].is_uint64, ==, expected->is_uint64);
      g_assert_cmpuint (specs[i].minimum, ==, expected->minimum);
      g_assert_cmpuint (specs[i].maximum, ==, expected->maximum);
      g_assert_cmpuint (headway_bus_options_get (&limits.bus, &specs[i]), ==, expected->initial);
    }
  g_assert_null (specs[G_N_ELEMENTS (expected_options)].key);
}

static void
test_options_reach_their_own_field (void)
{
  HeadwayBusOptions options = { 0 };
  guint64 value = 101;

  for (const HeadwayBusOptionSpec *spec = headway_bus_option_specs (); spec->key != NULL; spec++)
    g_assert_true (headway_bus_options_set (&options, spec, value++, NULL));

  g_assert_cmpuint (options.ring_size, ==, 101);
  g_assert_cmpuint (options.ring_max_bytes, ==, 102);
  g_assert_cmpuint (options.max_subscribers, ==, 103);
  g_assert_cmpuint (options.max_queued_bytes, ==, 104);
  g_assert_cmpuint (options.channel_capacity, ==, 105);
  g_assert_cmpuint (options.replay_budget_bytes, ==, 106);
}

static void
test_set_takes_both_ends_of_the_range (gconstpointer data)
{
  const Expected *expected = data;
  const HeadwayBusOptionSpec *spec = find_spec (expected->key);
  g_autoptr (GError) error = NULL;
  HeadwayBusOptions options = { 0 };

  g_assert_true (headway_bus_options_set (&options, spec, expected->maximum, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (headway_bus_options_get (&options, spec), ==, expected->maximum);

  g_assert_true (headway_bus_options_set (&options, spec, expected->minimum, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (headway_bus_options_get (&options, spec), ==, expected->minimum);
}

static void
test_set_refuses_what_is_beyond_the_range (gconstpointer data)
{
  const Expected *expected = data;
  const HeadwayBusOptionSpec *spec = find_spec (expected->key);
  HeadwayBusOptions options = { 0 };

  g_assert_true (headway_bus_options_set (&options, spec, 77, NULL));
  if (expected->minimum > 0)
    {
      g_autoptr (GError) error = NULL;

      g_assert_false (headway_bus_options_set (&options, spec, expected->minimum - 1, &error));
      g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION);
    }
  if (expected->maximum < G_MAXUINT64)
    {
      g_autoptr (GError) error = NULL;

      g_assert_false (headway_bus_options_set (&options, spec, expected->maximum + 1, &error));
      g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION);
    }
  g_assert_cmpuint (headway_bus_options_get (&options, spec), ==, 77);
}

static void
test_set_names_value_and_range (void)
{
  g_autoptr (GError) error = NULL;
  HeadwayBusOptions options = { 0 };

  g_assert_false (headway_bus_options_set (&options, find_spec ("ring-size"), 1000001, &error));
  g_assert_cmpstr (error->message, ==, "ring-size 1000001 is out of range, 1 to 1000000");
}

static void
test_set_does_not_wrap_small_fields (void)
{
  HeadwayBusOptions options = { 0 };
  const guint64 wraps_to_one = G_GUINT64_CONSTANT (0x100000001);

  g_assert_false (headway_bus_options_set (&options, find_spec ("ring-size"), wraps_to_one, NULL));
  g_assert_false (headway_bus_options_set (&options, find_spec ("max-subscribers"), wraps_to_one, NULL));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);

  g_test_add_func ("/limits/defaults/are-those-of-the-settings", test_defaults_are_those_of_the_settings);
  g_test_add_func ("/limits/options/are-those-of-create-bus", test_options_are_those_of_create_bus);
  g_test_add_func ("/limits/options/reach-their-own-field", test_options_reach_their_own_field);
  g_test_add_func ("/limits/set/names-value-and-range", test_set_names_value_and_range);
  g_test_add_func ("/limits/set/does-not-wrap-small-fields", test_set_does_not_wrap_small_fields);
  for (gsize i = 0; i < G_N_ELEMENTS (expected_options); i++)
    {
      const Expected *expected = &expected_options[i];
      g_autofree char *takes = g_strdup_printf ("/limits/set/takes-both-ends/%s", expected->key);
      g_autofree char *refuses = g_strdup_printf ("/limits/set/refuses-beyond/%s", expected->key);

      g_test_add_data_func (takes, expected, test_set_takes_both_ends_of_the_range);
      g_test_add_data_func (refuses, expected, test_set_refuses_what_is_beyond_the_range);
    }

  return g_test_run ();
}
