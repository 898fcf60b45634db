/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "dbus/headway-dbus-context.h"

G_BEGIN_DECLS

/**
 * headway_dbus_publisher_open:
 * @invocation: (transfer full)
 * @format: "ndjson" is the only one
 *
 * OpenPublisher(): answers with one end of a socket pair, on whose other end a HeadwayPublisherStream
 * publishes until the client closes it or leaves the message bus. It is charged to the client
 * (HEADWAY_DBUS_PUBLISHERS_MAX).
 */
void headway_dbus_publisher_open (HeadwayDBusContext *context,
                                  HeadwayBus *bus,
                                  GDBusMethodInvocation *invocation,
                                  const char *format,
                                  GVariant *options);

/* headwayd stops: all publishers of @context end once what was read of them is answered. */
void headway_dbus_publisher_stop_all (HeadwayDBusContext *context);
/* Closes them at once. */
void headway_dbus_publisher_close_all (HeadwayDBusContext *context);

G_END_DECLS
