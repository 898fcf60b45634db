/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-json.h"

#include "engine/headway-error.h"
#include "json-reference.h"

#include <string.h>

#define VALID JSON_REFERENCE_VALID

#define GOOD(text)                 \
  {                                \
    text, sizeof (text) - 1, VALID \
  }
#define BAD(text, position)           \
  {                                   \
    text, sizeof (text) - 1, position \
  }

typedef struct
{
  const char *text;
  gsize length;
  gint64 position; /* of the offending byte, or VALID */
} Case;

static const Case literals[] = {
  GOOD ("true"),
  GOOD ("false"),
  GOOD ("null"),
  GOOD (" \t\r\n true \n"),
  BAD ("", 0),
  BAD (" ", 1),
  BAD ("\n\n", 2),
  BAD ("t", 1),
  BAD ("tru", 3),
  BAD ("trUe", 2),
  BAD ("True", 0),
  BAD ("TRUE", 0),
  BAD ("truex", 4),
  BAD ("true false", 5),
  BAD ("fals ", 4),
  BAD ("nul", 3),
  BAD ("nil", 1),
  BAD ("None", 0),
  BAD ("NaN", 0),
  BAD ("nan", 1),
  BAD ("Infinity", 0),
  BAD ("undefined", 0),
  BAD ("x", 0),
  BAD ("true,", 4),
  BAD (",", 0),
  BAD (":", 0),
  BAD ("}", 0),
  BAD ("]", 0),
  BAD ("\xef\xbb\xbftrue", 0),
  BAD ("\xfe\xff", 0),
  BAD ("\0", 0),
  BAD ("true\0", 4),
  BAD ("\0true", 0),
  BAD ("\vtrue", 0),
  BAD ("\ftrue", 0),
  BAD ("true\f", 4),
  BAD ("\xc2\xa0true", 0),
  BAD ("//x\ntrue", 0),
  BAD ("/**/true", 0),
  BAD ("true //", 5),
  BAD ("#\ntrue", 0),
  BAD ("(true)", 0),
};

static const Case numbers[] = {
  GOOD ("0"),
  GOOD ("-0"),
  GOOD ("1"),
  GOOD ("-1"),
  GOOD ("10"),
  GOOD ("123456789012345678901234567890"),
  GOOD ("0.0"),
  GOOD ("0.5"),
  GOOD ("-0.0e0"),
  GOOD ("1.25e+10"),
  GOOD ("1E400"),
  GOOD ("1e-400"),
  GOOD ("0e1"),
  GOOD ("1E+00"),
  GOOD ("9007199254740993"),
  BAD ("01", 1),
  BAD ("00", 1),
  BAD ("-01", 2),
  BAD ("+1", 0),
  BAD ("-", 1),
  BAD ("--1", 1),
  BAD ("-x", 1),
  BAD (".5", 0),
  BAD ("-.5", 1),
  BAD ("1.", 2),
  BAD ("1.e1", 2),
  BAD ("1.x", 2),
  BAD ("1..2", 2),
  BAD ("1e", 2),
  BAD ("1e+", 3),
  BAD ("1e-x", 3),
  BAD ("1e1.5", 3),
  BAD ("1.2.3", 3),
  BAD ("0x10", 1),
  BAD ("1_000", 1),
  BAD ("1,000", 1),
  BAD ("1 2", 2),
  BAD ("-Infinity", 1),
  BAD ("-NaN", 1),
  BAD ("1n", 1),
  BAD ("\xd9\xa1", 0),
  BAD ("1e1e1", 3),
  BAD ("[01]", 2),
  BAD ("[1.]", 3),
  BAD ("- 1", 1),
};

