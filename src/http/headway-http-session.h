/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "http/headway-http-request.h"

G_BEGIN_DECLS

/* `/session/{bus}`: create, look, close. */
void headway_http_session_handle (HeadwayHttpRequest *request);
/* `/session/{bus}/snapshot`. */
void headway_http_session_handle_snapshot (HeadwayHttpRequest *request);
/* `/session`: all buses. */
void headway_http_session_handle_list (HeadwayHttpRequest *request);

G_END_DECLS
