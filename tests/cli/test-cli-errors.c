/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-connection.h"
#include "cli/headway-cli-error.h"
#include "cli/headway-cli-http.h"

#include <string.h>

static void
assert_dbus (const char *name,
             HeadwayCliError code,
             int status,
             const char *message)
{
  g_autoptr (GError) error = g_dbus_error_new_for_dbus_error (name, "topic \"a..b\" has an empty segment");
  g_autoptr (GError) converted = headway_cli_error_from_dbus (error, "demo");

  g_assert_error (converted, HEADWAY_CLI_ERROR, (int) code);
  g_assert_cmpstr (converted->message, ==, message);
  g_assert_cmpint (headway_cli_error_get_exit (converted), ==, status);
}

static void
test_dbus_errors (void)
{
  assert_dbus ("org.headway.Headway1.Error.InvalidTopic", HEADWAY_CLI_ERROR_EVENT, 1, "InvalidTopic: topic \"a..b\" has an empty segment");
  assert_dbus ("org.headway.Headway1.Error.InvalidData", HEADWAY_CLI_ERROR_DATA, 2, "InvalidData: topic \"a..b\" has an empty segment");
  assert_dbus ("org.headway.Headway1.Error.NotSupported", HEADWAY_CLI_ERROR_FAILED, 1, "NotSupported: topic \"a..b\" has an empty segment");
  assert_dbus ("org.headway.Headway1.Error.Unavailable", HEADWAY_CLI_ERROR_UNREACHABLE, 1, "Unavailable: topic \"a..b\" has an empty segment");
  assert_dbus ("org.freedesktop.DBus.Error.UnknownObject", HEADWAY_CLI_ERROR_NO_SUCH_BUS, 1, "NoSuchBus: there is no bus \"demo\"");
  assert_dbus ("org.freedesktop.DBus.Error.AccessDenied", HEADWAY_CLI_ERROR_FAILED, 1, "AccessDenied: topic \"a..b\" has an empty segment");
  assert_dbus ("org.freedesktop.DBus.Error.ServiceUnknown", HEADWAY_CLI_ERROR_UNREACHABLE, 1, "headwayd is not running on this message bus");
}

static void
assert_http (guint status,
             const char *body,
             HeadwayCliError code,
             int exit_status,
             gint64 expected_position,
             const char *message)
{
  gint64 position;
  g_autoptr (GError) error = headway_cli_error_from_http (status, body, strlen (body), &position);

  g_assert_error (error, HEADWAY_CLI_ERROR, (int) code);
  g_assert_cmpstr (error->message, ==, message);
  g_assert_cmpint (position, ==, expected_position);
  g_assert_cmpint (headway_cli_error_get_exit (error), ==, exit_status);
}

static void
test_http_errors (void)
{
  assert_http (400, "{\"error\":\"bad\",\"code\":\"invalid_json\",\"position\":12}", HEADWAY_CLI_ERROR_DATA, 2, 12, "InvalidData: bad");
  assert_http (404, "{\"error\":\"no\",\"code\":\"session_not_found\",\"sessionId\":\"x\"}", HEADWAY_CLI_ERROR_NO_SUCH_BUS, 1, -1, "NoSuchBus: no");
  assert_http (409, "{\"error\":\"is there\",\"code\":\"bus_exists\"}", HEADWAY_CLI_ERROR_FAILED, 1, -1, "BusExists: is there");
  assert_http (401, "{\"error\":\"unauthorized\"}", HEADWAY_CLI_ERROR_FAILED, 1, -1, "HTTP 401: unauthorized");
  assert_http (503, "<html>", HEADWAY_CLI_ERROR_UNREACHABLE, 1, -1, "HTTP 503: the server gave no reason");
}

static void
test_retry_after (void)
{
  const char body[] = "{\"error\":\"slow down\",\"code\":\"rate_limited\",\"retryAfterMs\":250}";
  g_autoptr (GError) http = headway_cli_error_from_http (429, body, sizeof body - 1, NULL);
  g_autoptr (GError) long_wait = g_error_new_literal (HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_RATE_LIMITED, "x retry-after-ms=99999999");
  g_autoptr (GError) silent = g_error_new_literal (HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_RATE_LIMITED, "x");

  g_assert_error (http, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_RATE_LIMITED);
  g_assert_cmpuint (headway_cli_error_get_retry_ms (http), ==, 250);
  g_assert_cmpuint (headway_cli_error_get_retry_ms (long_wait), ==, 10000);
  g_assert_cmpuint (headway_cli_error_get_retry_ms (silent), ==, 100);
}

static void
test_bus_paths (void)
{
  const char *const pairs[][2] = {
    { "demo", "/org/headway/Headway1/bus/demo" },
    { "1a2", "/org/headway/Headway1/bus/_31a2" },
    { "a-b.C~_", "/org/headway/Headway1/bus/a_2db_2eC_7e_5f" },
    { "", "/org/headway/Headway1/bus/_" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (pairs); i++)
    {
      g_autofree char *path = headway_cli_connection_get_bus_path (pairs[i][0]);

      g_assert_cmpstr (path, ==, pairs[i][1]);
      g_assert_true (g_variant_is_object_path (path));
    }
}

static void
test_http_urls (void)
{
  const char *const good[] = { "http://127.0.0.1:8787", "https://host/base/", "unix:/run/x.sock", "unix:///run/x.sock", "http+unix://%2Frun%2Fx.sock" };
  const char *const bad[] = { "", "host:80", "ftp://host", "http://", "http://h/?x=1", "unix:x.sock", "http+unix://run", "unix:" };

  for (gsize i = 0; i < G_N_ELEMENTS (good); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (HeadwayCliHttp) http = headway_cli_http_new (good[i], NULL, &error);

      g_assert_no_error (error);
      g_assert_nonnull (http);
    }
  for (gsize i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_null (headway_cli_http_new (bad[i], NULL, &error));
      g_assert_error (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_USAGE);
    }
}

int
main (int argc,
      char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/cli/error/dbus", test_dbus_errors);
  g_test_add_func ("/cli/error/http", test_http_errors);
  g_test_add_func ("/cli/error/retry-after", test_retry_after);
  g_test_add_func ("/cli/connection/bus-paths", test_bus_paths);
  g_test_add_func ("/cli/http/urls", test_http_urls);
  return g_test_run ();
}
