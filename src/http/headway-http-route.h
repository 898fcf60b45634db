/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "http/headway-http-request.h"

G_BEGIN_DECLS

/* Hands a request that has passed the gate to whom its path belongs; 404 if to nobody. */
void headway_http_route (HeadwayHttpRequest *request);

G_END_DECLS
