/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* What the program says to its caller (cli.md). */
#define HEADWAY_CLI_EXIT_OK      0
#define HEADWAY_CLI_EXIT_FAILED  1
#define HEADWAY_CLI_EXIT_USAGE   2
#define HEADWAY_CLI_EXIT_TIMEOUT 4

/**
 * HeadwayCli:
 *
 * The options that every command takes. They may stand before or behind the command.
 */
typedef struct
{
  gboolean use_session; /* the default */
  gboolean use_system;
  char *bus_address; /* owned, nullable */
  char *http_url;    /* owned, nullable: HTTP instead of D-Bus */
  char *token_file;  /* owned, nullable */
} HeadwayCli;

void headway_cli_clear (HeadwayCli *cli);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (HeadwayCli, headway_cli_clear)

/**
 * HeadwayCliSyntax:
 *
 * What the help of one command says, and how many words it takes.
 */
typedef struct
{
  const char *command;     /* "pub" */
  const char *parameters;  /* "BUS TOPIC [DATA]" */
  const char *summary;     /* translated */
  const char *description; /* translated, nullable */
  guint words_min;
  guint words_max;
} HeadwayCliSyntax;

void headway_cli_add_global_options (HeadwayCli *cli,
                                     GOptionContext *context);
gboolean headway_cli_check_global_options (HeadwayCli *cli,
                                           GError **error);
gboolean headway_cli_parse (HeadwayCli *cli,
                            const HeadwayCliSyntax *syntax,
                            const GOptionEntry *entries,
                            char **argv,
                            char ***words);
gboolean headway_cli_parse_uint64 (const char *option,
                                   const char *text,
                                   guint64 minimum,
                                   guint64 maximum,
                                   guint64 *value,
                                   GError **error);
int headway_cli_fail (const GError *error);
void headway_cli_say (const char *format,
                      ...) G_GNUC_PRINTF (1, 2);
int headway_cli_print_line (const char *text);

/* The commands. @argv is NULL-terminated and starts with the name of the command. Each returns
 * the exit status of the program. */
int headway_cli_pub (HeadwayCli *cli,
                     char **argv);
int headway_cli_sub (HeadwayCli *cli,
                     char **argv);
int headway_cli_handle (HeadwayCli *cli,
                        char **argv);
int headway_cli_buses (HeadwayCli *cli,
                       char **argv);
int headway_cli_create (HeadwayCli *cli,
                        char **argv);
int headway_cli_info (HeadwayCli *cli,
                      char **argv);
int headway_cli_close (HeadwayCli *cli,
                       char **argv);
int headway_cli_top (HeadwayCli *cli,
                     char **argv);
int headway_cli_metrics (HeadwayCli *cli,
                         char **argv);
int headway_cli_token (HeadwayCli *cli,
                       char **argv);

G_END_DECLS
