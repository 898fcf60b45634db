/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-bus.h"

#include "engine/headway-error.h"

#include <string.h>

static gboolean
matches (const char *patterns, const char *types, const char *topic, const char *type)
{
  g_autoptr (HeadwayPrincipalTable) table = headway_principal_table_new ();
  g_autoptr (HeadwayFilter) filter = test_filter (patterns, types);
  g_autoptr (HeadwayEvent) event = test_event_on (headway_principal_table_get_system (table), topic, type);

  return headway_filter_matches (filter, event);
}

static void
test_patterns (void)
{
  g_assert_true (matches ("a.b", NULL, "a.b", "t"));
  g_assert_false (matches ("a.b", NULL, "a.c", "t"));
  g_assert_true (matches ("z a.*", NULL, "a.b.c", "t"));
  g_assert_false (matches ("z a.*", NULL, "a", "t"));
  g_assert_true (matches ("t", NULL, NULL, "t"));
}

static void
test_types (void)
{
  g_assert_true (matches (NULL, "t", "a", "t"));
  g_assert_true (matches (NULL, "s t", "a", "t"));
  g_assert_false (matches (NULL, "s tt", "a", "t"));
  g_assert_true (matches (NULL, "message", "a", NULL));
}

static void
test_both (void)
{
  g_assert_true (matches ("a", "t", "a", "t"));
  g_assert_false (matches ("a", "s", "a", "t"));
  g_assert_false (matches ("b", "t", "a", "t"));
}

static void
test_empty (void)
{
  g_autoptr (HeadwayFilter) none = test_filter (NULL, NULL);
  g_autoptr (HeadwayFilter) patterns = test_filter ("a", NULL);
  g_autoptr (HeadwayFilter) types = test_filter (NULL, "a");
  static const char *const nothing[] = { NULL };
  g_autoptr (HeadwayFilter) empty_lists = headway_filter_new (nothing, nothing, NULL);

  g_assert_true (matches (NULL, NULL, "a", "t"));
  g_assert_true (headway_filter_is_empty (none));
  g_assert_true (headway_filter_is_empty (empty_lists));
  g_assert_false (headway_filter_is_empty (patterns));
  g_assert_false (headway_filter_is_empty (types));
  g_assert_null (headway_filter_get_patterns (none)[0]);
  g_assert_null (headway_filter_get_types (none)[0]);
  g_assert_cmpstr (headway_filter_get_patterns (patterns)[0], ==, "a");
  g_assert_cmpstr (headway_filter_get_types (types)[0], ==, "a");
}

static void
test_session_closed (void)
{
  g_autoptr (HeadwayPrincipalTable) table = headway_principal_table_new ();
  g_autoptr (HeadwayFilter) filter = test_filter ("other", "other");
  g_autoptr (HeadwayEvent) event =
               headway_event_new_session_closed ("test", headway_principal_table_get_system (table), test_instant (0));

  g_assert_true (headway_event_passes_filters (event));
  g_assert_true (headway_filter_matches (filter, event));
  g_assert_true (headway_filter_matches_type (filter, event));
}

static void
refuse (guint n, const char *text, gboolean is_types, HeadwayError code)
{
  g_autoptr (GPtrArray) list = g_ptr_array_new ();
  g_autoptr (GError) error = NULL;

  for (guint i = 0; i < n; i++)
    g_ptr_array_add (list, (gpointer) text);
  g_ptr_array_add (list, NULL);
  g_assert_null (headway_filter_new (is_types ? NULL : (const char *const *) list->pdata,
                                     is_types ? (const char *const *) list->pdata : NULL, &error));
  g_assert_error (error, HEADWAY_ERROR, (int) code);
}

static void
test_refused (void)
{
  g_autofree char *most = g_strnfill (64 * 2 - 1, 'a');

  refuse (1, "a..b", FALSE, HEADWAY_ERROR_INVALID_PATTERN);
  refuse (1, "", FALSE, HEADWAY_ERROR_INVALID_PATTERN);
  refuse (1, "a b", TRUE, HEADWAY_ERROR_INVALID_TYPE);
  refuse (1, "", TRUE, HEADWAY_ERROR_INVALID_TYPE);
  refuse (65, "a", FALSE, HEADWAY_ERROR_INVALID_OPTION);
  refuse (65, "a", TRUE, HEADWAY_ERROR_INVALID_OPTION);
  for (guint i = 1; i < strlen (most); i += 2)
    most[i] = ' ';
  g_assert_true (matches (most, most, "a", "a"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/filter/patterns", test_patterns);
  g_test_add_func ("/filter/types", test_types);
  g_test_add_func ("/filter/both", test_both);
  g_test_add_func ("/filter/empty-lets-everything-pass", test_empty);
  g_test_add_func ("/filter/session-closed-passes", test_session_closed);
  g_test_add_func ("/filter/refused", test_refused);
  return g_test_run ();
}
