/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-error.h"
#include "cli/headway-cli-handler.h"

#include <glib/gi18n.h>
#include <string.h>

#define PATTERNS_MAX   64
#define TIMEOUT_MS_MAX 60000
#define PARALLEL_MAX   32

typedef struct
{
  char *priority; /* owned, as all of them; nullable */
  char *timeout;
  char *parallel;
} Texts;

static void
texts_clear (Texts *texts)
{
  g_free (texts->priority);
  g_free (texts->timeout);
  g_free (texts->parallel);
}

static gboolean
parse_uint (const char *option,
            const char *text,
            guint64 minimum,
            guint64 maximum,
            guint *value,
            GError **error)
{
  guint64 number;

  if (text == NULL)
    return TRUE;
  if (!headway_cli_parse_uint64 (option, text, minimum, maximum, &number, error))
    return FALSE;
  *value = (guint) number;
  return TRUE;
}

static gboolean
check_word (const char *option,
            const char *word,
            const char *first,
            const char *second,
            GError **error)
{
  if (word == NULL || g_str_equal (word, first) || g_str_equal (word, second))
    return TRUE;
  g_set_error (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_USAGE, _ ("--%s=%s is neither %s nor %s"), option, word, first, second);
  return FALSE;
}

static gboolean
check_command (char **command,
               GError **error)
{
  g_autofree char *program = NULL;

  if (command[0] == NULL)
    {
      g_set_error_literal (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_USAGE, _ ("the command is missing; it stands behind \"--\""));
      return FALSE;
    }
  program = g_find_program_in_path (command[0]);
  if (program != NULL)
    return TRUE;
  /* Without a slash it is a name to look up, not a file. */
  if (strchr (command[0], '/') != NULL && g_file_test (command[0], G_FILE_TEST_EXISTS))
    g_set_error (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_USAGE, _ ("\"%s\" may not be executed"), command[0]);
  else
    g_set_error (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_USAGE, _ ("there is no program \"%s\""), command[0]);
  return FALSE;
}

static gboolean
check_options (HeadwayCli *cli,
               HeadwayCliHandlerOptions *options,
               const Texts *texts,
               GError **error)
{
  guint priority = 0;

  if (cli->http_url != NULL)
    {
      g_set_error_literal (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_USAGE, _ ("handle does not go with --http: headwayd calls handlers over D-Bus"));
      return FALSE;
    }
  if (!parse_uint ("priority", texts->priority, 0, G_MAXUINT32, &priority, error) ||
      !parse_uint ("timeout", texts->timeout, 1, TIMEOUT_MS_MAX, &options->timeout_ms, error) ||
      !parse_uint ("parallel", texts->parallel, 1, PARALLEL_MAX, &options->parallel, error))
    return FALSE;
  if (texts->priority != NULL)
    options->priority = priority;
  return check_word ("phase", options->phase, "post", "pre", error) &&
         check_word ("on-error", options->on_error, "continue", "deny", error) && check_command (options->command, error);
}

/* All before "--" is ours. */
static char **
split_command (char **argv,
               char ***command)
{
  g_autoptr (GStrvBuilder) ours = g_strv_builder_new ();
  guint i = 0;

  for (; argv[i] != NULL && !g_str_equal (argv[i], "--"); i++)
    g_strv_builder_add (ours, argv[i]);
  *command = g_strdupv (argv + i + (argv[i] != NULL ? 1 : 0));
  return g_strv_builder_end (ours);
}

static gboolean
parse (HeadwayCli *cli,
       char **argv,
       HeadwayCliHandlerOptions *options,
       Texts *texts)
{
  const HeadwayCliSyntax syntax = {
    "handle", "BUS [PATTERN...] -- COMMAND [ARGUMENT...]", _ ("Run a command for each event of a bus. Without a pattern, for all of them."),
    _ ("The command gets the event as JSON on standard input. Its exit status is the verdict: 0 lets the event\n"
       "go on, 1 denies it (the first line of standard error is the reason), anything else is an error. In phase\n"
       "pre, what it writes to standard output replaces the data. It ends with 0 when the bus is closed."),
    1, 1 + PATTERNS_MAX
  };
  const GOptionEntry entries[] = {
    { "phase", 0, 0, G_OPTION_ARG_STRING, &options->phase, N_ ("post, after the event is out (the default), or pre, before: may change or deny it"), N_ ("PHASE") },
    { "priority", 0, 0, G_OPTION_ARG_STRING, &texts->priority, N_ ("Handlers with a lower one are asked first; 100 if not given"), N_ ("NUMBER") },
    { "on-error", 0, 0, G_OPTION_ARG_STRING, &options->on_error, N_ ("What an error or a timeout means: continue (the default) or deny"), N_ ("VERDICT") },
    { "timeout", 0, 0, G_OPTION_ARG_STRING, &texts->timeout, N_ ("Kill the command after so long; 5000 if not given"), N_ ("MILLISECONDS") },
    { "name", 0, 0, G_OPTION_ARG_STRING, &options->name, N_ ("Orders handlers of the same priority"), N_ ("NAME") },
    { "parallel", 0, 0, G_OPTION_ARG_STRING, &texts->parallel, N_ ("So many commands at a time, one for each principal at most; 1 if not given"), N_ ("NUMBER") },
    { NULL }
  };
  g_auto (GStrv) ours = split_command (argv, &options->command);
  g_autoptr (GError) error = NULL;

  if (!headway_cli_parse (cli, &syntax, entries, ours, &options->words))
    return FALSE;
  if (check_options (cli, options, texts, &error))
    return TRUE;
  headway_cli_fail (error);
  return FALSE;
}

/**
 * headway_cli_handle:
 * @cli: the global options
 * @argv: arguments
 *
 * `headway handle BUS [PATTERN...] -- COMMAND`: runs a command for each event.
 *
 * Returns: the exit status
 */
int
headway_cli_handle (HeadwayCli *cli,
                    char **argv)
{
  HeadwayCliHandlerOptions options = { .priority = -1, .timeout_ms = 5000, .parallel = 1 };
  Texts texts = { 0 };
  int status = HEADWAY_CLI_EXIT_USAGE;

  if (parse (cli, argv, &options, &texts))
    status = headway_cli_handler_run (cli, &options);
  g_strfreev (options.words);
  g_strfreev (options.command);
  g_free (options.phase);
  g_free (options.on_error);
  g_free (options.name);
  texts_clear (&texts);
  return status;
}
