/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

#define HEADWAY_CLI_ERROR (headway_cli_error_quark ())

/**
 * HeadwayCliError:
 * @HEADWAY_CLI_ERROR_USAGE: wrong arguments
 * @HEADWAY_CLI_ERROR_DATA: InvalidData: what should be JSON is none
 * @HEADWAY_CLI_ERROR_EVENT: one event was refused; in a batch the others may be fine
 * @HEADWAY_CLI_ERROR_RATE_LIMITED: refused for now
 * @HEADWAY_CLI_ERROR_NO_SUCH_BUS: there is no bus of that name
 * @HEADWAY_CLI_ERROR_CLOSED: the bus or the subscription has ended
 * @HEADWAY_CLI_ERROR_UNREACHABLE: the daemon is away or cannot answer now
 * @HEADWAY_CLI_ERROR_FAILED: anything else
 *
 * What the commands act on, the same over D-Bus and over HTTP.
 */
typedef enum
{
  HEADWAY_CLI_ERROR_USAGE,
  HEADWAY_CLI_ERROR_DATA,
  HEADWAY_CLI_ERROR_EVENT,
  HEADWAY_CLI_ERROR_RATE_LIMITED,
  HEADWAY_CLI_ERROR_NO_SUCH_BUS,
  HEADWAY_CLI_ERROR_CLOSED,
  HEADWAY_CLI_ERROR_UNREACHABLE,
  HEADWAY_CLI_ERROR_FAILED,
} HeadwayCliError;

GQuark headway_cli_error_quark (void);

GError *headway_cli_error_from_dbus (const GError *error,
                                     const char *bus_name);
GError *headway_cli_error_from_http (guint status,
                                     const char *body,
                                     gsize length,
                                     gint64 *position);
int headway_cli_error_get_exit (const GError *error);
guint headway_cli_error_get_retry_ms (const GError *error);

G_END_DECLS
