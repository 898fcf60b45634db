/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "stream/headway-stream-stats.h"

static const char *const names[HEADWAY_STREAM_N_CLOSE_REASONS] = {
  [HEADWAY_STREAM_CLOSE_WRITER_IDLE_TIMEOUT] = "writer_idle_timeout",
  [HEADWAY_STREAM_CLOSE_SOCKET_ERROR] = "socket_error",
  [HEADWAY_STREAM_CLOSE_ITERATOR_ERROR] = "iterator_error",
  [HEADWAY_STREAM_CLOSE_EVENT_BUS_EVICTED] = "event_bus_evicted",
  [HEADWAY_STREAM_CLOSE_SESSION_TERMINAL] = "session_terminal",
  [HEADWAY_STREAM_CLOSE_SOURCE_COMPLETE] = "source_complete",
  [HEADWAY_STREAM_CLOSE_CLIENT_DISCONNECT] = "client_disconnect",
  [HEADWAY_STREAM_CLOSE_DRAIN_TIMEOUT] = "drain_timeout",
};

const char *
headway_stream_close_reason_get_name (HeadwayStreamCloseReason reason)
{
  g_return_val_if_fail ((guint) reason < HEADWAY_STREAM_N_CLOSE_REASONS, "unknown");

  return names[reason];
}
