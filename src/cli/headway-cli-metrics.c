/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-connection.h"
#include "cli/headway-cli-http.h"
#include "cli/headway-cli-metrics-text.h"

#include <glib/gi18n.h>

static char *
fetch_http (HeadwayCli *cli,
            GError **error)
{
  g_autoptr (HeadwayCliHttp) http = headway_cli_http_new (cli->http_url, cli->token_file, error);
  g_autoptr (GBytes) answer = NULL;
  const char *text;
  gsize length;

  if (http == NULL)
    return NULL;
  answer = headway_cli_http_call (http, "GET", "/metrics", NULL, error);
  if (answer == NULL)
    return NULL;
  text = g_bytes_get_data (answer, &length);
  return g_strndup (text, length);
}

static char *
fetch_dbus (HeadwayCli *cli,
            GError **error)
{
  g_autoptr (GDBusConnection) connection = headway_cli_connection_open (cli, error);
  g_autoptr (GVariant) reply = NULL;
  g_autoptr (GVariant) metrics = NULL;
  GString *text;

  if (connection == NULL)
    return NULL;
  reply = headway_cli_connection_call_manager (connection, "ListMetrics", NULL, "(" HEADWAY_CLI_METRICS_TYPE ")", error);
  if (reply == NULL)
    return NULL;
  text = g_string_new (NULL);
  metrics = g_variant_get_child_value (reply, 0);
  headway_cli_metrics_append_text (text, metrics);
  return g_string_free (text, FALSE);
}

/**
 * headway_cli_metrics:
 * @cli: the global options
 * @argv: arguments
 *
 * `headway metrics`: prints what the daemon counts, as Prometheus reads it.
 *
 * Returns: the exit status
 */
int
headway_cli_metrics (HeadwayCli *cli,
                     char **argv)
{
  const HeadwayCliSyntax syntax = {
    "metrics", "", _ ("Print the counters and gauges of headwayd as Prometheus text."),
    _ ("Over HTTP it is what GET /metrics answers, which has longer explanations."), 0, 0
  };
  g_auto (GStrv) words = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree char *text = NULL;

  if (!headway_cli_parse (cli, &syntax, NULL, argv, &words))
    return HEADWAY_CLI_EXIT_USAGE;
  text = cli->http_url != NULL ? fetch_http (cli, &error) : fetch_dbus (cli, &error);
  if (text == NULL)
    return headway_cli_fail (error);
  return headway_cli_print_line (g_strchomp (text));
}
