/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-connection.h"
#include "cli/headway-cli-error.h"

#include <glib/gi18n.h>

static char *
read_token (HeadwayCli *cli,
            GError **error)
{
  g_autoptr (GDBusConnection) connection = headway_cli_connection_open (cli, error);
  g_autoptr (GVariant) reply = NULL;
  g_autoptr (GVariant) value = NULL;
  g_autoptr (GError) local_error = NULL;
  char *token;

  if (connection == NULL)
    return NULL;
  reply = g_dbus_connection_call_sync (connection, HEADWAY_CLI_DBUS_NAME, HEADWAY_CLI_DBUS_PATH, HEADWAY_CLI_PROPERTIES_INTERFACE, "Get",
                                       g_variant_new ("(ss)", HEADWAY_CLI_MANAGER_INTERFACE, "HttpTokenFile"), G_VARIANT_TYPE ("(v)"),
                                       G_DBUS_CALL_FLAGS_NONE, HEADWAY_CLI_CALL_TIMEOUT_MS, NULL, &local_error);
  if (reply == NULL)
    {
      g_propagate_error (error, headway_cli_error_from_dbus (local_error, NULL));
      return NULL;
    }
  g_variant_get (reply, "(v)", &value);
  if (!g_variant_is_of_type (value, G_VARIANT_TYPE_STRING) || *g_variant_get_string (value, NULL) == '\0')
    {
      g_set_error_literal (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_FAILED, _ ("this headwayd has no token: it speaks no HTTP, or wants none"));
      return NULL;
    }
  if (!g_file_get_contents (g_variant_get_string (value, NULL), &token, NULL, &local_error))
    {
      g_set_error (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_FAILED, _ ("cannot read the token: %s"), local_error->message);
      return NULL;
    }
  return g_strstrip (token);
}

/**
 * headway_cli_token:
 * @cli: the global options
 * @argv: arguments
 *
 * `headway token`: prints the HTTP token.
 *
 * Returns: the exit status
 */
int
headway_cli_token (HeadwayCli *cli,
                   char **argv)
{
  const HeadwayCliSyntax syntax = { "token", "", _ ("Print the token that HTTP clients must send."), NULL, 0, 0 };
  g_auto (GStrv) words = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree char *token = NULL;

  if (!headway_cli_parse (cli, &syntax, NULL, argv, &words))
    return HEADWAY_CLI_EXIT_USAGE;
  if (cli->http_url != NULL)
    {
      headway_cli_say (_ ("the token is asked for over D-Bus, not over --http"));
      return HEADWAY_CLI_EXIT_USAGE;
    }
  token = read_token (cli, &error);
  if (token == NULL)
    return headway_cli_fail (error);
  return headway_cli_print_line (token);
}
