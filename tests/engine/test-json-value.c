/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-json.h"

#include "engine/headway-error.h"

#include <string.h>

static HeadwayJson
parse_sized (const char *text, gsize length)
{
  g_autoptr (GError) error = NULL;
  HeadwayJson json;

  g_assert_true (headway_json_validate (text, length, 128, &json, &error));
  g_assert_no_error (error);

  return json;
}

static HeadwayJson
parse (const char *text)
{
  return parse_sized (text, strlen (text));
}

static void
assert_slice (const HeadwayJson *json, const char *text, HeadwayJsonType type)
{
  g_assert_cmpmem (json->text, json->length, text, strlen (text));
  g_assert_cmpint (json->type, ==, type);
}

/* The elements (or "name=value" members) of a container, joined by bars. */
static char *
walk (const char *text)
{
  HeadwayJson json = parse (text);
  g_autoptr (GString) walked = g_string_new (NULL);
  HeadwayJsonIter iter;
  HeadwayJson name, value;

  headway_json_iter_init (&iter, &json);
  while (headway_json_iter_next (&iter, &name, &value))
    {
      if (walked->len > 0)
        g_string_append_c (walked, '|');
      if (iter.is_object)
        {
          g_assert_cmpint (name.type, ==, HEADWAY_JSON_STRING);
          g_string_append_len (walked, name.text, (gssize) name.length);
          g_string_append_c (walked, '=');
        }
      g_string_append_len (walked, value.text, (gssize) value.length);
    }
  g_assert_false (headway_json_iter_next (&iter, &name, &value));

  return g_string_free (g_steal_pointer (&walked), FALSE);
}

static void
assert_walk (const char *text, const char *expected)
{
  g_autofree char *walked = walk (text);

  g_assert_cmpstr (walked, ==, expected);
}

static void
test_iter_walks_arrays (void)
{
  assert_walk ("[]", "");
  assert_walk ("[ \n ]", "");
  assert_walk ("[1]", "1");
  assert_walk ("[ 1 ,\t2\n, 3 ]", "1|2|3");
  assert_walk ("[true,false,null,-1.5e+3,\"x\"]", "true|false|null|-1.5e+3|\"x\"");
  assert_walk ("[[1,2],[],{\"a\":[3]}]", "[1,2]|[]|{\"a\":[3]}");
}

static void
test_iter_walks_objects (void)
{
  assert_walk ("{}", "");
  assert_walk ("{\"a\":1}", "\"a\"=1");
  assert_walk (" { \"a\" : 1 , \"b\" : { \"c\" : [ ] } } ", "\"a\"=1|\"b\"={ \"c\" : [ ] }");
}

static void
test_iter_keeps_duplicates_in_order (void)
{
  assert_walk ("{\"a\":1,\"b\":2,\"a\":3}", "\"a\"=1|\"b\"=2|\"a\"=3");
}

static void
test_iter_is_not_misled_by_strings (void)
{
  assert_walk ("[\"]\",\"\\\"]\",\"\\\\\",\"[{,\",[\"]\"],{\"}\":\"}\"}]",
               "\"]\"|\"\\\"]\"|\"\\\\\"|\"[{,\"|[\"]\"]|{\"}\":\"}\"}");
  assert_walk ("{\",\\\":\":\"\\\\\\\"\",\"0123456789\":\"abcdefghijk\\\"\"}",
               "\",\\\":\"=\"\\\\\\\"\"|\"0123456789\"=\"abcdefghijk\\\"\"");
}

static void
test_iter_gives_types (void)
{
  static const HeadwayJsonType types[] = {
    HEADWAY_JSON_NULL, HEADWAY_JSON_BOOLEAN, HEADWAY_JSON_NUMBER, HEADWAY_JSON_STRING, HEADWAY_JSON_ARRAY, HEADWAY_JSON_OBJECT
  };
  HeadwayJson json = parse ("[null,true,0,\"\",[],{}]");
  HeadwayJsonIter iter;
  HeadwayJson value;

  headway_json_iter_init (&iter, &json);
  for (gsize i = 0; i < G_N_ELEMENTS (types); i++)
    {
      g_assert_true (headway_json_iter_next (&iter, NULL, &value));
      g_assert_cmpint (value.type, ==, types[i]);
    }
  g_assert_false (headway_json_iter_next (&iter, NULL, &value));
}

