/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "wire/headway-metrics-text.h"
#include "wire/headway-metrics-variant.h"

#include <string.h>

/* With --print: the text of metrics of which every series has a value of its own, for
 * check-prometheus.py. */

static HeadwayMetrics *
new_filled (void)
{
  HeadwayMetrics *metrics = headway_metrics_new ();

  for (guint i = 0; i < HEADWAY_N_METRICS; i++)
    headway_metrics_set (metrics, i, (gint64) i * G_GINT64_CONSTANT (123456789) + 1);
  headway_metrics_set (metrics, HEADWAY_METRIC_PUBLISH_BYTES, G_MAXINT64);
  return metrics;
}

static void
test_text_of_a_family (void)
{
  g_autoptr (HeadwayMetrics) metrics = headway_metrics_new ();
  g_autoptr (GString) text = g_string_new (NULL);

  headway_metrics_add (metrics, HEADWAY_METRIC_PUBLISH_REJECTED + HEADWAY_REJECT_RATE, 7);
  headway_metrics_append_text (metrics, text);
  g_assert_true (g_str_has_prefix (text->str,
                                   "# HELP headway_events_published_total Events that have taken an id.\n"
                                   "# TYPE headway_events_published_total counter\n"
                                   "headway_events_published_total{kind=\"event\"} 0\n"));
  g_assert_nonnull (strstr (text->str,
                            "\n# TYPE headway_publish_rejected_total counter\n"
                            "headway_publish_rejected_total{reason=\"invalid\"} 0\n"
                            "headway_publish_rejected_total{reason=\"forbidden\"} 0\n"
                            "headway_publish_rejected_total{reason=\"too_large\"} 0\n"
                            "headway_publish_rejected_total{reason=\"rate\"} 7\n"
                            "headway_publish_rejected_total{reason=\"unavailable\"} 0\n"
                            "# HELP "));
  g_assert_nonnull (strstr (text->str, "\nheadway_buses 0\n"));
  g_assert_nonnull (strstr (text->str,
                            "\nheadway_route_drops_total{subscriber=\"sse\",principal_class=\"system\",reason=\"oversize\"} 0\n"));
  g_assert_cmpint (text->str[text->len - 1], ==, '\n');
}

static void
test_text_has_every_series_once (void)
{
  g_autoptr (HeadwayMetrics) metrics = new_filled ();
  g_autoptr (GString) text = g_string_new (NULL);
  guint n_families, n_samples = 0, n_comments = 0;
  g_auto (GStrv) lines = NULL;

  headway_metric_families (&n_families);
  headway_metrics_append_text (metrics, text);
  lines = g_strsplit (text->str, "\n", -1);
  for (guint i = 0; lines[i] != NULL && lines[i][0] != '\0'; i++)
    {
      n_comments += lines[i][0] == '#' ? 1 : 0;
      n_samples += lines[i][0] != '#' ? 1 : 0;
    }
  g_assert_cmpuint (n_samples, ==, HEADWAY_N_METRICS);
  g_assert_cmpuint (n_comments, ==, 2 * n_families);
  g_assert_nonnull (strstr (text->str, "\nheadway_publish_bytes_total 9223372036854775807\n"));
}

static void
test_variant_has_the_same (void)
{
  g_autoptr (HeadwayMetrics) metrics = new_filled ();
  g_autoptr (GVariant) variant = g_variant_ref_sink (headway_metrics_to_variant (metrics));
  g_autoptr (GVariant) labels = NULL;
  const char *name, *value;
  double number;

  g_assert_cmpstr (g_variant_get_type_string (variant), ==, "a(sa{ss}d)");
  g_assert_cmpuint (g_variant_n_children (variant), ==, HEADWAY_N_METRICS);
  g_variant_get_child (variant, 4, "(&s@a{ss}d)", &name, &labels, &number);
  g_assert_cmpstr (name, ==, "headway_publish_rejected_total");
  g_assert_true (g_variant_lookup (labels, "reason", "&s", &value));
  g_assert_cmpstr (value, ==, "invalid");
  g_assert_cmpfloat (number, ==, 4 * 123456789.0 + 1);
}

static int
print_filled (void)
{
  g_autoptr (HeadwayMetrics) metrics = new_filled ();
  g_autoptr (GString) text = g_string_new (NULL);

  headway_metrics_append_text (metrics, text);
  g_print ("%s", text->str);
  return 0;
}

int
main (int argc, char **argv)
{
  if (argc > 1 && strcmp (argv[1], "--print") == 0)
    return print_filled ();

  g_test_init (&argc, &argv, NULL);

  g_test_add_func ("/metrics-text/text-of-a-family", test_text_of_a_family);
  g_test_add_func ("/metrics-text/every-series-once", test_text_has_every_series_once);
  g_test_add_func ("/metrics-text/variant-has-the-same", test_variant_has_the_same);

  return g_test_run ();
}
