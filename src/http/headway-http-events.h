/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "http/headway-http-request.h"

G_BEGIN_DECLS

/* `/session/{bus}/events`: the stream (GET, HEAD), publishing (POST), OPTIONS. */
void headway_http_events_handle (HeadwayHttpRequest *request);

G_END_DECLS
