/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * HeadwayHttpSettings:
 *
 * What the HTTP side heeds of cli.md; limits of events come from the bus table. Initialise with
 * headway_http_settings_init().
 */
typedef struct
{
  char **allowed_origins;       /* owned, nullable: "https://app.example", exactly as browsers say it */
  char *token;                  /* owned, nullable */
  gboolean needs_token;         /* over TCP; FALSE for --http-auth=none */
  gboolean is_session;          /* session instance: only its own user and root may come by Unix socket */
  guint max_connections;        /* open sockets, streams included */
  guint max_user_connections;   /* of one user id by Unix socket, but for root and our own; 0: no such cap */
  guint heartbeat_ms;           /* 0: none */
  guint writer_idle_timeout_ms; /* 0: off */
  guint drain_window_ms;
} HeadwayHttpSettings;

/* The defaults of cli.md, without a token. */
void headway_http_settings_init (HeadwayHttpSettings *self);
/* @self is uninitialised or cleared. */
void headway_http_settings_copy (HeadwayHttpSettings *self, const HeadwayHttpSettings *from);
void headway_http_settings_clear (HeadwayHttpSettings *self);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (HeadwayHttpSettings, headway_http_settings_clear)

G_END_DECLS
