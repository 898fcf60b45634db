/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli.h"

#include "cli/headway-cli-error.h"
#include "cli/headway-cli-text.h"

#include <errno.h>
#include <glib/gi18n.h>
#include <stdio.h>

/**
 * headway_cli_clear:
 * @cli: options
 *
 * Frees what @cli holds.
 */
void
headway_cli_clear (HeadwayCli *cli)
{
  g_clear_pointer (&cli->bus_address, g_free);
  g_clear_pointer (&cli->http_url, g_free);
  g_clear_pointer (&cli->token_file, g_free);
}

/**
 * headway_cli_add_global_options:
 * @cli: where the values go; outlives the parsing
 * @context: a context to add to
 *
 * Adds the options that every command takes.
 */
void
headway_cli_add_global_options (HeadwayCli *cli,
                                GOptionContext *context)
{
  const GOptionEntry entries[] = {
    { "session", 0, 0, G_OPTION_ARG_NONE, &cli->use_session, N_ ("Use the session message bus (the default)"), NULL },
    { "system", 0, 0, G_OPTION_ARG_NONE, &cli->use_system, N_ ("Use the system message bus"), NULL },
    { "bus-address", 0, 0, G_OPTION_ARG_STRING, &cli->bus_address, N_ ("Use the message bus at this D-Bus address"), N_ ("ADDRESS") },
    { "http", 0, 0, G_OPTION_ARG_STRING, &cli->http_url, N_ ("Talk HTTP instead: http://HOST:PORT or unix:/PATH"), N_ ("URL") },
    { "token-file", 0, 0, G_OPTION_ARG_FILENAME, &cli->token_file, N_ ("File with the HTTP token (default: $HEADWAY_TOKEN)"), N_ ("FILE") },
    { NULL }
  };
  GOptionGroup *group;

  group = g_option_group_new ("connection", _ ("Connection options:"), _ ("Show how to choose the connection"), NULL, NULL);
  g_option_group_set_translation_domain (group, GETTEXT_PACKAGE);
  g_option_group_add_entries (group, entries);
  g_option_context_add_group (context, group);
}

/**
 * headway_cli_check_global_options:
 * @cli: parsed options
 * @error: return location
 *
 * Refuses global options that contradict each other.
 *
 * Returns: FALSE with HEADWAY_CLI_ERROR_USAGE if they do
 */
gboolean
headway_cli_check_global_options (HeadwayCli *cli,
                                  GError **error)
{
  guint ways = cli->use_session + cli->use_system;

  ways += cli->bus_address != NULL;
  ways += cli->http_url != NULL;
  if (ways <= 1)
    return TRUE;
  g_set_error_literal (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_USAGE, _ ("only one of --session, --system, --bus-address and --http can be given"));
  return FALSE;
}

static gboolean
check_words (const HeadwayCliSyntax *syntax,
             char **words,
             GError **error)
{
  guint n_words = g_strv_length (words);

  if (n_words < syntax->words_min || n_words > syntax->words_max)
    {
      g_set_error (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_USAGE, _ ("usage: headway %s [OPTION...] %s"), syntax->command, syntax->parameters);
      return FALSE;
    }
  for (guint i = 0; i < n_words; i++)
    {
      const char *end;

      if (g_utf8_validate (words[i], -1, &end))
        continue;
      g_set_error (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_USAGE, _ ("word %u is no valid UTF-8 at byte %s"), i + 1,
                   HEADWAY_CLI_NUMBER ((guint64) (end - words[i])));
      return FALSE;
    }
  return TRUE;
}

