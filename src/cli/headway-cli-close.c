/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-connection.h"
#include "cli/headway-cli-http.h"
#include "cli/headway-cli-json.h"

#include <glib/gi18n.h>
#include <string.h>

static gboolean
close_http (HeadwayCli *cli,
            const char *name,
            GError **error)
{
  g_autoptr (HeadwayCliHttp) http = headway_cli_http_new (cli->http_url, cli->token_file, error);
  g_autofree char *path = headway_cli_http_get_bus_path (name, "");
  g_autoptr (GBytes) answer = NULL;

  if (http == NULL)
    return FALSE;
  answer = headway_cli_http_call (http, "DELETE", path, NULL, error);
  return answer != NULL;
}

static gboolean
close_dbus (HeadwayCli *cli,
            const char *name,
            GError **error)
{
  g_autoptr (GDBusConnection) connection = headway_cli_connection_open (cli, error);
  g_autoptr (GVariant) reply = NULL;

  if (connection == NULL)
    return FALSE;
  reply = headway_cli_connection_call_bus (connection, name, HEADWAY_CLI_BUS_INTERFACE, "Close", NULL, "()", error);
  return reply != NULL;
}

/**
 * headway_cli_close:
 * @cli: the global options
 * @argv: arguments
 *
 * `headway close NAME`: closes a bus.
 *
 * Returns: the exit status
 */
int
headway_cli_close (HeadwayCli *cli,
                   char **argv)
{
  const HeadwayCliSyntax syntax = {
    "close", "NAME", _ ("Close a bus: its readers get what waits for them and one last event, then their streams end."), NULL, 1, 1
  };
  gboolean json = FALSE;
  g_auto (GStrv) words = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (GString) text = g_string_new ("{\"name\":");
  const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_NONE, &json, N_ ("Print a JSON object"), NULL },
    { NULL }
  };

  if (!headway_cli_parse (cli, &syntax, entries, argv, &words))
    return HEADWAY_CLI_EXIT_USAGE;
  if (cli->http_url != NULL ? !close_http (cli, words[0], &error) : !close_dbus (cli, words[0], &error))
    return headway_cli_fail (error);
  if (!json)
    return HEADWAY_CLI_EXIT_OK;
  headway_cli_json_append_string (text, words[0], strlen (words[0]));
  g_string_append (text, ",\"closed\":true}");
  return headway_cli_print_line (text->str);
}
