/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* What a command may write to standard output where that is taken: the largest event there can be. */
#define HEADWAY_CLI_OUTPUT_MAX (5 * 1024 * 1024)

/**
 * HeadwayCliCommandOptions:
 *
 * How to run a command. Everything is borrowed for the call.
 */
typedef struct
{
  char **argv;
  char **environment;
  const char *input;
  guint timeout_ms;
  gboolean takes_output; /* else it has our standard output */
} HeadwayCliCommandOptions;

/**
 * HeadwayCliCommandResult:
 *
 * How a command has ended. Everything is borrowed for the call.
 */
typedef struct
{
  int status;          /* of its exit; -1: a signal ended it, or the timeout did */
  int signal;          /* that ended it, or 0 */
  gboolean is_late;    /* the timeout ended it */
  const char *reason;  /* the first line it wrote to standard error, UTF-8 */
  const char *output;  /* what it wrote to standard output */
  gsize output_length; /* HEADWAY_CLI_OUTPUT_MAX and one, if it was more than that */
} HeadwayCliCommandResult;

typedef struct _HeadwayCliCommand HeadwayCliCommand;

typedef void (*HeadwayCliCommandDone) (HeadwayCliCommand *command,
                                       const HeadwayCliCommandResult *result,
                                       gpointer user_data);

HeadwayCliCommand *headway_cli_command_start (const HeadwayCliCommandOptions *options,
                                              HeadwayCliCommandDone done,
                                              gpointer user_data,
                                              GError **error);
void headway_cli_command_kill (HeadwayCliCommand *self);

G_END_DECLS