static const Case strings[] = {
  GOOD ("\"\""),
  GOOD ("\"a\""),
  GOOD ("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""),
  GOOD ("\"\\u0000\""),
  GOOD ("\"\\uABCDef\""),
  GOOD ("\"\\ud83d\\ude00\""),
  GOOD ("\"\\ud800\""),
  GOOD ("\"\\udc00\\ud800\""),
  GOOD ("\"\x7f\""),
  GOOD ("\"ä€😀\""),
  GOOD ("\"\xc2\x80\xdf\xbf\""),
  GOOD ("\"\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\""),
  GOOD ("\"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\""),
  GOOD ("\"0123456789abcdef0123456789abcdef\""),
  GOOD ("\"/* no */ // no\""),
  BAD ("\"", 1),
  BAD ("\"a", 2),
  BAD ("\"01234567", 9),
  BAD ("\"\\", 2),
  BAD ("\"\\\"", 3),
  BAD ("'a'", 0),
  BAD ("\"\\x41\"", 2),
  BAD ("\"\\'\"", 2),
  BAD ("\"\\0\"", 2),
  BAD ("\"\\U0041\"", 2),
  BAD ("\"\\\0\"", 2),
  BAD ("\"\\\n\"", 2),
  BAD ("\"\\u\"", 3),
  BAD ("\"\\u12\"", 5),
  BAD ("\"\\u123\"", 6),
  BAD ("\"\\u12g4\"", 5),
  BAD ("\"\\u+123\"", 3),
  BAD ("\"\\u123", 6),
  BAD ("\"\n\"", 1),
  BAD ("\"\t\"", 1),
  BAD ("\"\0\"", 1),
  BAD ("\"\x1f\"", 1),
  BAD ("\"0123456789\r\"", 11),
  BAD ("\"01234567\x01\"", 9),
  BAD ("\"\x80\"", 1),
  BAD ("\"\xbf\"", 1),
  BAD ("\"\xc0\x80\"", 1),
  BAD ("\"\xc1\xbf\"", 1),
  BAD ("\"\xc3\"", 2),
  BAD ("\"\xc3", 2),
  BAD ("\"\xc3(\"", 2),
  BAD ("\"\xe0\x9f\xbf\"", 2),
  BAD ("\"\xe2\x82\"", 3),
  BAD ("\"\xe2\x28\xa1\"", 2),
  BAD ("\"\xe2\x82", 3),
  BAD ("\"\xed\xa0\x80\"", 2),
  BAD ("\"\xed\xbf\xbf\"", 2),
  BAD ("\"\xf0\x8f\xbf\xbf\"", 2),
  BAD ("\"\xf0\x9f\x98\"", 4),
  BAD ("\"\xf0\x9f\x98", 4),
  BAD ("\"\xf4\x90\x80\x80\"", 2),
  BAD ("\"\xf5\x80\x80\x80\"", 1),
  BAD ("\"\xfe\"", 1),
  BAD ("\"\xff\"", 1),
  BAD ("\"äöü\x80\"", 7),
  BAD ("\"01234567\xff\"", 9),
  BAD ("\"a\" \"b\"", 4),
  BAD ("\"a\"\"", 3),
  BAD ("a\"", 0),
};

static const Case containers[] = {
  GOOD ("[]"),
  GOOD ("{}"),
  GOOD ("[ ]"),
  GOOD ("{\n}"),
  GOOD ("[1]"),
  GOOD ("[1,2 , 3]"),
  GOOD ("[[],[[]],{}]"),
  GOOD ("{\"a\":1}"),
  GOOD ("{ \"a\" : { } , \"b\" : [ ] }"),
  GOOD ("{\"a\":1,\"a\":2}"),
  GOOD ("{\"\":null}"),
  GOOD ("[{\"a\":[{\"b\":[true,false,null,\"x\",-1.5e3]}]}]"),
  GOOD ("{\"\\u0061\":{\"b\":{}}}"),
  BAD ("[", 1),
  BAD ("{", 1),
  BAD ("[1", 2),
  BAD ("[1,", 3),
  BAD ("[1,]", 3),
  BAD ("[,1]", 1),
  BAD ("[,]", 1),
  BAD ("[1 2]", 3),
  BAD ("[1}", 2),
  BAD ("{]", 1),
  BAD ("[)", 1),
  BAD ("[]]", 2),
  BAD ("[][]", 2),
  BAD ("{}{}", 2),
  BAD ("{}x", 2),
  BAD ("[1,,2]", 3),
  BAD ("[1;2]", 2),
  BAD ("[1:2]", 2),
  BAD ("{1:2}", 1),
  BAD ("{a:1}", 1),
  BAD ("{'a':1}", 1),
  BAD ("{\"a\"}", 4),
  BAD ("{\"a\"", 4),
  BAD ("{\"a\":", 5),
  BAD ("{\"a\":}", 5),
  BAD ("{\"a\" 1}", 5),
  BAD ("{\"a\":1", 6),
  BAD ("{\"a\":1,", 7),
  BAD ("{\"a\":1,}", 7),
  BAD ("{,}", 1),
  BAD ("{\"a\":1 \"b\":2}", 7),
  BAD ("{\"a\":1]", 6),
  BAD ("{\"a\",1}", 4),
  BAD ("{\"a\"::1}", 5),
  BAD ("{null:1}", 1),
  BAD ("{{}:1}", 1),
  BAD ("{\"a\":1,b:2}", 7),
  BAD ("[/**/]", 1),
  BAD ("[1/**/]", 2),
  BAD ("[1,//\n2]", 3),
  BAD ("[\"a]", 4),
  BAD ("[1]\0", 3),
  BAD ("[\0]", 1),
  BAD ("[tru]", 4),
  BAD ("[\xef\xbb\xbf]", 1),
  BAD ("[nullnull]", 5),
  BAD ("[\"a\"\"b\"]", 4),
  BAD ("[[1]", 4),
  BAD ("{\"a\":[}", 6),
  BAD ("[{]", 2),
};

/* On the heap and of exact size, so that a sanitizer sees each byte read too many. */
static gint64
check (const char *text, gsize length, guint max_depth, HeadwayJson *json)
{
  g_autofree char *copy = g_memdup2 (text, length);
  g_autoptr (GError) error = NULL;
  HeadwayJson value = { 0 };

  if (headway_json_validate (copy, length, max_depth, &value, &error))
    {
      g_assert_no_error (error);
      if (json != NULL)
        *json = (HeadwayJson){ text + (value.text - copy), value.length, value.type };
      return VALID;
    }

  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_DATA);
  g_assert_true (g_str_has_prefix (error->message, "expected "));
  g_assert_true (g_utf8_validate (error->message, -1, NULL));

  return headway_error_get_details (error)->position;
}

