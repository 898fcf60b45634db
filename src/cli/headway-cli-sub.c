/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-error.h"
#include "cli/headway-cli-event-source.h"
#include "cli/headway-cli-subscriber.h"

#include <glib/gi18n.h>

static void
options_clear (HeadwayCliSubOptions *options)
{
  g_strfreev (options->words);
  g_strfreev (options->types);
  g_free (options->mode);
  g_free (options->via);
  g_free (options->scope);
  g_free (options->eviction);
  g_free (options->epoch);
  g_free (options->after_text);
  g_free (options->count_text);
  g_free (options->max_queued_text);
  g_free (options->budget_text);
}

static gboolean
parse_number (const char *option,
              const char *text,
              guint64 minimum,
              guint64 maximum,
              guint64 *value,
              GError **error)
{
  return text == NULL || headway_cli_parse_uint64 (option, text, minimum, maximum, value, error);
}

static gboolean
check_way (HeadwayCli *cli,
           HeadwayCliSubOptions *options,
           GError **error)
{
  const char *const ways[] = { "stream", "signals", "receive", NULL };

  if (options->via != NULL && cli->http_url != NULL)
    {
      g_set_error_literal (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_USAGE, _ ("--via is a way over D-Bus and does not go with --http"));
      return FALSE;
    }
  if (options->budget_text != NULL && cli->http_url != NULL)
    {
      g_set_error_literal (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_USAGE, _ ("--budget does not go with --http"));
      return FALSE;
    }
  if (options->via == NULL || g_strv_contains (ways, options->via))
    return TRUE;
  g_set_error (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_USAGE, _ ("--via=%s is none of stream, signals, receive"), options->via);
  return FALSE;
}

static gboolean
check_options (HeadwayCli *cli,
               HeadwayCliSubOptions *options,
               GError **error)
{
  if (!parse_number ("after", options->after_text, 0, G_MAXINT64, &options->after, error) ||
      !parse_number ("count", options->count_text, 1, G_MAXINT64, &options->count, error) ||
      !parse_number ("max-queued", options->max_queued_text, 1, G_MAXUINT32, &options->max_queued, error) ||
      !parse_number ("budget", options->budget_text, 1, G_MAXINT64, &options->budget, error))
    return FALSE;
  if (!(options->timeout_s >= 0 && options->timeout_s <= 2000000))
    {
      g_set_error_literal (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_USAGE, _ ("--timeout takes 0 to 2000000 seconds"));
      return FALSE;
    }
  if (options->epoch != NULL && options->after_text == NULL)
    {
      g_set_error_literal (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_USAGE, _ ("--epoch needs --after"));
      return FALSE;
    }
  return check_way (cli, options, error);
}

static int
run (HeadwayCli *cli,
     const HeadwayCliSubOptions *options)
{
  g_autoptr (HeadwayCliReader) reader = headway_cli_reader_new (options);
  g_autoptr (HeadwayCliSubscriber) subscriber = NULL;
  g_autoptr (HeadwayCliEventSource) source = NULL;
  g_autoptr (GError) error = NULL;

  if (cli->http_url != NULL)
    source = headway_cli_event_source_new (cli, options, reader, &error);
  else
    subscriber = headway_cli_subscriber_new (cli, options, reader, &error);
  if (error != NULL)
    return headway_cli_fail (error);
  return headway_cli_reader_run (reader);
}

static gboolean
parse (HeadwayCli *cli,
       char **argv,
       HeadwayCliSubOptions *options)
{
  const HeadwayCliSyntax syntax = {
    "sub", "BUS [PATTERN...]", _ ("Print the events of a bus as they come. Without a pattern, all of them."),
    _ ("In a pattern, * stands for one segment of a topic, and at the end for one or more.\n"
       "It goes on behind the last event when the daemon comes back, and ends with 0 when the bus is closed."),
    1, 1 + 64
  };
  const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_NONE, &options->json, N_ ("Print one JSON envelope a line"), NULL },
    { "after", 0, 0, G_OPTION_ARG_STRING, &options->after_text, N_ ("Start with the first event behind this one; 0 for all that are kept"), N_ ("ID") },
    { "epoch", 0, 0, G_OPTION_ARG_STRING, &options->epoch, N_ ("Epoch of the bus that ID belongs to"), N_ ("EPOCH") },
    { "count", 0, 0, G_OPTION_ARG_STRING, &options->count_text, N_ ("End after so many events"), N_ ("NUMBER") },
    { "timeout", 0, 0, G_OPTION_ARG_DOUBLE, &options->timeout_s, N_ ("End after so long; with --count, 4 is then the exit status"), N_ ("SECONDS") },
    { "type", 0, 0, G_OPTION_ARG_STRING_ARRAY, &options->types, N_ ("Only events of this type; may be repeated"), N_ ("TYPE") },
    { "scope", 0, 0, G_OPTION_ARG_STRING, &options->scope, N_ ("Only events of this principal; empty for the system"), N_ ("PRINCIPAL") },
    { "mode", 0, 0, G_OPTION_ARG_STRING, &options->mode, N_ ("How events wait: stream (the default), routed or broadcast"), N_ ("MODE") },
    { "via", 0, 0, G_OPTION_ARG_STRING, &options->via, N_ ("How events come over D-Bus: stream (the default), signals or receive"), N_ ("WAY") },
    { "max-queued", 0, 0, G_OPTION_ARG_STRING, &options->max_queued_text, N_ ("Events that may wait before the daemon evicts this reader"), N_ ("NUMBER") },
    { "budget", 0, 0, G_OPTION_ARG_STRING, &options->budget_text, N_ ("Bytes that may wait in mode routed"), N_ ("BYTES") },
    { "eviction", 0, 0, G_OPTION_ARG_STRING, &options->eviction, N_ ("What mode routed drops: oldest (the default) or fair"), N_ ("RULE") },
    { NULL }
  };
  g_autoptr (GError) error = NULL;

  if (!headway_cli_parse (cli, &syntax, entries, argv, &options->words))
    return FALSE;
  if (check_options (cli, options, &error))
    return TRUE;
  headway_cli_fail (error);
  return FALSE;
}

/**
 * headway_cli_sub:
 * @cli: the global options
 * @argv: arguments
 *
 * `headway sub BUS [PATTERN...]`: prints events.
 *
 * Returns: the exit status
 */
int
headway_cli_sub (HeadwayCli *cli,
                 char **argv)
{
  HeadwayCliSubOptions options = { 0 };
  int status = HEADWAY_CLI_EXIT_USAGE;

  if (parse (cli, argv, &options))
    status = run (cli, &options);
  options_clear (&options);
  return status;
}
