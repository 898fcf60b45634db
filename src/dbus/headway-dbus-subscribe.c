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
/* In the order of HeadwayEviction. */
static const char *const eviction_words[] = { "oldest", "fair", NULL };

/* A mode is a bit, so that an option can say in which of them it means something. */
#define IN_STREAM            (1 << HEADWAY_MODE_STREAM)
#define IN_ROUTED            (1 << HEADWAY_MODE_ROUTED)
#define IN_BROADCAST         (1 << HEADWAY_MODE_BROADCAST)
#define GIVEN(given, option) (((given) & (G_GUINT64_CONSTANT (1) << (option))) != 0)
#define IN_ALL               (IN_STREAM | IN_ROUTED | IN_BROADCAST)

#define OFFSET(member) G_STRUCT_OFFSET (SubscribeOptions, member)

enum
{
  OPTION_MODE,
  OPTION_LAST_EVENT_ID,
  OPTION_EPOCH,
  OPTION_TYPES,
  OPTION_MAX_QUEUED,
  OPTION_BUDGET_BYTES,
  OPTION_EVICTION,
  OPTION_SCOPE,
  OPTION_SCOPE_SYSTEM,
  OPTION_GATE,
};

static const HeadwayOptionSpec specs[] = {
  [OPTION_MODE] = { "mode", HEADWAY_OPTION_STRING, OFFSET (mode), 0, 0, NULL, mode_words },
  [OPTION_LAST_EVENT_ID] = { "last-event-id", HEADWAY_OPTION_UINT64, OFFSET (last_event_id), 0, HEADWAY_ID_MAX },
  [OPTION_EPOCH] = { "epoch", HEADWAY_OPTION_STRING, OFFSET (epoch), 1, EPOCH_MAX, "A-Z a-z 0-9 _ -" },
  [OPTION_TYPES] = { "types", HEADWAY_OPTION_STRV, OFFSET (types), 0, HEADWAY_TYPES_MAX },
  [OPTION_MAX_QUEUED] = { "max-queued", HEADWAY_OPTION_UINT32, OFFSET (max_queued), 1, HEADWAY_MAX_QUEUED_MAX },
  [OPTION_BUDGET_BYTES] = { "budget-bytes", HEADWAY_OPTION_UINT64, OFFSET (budget_bytes), 1, HEADWAY_ID_MAX },
  [OPTION_EVICTION] = { "eviction", HEADWAY_OPTION_STRING, OFFSET (eviction), 0, 0, NULL, eviction_words },
  [OPTION_SCOPE] = { "scope", HEADWAY_OPTION_STRING, OFFSET (scope), 0, HEADWAY_PRINCIPAL_MAX },
  [OPTION_SCOPE_SYSTEM] = { "scope-system", HEADWAY_OPTION_BOOLEAN, OFFSET (scope_system) },
  [OPTION_GATE] = { "gate", HEADWAY_OPTION_STRING, OFFSET (gate), 1, HEADWAY_CLIENT_MAX, "A-Z a-z 0-9 . _ : -" },
  { NULL },
};

/* The modes in which each of @specs means something. */
static const guint in_modes[G_N_ELEMENTS (specs) - 1] = {
  [OPTION_MODE] = IN_ALL,
  [OPTION_LAST_EVENT_ID] = IN_ALL,
  [OPTION_EPOCH] = IN_ALL,
  [OPTION_TYPES] = IN_ALL,
  [OPTION_MAX_QUEUED] = IN_STREAM,
  [OPTION_BUDGET_BYTES] = IN_ROUTED,
  [OPTION_EVICTION] = IN_ROUTED,
  [OPTION_SCOPE] = IN_ROUTED,
  [OPTION_SCOPE_SYSTEM] = IN_ROUTED,
  [OPTION_GATE] = IN_ALL,
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
    if (GIVEN (given, i) && (in_modes[i] & (1u << mode)) == 0)
      {
        g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION,
                     "option \"%s\" means nothing in mode \"%s\"", specs[i].key, mode_words[mode]);
        return FALSE;
      }
  return TRUE;
}