static void
run_table (const Case *cases, gsize n)
{
  for (gsize i = 0; i < n; i++)
    {
      g_autofree char *shown = g_strescape (cases[i].text, NULL);

      g_test_message ("%s", shown);
      g_assert_cmpint (check (cases[i].text, cases[i].length, 128, NULL), ==, cases[i].position);
      g_assert_cmpint (json_reference_check (cases[i].text, cases[i].length, 128), ==, cases[i].position);
    }
}

static void
test_table_literals (void)
{
  run_table (literals, G_N_ELEMENTS (literals));
}

static void
test_table_numbers (void)
{
  run_table (numbers, G_N_ELEMENTS (numbers));
}

static void
test_table_strings (void)
{
  run_table (strings, G_N_ELEMENTS (strings));
}

static void
test_table_containers (void)
{
  run_table (containers, G_N_ELEMENTS (containers));
}

/* The scanner takes eight bytes at a time; nothing may depend on where in them a byte stands. */
static void
test_string_any_byte_anywhere (void)
{
  for (guint byte = 0; byte < 256; byte++)
    {
      for (gsize before = 0; before < 20; before++)
        {
          char text[64];
          gsize length = before + 12;

          memset (text, 'x', length);
          text[0] = '"';
          text[1 + before] = (char) byte;
          text[length - 1] = '"';
          g_assert_cmpint (check (text, length, 128, NULL), ==, json_reference_check (text, length, 128));
        }
    }
}

static char *
nest (const char *open, const char *inside, const char *close, guint n)
{
  g_autoptr (GString) text = g_string_new (NULL);

  for (guint i = 0; i < n; i++)
    g_string_append (text, open);
  g_string_append (text, inside);
  for (guint i = 0; i < n; i++)
    g_string_append (text, close);

  return g_string_free (g_steal_pointer (&text), FALSE);
}

static void
test_depth_of_arrays (void)
{
  g_autofree char *deepest = nest ("[", "", "]", 128);
  g_autofree char *too_deep = nest ("[", "", "]", 129);

  g_assert_cmpint (check (deepest, strlen (deepest), 128, NULL), ==, VALID);
  g_assert_cmpint (check (too_deep, strlen (too_deep), 128, NULL), ==, 128);
}

