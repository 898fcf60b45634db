/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-error.h"
#include "engine/headway-metrics.h"

#include <string.h>

static const HeadwayMetricFamily *
find_family (const char *name)
{
  guint n;
  const HeadwayMetricFamily *families = headway_metric_families (&n);

  for (guint i = 0; i < n; i++)
    {
      if (strcmp (families[i].name, name) == 0)
        return &families[i];
    }
  return NULL;
}

/* The value of the series of @name with these label values, separated by commas. */
static gint64
get_value (const HeadwayMetrics *metrics, const char *name, const char *values)
{
  const HeadwayMetricFamily *family = find_family (name);

  g_assert_nonnull (family);
  for (guint i = 0; i < headway_metric_family_size (family); i++)
    {
      g_autoptr (GString) key = g_string_new (NULL);

      for (guint j = 0; j < headway_metric_family_n_labels (family); j++)
        g_string_append_printf (key, "%s%s", j > 0 ? "," : "", headway_metric_family_get_label_value (family, i, j));
      if (strcmp (key->str, values) == 0)
        return headway_metrics_get (metrics, family->first + i);
    }
  g_assert_not_reached ();
}

static void
test_families_fill_the_array (void)
{
  guint n;
  const HeadwayMetricFamily *families = headway_metric_families (&n);
  guint n_series = 0;
  gboolean is_taken[HEADWAY_N_METRICS] = { FALSE };

  for (guint i = 0; i < n; i++)
    {
      for (guint j = 0; j < headway_metric_family_size (&families[i]); j++)
        {
          g_assert_cmpuint (families[i].first + j, <, HEADWAY_N_METRICS);
          g_assert_false (is_taken[families[i].first + j]);
          is_taken[families[i].first + j] = TRUE;
          n_series++;
        }
    }
  g_assert_cmpuint (n_series, ==, HEADWAY_N_METRICS);
}

static void
test_names_and_helps_follow_the_rules (void)
{
  guint n;
  const HeadwayMetricFamily *families = headway_metric_families (&n);

  for (guint i = 0; i < n; i++)
    {
      const HeadwayMetricFamily *family = &families[i];

      g_assert_true (g_str_has_prefix (family->name, "headway_"));
      g_assert_true (find_family (family->name) == family);
      g_assert_cmpint (g_str_has_suffix (family->name, "_total"), ==, family->type == HEADWAY_METRIC_COUNTER);
      g_assert_cmpuint (strlen (family->help), >, 10);
      g_assert_true (g_str_has_suffix (family->help, ".") || strchr (family->help, ':') != NULL);
      g_assert_cmpuint (headway_metric_family_size (family), <, 1000);
    }
}

/* Case 156: everything is there, at zero, before anything has happened. */
static void
test_case_156_all_series_start_at_zero (void)
{
  static const char *const names[] = {
    "headway_events_published_total",
    "headway_receiver_lagged_total",
    "headway_route_drops_total",
    "headway_route_starved_total",
    "headway_route_active_principals",
    "headway_route_bytes",
    "headway_publish_rejected_total",
    "headway_dispatch_drops_total",
    "headway_dispatch_degraded_total",
    "headway_verdicts_total",
    "headway_gaps_delivered_total",
  };
  g_autoptr (HeadwayMetrics) metrics = headway_metrics_new ();

  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    g_assert_nonnull (find_family (names[i]));
  for (guint i = 0; i < HEADWAY_N_METRICS; i++)
    g_assert_cmpint (headway_metrics_get (metrics, i), ==, 0);
}

/* Case 157, as far as metrics go: three reasons are three series, and gauges come back to 0. */
static void
test_case_157_reasons_are_told_apart (void)
{
  static const HeadwayDropReason reasons[] = { HEADWAY_DROP_OVERSIZE, HEADWAY_DROP_BUDGET, HEADWAY_DROP_COUNT_CAP };
  static const char *const words[] = { "dbus,user,oversize", "dbus,user,budget", "dbus,user,count_cap" };
  g_autoptr (HeadwayMetrics) metrics = headway_metrics_new ();
  gint64 sum = 0;

  for (guint i = 0; i < G_N_ELEMENTS (reasons); i++)
    headway_metrics_add (metrics, headway_metric_route_drops (HEADWAY_SUBSCRIBER_DBUS, HEADWAY_PRINCIPAL_USER, reasons[i]), 1);
  for (guint i = 0; i < G_N_ELEMENTS (reasons); i++)
    g_assert_cmpint (get_value (metrics, "headway_route_drops_total", words[i]), ==, 1);
  g_assert_cmpint (get_value (metrics, "headway_route_drops_total", "dbus,user,bucket_cap"), ==, 0);
  g_assert_cmpint (get_value (metrics, "headway_route_drops_total", "sse,user,budget"), ==, 0);
  for (guint i = 0; i < HEADWAY_N_METRICS; i++)
    sum += headway_metrics_get (metrics, i);
  g_assert_cmpint (sum, ==, 3);

  headway_metrics_add (metrics, HEADWAY_METRIC_ROUTE_BYTES + HEADWAY_SUBSCRIBER_SSE, 4096);
  g_assert_cmpint (get_value (metrics, "headway_route_bytes", "sse"), ==, 4096);
  headway_metrics_add (metrics, HEADWAY_METRIC_ROUTE_BYTES + HEADWAY_SUBSCRIBER_SSE, -4096);
  g_assert_cmpint (get_value (metrics, "headway_route_bytes", "sse"), ==, 0);
}

