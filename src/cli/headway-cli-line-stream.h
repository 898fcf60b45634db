/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "cli/headway-cli-draft.h"
#include "cli/headway-cli-line-outcome.h"
#include "cli/headway-cli.h"

G_BEGIN_DECLS

int headway_cli_line_stream_run (HeadwayCli *cli,
                                 const char *bus_name,
                                 const HeadwayCliDraft *defaults,
                                 HeadwayCliLines kind,
                                 guint retry_s,
                                 int fd);

G_END_DECLS