/* What the engine is asked for, with what it only borrows. */
typedef struct
{
  HeadwaySubscribeOptions options;
  HeadwayFilter *filter;   /* owned, nullable */
  HeadwayPrincipal *scope; /* owned, nullable */
  HeadwayGate *gate;       /* owned, nullable */
} Request;

static void
request_clear (Request *self)
{
  g_clear_pointer (&self->filter, headway_filter_unref);
  g_clear_pointer (&self->scope, headway_principal_unref);
  g_clear_pointer (&self->gate, headway_gate_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Request, request_clear)

static void
set_route (Request *self, const SubscribeOptions *values, guint64 given, const HeadwayLimits *limits)
{
  HeadwayRouteOptions *route = &self->options.route;

  headway_route_options_init (route, limits);
  if (GIVEN (given, OPTION_BUDGET_BYTES))
    route->budget_bytes = values->budget_bytes;
  if (GIVEN (given, OPTION_EVICTION) && strcmp (values->eviction, eviction_words[HEADWAY_EVICTION_FAIR]) == 0)
    route->eviction = HEADWAY_EVICTION_FAIR;
}

static gboolean
set_scope (Request *self, const SubscribeOptions *values, guint64 given, HeadwayPrincipalTable *principals, GError **error)
{
  if (!GIVEN (given, OPTION_SCOPE))
    {
      if (!values->scope_system)
        return TRUE;
      g_set_error_literal (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION,
                           "option \"scope-system\" needs option \"scope\"");
      return FALSE;
    }
  if (*values->scope == '\0')
    self->scope = headway_principal_ref (headway_principal_table_get_system (principals));
  else
    self->scope = headway_principal_table_intern (principals, values->scope, error);
  if (self->scope == NULL)
    return FALSE;
  self->options.scope.kind = values->scope_system ? HEADWAY_SCOPE_PRINCIPAL_OR_SYSTEM : HEADWAY_SCOPE_EXACT;
  self->options.scope.principal = self->scope;
  return TRUE;
}

/* A retired gate would keep everything out for ever: that is no wish of anybody. */
static gboolean
set_gate (Request *self, const char *name, HeadwayGateTable *gates, const char *owner, GError **error)
{
  if (name == NULL)
    return TRUE;
  self->gate = headway_gate_table_ensure (gates, owner, name, error);
  if (self->gate == NULL)
    return FALSE;
  self->options.gate = self->gate;
  if (headway_gate_get_state (self->gate) != HEADWAY_GATE_RETIRED)
    return TRUE;
  g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION,
               "gate \"%s\" is retired, it takes a new name", name);
  return FALSE;
}

static gboolean
read_options (Request *self,
              const HeadwayDBusSubscribeTarget *target,
              HeadwayDBusPeer *peer,
              const char *const *patterns,
              SubscribeOptions *values,
              guint64 given,
              GError **error)
{
  HeadwayBusTable *table = target->context->table;
  HeadwaySubscribeOptions *options = &self->options;

  headway_subscribe_options_init (options);
  options->mode = find_mode (values->mode);
  if (!check_in_mode (given, options->mode, error))
    return FALSE;
  options->filter = self->filter = headway_filter_new (patterns, values->types, error);
  if (self->filter == NULL)
    return FALSE;
  options->max_queued = values->max_queued;
  options->cursor.is_set = GIVEN (given, OPTION_LAST_EVENT_ID);
  options->cursor.last_event_id = values->last_event_id;
  options->cursor.epoch = values->epoch;
  set_route (self, values, given, headway_bus_table_get_limits (table));
  return set_scope (self, values, given, headway_bus_table_get_principals (table), error) &&
         set_gate (self, values->gate, target->gates, peer->name, error);
}

