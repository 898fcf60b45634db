/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-table.h"

#include "cli/headway-cli-text.h"

#define FIRST_WIDTH_LEAST 8

struct _HeadwayCliTable
{
  const HeadwayCliTableColumn *columns; /* borrowed, outlives self */
  guint n_columns;
  GPtrArray *rows; /* GStrv (owned): n_columns cells, harmless */
  GArray *alarms;  /* gboolean: one for each row */
};

/**
 * headway_cli_table_new:
 * @columns: (array length=n_columns): outlive the table
 * @n_columns: at least one
 *
 * Returns: (transfer full): a table without rows
 */
HeadwayCliTable *
headway_cli_table_new (const HeadwayCliTableColumn *columns,
                       guint n_columns)
{
  HeadwayCliTable *self = g_new0 (HeadwayCliTable, 1);

  self->columns = columns;
  self->n_columns = n_columns;
  self->rows = g_ptr_array_new_with_free_func ((GDestroyNotify) g_strfreev);
  self->alarms = g_array_new (FALSE, FALSE, sizeof (gboolean));
  return self;
}

/**
 * headway_cli_table_free:
 * @self: a table
 *
 * Frees it.
 */
void
headway_cli_table_free (HeadwayCliTable *self)
{
  g_ptr_array_unref (self->rows);
  g_array_unref (self->alarms);
  g_free (self);
}

/**
 * headway_cli_table_add_row:
 * @self: a table
 * @is_alarming: whether to show it in red
 * @cells: as many texts as there are columns, from anywhere
 *
 * Adds a row. Nothing in it can control the terminal.
 */
void
headway_cli_table_add_row (HeadwayCliTable *self,
                           gboolean is_alarming,
                           const char *const *cells)
{
  char **row = g_new0 (char *, self->n_columns + 1);

  for (guint i = 0; i < self->n_columns; i++)
    row[i] = headway_cli_text_neutralise (cells[i], -1);
  g_ptr_array_add (self->rows, row);
  g_array_append_val (self->alarms, is_alarming);
}

/**
 * headway_cli_table_get_n_rows:
 * @self: a table
 *
 * Returns: how many rows it has
 */
guint
headway_cli_table_get_n_rows (HeadwayCliTable *self)
{
  return self->rows->len;
}

static guint
get_char_width (gunichar c)
{
  if (g_unichar_iszerowidth (c))
    return 0;
  return g_unichar_iswide (c) ? 2 : 1;
}

static guint
get_width (const char *text)
{
  guint width = 0;

  for (const char *p = text; *p != '\0'; p = g_utf8_next_char (p))
    width += get_char_width (g_utf8_get_char (p));
  return width;
}

/**
 * headway_cli_table_append_fitted:
 * @line: text to append to
 * @text: harmless UTF-8
 * @width: columns to fill
 * @to_the_right: whether blanks go before it
 *
 * Appends @text in exactly @width columns, cut if it is longer.
 */
void
headway_cli_table_append_fitted (GString *line,
                                 const char *text,
                                 guint width,
                                 gboolean to_the_right)
{
  guint whole = get_width (text);
  guint used = 0;

  if (width == 0)
    return;
  if (to_the_right && whole < width)
    g_string_append_printf (line, "%*s", (int) (width - whole), "");
  for (const char *p = text; *p != '\0'; p = g_utf8_next_char (p))
    {
      gunichar c = g_utf8_get_char (p);

      /* The last column says that something is missing. */
      if (used + get_char_width (c) > (whole > width ? width - 1 : width))
        break;
      used += get_char_width (c);
      g_string_append_unichar (line, c);
    }
  if (whole > width)
    {
      g_string_append_c (line, '~');
      used++;
    }
  if (used < width && !(to_the_right && whole <= width))
    g_string_append_printf (line, "%*s", (int) (width - used), "");
}

static guint *
choose_widths (HeadwayCliTable *self,
               guint width)
{
  guint *widths = g_new0 (guint, self->n_columns);
  guint others = 0;

  for (guint i = 1; i < self->n_columns; i++)
    {
      widths[i] = get_width (self->columns[i].heading);
      for (guint j = 0; j < self->rows->len; j++)
        widths[i] = MAX (widths[i], get_width (((char **) g_ptr_array_index (self->rows, j))[i]));
      others += widths[i] + 1;
    }
  widths[0] = width > others + FIRST_WIDTH_LEAST ? width - others : FIRST_WIDTH_LEAST;
  return widths;
}

static char *
create_line (HeadwayCliTable *self,
             const char *const *cells,
             const guint *widths,
             guint width,
             const char *attribute)
{
  g_autoptr (GString) plain = g_string_new (NULL);
  GString *line = g_string_new (NULL);

  for (guint i = 0; i < self->n_columns; i++)
    {
      if (i > 0)
        g_string_append_c (plain, ' ');
      headway_cli_table_append_fitted (plain, cells[i], widths[i], self->columns[i].is_number);
    }
  if (attribute != NULL)
    g_string_append_printf (line, "\033[%sm", attribute);
  headway_cli_table_append_fitted (line, plain->str, width, FALSE);
  while (line->len > 0 && line->str[line->len - 1] == ' ')
    g_string_truncate (line, line->len - 1);
  if (attribute != NULL)
    g_string_append (line, "\033[0m");
  return g_string_free (line, FALSE);
}

/**
 * headway_cli_table_append_lines:
 * @self: a table
 * @lines: (element-type utf8): lines to append to
 * @width: columns of the screen; no line is longer
 * @n_rows: most rows
 * @colour: whether to use bold and red
 *
 * Appends the headings and the first @n_rows rows.
 */
void
headway_cli_table_append_lines (HeadwayCliTable *self,
                                GPtrArray *lines,
                                guint width,
                                guint n_rows,
                                gboolean colour)
{
  g_autofree const char **headings = g_new0 (const char *, self->n_columns);
  g_autofree guint *widths = choose_widths (self, width);

  for (guint i = 0; i < self->n_columns; i++)
    headings[i] = self->columns[i].heading;
  g_ptr_array_add (lines, create_line (self, headings, widths, width, colour ? "1" : NULL));
  for (guint i = 0; i < MIN (n_rows, self->rows->len); i++)
    {
      gboolean is_alarming = g_array_index (self->alarms, gboolean, i);

      g_ptr_array_add (lines, create_line (self, g_ptr_array_index (self->rows, i), widths, width, colour && is_alarming ? "31" : NULL));
    }
}
