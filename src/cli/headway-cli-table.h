/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* The first column takes the width that the others leave. */
typedef struct
{
  const char *heading; /* translated, outlives the table */
  gboolean is_number;  /* to the right */
} HeadwayCliTableColumn;

typedef struct _HeadwayCliTable HeadwayCliTable;

HeadwayCliTable *headway_cli_table_new (const HeadwayCliTableColumn *columns,
                                        guint n_columns);
void headway_cli_table_free (HeadwayCliTable *self);
void headway_cli_table_add_row (HeadwayCliTable *self,
                                gboolean is_alarming,
                                const char *const *cells);
guint headway_cli_table_get_n_rows (HeadwayCliTable *self);
void headway_cli_table_append_lines (HeadwayCliTable *self,
                                     GPtrArray *lines,
                                     guint width,
                                     guint n_rows,
                                     gboolean colour);
void headway_cli_table_append_fitted (GString *line,
                                      const char *text,
                                      guint width,
                                      gboolean to_the_right);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayCliTable, headway_cli_table_free)

G_END_DECLS
