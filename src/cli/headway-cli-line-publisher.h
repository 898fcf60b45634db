/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "cli/headway-cli-line-outcome.h"
#include "cli/headway-cli-publisher.h"

G_BEGIN_DECLS

int headway_cli_line_publisher_run (HeadwayCliPublisher *publisher,
                                    const HeadwayCliDraft *defaults,
                                    HeadwayCliLines kind,
                                    int fd);

G_END_DECLS
