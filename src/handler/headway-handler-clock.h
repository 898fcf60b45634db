/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-dispatcher.h"

#include <gio/gio.h>

G_BEGIN_DECLS

typedef struct _HeadwayHandlerClock HeadwayHandlerClock;

/**
 * HeadwayHandlerClock:
 *
 * Runs a dispatcher whenever something of it is due, from the thread's default main context.
 */
HeadwayHandlerClock *headway_handler_clock_new (HeadwayDispatcher *dispatcher);
void headway_handler_clock_free (HeadwayHandlerClock *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayHandlerClock, headway_handler_clock_free)

G_END_DECLS
