/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "http/headway-http-request.h"

G_BEGIN_DECLS

/**
 * headway_http_ndjson_handle:
 *
 * Publishes a body of application/x-ndjson as it arrives (decisions.md 13): one object a line, a
 * bounded number of lines per turn of the main loop, nothing read while a publish waits. The first
 * bad line ends it.
 */
void headway_http_ndjson_handle (HeadwayHttpRequest *request);

G_END_DECLS
