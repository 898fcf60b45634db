/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-types.h"

G_BEGIN_DECLS

/* Grammar of names (dbus-api.md, Values). Each returns FALSE with the named error, whose message
 * says what is wrong and what the limit is; @length is in bytes and @text need not end in NUL. */
gboolean headway_bus_name_check (const char *text, gsize length, GError **error);
gboolean headway_topic_check (const char *text, gsize length, GError **error);
gboolean headway_pattern_check (const char *text, gsize length, GError **error);
gboolean headway_type_check (const char *text, gsize length, GError **error);
gboolean headway_principal_check (const char *text, gsize length, GError **error);
/* `client` (originatorClientId): HEADWAY_ERROR_INVALID_OPTION. */
gboolean headway_client_check (const char *text, gsize length, GError **error);

/* TRUE for a type that publishers may not use: synthetic, `session_closed`, `headway.…`. */
gboolean headway_type_is_reserved (const char *type, gsize length);

/**
 * headway_topic_matches:
 * @pattern: a pattern, ended by NUL
 * @topic: a topic, ended by NUL
 *
 * The one matcher (routing.md 1.5): delivery, filters, access rules and handlers all use it. It
 * is the raw matcher: it does not refuse empty segments, headway_topic_check() does.
 *
 * Returns: whether @topic is among what @pattern names.
 */
gboolean headway_topic_matches (const char *pattern, const char *topic);

G_END_DECLS
