/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "http/headway-http-request.h"

G_BEGIN_DECLS

/* `/health`, `/capabilities`, `/metrics`: about the server. FALSE: @name is none of them. */
gboolean headway_http_info_handle (HeadwayHttpRequest *request, const char *name);

G_END_DECLS