static void
test_each_index_has_its_labels (void)
{
  g_autoptr (HeadwayMetrics) metrics = headway_metrics_new ();

  for (guint i = 0; i < HEADWAY_N_METRICS; i++)
    headway_metrics_set (metrics, i, i);
#define CHECK(series, name, values) g_assert_cmpint (get_value (metrics, name, values), ==, (series))
  CHECK (HEADWAY_METRIC_EVENTS_PUBLISHED + HEADWAY_EVENT_KIND_SEED, "headway_events_published_total", "seed");
  CHECK (HEADWAY_METRIC_PUBLISH_BYTES, "headway_publish_bytes_total", "");
  CHECK (HEADWAY_METRIC_PUBLISH_REJECTED + HEADWAY_REJECT_RATE, "headway_publish_rejected_total", "rate");
  CHECK (HEADWAY_METRIC_EVENTS_DELIVERED + HEADWAY_SUBSCRIBER_OTHER, "headway_events_delivered_total", "other");
  CHECK (HEADWAY_METRIC_GAPS_DELIVERED + HEADWAY_SUBSCRIBER_DISPATCHER, "headway_gaps_delivered_total", "dispatcher");
  CHECK (HEADWAY_METRIC_RECEIVER_LAGGED + HEADWAY_SUBSCRIBER_SSE, "headway_receiver_lagged_total", "sse");
  CHECK (headway_metric_stream_evictions (HEADWAY_SUBSCRIBER_DBUS, HEADWAY_EVICTION_WRITER_IDLE_TIMEOUT),
         "headway_stream_evictions_total", "dbus,writer_idle_timeout");
  CHECK (headway_metric_route_starved (HEADWAY_SUBSCRIBER_OTHER, HEADWAY_PRINCIPAL_USER), "headway_route_starved_total", "other,user");
  CHECK (headway_metric_route_drops (HEADWAY_SUBSCRIBER_SSE, HEADWAY_PRINCIPAL_AGENT, HEADWAY_DROP_BUCKET_CAP),
         "headway_route_drops_total", "sse,agent,bucket_cap");
  CHECK (headway_metric_verdicts (HEADWAY_PHASE_PRE, HEADWAY_VERDICT_LABEL_DENY), "headway_verdicts_total", "pre,deny");
  CHECK (HEADWAY_METRIC_DISPATCH_DROPS + HEADWAY_DISPATCH_DROP_BUDGET, "headway_dispatch_drops_total", "budget");
  CHECK (HEADWAY_METRIC_HANDLERS + HEADWAY_PHASE_PRE, "headway_handlers", "pre");
  CHECK (HEADWAY_METRIC_SSE_CLOSED + 7, "headway_sse_closed_total", "drain_timeout");
  CHECK (HEADWAY_METRIC_QUEUED_BYTES + HEADWAY_MODE_ROUTED, "headway_queued_bytes", "routed");
  CHECK (HEADWAY_METRIC_RING_BYTES, "headway_ring_bytes", "");
  CHECK (HEADWAY_METRIC_SECURITY_EVENTS + HEADWAY_SECURITY_NOT_OWNER, "headway_security_events_total", "not_owner");
  CHECK (HEADWAY_N_METRICS - 1, "headway_security_events_total", "handler_failed");
#undef CHECK
}

