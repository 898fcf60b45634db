/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "dbus/headway-dbus-context.h"

G_BEGIN_DECLS

/* Publish() and PublishMany(): check everything first, then hand one batch to the bus; its end
 * answers the call. @invocation: (transfer full). */
void headway_dbus_publish_one (HeadwayDBusContext *context,
                               HeadwayBus *bus,
                               GDBusMethodInvocation *invocation,
                               const char *topic,
                               const char *data,
                               GVariant *options);
void headway_dbus_publish_many (HeadwayDBusContext *context,
                                HeadwayBus *bus,
                                GDBusMethodInvocation *invocation,
                                GVariant *events,
                                GVariant *options);

G_END_DECLS
