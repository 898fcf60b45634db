/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "cli/headway-cli-subscriber.h"

G_BEGIN_DECLS

/* `--via=signals`: a signal for each event, acknowledged when it is written. */
extern const HeadwayCliWay headway_cli_signal_reader_way;

G_END_DECLS
