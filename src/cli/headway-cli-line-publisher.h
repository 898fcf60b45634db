/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "cli/headway-cli-publisher.h"

G_BEGIN_DECLS

typedef enum
{
  HEADWAY_CLI_LINES_STRING, /* each line is text */
  HEADWAY_CLI_LINES_DATA,   /* each line is JSON data */
  HEADWAY_CLI_LINES_EVENT,  /* each line is an object as over HTTP */
} HeadwayCliLines;

int headway_cli_line_publisher_run (HeadwayCliPublisher *publisher,
                                    const HeadwayCliDraft *defaults,
                                    HeadwayCliLines kind,
                                    int fd);

G_END_DECLS