static void
test_depth_of_objects (void)
{
  g_autofree char *deepest = nest ("{\"a\":", "1", "}", 128);
  g_autofree char *too_deep = nest ("{\"a\":", "1", "}", 129);

  g_assert_cmpint (check (deepest, strlen (deepest), 128, NULL), ==, VALID);
  g_assert_cmpint (check (too_deep, strlen (too_deep), 128, NULL), ==, 128 * 5);
}

static void
test_depth_limit_is_the_callers (void)
{
  g_autofree char *deepest = nest ("[{\"a\":", "[]", "}]", 511);
  gsize length = strlen (deepest);

  g_assert_cmpint (check ("1", 1, 1, NULL), ==, VALID);
  g_assert_cmpint (check ("[1]", 3, 1, NULL), ==, VALID);
  g_assert_cmpint (check ("[[]]", 4, 1, NULL), ==, 1);
  g_assert_cmpint (check (deepest, length, 1024, NULL), ==, VALID);
  g_assert_cmpint (check (deepest, length, 1023, NULL), ==, VALID);
  g_assert_cmpint (check (deepest, length, 1022, NULL), ==, 511 * 6);
}

static void
test_depth_counts_what_is_open (void)
{
  g_autofree char *wide = nest ("[],{},", "1", "", 1000);
  g_autofree char *text = g_strdup_printf ("[%s]", wide);

  g_assert_cmpint (check (text, strlen (text), 2, NULL), ==, VALID);
}

static void
test_depth_of_200000_is_no_recursion (void)
{
  g_autofree char *text = g_strnfill (200000, '[');

  g_assert_cmpint (check (text, 200000, 1024, NULL), ==, 1024);
  g_assert_cmpint (check (text, 200000, 128, NULL), ==, 128);
}

static void
test_depth_message_names_the_limit (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (headway_json_validate ("[[[]]]", 6, 2, NULL, &error));
  g_assert_cmpstr (error->message, ==, "expected at most 2 nested containers at byte 2, found '['");
}

static void
test_message_names_what_was_expected (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (headway_json_validate ("{\"a\" 1}", 7, 128, NULL, &error));
  g_assert_cmpstr (error->message, ==, "expected ':' at byte 5, found '1'");
  g_clear_error (&error);
  g_assert_false (headway_json_validate ("[1,", 3, 128, NULL, &error));
  g_assert_cmpstr (error->message, ==, "expected a value at byte 3, found the end of the text");
  g_clear_error (&error);
  g_assert_false (headway_json_validate ("\"\n\"", 3, 128, NULL, &error));
  g_assert_cmpstr (error->message, ==, "expected an escape instead of a control character at byte 1, found the byte 0x0a");
}

static void
test_value_is_without_space_around (void)
{
  static const char text[] = "\r\n [1, 2] \t";
  HeadwayJson json;

  g_assert_cmpint (check (text, sizeof text - 1, 128, &json), ==, VALID);
  g_assert_true (json.text == text + 3);
  g_assert_cmpuint (json.length, ==, 6);
  g_assert_cmpint (json.type, ==, HEADWAY_JSON_ARRAY);
}

static void
test_value_has_its_type (void)
{
  static const struct
  {
    const char *text;
    HeadwayJsonType type;
  } cases[] = {
    { "null", HEADWAY_JSON_NULL },
    { "true", HEADWAY_JSON_BOOLEAN },
    { "false", HEADWAY_JSON_BOOLEAN },
    { "-1", HEADWAY_JSON_NUMBER },
    { "0", HEADWAY_JSON_NUMBER },
    { "\"\"", HEADWAY_JSON_STRING },
    { "[]", HEADWAY_JSON_ARRAY },
    { "{}", HEADWAY_JSON_OBJECT },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      HeadwayJson json;

      g_assert_cmpint (check (cases[i].text, strlen (cases[i].text), 128, &json), ==, VALID);
      g_assert_cmpint (json.type, ==, cases[i].type);
    }
}

