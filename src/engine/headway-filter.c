/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-filter.h"

#include "engine/headway-error.h"
#include "engine/headway-topic.h"

#include <string.h>

struct _HeadwayFilter
{
  guint ref_count;
  char **patterns; /* owned */
  char **types;    /* owned */
};

typedef gboolean (*CheckFunc) (const char *text, gsize length, GError **error);

static char **
dup_checked (const char *const *texts, guint max, const char *what, CheckFunc check, GError **error)
{
  static const char *const nothing[] = { NULL };

  if (texts == NULL)
    texts = nothing;
  if (g_strv_length ((char **) texts) > max)
    {
      headway_set_error_with_limit (error, HEADWAY_ERROR_INVALID_OPTION, max,
                                    "%u %s, at most %u are allowed",
                                    g_strv_length ((char **) texts), what, max);
      return NULL;
    }
  for (guint i = 0; texts[i] != NULL; i++)
    if (!check (texts[i], strlen (texts[i]), error))
      return NULL;
  return g_strdupv ((char **) texts);
}

HeadwayFilter *
headway_filter_new (const char *const *patterns, const char *const *types, GError **error)
{
  g_auto (GStrv) checked_patterns = NULL;
  g_auto (GStrv) checked_types = NULL;
  HeadwayFilter *self;

  checked_patterns = dup_checked (patterns, HEADWAY_PATTERNS_MAX, "patterns", headway_pattern_check, error);
  if (checked_patterns == NULL)
    return NULL;
  checked_types = dup_checked (types, HEADWAY_TYPES_MAX, "types", headway_type_check, error);
  if (checked_types == NULL)
    return NULL;

  self = g_new (HeadwayFilter, 1);
  self->ref_count = 1;
  self->patterns = g_steal_pointer (&checked_patterns);
  self->types = g_steal_pointer (&checked_types);
  return self;
}

HeadwayFilter *
headway_filter_ref (HeadwayFilter *self)
{
  self->ref_count++;
  return self;
}

void
headway_filter_unref (HeadwayFilter *self)
{
  if (--self->ref_count > 0)
    return;
  g_strfreev (self->patterns);
  g_strfreev (self->types);
  g_free (self);
}

gboolean
headway_filter_matches_type (HeadwayFilter *self, const HeadwayEvent *event)
{
  if (self->types[0] == NULL || headway_event_passes_filters (event))
    return TRUE;
  return g_strv_contains ((const char *const *) self->types, headway_event_get_type (event));
}

gboolean
headway_filter_matches (HeadwayFilter *self, const HeadwayEvent *event)
{
  if (headway_event_passes_filters (event))
    return TRUE;
  if (!headway_filter_matches_type (self, event))
    return FALSE;
  if (self->patterns[0] == NULL)
    return TRUE;
  for (guint i = 0; self->patterns[i] != NULL; i++)
    if (headway_topic_matches (self->patterns[i], headway_event_get_topic (event)))
      return TRUE;
  return FALSE;
}

gboolean
headway_filter_is_empty (HeadwayFilter *self)
{
  return self->patterns[0] == NULL && self->types[0] == NULL;
}

const char *const *
headway_filter_get_patterns (HeadwayFilter *self)
{
  return (const char *const *) self->patterns;
}

const char *const *
headway_filter_get_types (HeadwayFilter *self)
{
  return (const char *const *) self->types;
}
