/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

#define HEADWAY_TYPE_NAME_HOLDER (headway_name_holder_get_type ())
G_DECLARE_FINAL_TYPE (HeadwayNameHolder, headway_name_holder, HEADWAY, NAME_HOLDER, GObject)

/**
 * HeadwayNameHolder:
 *
 * Takes the name over from a running instance for `--replace`: that one stops and lets go of the
 * state directory, while whoever calls meanwhile is answered `Unavailable` rather than by nobody.
 * Uses a connection of its own, so that nothing is exported before it is complete.
 *
 * headway_name_holder_new() blocks, during start only. @address: of the message bus.
 */
HeadwayNameHolder *headway_name_holder_new (const char *address, const char *name, GError **error);

G_END_DECLS
