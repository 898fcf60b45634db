/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-settings.h"

void
headway_http_settings_init (HeadwayHttpSettings *self)
{
  *self = (HeadwayHttpSettings){
    .needs_token = TRUE,
    .is_session = TRUE,
    .max_connections = 1024,
    .max_user_connections = 256,
    .heartbeat_ms = 15000,
    .writer_idle_timeout_ms = 60000,
    .drain_window_ms = 5000,
  };
}

void
headway_http_settings_copy (HeadwayHttpSettings *self, const HeadwayHttpSettings *from)
{
  *self = *from;
  self->allowed_origins = g_strdupv (from->allowed_origins);
  self->token = g_strdup (from->token);
}

void
headway_http_settings_clear (HeadwayHttpSettings *self)
{
  g_clear_pointer (&self->allowed_origins, g_strfreev);
  g_clear_pointer (&self->token, g_free);
}
