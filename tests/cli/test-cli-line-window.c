/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-line-window.h"

static void
add (HeadwayCliLineWindow *window,
     guint64 number,
     const char *text)
{
  g_string_append (headway_cli_line_window_begin (window), text);
  headway_cli_line_window_end (window, number);
}

static void
assert_unsent (HeadwayCliLineWindow *window,
               const char *expected)
{
  gsize length;
  const char *unsent = headway_cli_line_window_get_unsent (window, &length);
  g_autofree char *text = g_strndup (unsent, length);

  g_assert_cmpstr (text, ==, expected);
}

static void
test_answers_take_lines_in_order (void)
{
  g_autoptr (HeadwayCliLineWindow) window = headway_cli_line_window_new ();

  g_assert_false (headway_cli_line_window_pop (window));
  g_assert_cmpuint (headway_cli_line_window_get_number (window), ==, 0);
  add (window, 1, "a");
  add (window, 3, "bb");
  assert_unsent (window, "a\nbb\n");
  g_assert_false (headway_cli_line_window_pop (window));
  headway_cli_line_window_add_sent (window, 2);
  assert_unsent (window, "bb\n");
  g_assert_cmpuint (headway_cli_line_window_get_n_sent (window), ==, 1);
  g_assert_cmpuint (headway_cli_line_window_get_number (window), ==, 1);
  g_assert_true (headway_cli_line_window_pop (window));
  g_assert_cmpuint (headway_cli_line_window_get_number (window), ==, 3);
  g_assert_false (headway_cli_line_window_pop (window));
  add (window, 4, "c");
  assert_unsent (window, "bb\nc\n");
  headway_cli_line_window_add_sent (window, 5);
  g_assert_true (headway_cli_line_window_pop (window));
  g_assert_true (headway_cli_line_window_pop (window));
  g_assert_cmpuint (headway_cli_line_window_get_n_lines (window), ==, 0);
  assert_unsent (window, "");
}

static void
test_rewind_sends_again_what_is_not_answered (void)
{
  g_autoptr (HeadwayCliLineWindow) window = headway_cli_line_window_new ();

  add (window, 1, "a");
  add (window, 2, "b");
  add (window, 3, "c");
  headway_cli_line_window_add_sent (window, 5); /* the last one in part */
  g_assert_cmpuint (headway_cli_line_window_get_n_sent (window), ==, 2);
  g_assert_true (headway_cli_line_window_pop (window));
  headway_cli_line_window_rewind (window);
  g_assert_cmpuint (headway_cli_line_window_get_n_sent (window), ==, 0);
  g_assert_false (headway_cli_line_window_pop (window));
  assert_unsent (window, "b\nc\n");
}

static void
test_begun_is_the_first_line_alone (void)
{
  g_autoptr (HeadwayCliLineWindow) window = headway_cli_line_window_new ();

  add (window, 1, "a");
  add (window, 2, "bb");
  g_assert_false (headway_cli_line_window_is_begun (window));
  headway_cli_line_window_add_sent (window, 1);
  g_assert_true (headway_cli_line_window_is_begun (window));
  headway_cli_line_window_add_sent (window, 2); /* the second one in part */
  g_assert_false (headway_cli_line_window_is_begun (window));
  g_assert_true (headway_cli_line_window_pop (window));
  g_assert_true (headway_cli_line_window_is_begun (window));
  headway_cli_line_window_add_sent (window, 2);
  g_assert_false (headway_cli_line_window_is_begun (window));
  g_assert_true (headway_cli_line_window_pop (window));
  g_assert_false (headway_cli_line_window_is_begun (window));
}

