/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-json.h"

#include <string.h>

static HeadwayCliSlice
slice (const char *text)
{
  return (HeadwayCliSlice){ text, strlen (text) };
}

/* All members as `name=value` and LF; `broken` at the end where the text is. */
static char *
walk (const char *text)
{
  GString *seen = g_string_new (NULL);
  HeadwayCliJsonIter iter;
  HeadwayCliSlice key;
  HeadwayCliSlice value;

  if (!headway_cli_json_iter_init (&iter, slice (text)))
    g_string_append (seen, "none ");
  while (headway_cli_json_iter_next (&iter, &key, &value))
    g_string_append_printf (seen, "%.*s=%.*s\n", (int) key.length, key.length > 0 ? key.text : "", (int) value.length, value.text);
  if (!headway_cli_json_iter_is_complete (&iter))
    g_string_append (seen, "broken");
  return g_string_free (seen, FALSE);
}

static void
assert_walk (const char *text,
             const char *expected)
{
  g_autofree char *seen = walk (text);

  g_assert_cmpstr (seen, ==, expected);
}

static void
test_members_are_slices (void)
{
  assert_walk (" { \"a\" : 1e400 ,\"b\":{\"}\":[1,\"]\\\"\"]},\n\"c\":[ ] } ", "\"a\"=1e400\n\"b\"={\"}\":[1,\"]\\\"\"]}\n\"c\"=[ ]\n");
  assert_walk ("[1,{\"a\":[2]},\"x\"]", "=1\n={\"a\":[2]}\n=\"x\"\n");
  assert_walk ("{}", "");
  assert_walk ("[]", "");
}

static void
test_broken_texts_end (void)
{
  assert_walk ("", "none broken");
  assert_walk ("1", "none broken");
  assert_walk ("{", "broken");
  assert_walk ("{\"a\"", "broken");
  assert_walk ("{\"a\":", "broken");
  assert_walk ("{\"a\":}", "broken");
  assert_walk ("{\"a\":\"x", "broken");
  assert_walk ("{\"a\":\"x\\", "broken");
  assert_walk ("{\"a\":[{]", "broken");
  assert_walk ("{\"a\":1", "\"a\"=1\nbroken");
  assert_walk ("{\"a\":1 2}", "\"a\"=1\nbroken");
  assert_walk ("{\"a\":1,}", "\"a\"=1\nbroken");
  assert_walk ("{\"a\":1}x", "\"a\"=1\nbroken");
  assert_walk ("{a:1}", "broken");
}

static void
test_deep_nesting_needs_no_stack (void)
{
  g_autoptr (GString) text = g_string_new ("[");

  for (int i = 0; i < 1000000; i++)
    g_string_append_c (text, '[');
  assert_walk (text->str, "broken");
}

static void
assert_string (const char *json,
               const char *expected)
{
  g_autofree char *text = headway_cli_json_dup_string (slice (json));

  g_assert_cmpstr (text, ==, expected);
}

static void
test_strings (void)
{
  assert_string ("\"\"", "");
  assert_string ("\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "a\"\\/\b\f\n\r\t");
  assert_string ("\"\\u00e4\\ud83d\\ude8c\"", "\303\244\360\237\232\214");
  assert_string ("\"\\ud83d\"", "\357\277\275");
  assert_string ("\"\\ud83d\\u0041\"", "\357\277\275A");
  assert_string ("\"\\udc00\"", "\357\277\275");
  assert_string ("\"\\u0000\"", NULL);
  assert_string ("\"\\x\"", NULL);
  assert_string ("\"\\u12\"", NULL);
  assert_string ("\"a\"b\"", NULL);
  assert_string ("\"\n\"", NULL);
  assert_string ("\"\377\"", NULL);
  assert_string ("\"", NULL);
  assert_string ("1", NULL);
  assert_string ("", NULL);
}

static void
test_append_string_repairs (void)
{
  const char bytes[] = "a\"\\\n\0\303\244\377\342\202";
  g_autoptr (GString) json = g_string_new (NULL);

  g_assert_cmpuint (headway_cli_json_append_string (json, bytes, sizeof bytes - 1), ==, 3);
  g_assert_cmpstr (json->str, ==, "\"a\\\"\\\\\\u000a\\u0000\303\244\357\277\275\357\277\275\357\277\275\"");
}

static void
assert_one_value (const char *text,
                  gboolean expected,
                  gsize expected_position)
{
  gsize position;

  g_assert_cmpint (headway_cli_json_is_one_value (slice (text), &position), ==, expected);
  g_assert_cmpuint (position, ==, expected_position);
}

static void
test_one_value (void)
{
  assert_one_value ("1", TRUE, 1);
  assert_one_value (" {\"a\":1} ", TRUE, 9);
  assert_one_value ("\"}\"", TRUE, 3);
  assert_one_value ("", FALSE, 0);
  assert_one_value ("1},{\"data\":2", FALSE, 1);
  assert_one_value ("1,\"topic\":\"x\"", FALSE, 1);
  assert_one_value ("{}}", FALSE, 2);
  assert_one_value ("hello world", FALSE, 6);
  assert_one_value ("{\"a\":1", FALSE, 6);
  assert_one_value ("\"abc", FALSE, 4);
}

static void
test_numbers (void)
{
  guint64 number;

  g_assert_true (headway_cli_json_get_uint64 (slice ("9007199254740991"), &number));
  g_assert_cmpuint (number, ==, G_GUINT64_CONSTANT (9007199254740991));
  g_assert_false (headway_cli_json_get_uint64 (slice ("1.5"), &number));
  g_assert_false (headway_cli_json_get_uint64 (slice ("-1"), &number));
  g_assert_false (headway_cli_json_get_uint64 (slice ("null"), &number));
  g_assert_false (headway_cli_json_get_uint64 (slice ("99999999999999999999999999"), &number));
}

static void
test_get_member (void)
{
  HeadwayCliSlice value;

  g_assert_true (headway_cli_json_get_member (slice ("{\"x\":{\"d\":1},\"d\\u0061ta\":[2]}"), "data", &value));
  g_assert_cmpmem (value.text, value.length, "[2]", 3);
  g_assert_false (headway_cli_json_get_member (slice ("{\"x\":{\"data\":1}}"), "data", &value));
  g_assert_false (headway_cli_json_get_member (slice ("[1]"), "data", &value));
}

int
main (int argc,
      char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/cli/json/members-are-slices", test_members_are_slices);
  g_test_add_func ("/cli/json/broken-texts-end", test_broken_texts_end);
  g_test_add_func ("/cli/json/deep-nesting-needs-no-stack", test_deep_nesting_needs_no_stack);
  g_test_add_func ("/cli/json/strings", test_strings);
  g_test_add_func ("/cli/json/append-string-repairs", test_append_string_repairs);
  g_test_add_func ("/cli/json/one-value", test_one_value);
  g_test_add_func ("/cli/json/numbers", test_numbers);
  g_test_add_func ("/cli/json/get-member", test_get_member);
  return g_test_run ();
}
