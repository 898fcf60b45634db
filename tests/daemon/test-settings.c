/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "daemon/headway-settings.h"

#include <string.h>

static char *
write_file (const char *text)
{
  g_autoptr (GError) error = NULL;
  char *path = g_build_filename (g_get_user_runtime_dir (), "headway.conf", NULL);

  g_assert_cmpint (g_mkdir_with_parents (g_get_user_runtime_dir (), 0700), ==, 0);
  g_file_set_contents (path, text, -1, &error);
  g_assert_no_error (error);
  return path;
}

static void
assert_refused (const char *text, const char *word)
{
  g_autofree char *path = write_file (text);
  g_autoptr (GError) error = NULL;
  g_autoptr (HeadwaySettings) settings = headway_settings_new (path, NULL, &error);

  g_assert_null (settings);
  g_assert_nonnull (error);
  g_assert_nonnull (strstr (error->message, word));
}

static void
test_key_file (void)
{
  g_autofree char *path = write_file ("[headway]\nring-size=12\nevent-max-bytes=uint64 5242880\nauto-create-buses=false\n"
                                      "route-budget-bytes=uint64 5242880\n"
                                      "http-addresses=['127.0.0.1:0']\n");
  g_autoptr (GError) error = NULL;
  g_autoptr (HeadwaySettings) settings = headway_settings_new (path, NULL, &error);
  g_auto (GStrv) addresses = NULL;
  HeadwayLimits limits;

  g_assert_no_error (error);
  headway_settings_get_limits (settings, &limits);
  g_assert_cmpuint (limits.bus.ring_size, ==, 12);
  g_assert_cmpuint (limits.event_max_bytes, ==, 5242880);
  g_assert_false (limits.auto_create_buses);
  g_assert_cmpuint (limits.max_buses, ==, 1024);
  addresses = headway_settings_get_strv (settings, "http-addresses");
  g_assert_cmpstr (addresses[0], ==, "127.0.0.1:0");
}

/* decisions.md 9 */
static void
test_a_budget_under_one_event (void)
{
  g_autofree char *path = write_file ("[headway]\nevent-max-bytes=uint64 2000\nroute-budget-bytes=uint64 1999\n");
  g_autoptr (HeadwaySettings) settings = headway_settings_new (path, NULL, NULL);
  HeadwayLimits limits;

  g_test_expect_message (G_LOG_DOMAIN, G_LOG_LEVEL_WARNING, "*route-budget-bytes: 1999 is under event-max-bytes, 2000*");
  headway_settings_get_limits (settings, &limits);
  g_test_assert_expected_messages ();
  g_assert_cmpuint (limits.route_budget_bytes, ==, 2000);
  /* Once. */
  headway_settings_get_limits (settings, &limits);
  g_assert_cmpuint (limits.route_budget_bytes, ==, 2000);
}

static void
test_unknown_key (void)
{
  assert_refused ("[headway]\nring-sise=12\n", "ring-sise");
}

static void
test_out_of_range (void)
{
  assert_refused ("[headway]\nring-size=0\n", "ring-size=0");
  assert_refused ("[headway]\nevent-max-bytes=5242881\n", "event-max-bytes");
}

static void
test_wrong_type (void)
{
  assert_refused ("[headway]\nmax-buses='many'\n", "max-buses");
}

static void
test_missing_file (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (headway_settings_new ("/nonexistent/headway.conf", NULL, &error));
  g_assert_nonnull (error);
}

static void
on_changed (HeadwaySettings *settings, GMainLoop *loop)
{
  g_main_loop_quit (loop);
}

static void
test_live_change (void)
{
  g_autofree char *path = write_file ("[headway]\nmax-buses=3\n");
  g_autoptr (HeadwaySettings) settings = headway_settings_new (path, NULL, NULL);
  g_autoptr (GMainLoop) loop = g_main_loop_new (NULL, FALSE);
  HeadwayLimits limits;

  headway_settings_get_limits (settings, &limits);
  g_assert_cmpuint (limits.max_buses, ==, 3);
  g_signal_connect (settings, "changed", G_CALLBACK (on_changed), loop);
  g_free (write_file ("[headway]\nmax-buses=4\n"));
  g_main_loop_run (loop);
  headway_settings_get_limits (settings, &limits);
  g_assert_cmpuint (limits.max_buses, ==, 4);
}

#define assert_same(a, b, field) g_assert_cmpuint ((a)->field, ==, (b)->field)

/* Member by member: what lies between them is anything. */
static void
assert_same_limits (const HeadwayLimits *a, const HeadwayLimits *b)
{
  for (const HeadwayBusOptionSpec *spec = headway_bus_option_specs (); spec->key != NULL; spec++)
    g_assert_cmpuint (headway_bus_options_get (&a->bus, spec), ==, headway_bus_options_get (&b->bus, spec));
  assert_same (a, b, auto_create_buses);
  assert_same (a, b, max_buses);
  assert_same (a, b, bus_expire_seconds);
  assert_same (a, b, event_max_bytes);
  assert_same (a, b, route_budget_bytes);
  assert_same (a, b, route_quantum_bytes);
  assert_same (a, b, route_principal_messages);
  assert_same (a, b, route_messages);
  assert_same (a, b, route_principals);
  assert_same (a, b, principal_bytes_per_second);
  assert_same (a, b, principal_events_per_second);
  assert_same (a, b, uid_bytes_per_second);
  assert_same (a, b, uid_events_per_second);
  assert_same (a, b, handler_queue);
  assert_same (a, b, handler_principals);
  assert_same (a, b, handler_idle_grace_ms);
}

static void
test_defaults_agree_with_the_schema (void)
{
  g_autoptr (HeadwaySettings) settings = headway_settings_new (NULL, NULL, NULL);
  HeadwayLimits from_schema, built_in;

  headway_settings_get_limits (settings, &from_schema);
  headway_limits_init (&built_in);
  assert_same_limits (&from_schema, &built_in);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, G_TEST_OPTION_ISOLATE_DIRS, NULL);

  g_test_add_func ("/settings/key-file", test_key_file);
  g_test_add_func ("/settings/a-budget-under-one-event-is-raised", test_a_budget_under_one_event);
  g_test_add_func ("/settings/unknown-key-is-named", test_unknown_key);
  g_test_add_func ("/settings/value-out-of-range-is-named", test_out_of_range);
  g_test_add_func ("/settings/wrong-type-is-named", test_wrong_type);
  g_test_add_func ("/settings/missing-file", test_missing_file);
  g_test_add_func ("/settings/change-while-running", test_live_change);
  g_test_add_func ("/settings/defaults-agree-with-the-schema", test_defaults_agree_with_the_schema);

  return g_test_run ();
}