/* Returns: (transfer full) (nullable). @request: (out): says what it got. */
static HeadwaySubscription *
subscribe (const HeadwayDBusSubscribeTarget *target,
           HeadwayDBusPeer *peer,
           const char *const *patterns,
           GVariant *arguments,
           Request *request,
           GError **error)
{
  g_auto (SubscribeOptions) values = { .mode = "stream", .max_queued = HEADWAY_MAX_QUEUED_DEFAULT };
  HeadwaySubscription *subscription;
  guint64 given = 0;

  if (!headway_options_parse (arguments, specs, &values, &given, error) ||
      !read_options (request, target, peer, patterns, &values, given, error))
    return NULL;
  if (headway_bus_is_closing (target->bus))
    {
      g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_CLOSED, "bus \"%s\" is closed", headway_bus_get_name (target->bus));
      return NULL;
    }
  subscription = headway_bus_subscribe (target->bus, &request->options, headway_clock_now (), error);
  request->options.cursor.epoch = NULL;
  return subscription;
}

/* --- The answer ----------------------------------------------------------------------------- */

static void
add_uint (GVariantBuilder *builder, const char *key, guint value)
{
  g_variant_builder_add (builder, "{sv}", key, g_variant_new_uint32 (value));
}

static void
add_uint64 (GVariantBuilder *builder, const char *key, guint64 value)
{
  g_variant_builder_add (builder, "{sv}", key, g_variant_new_uint64 (value));
}

static void
add_route (GVariantBuilder *builder, const HeadwayRouteOptions *route)
{
  add_uint64 (builder, "budget-bytes", route->budget_bytes);
  g_variant_builder_add (builder, "{sv}", "eviction", g_variant_new_string (eviction_words[route->eviction]));
  add_uint (builder, "route-quantum-bytes", (guint) route->quantum_bytes);
  add_uint (builder, "route-principal-messages", route->principal_messages);
  add_uint (builder, "route-messages", route->messages);
  add_uint (builder, "route-principals", route->principals);
}

/* The limits in force are those of the mode. */
static GVariant *
new_info (HeadwayBus *bus, const HeadwaySubscribeOptions *options, guint64 last_id)
{
  const HeadwayBusOptions *limits = headway_bus_get_options (bus);
  GVariantBuilder builder;

  g_variant_builder_init (&builder, G_VARIANT_TYPE_VARDICT);
  g_variant_builder_add (&builder, "{sv}", "epoch", g_variant_new_string (headway_bus_get_epoch (bus)));
  add_uint64 (&builder, "last-id", last_id);
  g_variant_builder_add (&builder, "{sv}", "mode", g_variant_new_string (mode_words[options->mode]));
  add_uint64 (&builder, "replay-budget-bytes", limits->replay_budget_bytes);
  switch (options->mode)
    {
    case HEADWAY_MODE_STREAM:
      add_uint (&builder, "max-queued", options->max_queued);
      add_uint64 (&builder, "max-queued-bytes", limits->max_queued_bytes);
      break;
    case HEADWAY_MODE_ROUTED:
      add_route (&builder, &options->route);
      break;
    case HEADWAY_MODE_BROADCAST:
      add_uint (&builder, "channel-capacity", limits->channel_capacity);
      break;
    default:
      g_assert_not_reached ();
    }
  return g_variant_builder_end (&builder);
}

void
headway_dbus_subscribe (const HeadwayDBusSubscribeTarget *target,
                        GDBusMethodInvocation *invocation,
                        const char *const *patterns,
                        GVariant *options)
{
  HeadwayDBusPeer *peer = headway_dbus_peers_get (target->context->peers, invocation);
  guint64 last_id = headway_bus_get_last_id (target->bus);
  g_autoptr (HeadwaySubscription) subscription = NULL;
  g_autoptr (HeadwayDBusSubscriptionImpl) impl = NULL;
  g_auto (Request) request = { 0 };
  GError *error = NULL;

  impl = headway_dbus_subscription_impl_new (target->context, peer, &error);
  if (impl != NULL)
    subscription = subscribe (target, peer, patterns, options, &request, &error);
  if (subscription == NULL || !headway_dbus_subscription_impl_export (impl, subscription, target->bus_path, &error))
    {
      headway_dbus_error_answer (invocation, error);
      return;
    }
  g_dbus_method_invocation_return_value (
    invocation, g_variant_new ("(o@a{sv})", g_dbus_interface_skeleton_get_object_path (G_DBUS_INTERFACE_SKELETON (impl)),
                               new_info (target->bus, &request.options, last_id)));
}
