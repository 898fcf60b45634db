/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "http/headway-http-connection.h"

G_BEGIN_DECLS

#define HEADWAY_TYPE_HTTP_OUTPUT (headway_http_output_get_type ())
G_DECLARE_FINAL_TYPE (HeadwayHttpOutput, headway_http_output, HEADWAY, HTTP_OUTPUT, GOutputStream)

/* The writing side of a connection, as libsoup sees it. */
GOutputStream *headway_http_output_new (HeadwayHttpConnection *connection);

G_END_DECLS
