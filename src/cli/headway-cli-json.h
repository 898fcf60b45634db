/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Some bytes of a text that somebody else owns. */
typedef struct
{
  const char *text;
  gsize length;
} HeadwayCliSlice;

/**
 * HeadwayCliJsonIter:
 *
 * Walks over the members of one object, or the elements of one array, without copying.
 */
typedef struct
{
  const char *cursor; /* borrowed, the text outlives the iterator */
  const char *end;
  char close;      /* '}' or ']' */
  gboolean first;  /* nothing read yet */
  gboolean closed; /* the closing bracket was read */
} HeadwayCliJsonIter;

gboolean headway_cli_json_iter_init (HeadwayCliJsonIter *iter,
                                     HeadwayCliSlice json);
gboolean headway_cli_json_iter_next (HeadwayCliJsonIter *iter,
                                     HeadwayCliSlice *name,
                                     HeadwayCliSlice *value);
gboolean headway_cli_json_iter_is_complete (HeadwayCliJsonIter *iter);
gboolean headway_cli_json_get_member (HeadwayCliSlice object,
                                      const char *name,
                                      HeadwayCliSlice *value);
gboolean headway_cli_json_get_uint64 (HeadwayCliSlice value,
                                      guint64 *number);
char *headway_cli_json_dup_string (HeadwayCliSlice value);
gboolean headway_cli_json_is_one_value (HeadwayCliSlice json,
                                        gsize *position);
guint headway_cli_json_append_string (GString *json,
                                      const char *text,
                                      gsize length);

G_END_DECLS
