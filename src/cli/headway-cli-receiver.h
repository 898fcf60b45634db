/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "cli/headway-cli-subscriber.h"

G_BEGIN_DECLS

/* `--via=receive`: one Receive after the other, each when the output of the last is written. */
extern const HeadwayCliWay headway_cli_receiver_way;

G_END_DECLS
