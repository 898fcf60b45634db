/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "dbus/headway-dbus-context.h"

G_BEGIN_DECLS

/**
 * HeadwayDBusGuard:
 * @get_context: of an object; (transfer none)
 * @check_sender: (nullable): whether @sender, (nullable), may call and read it; NULL: everybody may
 * @get_bytes_max: (nullable): bytes that a call of @method may bring; NULL: HEADWAY_DBUS_CALL_BYTES_MAX
 * @answer: (nullable): answers an admitted call that is not to reach the object: TRUE, and @invocation is (transfer full)
 *
 * What stands before the generated code of a type of objects: who may call, how much, and in which order
 * (HeadwayDBusPeers). @check_sender and then @answer run once it is the call's turn: their answers are counted.
 */
typedef struct
{
  HeadwayDBusContext *(*get_context) (GDBusInterfaceSkeleton *skeleton);
  gboolean (*check_sender) (GDBusInterfaceSkeleton *skeleton, const char *sender, GError **error);
  gsize (*get_bytes_max) (const char *method);
  gboolean (*answer) (GDBusInterfaceSkeleton *skeleton, GDBusMethodInvocation *invocation);
} HeadwayDBusGuard;

/* For `class_init` of a class that is derived from a generated one, and from which none is: @guard, borrowed,
 * outlives it. */
void headway_dbus_guard_install (GDBusInterfaceSkeletonClass *klass, const HeadwayDBusGuard *guard);

G_END_DECLS
