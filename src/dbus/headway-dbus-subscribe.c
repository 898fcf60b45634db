/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-subscribe.h"

#include "dbus/headway-dbus-error.h"
#include "dbus/headway-dbus-subscription.h"
#include "wire/headway-clock.h"
#include "wire/headway-options.h"

#include <string.h>

#define EPOCH_MAX 64

typedef struct
{
  const char *mode;
  guint64 last_event_id;
  const char *epoch;
  const char **types; /* owned array */
  guint max_queued;
  guint64 budget_bytes;
  const char *eviction;
  const char *scope;
  gboolean scope_system;
  const char *gate;
} SubscribeOptions;

/* In the order of HeadwayMode. */
static const char *const mode_words[] = { "stream", "routed", "broadcast", NULL };
static const char *const eviction_words[] = { "oldest", "fair", NULL };

/* A mode is a bit, so that an option can say in which of them it means something. */
#define IN_STREAM    (1 << HEADWAY_MODE_STREAM)
#define IN_ROUTED    (1 << HEADWAY_MODE_ROUTED)
#define IN_BROADCAST (1 << HEADWAY_MODE_BROADCAST)
#define IN_ALL       (IN_STREAM | IN_ROUTED | IN_BROADCAST)

#define OFFSET(member) G_STRUCT_OFFSET (SubscribeOptions, member)

enum
{
  OPTION_MODE,
  OPTION_LAST_EVENT_ID,
};

static const HeadwayOptionSpec specs[] = {
  [OPTION_MODE] = { "mode", HEADWAY_OPTION_STRING, OFFSET (mode), 0, 0, NULL, mode_words },
  [OPTION_LAST_EVENT_ID] = { "last-event-id", HEADWAY_OPTION_UINT64, OFFSET (last_event_id), 0, HEADWAY_ID_MAX },
  { "epoch", HEADWAY_OPTION_STRING, OFFSET (epoch), 1, EPOCH_MAX, "A-Z a-z 0-9 _ -" },
  { "types", HEADWAY_OPTION_STRV, OFFSET (types), 0, HEADWAY_TYPES_MAX },
  { "max-queued", HEADWAY_OPTION_UINT32, OFFSET (max_queued), 1, HEADWAY_MAX_QUEUED_MAX },
  { "budget-bytes", HEADWAY_OPTION_UINT64, OFFSET (budget_bytes), 1, HEADWAY_ID_MAX },
  { "eviction", HEADWAY_OPTION_STRING, OFFSET (eviction), 0, 0, NULL, eviction_words },
  { "scope", HEADWAY_OPTION_STRING, OFFSET (scope), 0, HEADWAY_PRINCIPAL_MAX },
  { "scope-system", HEADWAY_OPTION_BOOLEAN, OFFSET (scope_system) },
  { "gate", HEADWAY_OPTION_STRING, OFFSET (gate), 1, HEADWAY_PRINCIPAL_MAX },
  { NULL },
};

/* The modes in which each of @specs means something. */
static const guint in_modes[G_N_ELEMENTS (specs) - 1] = {
  IN_ALL, IN_ALL, IN_ALL, IN_ALL,
  IN_STREAM,                /* max-queued */
  IN_ROUTED,                /* budget-bytes */
  IN_ROUTED,                /* eviction */
  IN_ROUTED | IN_BROADCAST, /* scope */
  IN_ROUTED | IN_BROADCAST, /* scope-system */
  IN_ROUTED | IN_BROADCAST, /* gate */
};

static void
subscribe_options_clear (SubscribeOptions *options)
{
  g_clear_pointer (&options->types, g_free);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (SubscribeOptions, subscribe_options_clear)

static HeadwayMode
find_mode (const char *word)
{
  HeadwayMode mode = HEADWAY_MODE_STREAM;

  while (mode < HEADWAY_MODE_BROADCAST && strcmp (mode_words[mode], word) != 0)
    mode++;
  return mode;
}

static gboolean
check_in_mode (guint64 given, HeadwayMode mode, GError **error)
{
  for (guint i = 0; i < G_N_ELEMENTS (in_modes); i++)
    if ((given & (G_GUINT64_CONSTANT (1) << i)) != 0 && (in_modes[i] & (1u << mode)) == 0)
      {
        g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION,
                     "option \"%s\" means nothing in mode \"%s\"", specs[i].key, mode_words[mode]);
        return FALSE;
      }
  return TRUE;
}

