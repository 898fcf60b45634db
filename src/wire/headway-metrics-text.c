/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "wire/headway-metrics-text.h"

/* @quotes: inside a label value, where quotes are escaped too. */
static void
append_escaped (GString *text, const char *string, gboolean quotes)
{
  for (; *string != '\0'; string++)
    {
      if (*string == '\n')
        g_string_append (text, "\\n");
      else if (*string == '\\' || (quotes && *string == '"'))
        g_string_append_printf (text, "\\%c", *string);
      else
        g_string_append_c (text, *string);
    }
}

static void
append_head (const HeadwayMetricFamily *family, GString *text)
{
  g_string_append_printf (text, "# HELP %s ", family->name);
  append_escaped (text, family->help, FALSE);
  g_string_append_printf (text, "\n# TYPE %s %s\n", family->name,
                          family->type == HEADWAY_METRIC_COUNTER ? "counter" : "gauge");
}

static void
append_sample (const HeadwayMetrics *metrics, const HeadwayMetricFamily *family, guint index, GString *text)
{
  guint n_labels = headway_metric_family_n_labels (family);

  g_string_append (text, family->name);
  for (guint i = 0; i < n_labels; i++)
    {
      g_string_append_printf (text, "%s%s=\"", i == 0 ? "{" : ",", family->labels[i]->name);
      append_escaped (text, headway_metric_family_get_label_value (family, index, i), TRUE);
      g_string_append_c (text, '"');
    }
  g_string_append_printf (text, "%s %" G_GINT64_FORMAT "\n", n_labels > 0 ? "}" : "",
                          headway_metrics_get (metrics, family->first + index));
}

void
headway_metrics_append_text (const HeadwayMetrics *metrics, GString *text)
{
  guint n_families;
  const HeadwayMetricFamily *families = headway_metric_families (&n_families);

  for (guint i = 0; i < n_families; i++)
    {
      guint size = headway_metric_family_size (&families[i]);

      append_head (&families[i], text);
      for (guint j = 0; j < size; j++)
        append_sample (metrics, &families[i], j, text);
    }
}
