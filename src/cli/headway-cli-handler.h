/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "cli/headway-cli.h"

G_BEGIN_DECLS

/**
 * HeadwayCliHandlerOptions:
 *
 * What `headway handle` was asked for.
 */
typedef struct
{
  char **words;    /* owned: the bus, then patterns */
  char **command;  /* owned */
  char *phase;     /* owned, nullable */
  char *on_error;  /* owned, nullable */
  char *name;      /* owned, nullable */
  gint64 priority; /* -1: not given */
  guint timeout_ms;
  guint parallel;
} HeadwayCliHandlerOptions;

int headway_cli_handler_run (HeadwayCli *cli,
                             const HeadwayCliHandlerOptions *options);

G_END_DECLS
