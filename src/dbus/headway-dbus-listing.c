/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-listing.h"

static const char *
mode_name (HeadwayMode mode)
{
  switch (mode)
    {
    case HEADWAY_MODE_STREAM:
      return "stream";
    case HEADWAY_MODE_ROUTED:
      return "routed";
    case HEADWAY_MODE_BROADCAST:
      return "broadcast";
    default:
      g_assert_not_reached ();
    }
}

/* The heaviest principals of each subscription: ListPrincipals() tells the others. */
#define PRINCIPALS_OF_ONE 32

GVariant *
headway_dbus_listing_new_principals (HeadwaySubscription *subscription, guint maximum)
{
  g_autoptr (GArray) stats = headway_subscription_list_principals (subscription);
  GVariantBuilder builder;

  g_variant_builder_init (&builder, G_VARIANT_TYPE ("a(suttt)"));
  for (guint i = 0; i < MIN (stats->len, maximum); i++)
    {
      const HeadwayPrincipalStat *stat = &g_array_index (stats, HeadwayPrincipalStat, i);

      g_variant_builder_add (&builder, "(suttt)", headway_principal_get_name (stat->principal), stat->events, stat->bytes,
                             stat->lost, stat->oldest_id);
    }
  return g_variant_builder_end (&builder);
}

static GVariant *
new_entry (HeadwaySubscription *subscription)
{
  const char *const *patterns = headway_filter_get_patterns (headway_subscription_get_filter (subscription));
  GVariantBuilder builder;

  g_variant_builder_init (&builder, G_VARIANT_TYPE_VARDICT);
  g_variant_builder_add (&builder, "{sv}", "number", g_variant_new_uint32 (headway_subscription_get_number (subscription)));
  g_variant_builder_add (&builder, "{sv}", "owner", g_variant_new_string (headway_subscription_get_owner (subscription)));
  g_variant_builder_add (&builder, "{sv}", "mode", g_variant_new_string (mode_name (headway_subscription_get_mode (subscription))));
  g_variant_builder_add (&builder, "{sv}", "sink", g_variant_new_string (headway_subscription_get_sink_kind (subscription)));
  g_variant_builder_add (&builder, "{sv}", "patterns", g_variant_new_strv (patterns, -1));
  g_variant_builder_add (&builder, "{sv}", "queued", g_variant_new_uint32 (headway_subscription_get_queued (subscription)));
  g_variant_builder_add (&builder, "{sv}", "queued-bytes", g_variant_new_uint64 (headway_subscription_get_queued_bytes (subscription)));
  g_variant_builder_add (&builder, "{sv}", "dropped", g_variant_new_uint64 (headway_subscription_get_dropped (subscription)));
  g_variant_builder_add (&builder, "{sv}", "lag", g_variant_new_uint64 (headway_subscription_get_lag (subscription)));
  g_variant_builder_add (&builder, "{sv}", "principals",
                         headway_dbus_listing_new_principals (subscription, PRINCIPALS_OF_ONE));
  return g_variant_builder_end (&builder);
}

GVariant *
headway_dbus_listing_new (HeadwayBus *bus)
{
  g_autoptr (GPtrArray) subscriptions = headway_bus_list_subscriptions (bus);
  GVariantBuilder builder;
  gsize bytes = 0;

  g_variant_builder_init (&builder, G_VARIANT_TYPE ("aa{sv}"));
  for (guint i = 0; i < subscriptions->len; i++)
    {
      g_autoptr (GVariant) entry = g_variant_ref_sink (new_entry (g_ptr_array_index (subscriptions, i)));

      bytes += g_variant_get_size (entry);
      if (bytes > HEADWAY_REPLY_BYTES)
        break;
      g_variant_builder_add_value (&builder, entry);
    }
  return g_variant_builder_end (&builder);
}
