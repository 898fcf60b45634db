/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-route.h"

#include "http/headway-http-events.h"
#include "http/headway-http-info.h"
#include "http/headway-http-session.h"

#include <string.h>

static void
route_bus (HeadwayHttpRequest *request, guint n_segments)
{
  const char *name = request->segments[1];

  /* The gate has decoded the whole path once, so this cannot fail. */
  request->bus_name = headway_http_unescape (name, strlen (name), FALSE);
  if (n_segments == 2)
    headway_http_session_handle (request);
  else if (strcmp (request->segments[2], "events") == 0)
    headway_http_events_handle (request);
  else if (strcmp (request->segments[2], "snapshot") == 0)
    headway_http_session_handle_snapshot (request);
  else
    headway_http_request_answer_text (request, 404, "not_found", "there is nothing at this path");
}

void
headway_http_route (HeadwayHttpRequest *request)
{
  guint n_segments = g_strv_length (request->segments);

  if (n_segments == 1 && headway_http_info_handle (request, request->segments[0]))
    return;
  if (n_segments >= 1 && n_segments <= 3 && strcmp (request->segments[0], "session") == 0)
    {
      if (n_segments == 1)
        headway_http_session_handle_list (request);
      else
        route_bus (request, n_segments);
      return;
    }
  headway_http_request_answer_text (request, 404, "not_found", "there is nothing at this path");
}
