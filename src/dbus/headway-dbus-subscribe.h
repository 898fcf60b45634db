/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "dbus/headway-dbus-context.h"
#include "engine/headway-gate.h"

G_BEGIN_DECLS

/**
 * HeadwayDBusSubscribeTarget:
 * @bus_path: object of @bus
 * @gates: those of @bus, owned by unique names
 *
 * What Subscribe() is called on. Everything is borrowed for the call.
 */
typedef struct
{
  HeadwayDBusContext *context;
  HeadwayBus *bus;
  const char *bus_path;
  HeadwayGateTable *gates;
} HeadwayDBusSubscribeTarget;

/* Subscribe(): reads its options, subscribes, exports the subscription, and answers @invocation,
 * (transfer full), with its path and the limits in force. */
void headway_dbus_subscribe (const HeadwayDBusSubscribeTarget *target,
                             GDBusMethodInvocation *invocation,
                             const char *const *patterns,
                             GVariant *options);

G_END_DECLS
