/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-types.h"

G_BEGIN_DECLS

/**
 * HeadwayTopicIndex:
 *
 * A trie from patterns to opaque values: the cost of a look-up grows with what matches, not with
 * what is stored (routing.md 3.5). The same value may stand under several patterns, and the same
 * (pattern, value) pair may be added more than once; each addition wants its own removal.
 */
HeadwayTopicIndex *headway_topic_index_new (void);
void headway_topic_index_free (HeadwayTopicIndex *self);

/* @pattern has passed headway_pattern_check(). @value is borrowed and never NULL. */
void headway_topic_index_add (HeadwayTopicIndex *self, const char *pattern, gpointer value);
/* Returns FALSE if that pair is not there. Empty nodes leave at once. */
gboolean headway_topic_index_remove (HeadwayTopicIndex *self, const char *pattern, gpointer value);

/* Appends to @matches (element: value) each value under each matching pattern, so a value with
 * several matching patterns comes several times; order is unspecified. Allocates nothing but the
 * growth of @matches. */
void headway_topic_index_match (HeadwayTopicIndex *self, const char *topic, GPtrArray *matches);

/* How many (pattern, value) pairs are stored, and how many nodes the trie has beside its root. */
guint headway_topic_index_size (HeadwayTopicIndex *self);
guint headway_topic_index_nodes (HeadwayTopicIndex *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayTopicIndex, headway_topic_index_free)

G_END_DECLS
