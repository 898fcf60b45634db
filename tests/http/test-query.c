/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-query.h"

static void
test_values_are_decoded (void)
{
  g_autoptr (HeadwayHttpQuery) query = headway_http_query_new ("a=1&b=x%20y+z&c&d=&a=2&%65=f&=v&&g=h=i");

  g_assert_cmpuint (headway_http_query_count (query, "a"), ==, 2);
  g_assert_cmpstr (headway_http_query_get (query, "a", 0), ==, "1");
  g_assert_cmpstr (headway_http_query_get (query, "a", 1), ==, "2");
  g_assert_cmpstr (headway_http_query_get (query, "a", 2), ==, NULL);
  g_assert_cmpstr (headway_http_query_get (query, "b", 0), ==, "x y z");
  g_assert_cmpuint (headway_http_query_count (query, "c"), ==, 1);
  g_assert_cmpstr (headway_http_query_get (query, "c", 0), ==, NULL);
  g_assert_cmpstr (headway_http_query_get (query, "d", 0), ==, "");
  g_assert_cmpstr (headway_http_query_get (query, "e", 0), ==, "f");
  g_assert_cmpstr (headway_http_query_get (query, "", 0), ==, "v");
  g_assert_cmpstr (headway_http_query_get (query, "g", 0), ==, "h=i");
  g_assert_cmpuint (headway_http_query_count (query, "A"), ==, 0);
}

static void
test_what_is_no_text_has_no_value (void)
{
  static const char *const bad[] = { "k=%", "k=%4", "k=%zz", "k=%ff", "k=%00", "k=a%00b", "k=%c3%28", "k=%ed%a0%80" };

  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr (HeadwayHttpQuery) query = headway_http_query_new (bad[i]);

      g_assert_cmpuint (headway_http_query_count (query, "k"), ==, 1);
      g_assert_null (headway_http_query_get (query, "k", 0));
    }
}

static void
test_nothing_is_an_empty_query (void)
{
  g_autoptr (HeadwayHttpQuery) none = headway_http_query_new (NULL);
  g_autoptr (HeadwayHttpQuery) empty = headway_http_query_new ("");
  g_autoptr (HeadwayHttpQuery) bad_key = headway_http_query_new ("%zz=1");

  g_assert_cmpuint (headway_http_query_count (none, ""), ==, 0);
  g_assert_cmpuint (headway_http_query_count (empty, ""), ==, 0);
  g_assert_cmpuint (headway_http_query_count (bad_key, "%zz"), ==, 0);
}

static void
test_paths_may_hold_nul (void)
{
  g_autoptr (GString) text = headway_http_unescape ("a%00+%e2%82%ac", 14, FALSE);

  g_assert_nonnull (text);
  g_assert_cmpmem (text->str, text->len, "a\0+\xe2\x82\xac", 6);
  g_assert_null (headway_http_unescape ("%00%ff", 6, FALSE));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/http/query/values-are-decoded", test_values_are_decoded);
  g_test_add_func ("/http/query/what-is-no-text-has-no-value", test_what_is_no_text_has_no_value);
  g_test_add_func ("/http/query/nothing-is-an-empty-query", test_nothing_is_an_empty_query);
  g_test_add_func ("/http/query/paths-may-hold-nul", test_paths_may_hold_nul);
  return g_test_run ();
}