static gboolean
parse (HeadwayCli *cli,
       const HeadwayCliSyntax *syntax,
       const GOptionEntry *entries,
       char **argv,
       char ***words,
       GError **error)
{
  g_autoptr (GOptionContext) context = g_option_context_new (syntax->parameters);
  g_auto (GStrv) arguments = g_strdupv (argv);
  g_auto (GStrv) remaining = NULL;
  g_autofree char *program = g_strconcat ("headway ", syntax->command, NULL);
  const GOptionEntry rest[] = {
    { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &remaining, NULL, NULL },
    { NULL }
  };

  g_set_prgname (program);
  g_option_context_set_summary (context, syntax->summary);
  g_option_context_set_description (context, syntax->description);
  if (entries != NULL)
    g_option_context_add_main_entries (context, entries, GETTEXT_PACKAGE);
  g_option_context_add_main_entries (context, rest, NULL);
  headway_cli_add_global_options (cli, context);
  if (!g_option_context_parse_strv (context, &arguments, error))
    return FALSE;
  if (remaining == NULL)
    remaining = g_new0 (char *, 1);
  if (!headway_cli_check_global_options (cli, error) || !check_words (syntax, remaining, error))
    return FALSE;
  *words = g_steal_pointer (&remaining);
  return TRUE;
}

/**
 * headway_cli_parse:
 * @cli: the global options, completed here
 * @syntax: what the command takes
 * @entries: (nullable): its options
 * @argv: (array zero-terminated=1): its arguments, its own name first
 * @words: (out) (transfer full): the words that are no options, valid UTF-8,
 *   at least words_min and at most words_max of them
 *
 * Parses the arguments of one command. `--help` prints the help and ends the program.
 *
 * Returns: FALSE if they are wrong, which has been said on standard error: the command then
 *   returns HEADWAY_CLI_EXIT_USAGE
 */
gboolean
headway_cli_parse (HeadwayCli *cli,
                   const HeadwayCliSyntax *syntax,
                   const GOptionEntry *entries,
                   char **argv,
                   char ***words)
{
  g_autoptr (GError) error = NULL;

  if (parse (cli, syntax, entries, argv, words, &error))
    return TRUE;
  headway_cli_fail (error);
  headway_cli_say (_ ("\"headway %s --help\" shows all options; words that start with a dash go behind \"--\""), syntax->command);
  return FALSE;
}

/**
 * headway_cli_parse_uint64:
 * @option: name of the option, for the message
 * @text: what was given
 * @minimum: least value
 * @maximum: greatest value
 * @value: (out): the number
 * @error: return location
 *
 * Reads a decimal number.
 *
 * Returns: FALSE with HEADWAY_CLI_ERROR_USAGE if @text is none in that range
 */
gboolean
headway_cli_parse_uint64 (const char *option,
                          const char *text,
                          guint64 minimum,
                          guint64 maximum,
                          guint64 *value,
                          GError **error)
{
  if (g_ascii_string_to_unsigned (text, 10, minimum, maximum, value, NULL))
    return TRUE;
  g_set_error (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_USAGE,
               _ ("--%s=%s is no number from %s to %s"),
               option, text, HEADWAY_CLI_NUMBER (minimum), HEADWAY_CLI_NUMBER (maximum));
  return FALSE;
}

/**
 * headway_cli_say:
 * @format: printf format
 * @...: its arguments
 *
 * Says one line on standard error. Whatever came from outside cannot control the terminal.
 */
void
headway_cli_say (const char *format,
                 ...)
{
  g_autofree char *text = NULL;
  g_autofree char *shown = NULL;
  va_list arguments;

  va_start (arguments, format);
  text = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  shown = headway_cli_text_neutralise (text, -1);
  g_printerr ("headway: %s\n", shown);
}

/**
 * headway_cli_fail:
 * @error: what went wrong
 *
 * Says it on standard error.
 *
 * Returns: the exit status that goes with @error
 */
int
headway_cli_fail (const GError *error)
{
  headway_cli_say ("%s", error->message);
  return headway_cli_error_get_exit (error);
}

/**
 * headway_cli_print_line:
 * @text: UTF-8, without line end
 *
 * Prints one line of a one-shot command, byte for byte.
 *
 * Returns: the exit status: failed if standard output takes nothing, except that nobody
 *   listening is no failure
 */
int
headway_cli_print_line (const char *text)
{
  if (fputs (text, stdout) >= 0 && fputc ('\n', stdout) >= 0 && fflush (stdout) == 0)
    return HEADWAY_CLI_EXIT_OK;
  if (errno == EPIPE)
    return HEADWAY_CLI_EXIT_OK;
  headway_cli_say (_ ("cannot write to standard output: %s"), g_strerror (errno));
  return HEADWAY_CLI_EXIT_FAILED;
}