static void
test_every_error_has_a_reason (void)
{
  static const HeadwayRejectReason expected[HEADWAY_N_ERRORS] = {
    [HEADWAY_ERROR_TOO_LARGE] = HEADWAY_REJECT_TOO_LARGE,
    [HEADWAY_ERROR_RATE_LIMITED] = HEADWAY_REJECT_RATE,
    [HEADWAY_ERROR_QUOTA_EXCEEDED] = HEADWAY_REJECT_RATE,
    [HEADWAY_ERROR_NO_SUCH_BUS] = HEADWAY_REJECT_UNAVAILABLE,
    [HEADWAY_ERROR_CLOSED] = HEADWAY_REJECT_UNAVAILABLE,
    [HEADWAY_ERROR_NOT_OWNER] = HEADWAY_REJECT_FORBIDDEN,
    [HEADWAY_ERROR_NOT_AUTHORIZED] = HEADWAY_REJECT_FORBIDDEN,
    [HEADWAY_ERROR_UNAVAILABLE] = HEADWAY_REJECT_UNAVAILABLE,
    [HEADWAY_ERROR_DENIED] = HEADWAY_REJECT_FORBIDDEN,
  };
  g_autoptr (HeadwayMetrics) metrics = headway_metrics_new ();
  g_autoptr (GError) foreign = g_error_new_literal (G_CONVERT_ERROR, 0, "not ours");

  for (guint i = 0; i < HEADWAY_N_ERRORS; i++)
    {
      g_autoptr (GError) error = g_error_new_literal (HEADWAY_ERROR, (int) i, "refused");

      g_assert_cmpint (headway_reject_reason_of (error), ==, expected[i]);
      headway_metrics_add_rejected (metrics, error);
    }
  headway_metrics_add_rejected (metrics, foreign);
  g_assert_cmpint (get_value (metrics, "headway_publish_rejected_total", "rate"), ==, 2);
  g_assert_cmpint (get_value (metrics, "headway_publish_rejected_total", "too_large"), ==, 1);
  g_assert_cmpint (get_value (metrics, "headway_publish_rejected_total", "forbidden"), ==, 3);
  g_assert_cmpint (get_value (metrics, "headway_publish_rejected_total", "unavailable"), ==, 3);
  g_assert_cmpint (get_value (metrics, "headway_publish_rejected_total", "invalid"), ==, HEADWAY_N_ERRORS - 9 + 1);
}

static void
test_subscribers_have_a_closed_set_of_names (void)
{
  g_assert_cmpint (headway_subscriber_class_of ("sse"), ==, HEADWAY_SUBSCRIBER_SSE);
  g_assert_cmpint (headway_subscriber_class_of ("dbus"), ==, HEADWAY_SUBSCRIBER_DBUS);
  /* Handlers are no readers. */
  g_assert_cmpint (headway_subscriber_class_of ("dispatcher"), ==, HEADWAY_SUBSCRIBER_OTHER);
  g_assert_cmpint (headway_subscriber_class_of ("none"), ==, HEADWAY_SUBSCRIBER_OTHER);
  g_assert_cmpint (headway_subscriber_class_of ("\"} evil 1\n"), ==, HEADWAY_SUBSCRIBER_OTHER);
  g_assert_cmpint (headway_subscriber_class_of (NULL), ==, HEADWAY_SUBSCRIBER_OTHER);
}

/* A series that can never count would say that handlers lose nothing, or have nothing waiting. */
static void
test_handlers_have_a_series_where_they_count (void)
{
  guint n_families;
  const HeadwayMetricFamily *families = headway_metric_families (&n_families);
  g_autoptr (GString) found = g_string_new (NULL);

  for (guint i = 0; i < n_families; i++)
    {
      const HeadwayMetricFamily *family = &families[i];
      guint size = headway_metric_family_size (family);

      for (guint j = 0; headway_metric_family_n_labels (family) > 0 && j < size; j++)
        if (strcmp (headway_metric_family_get_label_value (family, j, 0), "dispatcher") == 0)
          g_string_append_printf (found, "%s ", family->name);
    }
  g_assert_cmpstr (found->str, ==, "headway_events_delivered_total headway_gaps_delivered_total ");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);

  g_test_add_func ("/metrics/families/fill-the-array", test_families_fill_the_array);
  g_test_add_func ("/metrics/families/names-and-helps-follow-the-rules", test_names_and_helps_follow_the_rules);
  g_test_add_func ("/metrics/case-156/all-series-start-at-zero", test_case_156_all_series_start_at_zero);
  g_test_add_func ("/metrics/case-157/reasons-are-told-apart", test_case_157_reasons_are_told_apart);
  g_test_add_func ("/metrics/labels/each-index-has-its-own", test_each_index_has_its_labels);
  g_test_add_func ("/metrics/rejected/every-error-has-a-reason", test_every_error_has_a_reason);
  g_test_add_func ("/metrics/subscribers/closed-set-of-names", test_subscribers_have_a_closed_set_of_names);
  g_test_add_func ("/metrics/handlers-have-a-series-where-they-count", test_handlers_have_a_series_where_they_count);

  return g_test_run ();
}