static void
test_iter_of_no_container_is_empty (void)
{
  assert_walk ("\"abc\"", "");
  assert_walk ("12", "");
}

static void
test_iter_skips_deep_values_in_a_loop (void)
{
  g_autoptr (GString) text = g_string_new ("[");
  HeadwayJsonIter iter;
  HeadwayJson json, value;

  for (guint i = 0; i < 1000; i++)
    g_string_append_c (text, '[');
  for (guint i = 0; i < 1000; i++)
    g_string_append_c (text, ']');
  g_string_append (text, ",7]");
  g_assert_true (headway_json_validate (text->str, text->len, 1024, &json, NULL));

  headway_json_iter_init (&iter, &json);
  g_assert_true (headway_json_iter_next (&iter, NULL, &value));
  g_assert_cmpuint (value.length, ==, 2000);
  g_assert_true (headway_json_iter_next (&iter, NULL, &value));
  assert_slice (&value, "7", HEADWAY_JSON_NUMBER);
  g_assert_false (headway_json_iter_next (&iter, NULL, &value));
}

static void
assert_string (const char *text, const char *expected)
{
  HeadwayJson json = parse (text);
  g_autoptr (GError) error = NULL;
  g_autofree char *decoded = headway_json_dup_string (&json, &error);

  g_assert_no_error (error);
  g_assert_cmpstr (decoded, ==, expected);
  g_assert_true (headway_json_string_equals (&json, expected));
}

static void
test_string_decodes (void)
{
  assert_string ("\"\"", "");
  assert_string ("\"plain\"", "plain");
  assert_string ("\"ä€😀\"", "ä€😀");
  assert_string ("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t");
  assert_string ("\"\\u0041\\u00e4\\u20AC\"", "Aä€");
  assert_string ("\"before\\u0001after 0123456789\"", "before\001after 0123456789");
}

static void
test_string_joins_surrogates (void)
{
  assert_string ("\"\\ud83d\\ude00\"", "😀");
  assert_string ("\"\\uD800\\uDC00\"", "\xf0\x90\x80\x80");
  assert_string ("\"\\udbff\\udfff\"", "\xf4\x8f\xbf\xbf");
}

static void
test_string_replaces_lone_surrogates (void)
{
  assert_string ("\"\\ud83d\"", "\xef\xbf\xbd");
  assert_string ("\"\\ude00\"", "\xef\xbf\xbd");
  assert_string ("\"\\ude00\\ud83d\"", "\xef\xbf\xbd\xef\xbf\xbd");
  assert_string ("\"\\ud83d\\ud83d\\ude00\"", "\xef\xbf\xbd😀");
  assert_string ("\"\\ud800\\udbff\"", "\xef\xbf\xbd\xef\xbf\xbd");
  assert_string ("\"\\udc00\\udc00\"", "\xef\xbf\xbd\xef\xbf\xbd");
  assert_string ("\"\\ud800\\ue000\"", "\xef\xbf\xbd\xee\x80\x80");
  assert_string ("\"\\ud83dx\"", "\xef\xbf\xbdx");
  assert_string ("\"\\ud83d\\n\"", "\xef\xbf\xbd\n");
  assert_string ("\"\\ud83d\\u0041\"", "\xef\xbf\xbd"
                                       "A");
}