static void
test_drop_keeps_a_line_that_is_begun (void)
{
  g_autoptr (HeadwayCliLineWindow) window = headway_cli_line_window_new ();
  g_autoptr (HeadwayCliLineWindow) whole = headway_cli_line_window_new ();

  add (window, 1, "aa");
  add (window, 2, "bb");
  add (window, 3, "cc");
  headway_cli_line_window_add_sent (window, 4);
  headway_cli_line_window_drop_unsent (window);
  g_assert_cmpuint (headway_cli_line_window_get_n_lines (window), ==, 2);
  assert_unsent (window, "b\n");
  headway_cli_line_window_add_sent (window, 2);
  g_assert_cmpuint (headway_cli_line_window_get_n_sent (window), ==, 2);

  add (whole, 1, "aa");
  add (whole, 2, "bb");
  headway_cli_line_window_add_sent (whole, 3);
  headway_cli_line_window_drop_unsent (whole);
  g_assert_cmpuint (headway_cli_line_window_get_n_lines (whole), ==, 1);
  g_assert_true (headway_cli_line_window_pop (whole));
  add (whole, 3, "cc");
  headway_cli_line_window_drop_unsent (whole);
  g_assert_cmpuint (headway_cli_line_window_get_n_lines (whole), ==, 0);
  assert_unsent (whole, "");
}

static void
test_room_is_bounded (void)
{
  g_autoptr (HeadwayCliLineWindow) window = headway_cli_line_window_new ();
  g_autoptr (HeadwayCliLineWindow) large = headway_cli_line_window_new ();
  g_autofree char *text = g_strnfill (1024 * 1024 - 2, 'x');
  guint n = 0;

  while (headway_cli_line_window_has_room (window))
    add (window, ++n, "x");
  g_assert_cmpuint (n, ==, 8192);
  headway_cli_line_window_add_sent (window, 2);
  headway_cli_line_window_pop (window);
  g_assert_true (headway_cli_line_window_has_room (window));

  add (large, 1, text);
  g_assert_true (headway_cli_line_window_has_room (large));
  add (large, 2, "");
  g_assert_false (headway_cli_line_window_has_room (large));
}

/* More goes through than the window holds, in pieces that end anywhere. */
static void
test_long_way (void)
{
  g_autoptr (HeadwayCliLineWindow) window = headway_cli_line_window_new ();
  g_autoptr (GString) all = g_string_new (NULL);
  g_autoptr (GString) expected = g_string_new (NULL);
  guint64 next = 1;

  for (guint i = 1; i <= 30000; i++)
    {
      g_autofree char *text = g_strdup_printf ("line %u of some more bytes, so that the text is cut now and then", i);
      gsize length;
      const char *unsent;

      g_string_append_printf (expected, "%s\n", text);
      add (window, i, text);
      if (i % 7 == 0)
        continue;
      unsent = headway_cli_line_window_get_unsent (window, &length);
      length = i < 30000 ? length * (i % 5) / 4 : length;
      length = MIN (length, strlen (unsent));
      g_string_append_len (all, unsent, (gssize) length);
      headway_cli_line_window_add_sent (window, length);
      while (headway_cli_line_window_get_n_sent (window) > 3)
        {
          g_assert_cmpuint (headway_cli_line_window_get_number (window), ==, next++);
          g_assert_true (headway_cli_line_window_pop (window));
        }
    }
  g_assert_cmpstr (all->str, ==, expected->str);
  g_assert_cmpuint (next, ==, 30000 - 2);
}

int
main (int argc,
      char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/cli-line-window/answers-take-lines-in-order", test_answers_take_lines_in_order);
  g_test_add_func ("/cli-line-window/rewind-sends-again-what-is-not-answered", test_rewind_sends_again_what_is_not_answered);
  g_test_add_func ("/cli-line-window/begun-is-the-first-line-alone", test_begun_is_the_first_line_alone);
  g_test_add_func ("/cli-line-window/drop-keeps-a-line-that-is-begun", test_drop_keeps_a_line_that_is_begun);
  g_test_add_func ("/cli-line-window/room-is-bounded", test_room_is_bounded);
  g_test_add_func ("/cli-line-window/long-way", test_long_way);
  return g_test_run ();
}
