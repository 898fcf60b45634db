/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "dbus/headway-dbus-context.h"
#include "dbus/headway-dbus-service.h"
#include "headway-dbus-generated.h"

G_BEGIN_DECLS

#define HEADWAY_DBUS_TYPE_MANAGER_IMPL (headway_dbus_manager_impl_get_type ())
G_DECLARE_FINAL_TYPE (HeadwayDBusManagerImpl,
                      headway_dbus_manager_impl,
                      HEADWAY_DBUS,
                      MANAGER_IMPL,
                      HeadwayDBusManagerSkeleton)

/* The root object's own interface: makes and finds buses. */
HeadwayDBusManagerImpl *headway_dbus_manager_impl_new (HeadwayDBusContext *context,
                                                       const HeadwayDBusServiceInfo *info);

/* @uris: (nullable): copied. No change is signalled. */
void headway_dbus_manager_impl_set_http_uris (HeadwayDBusManagerImpl *self, const char *const *uris);

G_END_DECLS
