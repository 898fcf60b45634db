/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "dbus/headway-dbus-context.h"

G_BEGIN_DECLS

/**
 * HeadwayDBusRegisterTarget:
 * @bus_path: object of @bus
 *
 * What RegisterHandler() is called on. Everything is borrowed for the call.
 */
typedef struct
{
  HeadwayDBusContext *context;
  HeadwayBus *bus;
  const char *bus_path;
} HeadwayDBusRegisterTarget;

/* RegisterHandler(): reads its options, registers, exports the registration, and answers @invocation,
 * (transfer full), with its path. */
void headway_dbus_register_handler (const HeadwayDBusRegisterTarget *target,
                                    GDBusMethodInvocation *invocation,
                                    const char *const *patterns,
                                    const char *object_path,
                                    GVariant *options);

G_END_DECLS
