/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "http/headway-http-request.h"

G_BEGIN_DECLS

/**
 * headway_http_gate_pass:
 *
 * Decides who may come in, in the order of sse-contract.md 1.2: Host, Origin, (CORS preflight), token,
 * escapes of the path. On a Unix socket: the peer's uid, and the path. Fills in the caller.
 *
 * Returns: FALSE: answered.
 */
gboolean headway_http_gate_pass (HeadwayHttpRequest *request);

/* Whether `Host: @host` names a listener at @place, against DNS rebinding. */
gboolean headway_http_gate_is_host (const char *host, const HeadwayHttpPlace *place);

/* The token of an `Authorization` header, NULL if it is not of the form `Bearer <token>`. (transfer
 * none) (nullable) */
const char *headway_http_gate_get_bearer (const char *authorization);

G_END_DECLS
