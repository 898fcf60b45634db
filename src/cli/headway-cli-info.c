/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-bus-info.h"

#include <glib/gi18n.h>

/**
 * headway_cli_info:
 * @cli: the global options
 * @argv: arguments
 *
 * `headway info NAME`: tells about a bus.
 *
 * Returns: the exit status
 */
int
headway_cli_info (HeadwayCli *cli,
                  char **argv)
{
  const HeadwayCliSyntax syntax = { "info", "NAME", _ ("Show a bus."), NULL, 1, 1 };
  gboolean json = FALSE;
  g_auto (GStrv) words = NULL;
  g_auto (HeadwayCliBusInfo) info = { 0 };
  g_autoptr (GError) error = NULL;
  const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_NONE, &json, N_ ("Print a JSON object"), NULL },
    { NULL }
  };

  if (!headway_cli_parse (cli, &syntax, entries, argv, &words))
    return HEADWAY_CLI_EXIT_USAGE;
  if (!headway_cli_bus_info_fetch (&info, cli, words[0], &error))
    return headway_cli_fail (error);
  return headway_cli_bus_info_print (&info, json);
}
