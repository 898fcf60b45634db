/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Appends @label to @prefix as sd_bus_path_encode() does (decisions.md 7): every byte outside
 * A-Z a-z 0-9, and a leading digit, becomes `_` and two lower-case hexadecimal digits; an empty
 * label becomes `_`. Returns: (transfer full). */
char *headway_dbus_path_encode (const char *prefix, const char *label);

/* The object path of the bus called @name. Returns: (transfer full). */
char *headway_dbus_path_of_bus (const char *name);

/* The name whose object path is @path. Returns: (transfer full) (nullable): NULL: it is nobody's. */
char *headway_dbus_path_to_bus (const char *path);

/* The object path of the subscription with @number. Returns: (transfer full). */
char *headway_dbus_path_of_subscription (guint number);

G_END_DECLS
