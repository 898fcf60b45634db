/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "wire/headway-capabilities.h"

static const char *const features[] = {
  "health",
  "capabilities",
  "session_events",
  "slow_client_warning",
  "typed_event_schema",
  "client_identity",
  "topic_filter",
  "routed_mode",
  "gap_events",
  "publish_ndjson",
  "handlers",
  NULL
};

char **
headway_capabilities_list (gboolean has_writer_idle_timeout)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();

  g_strv_builder_addv (builder, (const char **) features);
  if (has_writer_idle_timeout)
    g_strv_builder_add (builder, "writer_idle_timeout");
  return g_strv_builder_end (builder);
}
