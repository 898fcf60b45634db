/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-metrics-text.h"

static void
assert_text (const char *metrics,
             const char *expected)
{
  g_autoptr (GVariant) variant = g_variant_ref_sink (g_variant_new_parsed (metrics));
  g_autoptr (GString) text = g_string_new (NULL);

  g_assert_cmpstr (g_variant_get_type_string (variant), ==, HEADWAY_CLI_METRICS_TYPE);
  headway_cli_metrics_append_text (text, variant);
  g_assert_cmpstr (text->str, ==, expected);
}

static void
test_families (void)
{
  assert_text ("@" HEADWAY_CLI_METRICS_TYPE " [('headway_a_b_total', {'x': 'p', 'y': 'q'}, 9007199254740991.0), ('headway_a_b_total', {'x': 'r', 'y': 's'}, 0.0), ('headway_c', {}, -0.5)]",
               "# HELP headway_a_b_total A b.\n# TYPE headway_a_b_total counter\n"
               "headway_a_b_total{x=\"p\",y=\"q\"} 9007199254740991\nheadway_a_b_total{x=\"r\",y=\"s\"} 0\n"
               "# HELP headway_c C.\n# TYPE headway_c gauge\nheadway_c -0.5\n");
}

static void
test_escapes_labels (void)
{
  assert_text ("@" HEADWAY_CLI_METRICS_TYPE " [('a', {'x': 'a\"b\\\\c\\nd\\u001b'}, 1.0)]",
               "# HELP a A.\n# TYPE a gauge\na{x=\"a\\\"b\\\\c\\nd\"} 1\n");
}

static void
test_leaves_out_what_is_no_metric (void)
{
  assert_text ("@" HEADWAY_CLI_METRICS_TYPE " [('a b', {}, 1.0), ('', {}, 1.0), ('c\\u001b', {}, 1.0), ('d', {'1': 'x', 'e': ''}, 1.0)]",
               "# HELP d D.\n# TYPE d gauge\nd 1\n");
  assert_text ("@" HEADWAY_CLI_METRICS_TYPE " []", "");
}

int
main (int argc,
      char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/cli/metrics-text/families", test_families);
  g_test_add_func ("/cli/metrics-text/escapes-labels", test_escapes_labels);
  g_test_add_func ("/cli/metrics-text/leaves-out-what-is-no-metric", test_leaves_out_what_is_no_metric);
  return g_test_run ();
}
