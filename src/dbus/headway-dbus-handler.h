/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "dbus/headway-dbus-context.h"
#include "handler/headway-handler-target.h"
#include "headway-dbus-generated.h"

G_BEGIN_DECLS

#define HEADWAY_DBUS_TYPE_HANDLER_IMPL (headway_dbus_handler_impl_get_type ())
G_DECLARE_FINAL_TYPE (HeadwayDBusHandlerImpl,
                      headway_dbus_handler_impl,
                      HEADWAY_DBUS,
                      HANDLER_IMPL,
                      HeadwayDBusHandlerRegistrationSkeleton)

/**
 * HeadwayDBusHandlerImpl:
 *
 * The registration of a handler as its owner sees it on the message bus; everybody else gets NotOwner. It goes
 * when the handler has ended: unregistered and drained, its owner has left, or its bus is closed.
 *
 * headway_dbus_handler_impl_new() charges @owner, who is also the owner of @place: NULL with QUOTA_EXCEEDED.
 */
HeadwayDBusHandlerImpl *headway_dbus_handler_impl_new (HeadwayDBusContext *context,
                                                       HeadwayDBusPeer *owner,
                                                       const HeadwayHandlerPlace *place,
                                                       GError **error);

/* Registers the handler at @bus and exports the registration; from then on the context keeps @self. */
gboolean headway_dbus_handler_impl_register (HeadwayDBusHandlerImpl *self,
                                             HeadwayBus *bus,
                                             const HeadwayHandlerOptions *options,
                                             GError **error);

G_END_DECLS
