/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-error.h"
#include "cli/headway-cli-line-publisher.h"
#include "cli/headway-cli-line-stream.h"

#include <errno.h>
#include <glib/gi18n.h>
#include <string.h>
#include <unistd.h>

#define INPUT_BYTES_MAX   (16 * 1024 * 1024)
#define RETRY_SECONDS     30
#define RETRY_SECONDS_MAX 86400

typedef struct
{
  HeadwayCliDraft defaults; /* topic, type, principal, client, final */
  char **words;             /* owned */
  gboolean is_string;
  gboolean lines;
  gboolean json_lines;
  gboolean ndjson;
  char *retry_text; /* owned, nullable */
  guint64 retry_s;
} PubOptions;

static void
options_clear (PubOptions *options)
{
  headway_cli_draft_clear (&options->defaults);
  g_strfreev (options->words);
  g_free (options->retry_text);
}

static gboolean
check_retry (HeadwayCli *cli,
             PubOptions *options,
             gboolean by_line,
             GError **error)
{
  options->retry_s = RETRY_SECONDS;
  if (options->retry_text == NULL)
    return TRUE;
  if (by_line && cli->http_url == NULL)
    return headway_cli_parse_uint64 ("retry", options->retry_text, 0, RETRY_SECONDS_MAX, &options->retry_s, error);
  g_set_error_literal (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_USAGE, _ ("--retry goes with --lines, --json-lines or --ndjson, and not with --http"));
  return FALSE;
}

static gboolean
check_options (HeadwayCli *cli,
               PubOptions *options,
               GError **error)
{
  guint n_words = g_strv_length (options->words);
  guint ways = options->is_string + options->lines + options->json_lines + options->ndjson;
  gboolean by_line = ways > 0 && !options->is_string;

  if (ways > 1)
    g_set_error_literal (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_USAGE, _ ("only one of --string, --lines, --json-lines and --ndjson can be given"));
  else if (by_line && n_words > 2 && !g_str_equal (options->words[2], "-"))
    g_set_error_literal (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_USAGE, _ ("lines come from standard input: give no DATA"));
  else if (n_words < 2 && !options->ndjson)
    g_set_error_literal (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_USAGE, _ ("TOPIC is missing"));
  else
    return check_retry (cli, options, by_line, error);
  return FALSE;
}

static gboolean
parse (HeadwayCli *cli,
       char **argv,
       PubOptions *options)
{
  const HeadwayCliSyntax syntax = {
    "pub", "BUS TOPIC [DATA]", _ ("Publish JSON data. Without DATA, or with \"-\", standard input is the data."),
    _ ("Prints the id of the event; with --lines, --json-lines and --ndjson one line \"first-last count\" at the end.\n"
       "With --ndjson TOPIC may be left out: each line is an object with \"data\", and \"topic\" or \"type\".\n"
       "DATA that starts with a dash goes behind \"--\"."),
    1, 3
  };
  const GOptionEntry entries[] = {
    { "type", 0, 0, G_OPTION_ARG_STRING, &options->defaults.type, N_ ("Type of the event (default: message)"), N_ ("TYPE") },
    { "principal", 0, 0, G_OPTION_ARG_STRING, &options->defaults.principal, N_ ("Publish for this principal; empty for the system"), N_ ("PRINCIPAL") },
    { "client", 0, 0, G_OPTION_ARG_STRING, &options->defaults.client, N_ ("Name of the program that publishes"), N_ ("CLIENT") },
    { "final", 0, 0, G_OPTION_ARG_NONE, &options->defaults.is_final, N_ ("Routed readers lose this event last"), NULL },
    { "string", 0, 0, G_OPTION_ARG_NONE, &options->is_string, N_ ("DATA is text: quote it"), NULL },
    { "lines", 0, 0, G_OPTION_ARG_NONE, &options->lines, N_ ("Each line of standard input is an event, its data a string"), NULL },
    { "json-lines", 0, 0, G_OPTION_ARG_NONE, &options->json_lines, N_ ("Each line of standard input is the JSON data of an event"), NULL },
    { "ndjson", 0, 0, G_OPTION_ARG_NONE, &options->ndjson, N_ ("Each line of standard input is an event as over HTTP"), NULL },
    { "retry", 0, 0, G_OPTION_ARG_STRING, &options->retry_text, N_ ("With lines: how long to wait for a daemon that has gone (default: 30)"), N_ ("SECONDS") },
    { NULL }
  };
  g_autoptr (GError) error = NULL;

  if (!headway_cli_parse (cli, &syntax, entries, argv, &options->words))
    return FALSE;
  if (!check_options (cli, options, &error))
    {
      headway_cli_fail (error);
      return FALSE;
    }
  options->defaults.topic = g_strdup (options->words[1]);
  return TRUE;
}

