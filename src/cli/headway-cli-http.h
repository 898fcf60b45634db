/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "cli/headway-cli.h"

#include <libsoup/soup.h>

G_BEGIN_DECLS

#define HEADWAY_TYPE_CLI_HTTP (headway_cli_http_get_type ())
G_DECLARE_FINAL_TYPE (HeadwayCliHttp, headway_cli_http, HEADWAY, CLI_HTTP, GObject)

HeadwayCliHttp *headway_cli_http_new (const char *url,
                                      const char *token_file,
                                      GError **error);
SoupSession *headway_cli_http_get_session (HeadwayCliHttp *self);
SoupMessage *headway_cli_http_create_message (HeadwayCliHttp *self,
                                              const char *method,
                                              const char *path,
                                              GBytes *body,
                                              GError **error);
GBytes *headway_cli_http_call (HeadwayCliHttp *self,
                               const char *method,
                               const char *path,
                               GBytes *body,
                               GError **error);
GError *headway_cli_http_convert_error (const GError *error);
gboolean headway_cli_http_check_answer (SoupMessage *message,
                                        GBytes *body,
                                        gint64 *position,
                                        GError **error);
char *headway_cli_http_get_bus_path (const char *bus_name,
                                     const char *suffix);

G_END_DECLS
