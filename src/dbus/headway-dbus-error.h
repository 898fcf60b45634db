/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-error.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/* Lets GDBus put HEADWAY_ERROR on the message bus under the names of dbus-api.md. Any number of
 * times. */
void headway_dbus_error_register (void);

/* Answers @invocation with @error. Both: (transfer full). The message ends in
 * `retry-after-ms=<n>` where the error knows it (decisions.md 14). */
void headway_dbus_error_answer (GDBusMethodInvocation *invocation, GError *error);

/* Answers @invocation, (transfer full), with a new HEADWAY_ERROR. */
void headway_dbus_error_refuse (GDBusMethodInvocation *invocation,
                                HeadwayError code,
                                const char *format,
                                ...) G_GNUC_PRINTF (3, 4);

G_END_DECLS
