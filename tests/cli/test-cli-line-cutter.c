/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-line-cutter.h"

#include <string.h>

typedef struct
{
  GPtrArray *lines; /* char (owned) */
  guint wanted;
} Collector;

static gboolean
on_line (const char *line,
         gsize length,
         gpointer user_data)
{
  Collector *collector = user_data;

  g_ptr_array_add (collector->lines, g_strndup (line, length));
  return collector->lines->len < collector->wanted;
}

/* Feeds @text in pieces of @step bytes. Returns the lines, each in angle brackets. */
static char *
cut (const char *text,
     gsize step,
     guint wanted)
{
  g_autoptr (GPtrArray) lines = g_ptr_array_new_with_free_func (g_free);
  Collector collector = { lines, wanted };
  g_autoptr (HeadwayCliLineCutter) cutter = headway_cli_line_cutter_new (on_line, &collector);
  GString *result = g_string_new (NULL);
  gsize length = strlen (text);

  for (gsize i = 0; i < length; i += step)
    g_assert_true (headway_cli_line_cutter_feed (cutter, text + i, MIN (step, length - i)));
  headway_cli_line_cutter_finish (cutter);
  for (guint i = 0; i < lines->len; i++)
    g_string_append_printf (result, "<%s>", (const char *) g_ptr_array_index (lines, i));
  return g_string_free (result, FALSE);
}

static void
test_any_pieces_give_the_same_lines (void)
{
  for (gsize step = 1; step < 20; step++)
    {
      g_autofree char *lines = cut ("one\n\nthree\r\n\n\nlast", step, 100);
      g_autofree char *complete = cut ("one\ntwo\n", step, 100);
      g_autofree char *none = cut ("", step, 100);

      g_assert_cmpstr (lines, ==, "<one><><three\r><><><last>");
      g_assert_cmpstr (complete, ==, "<one><two>");
      g_assert_cmpstr (none, ==, "");
    }
}

static void
test_no_more_lines_than_wanted (void)
{
  for (gsize step = 1; step < 20; step++)
    {
      g_autofree char *lines = cut ("one\ntwo\nthree\nlast", step, 2);

      g_assert_cmpstr (lines, ==, "<one><two>");
    }
}

static void
test_longest_line (void)
{
  g_autoptr (GPtrArray) lines = g_ptr_array_new_with_free_func (g_free);
  Collector collector = { lines, 100 };
  g_autoptr (HeadwayCliLineCutter) cutter = headway_cli_line_cutter_new (on_line, &collector);
  g_autofree char *text = g_strnfill (HEADWAY_CLI_LINE_MAX, 'x');

  g_assert_true (headway_cli_line_cutter_feed (cutter, text, HEADWAY_CLI_LINE_MAX));
  g_assert_true (headway_cli_line_cutter_feed (cutter, "\n", 1));
  g_assert_cmpuint (lines->len, ==, 1);
  g_assert_true (headway_cli_line_cutter_feed (cutter, text, HEADWAY_CLI_LINE_MAX));
  g_assert_false (headway_cli_line_cutter_feed (cutter, "x", 1));
  g_assert_cmpuint (lines->len, ==, 1);
}

static void
test_blank (void)
{
  g_assert_true (headway_cli_line_is_blank ("", 0));
  g_assert_true (headway_cli_line_is_blank (" \t\r", 3));
  g_assert_false (headway_cli_line_is_blank (" 1", 2));
  g_assert_false (headway_cli_line_is_blank ("\0", 1));
}

int
main (int argc,
      char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/cli-line-cutter/any-pieces-give-the-same-lines", test_any_pieces_give_the_same_lines);
  g_test_add_func ("/cli-line-cutter/no-more-lines-than-wanted", test_no_more_lines_than_wanted);
  g_test_add_func ("/cli-line-cutter/longest-line", test_longest_line);
  g_test_add_func ("/cli-line-cutter/blank", test_blank);
  return g_test_run ();
}
