/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "dbus/headway-dbus-context.h"

G_BEGIN_DECLS

/* Subscribe(): reads its options, subscribes, exports the subscription, and answers @invocation,
 * (transfer full), with its path and the limits in force. @bus_path: object of @bus. */
void headway_dbus_subscribe (HeadwayDBusContext *context,
                             HeadwayBus *bus,
                             const char *bus_path,
                             GDBusMethodInvocation *invocation,
                             const char *const *patterns,
                             GVariant *options);

G_END_DECLS