static void
test_prefixes_are_refused (void)
{
  static const char *const texts[] = {
    "{\"a\":[1.5e-3,true,false,null,\"\\u00e4\\n😀\"],\"b\":{\"c\":{}}}",
    "[[[],[{}]],-0,\"x\"]",
    "\"äöü€\\ud83d\\ude00 0123456789\"",
    "true",
    "{}",
  };

  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++)
    {
      gsize length = strlen (texts[i]);

      g_assert_cmpint (check (texts[i], length, 128, NULL), ==, VALID);
      for (gsize cut = 0; cut < length; cut++)
        g_assert_cmpint (check (texts[i], cut, 128, NULL), ==, (gint64) cut);
    }
}

static gsize
mutate (GRand *random, char *text, gsize length)
{
  static const char alphabet[] = "{}[]\",:\\ \n0123456789-+.eEtrufalsnbx/\x00\x1f\x7f\x80\xbf\xc3\xe2\x82\xac\xed\xa0\xf0\x9f\xf4\x90\xff";

  for (gint32 n = g_rand_int_range (random, 1, 4); n > 0; n--)
    {
      gsize at = (gsize) g_rand_int_range (random, 0, (gint32) length);
      char byte = alphabet[g_rand_int_range (random, 0, sizeof alphabet - 1)];

      switch (g_rand_int_range (random, 0, 3))
        {
        case 0:
          text[at] = byte;
          break;
        case 1:
          memmove (text + at + 1, text + at, length - at);
          text[at] = byte;
          length++;
          break;
        default:
          memmove (text + at, text + at + 1, length - at - 1);
          length = MAX (length - 1, 1);
        }
    }

  return length;
}

static void
test_random_mutations_agree_with_reference (void)
{
  static const char *const seeds[] = {
    "{\"a\":[1.5e-3,true,false,null,\"\\u00e4\\n😀\"],\"b\":{\"c\":{}}}",
    "[[[[1,2],[3]],{\"x\":\"y\"}],-0.5,\"äöü€ 0123456789 abc\"]",
    "[]",
    "{\"\":0}",
    "\"\\\\\\\"\"",
    "[0,-1,12,1e5,1E-5,0.25]",
    " [ { \"k\" : [ ] } , null ] ",
  };
  g_autoptr (GRand) random = g_rand_new_with_seed (8259);
  guint valid = 0;

  for (guint i = 0; i < 300000; i++)
    {
      const char *seed = seeds[g_rand_int_range (random, 0, G_N_ELEMENTS (seeds))];
      guint max_depth = (guint) g_rand_int_range (random, 1, 8);
      char text[128];
      gsize length = strlen (seed);
      gint64 expected;

      memcpy (text, seed, length);
      length = mutate (random, text, length);
      expected = json_reference_check (text, length, max_depth);
      valid += expected == VALID;
      g_assert_cmpint (check (text, length, max_depth, NULL), ==, expected);
    }
  g_assert_cmpuint (valid, >, 1000);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);

  g_test_add_func ("/json/table/literals", test_table_literals);
  g_test_add_func ("/json/table/numbers", test_table_numbers);
  g_test_add_func ("/json/table/strings", test_table_strings);
  g_test_add_func ("/json/table/containers", test_table_containers);
  g_test_add_func ("/json/string/any-byte-anywhere", test_string_any_byte_anywhere);
  g_test_add_func ("/json/depth/of-arrays", test_depth_of_arrays);
  g_test_add_func ("/json/depth/of-objects", test_depth_of_objects);
  g_test_add_func ("/json/depth/limit-is-the-callers", test_depth_limit_is_the_callers);
  g_test_add_func ("/json/depth/counts-what-is-open", test_depth_counts_what_is_open);
  g_test_add_func ("/json/depth/of-200000-is-no-recursion", test_depth_of_200000_is_no_recursion);
  g_test_add_func ("/json/depth/message-names-the-limit", test_depth_message_names_the_limit);
  g_test_add_func ("/json/message/names-what-was-expected", test_message_names_what_was_expected);
  g_test_add_func ("/json/value/is-without-space-around", test_value_is_without_space_around);
  g_test_add_func ("/json/value/has-its-type", test_value_has_its_type);
  g_test_add_func ("/json/prefixes/are-refused", test_prefixes_are_refused);
  g_test_add_func ("/json/random/mutations-agree-with-reference", test_random_mutations_agree_with_reference);

  return g_test_run ();
}