static void
test_string_refuses_nul (void)
{
  HeadwayJson json = parse ("\"a\\u0000b\"");
  g_autoptr (GError) error = NULL;

  g_assert_null (headway_json_dup_string (&json, &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_DATA);
  g_assert_false (headway_json_string_equals (&json, "a"));
}

static void
test_string_refuses_other_types (void)
{
  HeadwayJson json = parse ("12");
  g_autoptr (GError) error = NULL;

  g_assert_null (headway_json_dup_string (&json, &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_DATA);
  g_assert_false (headway_json_string_equals (&json, "12"));
}

static void
test_string_equals_all_or_nothing (void)
{
  HeadwayJson json = parse ("\"a\\u0062c\"");

  g_assert_true (headway_json_string_equals (&json, "abc"));
  g_assert_false (headway_json_string_equals (&json, "ab"));
  g_assert_false (headway_json_string_equals (&json, "abcd"));
  g_assert_false (headway_json_string_equals (&json, "abd"));
  g_assert_false (headway_json_string_equals (&json, "a"));
  g_assert_false (headway_json_string_equals (&json, ""));
}

static gboolean
read_uint (const char *text, guint64 maximum, guint64 *value)
{
  HeadwayJson json = parse (text);

  return headway_json_get_uint (&json, maximum, value);
}

static void
test_uint_reads_to_the_maximum (void)
{
  guint64 value = 7;

  g_assert_true (read_uint ("0", 0, &value));
  g_assert_cmpuint (value, ==, 0);
  g_assert_true (read_uint ("9007199254740991", HEADWAY_ID_MAX, &value));
  g_assert_cmpuint (value, ==, HEADWAY_ID_MAX);
  g_assert_true (read_uint ("18446744073709551615", G_MAXUINT64, &value));
  g_assert_cmpuint (value, ==, G_MAXUINT64);
}

static void
test_uint_refuses_beyond_the_maximum (void)
{
  guint64 value = 7;

  g_assert_false (read_uint ("1", 0, &value));
  g_assert_false (read_uint ("9007199254740992", HEADWAY_ID_MAX, &value));
  g_assert_false (read_uint ("18446744073709551616", G_MAXUINT64, &value));
  g_assert_false (read_uint ("18446744073709551620", G_MAXUINT64, &value));
  g_assert_false (read_uint ("184467440737095516150", G_MAXUINT64, &value));
  g_assert_cmpuint (value, ==, 7);
}

static void
test_uint_refuses_other_forms (void)
{
  static const char *const texts[] = { "-0", "-1", "1.0", "1e3", "0.0", "\"1\"", "true", "null", "[]", "[1]" };
  guint64 value = 7;

  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++)
    g_assert_false (read_uint (texts[i], G_MAXUINT64, &value));
  g_assert_cmpuint (value, ==, 7);
}

static void
test_boolean_reads_both_and_no_other (void)
{
  static const char *const others[] = { "null", "0", "1", "\"true\"", "[]" };
  HeadwayJson json = parse ("true");
  gboolean value = FALSE;

  g_assert_true (headway_json_get_boolean (&json, &value));
  g_assert_true (value);
  json = parse ("false");
  g_assert_true (headway_json_get_boolean (&json, &value));
  g_assert_false (value);
  for (gsize i = 0; i < G_N_ELEMENTS (others); i++)
    {
      json = parse (others[i]);
      g_assert_false (headway_json_get_boolean (&json, &value));
    }
}

static void
test_finite_to_the_end_of_a_double (void)
{
  static const char *const finite[] = { "0", "-0", "1.5", "1.7976931348623157e308", "-1e308", "1e-400" };
  static const char *const others[] = { "1e309", "-1e309", "1e400", "1.8e308", "\"1\"", "null" };

  for (gsize i = 0; i < G_N_ELEMENTS (finite); i++)
    {
      HeadwayJson json = parse (finite[i]);

      g_assert_true (headway_json_is_finite (&json));
    }
  for (gsize i = 0; i < G_N_ELEMENTS (others); i++)
    {
      HeadwayJson json = parse (others[i]);

      g_assert_false (headway_json_is_finite (&json));
    }
}

static void
test_finite_of_long_numbers (void)
{
  for (gsize length = 60; length < 70; length++)
    {
      g_autofree char *digits = g_strnfill (length, '9');
      HeadwayJson json = parse (digits);

      g_assert_true (headway_json_is_finite (&json));
    }
  for (gsize length = 308; length < 312; length++)
    {
      g_autofree char *digits = g_strnfill (length, '9');
      HeadwayJson json = parse (digits);

      g_assert_cmpint (headway_json_is_finite (&json), ==, length < 309);
    }
}

static void
test_finite_reads_no_further_than_the_slice (void)
{
  HeadwayJson json = parse_sized ("1e3089", 5);

  g_assert_true (headway_json_is_finite (&json));
}

static void
test_line_replaces_breaks_alone (void)
{
  static const char text[] = "{\r\n\t\"a\" :\n1}\n";
  char line[sizeof text] = { 0 };

  headway_json_copy_line (line, text, sizeof text - 1);
  g_assert_cmpstr (line, ==, "{  \t\"a\" : 1} ");
  headway_json_copy_line (line, "\n", 1);
  g_assert_cmpint (line[0], ==, ' ');
  headway_json_copy_line (line, NULL, 0);
}

static void
test_append_escapes (void)
{
  g_autoptr (GString) json = g_string_new ("x");

  headway_json_append_string (json, "", 0);
  headway_json_append_string (json, "\"\\/\b\f\n\r\t\0\x1f\x7fä😀", 17);
  g_assert_cmpstr (json->str, ==, "x\"\"\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\x7fä😀\"");
}

static void
test_append_and_decode_are_inverse (void)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (7159);

  for (guint i = 0; i < 20000; i++)
    {
      g_autoptr (GString) text = g_string_new (NULL);
      g_autoptr (GString) json = g_string_new (NULL);

      for (gint32 n = g_rand_int_range (random, 0, 30); n > 0; n--)
        {
          gunichar character = (gunichar) g_rand_int_range (random, 1, g_rand_boolean (random) ? 0x80 : 0x110000);

          if (g_unichar_validate (character))
            g_string_append_unichar (text, character);
        }
      headway_json_append_string (json, text->str, text->len);
      assert_string (json->str, text->str);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);

  g_test_add_func ("/json/iter/walks-arrays", test_iter_walks_arrays);
  g_test_add_func ("/json/iter/walks-objects", test_iter_walks_objects);
  g_test_add_func ("/json/iter/keeps-duplicates-in-order", test_iter_keeps_duplicates_in_order);
  g_test_add_func ("/json/iter/is-not-misled-by-strings", test_iter_is_not_misled_by_strings);
  g_test_add_func ("/json/iter/gives-types", test_iter_gives_types);
  g_test_add_func ("/json/iter/of-no-container-is-empty", test_iter_of_no_container_is_empty);
  g_test_add_func ("/json/iter/skips-deep-values-in-a-loop", test_iter_skips_deep_values_in_a_loop);
  g_test_add_func ("/json/string/decodes", test_string_decodes);
  g_test_add_func ("/json/string/joins-surrogates", test_string_joins_surrogates);
  g_test_add_func ("/json/string/replaces-lone-surrogates", test_string_replaces_lone_surrogates);
  g_test_add_func ("/json/string/refuses-nul", test_string_refuses_nul);
  g_test_add_func ("/json/string/refuses-other-types", test_string_refuses_other_types);
  g_test_add_func ("/json/string/equals-all-or-nothing", test_string_equals_all_or_nothing);
  g_test_add_func ("/json/uint/reads-to-the-maximum", test_uint_reads_to_the_maximum);
  g_test_add_func ("/json/uint/refuses-beyond-the-maximum", test_uint_refuses_beyond_the_maximum);
  g_test_add_func ("/json/uint/refuses-other-forms", test_uint_refuses_other_forms);
  g_test_add_func ("/json/boolean/reads-both-and-no-other", test_boolean_reads_both_and_no_other);
  g_test_add_func ("/json/finite/to-the-end-of-a-double", test_finite_to_the_end_of_a_double);
  g_test_add_func ("/json/finite/of-long-numbers", test_finite_of_long_numbers);
  g_test_add_func ("/json/finite/reads-no-further-than-the-slice", test_finite_reads_no_further_than_the_slice);
  g_test_add_func ("/json/line/replaces-breaks-alone", test_line_replaces_breaks_alone);
  g_test_add_func ("/json/append/escapes", test_append_escapes);
  g_test_add_func ("/json/append/and-decode-are-inverse", test_append_and_decode_are_inverse);

  return g_test_run ();
}
