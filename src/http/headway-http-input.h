/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "http/headway-http-connection.h"

G_BEGIN_DECLS

#define HEADWAY_TYPE_HTTP_INPUT (headway_http_input_get_type ())
G_DECLARE_FINAL_TYPE (HeadwayHttpInput, headway_http_input, HEADWAY, HTTP_INPUT, GInputStream)

/* The reading side of a connection, as libsoup sees it. */
GInputStream *headway_http_input_new (HeadwayHttpConnection *connection);

G_END_DECLS
