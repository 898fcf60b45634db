/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "cli/headway-cli-subscriber.h"

G_BEGIN_DECLS

/* `--via=stream`: NDJSON from the socket of OpenStream, no piece before the last is written. */
extern const HeadwayCliWay headway_cli_stream_reader_way;

G_END_DECLS
