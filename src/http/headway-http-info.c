/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-info.h"

#include "wire/headway-capabilities.h"
#include "wire/headway-metrics-text.h"
#include "wire/headway-sse-frame.h"

#include <string.h>

static void
append_limits (GString *json, const HeadwayLimits *limits, const HeadwayHttpSettings *settings)
{
  g_string_append_printf (json,
                          ",\"limits\":{\"maxSubscribers\":%u,\"maxQueued\":%d,\"maxQueuedLeast\":%d,\"maxQueuedMost\":%d"
                          ",\"maxQueuedBytes\":%" G_GUINT64_FORMAT ",\"ringSize\":%u,\"ringMaxBytes\":%" G_GUINT64_FORMAT
                          ",\"eventMaxBytes\":%" G_GUINT64_FORMAT ",\"batchMaxEvents\":%d,\"batchMaxBytes\":%d"
                          ",\"maxBuses\":%u,\"maxConnections\":%u,\"heartbeatMs\":%u,\"writerIdleTimeoutMs\":%u}",
                          limits->bus.max_subscribers,
                          HEADWAY_MAX_QUEUED_DEFAULT,
                          HEADWAY_SSE_MAX_QUEUED_LEAST,
                          HEADWAY_SSE_MAX_QUEUED_MOST,
                          limits->bus.max_queued_bytes,
                          limits->bus.ring_size,
                          limits->bus.ring_max_bytes,
                          limits->event_max_bytes,
                          HEADWAY_BATCH_EVENTS_MAX,
                          HEADWAY_BATCH_BYTES_MAX,
                          limits->max_buses,
                          settings->max_connections,
                          settings->heartbeat_ms,
                          settings->writer_idle_timeout_ms);
}

static void
answer_capabilities (HeadwayHttpRequest *request)
{
  const HeadwayHttpSettings *settings = headway_http_server_get_settings (request->server);
  const HeadwayLimits *limits = headway_bus_table_get_limits (headway_http_server_get_table (request->server));
  g_auto (GStrv) features = headway_capabilities_list (settings->writer_idle_timeout_ms > 0);
  GString *json = g_string_new ("{\"v\":1,\"protocolVersions\":{\"current\":\"v1\",\"supported\":[\"v1\"]},\"features\":[");

  for (guint i = 0; features[i] != NULL; i++)
    g_string_append_printf (json, "%s\"%s\"", i > 0 ? "," : "", features[i]);
  g_string_append (json, "],\"transports\":[\"rest\"],\"server\":{\"name\":\"headway\",\"version\":\"" PACKAGE_VERSION "\"}");
  append_limits (json, limits, settings);
  g_string_append_c (json, '}');
  headway_http_request_answer (request, 200, json);
}

static void
answer_metrics (HeadwayHttpRequest *request)
{
  HeadwayBusTable *table = headway_http_server_get_table (request->server);
  GString *text = g_string_sized_new (32768);

  headway_bus_table_collect (table);
  headway_metrics_append_text (headway_bus_table_get_metrics (table), text);
  headway_http_request_answer_as (request, 200, HEADWAY_METRICS_TEXT_TYPE, text);
}

gboolean
headway_http_info_handle (HeadwayHttpRequest *request, const char *name)
{
  gboolean is_health = strcmp (name, "health") == 0;
  gboolean is_metrics = strcmp (name, "metrics") == 0;

  if (!is_health && !is_metrics && strcmp (name, "capabilities") != 0)
    return FALSE;

  if (request->method != SOUP_METHOD_GET && request->method != SOUP_METHOD_HEAD)
    headway_http_request_answer_method (request, "GET, HEAD");
  else if (is_health)
    headway_http_request_answer (request, 200, g_string_new ("{\"status\":\"ok\"}"));
  else if (is_metrics)
    answer_metrics (request);
  else
    answer_capabilities (request);
  return TRUE;
}
