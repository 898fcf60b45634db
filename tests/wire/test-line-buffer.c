/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "wire/headway-line-buffer.h"

#include <string.h>

#define LINE_MAX_BYTES 8

/* All lines that can be taken, one letter and its text each. */
static char *
take_all (HeadwayLineBuffer *buffer)
{
  GString *lines = g_string_new (NULL);
  HeadwayLineKind kind;
  const char *text;
  gsize length;

  while ((kind = headway_line_buffer_next (buffer, LINE_MAX_BYTES, &text, &length)) != HEADWAY_LINE_NONE)
    {
      g_string_append_printf (lines, "%s%u", lines->len > 0 ? " " : "", (guint) buffer->line);
      if (kind == HEADWAY_LINE_TEXT)
        g_string_append_printf (lines, "=%.*s", (int) length, text);
      else
        g_string_append (lines, kind == HEADWAY_LINE_BLANK ? "-" : "!");
    }
  return g_string_free (lines, FALSE);
}

static void
append (HeadwayLineBuffer *buffer, const char *text)
{
  headway_line_buffer_append (buffer, text, strlen (text));
}

static void
check (HeadwayLineBuffer *buffer, const char *more, const char *expected)
{
  g_autofree char *found = NULL;

  append (buffer, more);
  found = take_all (buffer);
  g_assert_cmpstr (found, ==, expected);
}

static void
test_pieces (void)
{
  g_auto (HeadwayLineBuffer) buffer = { 0 };

  check (&buffer, "", "");
  check (&buffer, "ab", "");
  check (&buffer, "c\nd", "1=abc");
  check (&buffer, "\n", "2=d");
  check (&buffer, "e\nf\ng", "3=e 4=f");
  headway_line_buffer_end (&buffer);
  check (&buffer, "", "5=g");
  check (&buffer, "", "");
  g_assert_cmpuint (headway_line_buffer_get_waiting (&buffer), ==, 0);
}

static void
test_blank_lines_count (void)
{
  g_auto (HeadwayLineBuffer) buffer = { 0 };

  check (&buffer, "\n \t\n\r\na\r\n\n", "1- 2- 3- 4=a\r 5-");
  headway_line_buffer_end (&buffer);
  check (&buffer, "", "");
  check (&buffer, "  ", "6-");
}

static void
test_longest_line (void)
{
  g_auto (HeadwayLineBuffer) buffer = { 0 };

  check (&buffer, "12345678\n123456789\n1\n", "1=12345678 2! 3=1");
  /* One that is not whole yet: both sides. */
  check (&buffer, "12345678", "");
  check (&buffer, "\n", "4=12345678");
  check (&buffer, "123456789", "5!");
}

static void
test_cr_does_not_count (void)
{
  g_auto (HeadwayLineBuffer) buffer = { 0 };

  check (&buffer, "12345678\r\n123456789\r\n12345678\r\r\n1\n", "1=12345678\r 2! 3! 4=1");
  /* Before the LF has come. */
  check (&buffer, "12345678\r", "");
  check (&buffer, "\n", "5=12345678\r");
  check (&buffer, "12345678\r", "");
  check (&buffer, "9", "6!");
  check (&buffer, "\n12345678\r", "");
  headway_line_buffer_end (&buffer);
  check (&buffer, "", "7=12345678\r");
}

static void
test_rest_of_long_line_takes_no_memory (void)
{
  g_auto (HeadwayLineBuffer) buffer = { 0 };

  check (&buffer, "123456789", "1!");
  for (guint i = 0; i < 10000; i++)
    {
      check (&buffer, "0123456789012345678901234567890123456789", "");
      g_assert_cmpuint (headway_line_buffer_get_waiting (&buffer), ==, 0);
    }
  g_assert_cmpuint (buffer.size, <, 100);
  check (&buffer, "the end\nnext\n", "2=next");
}

static void
test_long_line_at_end (void)
{
  g_auto (HeadwayLineBuffer) first = { 0 };
  g_auto (HeadwayLineBuffer) second = { 0 };

  append (&first, "123456789");
  headway_line_buffer_end (&first);
  check (&first, "", "1!");
  check (&second, "123456789", "1!");
  headway_line_buffer_end (&second);
  check (&second, "x", "");
}

static void
test_give_back (void)
{
  g_auto (HeadwayLineBuffer) buffer = { 0 };
  const char *text;
  gsize length;

  append (&buffer, "a\nbc\nd");
  g_assert_cmpint (headway_line_buffer_next (&buffer, LINE_MAX_BYTES, &text, &length), ==, HEADWAY_LINE_TEXT);
  g_assert_cmpint (headway_line_buffer_next (&buffer, LINE_MAX_BYTES, &text, &length), ==, HEADWAY_LINE_TEXT);
  headway_line_buffer_give_back (&buffer);
  g_assert_cmpuint (buffer.line, ==, 1);
  check (&buffer, "", "2=bc");
  headway_line_buffer_end (&buffer);
  check (&buffer, "", "3=d");
  headway_line_buffer_give_back (&buffer);
  check (&buffer, "", "3=d");
}

static void
test_reserve_keeps_beginning (void)
{
  g_auto (HeadwayLineBuffer) buffer = { 0 };
  gsize room;
  char *to;

  check (&buffer, "first\nab", "1=first");
  to = headway_line_buffer_reserve (&buffer, 1000, &room);
  g_assert_cmpuint (room, >=, 1000);
  memcpy (to, "cd\n", 3);
  headway_line_buffer_commit (&buffer, 3);
  check (&buffer, "", "2=abcd");
}

static void
test_trim (void)
{
  g_auto (HeadwayLineBuffer) buffer = { 0 };

  check (&buffer, "a\nb", "1=a");
  headway_line_buffer_trim (&buffer);
  check (&buffer, "\n", "2=b");
  headway_line_buffer_trim (&buffer);
  g_assert_null (buffer.bytes);
  check (&buffer, "c\n", "3=c");
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/line-buffer/pieces", test_pieces);
  g_test_add_func ("/line-buffer/blank-lines-count", test_blank_lines_count);
  g_test_add_func ("/line-buffer/longest-line", test_longest_line);
  g_test_add_func ("/line-buffer/cr-does-not-count", test_cr_does_not_count);
  g_test_add_func ("/line-buffer/rest-of-long-line-takes-no-memory", test_rest_of_long_line_takes_no_memory);
  g_test_add_func ("/line-buffer/long-line-at-end", test_long_line_at_end);
  g_test_add_func ("/line-buffer/give-back", test_give_back);
  g_test_add_func ("/line-buffer/reserve-keeps-beginning", test_reserve_keeps_beginning);
  g_test_add_func ("/line-buffer/trim", test_trim);
  return g_test_run ();
}