static GString *
read_input (GError **error)
{
  g_autoptr (GString) input = g_string_new (NULL);
  char piece[16384];
  ssize_t size;

  while ((size = read (STDIN_FILENO, piece, sizeof piece)) != 0)
    {
      if (size < 0 && errno == EINTR)
        continue;
      if (size < 0)
        {
          g_set_error (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_FAILED, _ ("cannot read standard input: %s"), g_strerror (errno));
          return NULL;
        }
      g_string_append_len (input, piece, size);
      if (input->len > INPUT_BYTES_MAX)
        {
          g_set_error (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_FAILED, _ ("standard input is longer than %d bytes"), INPUT_BYTES_MAX);
          return NULL;
        }
    }
  return g_steal_pointer (&input);
}

/* The text of the one event. A last line end is how files end, and no part of it. */
static GString *
get_text (const PubOptions *options,
          GError **error)
{
  const char *word = options->words[2];
  GString *text;

  if (word != NULL && !g_str_equal (word, "-"))
    return g_string_new (word);
  text = read_input (error);
  if (text != NULL && text->len > 0 && text->str[text->len - 1] == '\n')
    g_string_truncate (text, text->len - 1);
  return text;
}

static HeadwayCliDraft *
create_draft (const PubOptions *options,
              GError **error)
{
  g_autoptr (GString) text = get_text (options, error);
  HeadwayCliDraft *draft;
  guint n_repaired = 0;

  if (text == NULL)
    return NULL;
  if (!options->is_string)
    return headway_cli_draft_new_for_data (text->str, text->len, error);
  draft = headway_cli_draft_new_for_string (text->str, text->len, &n_repaired);
  if (n_repaired > 0)
    headway_cli_say (g_dngettext (GETTEXT_PACKAGE, "%u place was no UTF-8 and became U+FFFD", "%u places were no UTF-8 and became U+FFFD", n_repaired), n_repaired);
  return draft;
}

static int
fail_with_hint (const GError *error)
{
  int status = headway_cli_fail (error);

  if (g_error_matches (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_DATA))
    headway_cli_say (_ ("DATA must be JSON; --string quotes a text for you"));
  return status;
}

static int
publish_one (HeadwayCli *cli,
             const PubOptions *options)
{
  g_autoptr (HeadwayCliPublisher) publisher = NULL;
  g_autoptr (HeadwayCliDraft) draft = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree char *text = NULL;
  guint64 id;

  draft = create_draft (options, &error);
  if (draft == NULL)
    return fail_with_hint (error);
  publisher = headway_cli_publisher_new (cli, options->words[0], &options->defaults, &error);
  if (publisher == NULL)
    return headway_cli_fail (error);
  if (!headway_cli_publisher_publish (publisher, draft, &id, &error))
    return fail_with_hint (error);
  text = g_strdup_printf ("%" G_GUINT64_FORMAT, id);
  return headway_cli_print_line (text);
}

static int
publish_lines (HeadwayCli *cli,
               const PubOptions *options)
{
  g_autoptr (HeadwayCliPublisher) publisher = NULL;
  g_autoptr (GError) error = NULL;
  HeadwayCliLines kind = HEADWAY_CLI_LINES_STRING;

  if (options->json_lines)
    kind = HEADWAY_CLI_LINES_DATA;
  else if (options->ndjson)
    kind = HEADWAY_CLI_LINES_EVENT;
  if (cli->http_url == NULL)
    return headway_cli_line_stream_run (cli, options->words[0], &options->defaults, kind, (guint) options->retry_s, STDIN_FILENO);
  publisher = headway_cli_publisher_new (cli, options->words[0], &options->defaults, &error);
  if (publisher == NULL)
    return headway_cli_fail (error);
  return headway_cli_line_publisher_run (publisher, &options->defaults, kind, STDIN_FILENO);
}

static int
run (HeadwayCli *cli,
     const PubOptions *options)
{
  gboolean by_line = options->lines || options->json_lines || options->ndjson;
  const char *word = g_strv_length (options->words) > 2 ? options->words[2] : NULL;

  if ((by_line || word == NULL) && isatty (STDIN_FILENO))
    headway_cli_say (_ ("reading standard input; Ctrl-D ends it"));
  return by_line ? publish_lines (cli, options) : publish_one (cli, options);
}

/**
 * headway_cli_pub:
 * @cli: the global options
 * @argv: arguments
 *
 * `headway pub BUS TOPIC [DATA]`: publishes.
 *
 * Returns: the exit status
 */
int
headway_cli_pub (HeadwayCli *cli,
                 char **argv)
{
  PubOptions options = { 0 };
  int status = HEADWAY_CLI_EXIT_USAGE;

  if (parse (cli, argv, &options))
    status = run (cli, &options);
  options_clear (&options);
  return status;
}
