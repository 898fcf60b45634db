/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "wire/headway-metrics-variant.h"

static void
add_series (const HeadwayMetrics *metrics, const HeadwayMetricFamily *family, guint index, GVariantBuilder *builder)
{
  guint n_labels = headway_metric_family_n_labels (family);

  g_variant_builder_open (builder, G_VARIANT_TYPE ("(sa{ss}d)"));
  g_variant_builder_add (builder, "s", family->name);
  g_variant_builder_open (builder, G_VARIANT_TYPE ("a{ss}"));
  for (guint i = 0; i < n_labels; i++)
    g_variant_builder_add (builder, "{ss}", family->labels[i]->name,
                           headway_metric_family_get_label_value (family, index, i));
  g_variant_builder_close (builder);
  g_variant_builder_add (builder, "d", (double) headway_metrics_get (metrics, family->first + index));
  g_variant_builder_close (builder);
}

GVariant *
headway_metrics_to_variant (const HeadwayMetrics *metrics)
{
  guint n_families;
  const HeadwayMetricFamily *families = headway_metric_families (&n_families);
  GVariantBuilder builder;

  g_variant_builder_init (&builder, G_VARIANT_TYPE ("a(sa{ss}d)"));
  for (guint i = 0; i < n_families; i++)
    {
      guint size = headway_metric_family_size (&families[i]);

      for (guint j = 0; j < size; j++)
        add_series (metrics, &families[i], j, &builder);
    }
  return g_variant_builder_end (&builder);
}
