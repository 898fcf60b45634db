/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-error.h"
#include "cli/headway-cli.h"
#include "program/headway-program.h"

#include <glib/gi18n.h>
#include <signal.h>

typedef struct
{
  const char *name;
  const char *summary; /* marked for translation */
  int (*run) (HeadwayCli *cli, char **argv);
} Command;

static const Command commands[] = {
  { "pub", N_ ("Publish events"), headway_cli_pub },
  { "sub", N_ ("Print events as they come"), headway_cli_sub },
  { "handle", N_ ("Run a command for each event"), headway_cli_handle },
  { "buses", N_ ("List the buses"), headway_cli_buses },
  { "create", N_ ("Create a bus"), headway_cli_create },
  { "info", N_ ("Show a bus"), headway_cli_info },
  { "close", N_ ("Close a bus"), headway_cli_close },
  { "top", N_ ("Show who is slow, who floods, and what is lost"), headway_cli_top },
  { "metrics", N_ ("Print what headwayd counts"), headway_cli_metrics },
  { "token", N_ ("Print the HTTP token"), headway_cli_token },
};

static const Command *
find_command (const char *name)
{
  for (gsize i = 0; i < G_N_ELEMENTS (commands); i++)
    {
      if (g_str_equal (commands[i].name, name))
        return &commands[i];
    }
  return NULL;
}

static char *
describe_commands (void)
{
  GString *text = g_string_new (_ ("Commands:"));

  for (gsize i = 0; i < G_N_ELEMENTS (commands); i++)
    g_string_append_printf (text, "\n  %-8s %s", commands[i].name, _ (commands[i].summary));
  g_string_append_c (text, '\n');
  g_string_append (text, _ ("\"headway COMMAND --help\" shows the options of a command."));
  return g_string_free (text, FALSE);
}

/* Parses the options before the command. @argv becomes the command and its arguments. */
static gboolean
parse_global_options (HeadwayCli *cli,
                      char ***argv,
                      gboolean *show_version,
                      GError **error)
{
  g_autoptr (GOptionContext) context = g_option_context_new (_ ("COMMAND [ARGUMENT...]"));
  g_autofree char *description = describe_commands ();
  const GOptionEntry entries[] = {
    { "version", 0, 0, G_OPTION_ARG_NONE, show_version, N_ ("Print the version"), NULL },
    { NULL }
  };
  char **rest;

  g_option_context_set_strict_posix (context, TRUE);
  g_option_context_set_summary (context, _ ("Publish events to Headway and read them."));
  g_option_context_set_description (context, description);
  g_option_context_add_main_entries (context, entries, GETTEXT_PACKAGE);
  headway_cli_add_global_options (cli, context);
  if (!g_option_context_parse_strv (context, argv, error))
    return FALSE;
  rest = g_strdupv (*argv + 1);
  g_strfreev (*argv);
  *argv = rest;
  return headway_cli_check_global_options (cli, error);
}

static int
run (HeadwayCli *cli,
     char ***argv)
{
  gboolean show_version = FALSE;
  g_autoptr (GError) error = NULL;
  const Command *command;

  if (!parse_global_options (cli, argv, &show_version, &error))
    return headway_cli_fail (error);
  if (show_version)
    return headway_cli_print_line ("headway " PACKAGE_VERSION);
  if ((*argv)[0] == NULL)
    {
      headway_cli_say (_ ("a command is missing; \"headway --help\" lists them"));
      return HEADWAY_CLI_EXIT_USAGE;
    }
  command = find_command ((*argv)[0]);
  if (command == NULL)
    {
      headway_cli_say (_ ("there is no command \"%s\"; \"headway --help\" lists them"), (*argv)[0]);
      return HEADWAY_CLI_EXIT_USAGE;
    }
  return command->run (cli, *argv);
}

int
main (int argc,
      char **argv)
{
  g_auto (HeadwayCli) cli = { 0 };
  g_auto (GStrv) arguments = g_strdupv (argv);

  headway_program_begin ("headway");
  /* A reader that leaves is an error of the write, not the death of the program. */
  signal (SIGPIPE, SIG_IGN);
  return run (&cli, &arguments);
}