/* Returns: (transfer full) (nullable) */
static HeadwaySubscription *
subscribe (HeadwayBus *bus,
           const char *const *patterns,
           GVariant *arguments,
           HeadwaySubscribeOptions *options,
           GError **error)
{
  g_auto (SubscribeOptions) values = { .mode = "stream", .max_queued = HEADWAY_MAX_QUEUED_DEFAULT };
  g_autoptr (HeadwayFilter) filter = NULL;
  HeadwaySubscription *subscription;
  guint64 given = 0;

  headway_subscribe_options_init (options);
  if (!headway_options_parse (arguments, specs, &values, &given, error))
    return NULL;
  options->mode = find_mode (values.mode);
  if (!check_in_mode (given, options->mode, error))
    return NULL;
  filter = headway_filter_new (patterns, values.types, error);
  if (filter == NULL)
    return NULL;
  if (headway_bus_is_closing (bus))
    {
      g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_CLOSED, "bus \"%s\" is closed", headway_bus_get_name (bus));
      return NULL;
    }

  options->filter = filter;
  options->max_queued = values.max_queued;
  options->cursor.is_set = (given & (1 << OPTION_LAST_EVENT_ID)) != 0;
  options->cursor.last_event_id = values.last_event_id;
  options->cursor.epoch = values.epoch;
  subscription = headway_bus_subscribe (bus, options, headway_clock_now (), error);
  options->filter = NULL;
  options->cursor.epoch = NULL;
  return subscription;
}

static GVariant *
new_info (HeadwayBus *bus, const HeadwaySubscribeOptions *options, guint64 last_id)
{
  const HeadwayBusOptions *limits = headway_bus_get_options (bus);
  GVariantBuilder builder;

  g_variant_builder_init (&builder, G_VARIANT_TYPE_VARDICT);
  g_variant_builder_add (&builder, "{sv}", "epoch", g_variant_new_string (headway_bus_get_epoch (bus)));
  g_variant_builder_add (&builder, "{sv}", "last-id", g_variant_new_uint64 (last_id));
  g_variant_builder_add (&builder, "{sv}", "mode", g_variant_new_string (mode_words[options->mode]));
  g_variant_builder_add (&builder, "{sv}", "max-queued", g_variant_new_uint32 (options->max_queued));
  g_variant_builder_add (&builder, "{sv}", "max-queued-bytes", g_variant_new_uint64 (limits->max_queued_bytes));
  g_variant_builder_add (&builder, "{sv}", "replay-budget-bytes", g_variant_new_uint64 (limits->replay_budget_bytes));
  return g_variant_builder_end (&builder);
}

void
headway_dbus_subscribe (HeadwayDBusContext *context,
                        HeadwayBus *bus,
                        const char *bus_path,
                        GDBusMethodInvocation *invocation,
                        const char *const *patterns,
                        GVariant *options)
{
  HeadwayDBusPeer *peer = headway_dbus_peers_get (context->peers, invocation);
  guint64 last_id = headway_bus_get_last_id (bus);
  g_autoptr (HeadwaySubscription) subscription = NULL;
  g_autoptr (HeadwayDBusSubscriptionImpl) impl = NULL;
  HeadwaySubscribeOptions engine_options;
  GError *error = NULL;

  impl = headway_dbus_subscription_impl_new (context, peer, &error);
  if (impl != NULL)
    subscription = subscribe (bus, patterns, options, &engine_options, &error);
  if (subscription == NULL || !headway_dbus_subscription_impl_export (impl, subscription, bus_path, &error))
    {
      headway_dbus_error_answer (invocation, error);
      return;
    }
  g_dbus_method_invocation_return_value (
    invocation, g_variant_new ("(o@a{sv})", g_dbus_interface_skeleton_get_object_path (G_DBUS_INTERFACE_SKELETON (impl)),
                               new_info (bus, &engine_options, last_id)));
}
