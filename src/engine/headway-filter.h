/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-event.h"

G_BEGIN_DECLS

/**
 * HeadwayFilter:
 *
 * Which events a reader wants: any of the patterns (none: every topic) and any of the types (none:
 * every type). Immutable, reference-counted.
 *
 * headway_filter_new() returns NULL with INVALID_PATTERN, INVALID_TYPE, or INVALID_OPTION when there
 * are more than HEADWAY_PATTERNS_MAX patterns or HEADWAY_TYPES_MAX types. Both arguments are
 * (nullable), ended by NULL, and copied.
 */
HeadwayFilter *headway_filter_new (const char *const *patterns,
                                   const char *const *types,
                                   GError **error);
HeadwayFilter *headway_filter_ref (HeadwayFilter *self);
void headway_filter_unref (HeadwayFilter *self);

gboolean headway_filter_matches (HeadwayFilter *self, const HeadwayEvent *event);
/* Whether the type is wanted; the topic index has matched the topic already. */
gboolean headway_filter_matches_type (HeadwayFilter *self, const HeadwayEvent *event);
/* TRUE if it lets everything pass. */
gboolean headway_filter_is_empty (HeadwayFilter *self);
/* (transfer none): ended by NULL, never NULL itself. */
const char *const *headway_filter_get_patterns (HeadwayFilter *self);
const char *const *headway_filter_get_types (HeadwayFilter *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayFilter, headway_filter_unref)

G_END_DECLS
