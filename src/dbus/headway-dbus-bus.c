/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-bus.h"

#include "dbus/headway-dbus-error.h"
#include "dbus/headway-dbus-fetch.h"
#include "dbus/headway-dbus-guard.h"
#include "dbus/headway-dbus-listing.h"
#include "dbus/headway-dbus-path.h"
#include "dbus/headway-dbus-publish.h"
#include "dbus/headway-dbus-publisher.h"
#include "dbus/headway-dbus-register.h"
#include "dbus/headway-dbus-subscribe.h"
#include "wire/headway-clock.h"

#include <string.h>

/* What a publish may bring beside the events themselves: topics, options, padding. */
#define PUBLISH_SLACK      (64 * 1024)
#define PUBLISH_MANY_SLACK (HEADWAY_BATCH_EVENTS_MAX * 1024)

enum
{
  PROP_0,
  /* From here the properties of the interface, in the order of the XML. */
  PROP_NAME,
  PROP_EPOCH,
  PROP_RING_SIZE,
  PROP_LAST_EVENT_ID,
  PROP_FIRST_EVENT_ID,
  PROP_RING_BYTES,
  PROP_SUBSCRIBER_COUNT,
};

struct _HeadwayDBusBusImpl
{
  HeadwayDBusBusSkeleton parent_instance;

  HeadwayDBusContext *context; /* owned */
  HeadwayBus *bus;             /* owned */
  char *path;                  /* owned */
  HeadwayGateTable *gates;     /* owned: of subscriptions to this bus, by unique name */
  GQueue fetches;              /* HeadwayDBusFetch (borrowed) */
};

static void bus_iface_init (HeadwayDBusBusIface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (HeadwayDBusBusImpl,
                               headway_dbus_bus_impl,
                               HEADWAY_DBUS_TYPE_BUS_SKELETON,
                               G_IMPLEMENT_INTERFACE (HEADWAY_DBUS_TYPE_BUS, bus_iface_init))

HeadwayDBusBusImpl *
headway_dbus_bus_impl_new (HeadwayDBusContext *context, HeadwayBus *bus)
{
  HeadwayDBusBusImpl *self = g_object_new (HEADWAY_DBUS_TYPE_BUS_IMPL, NULL);

  self->context = headway_dbus_context_ref (context);
  self->bus = g_object_ref (bus);
  self->path = headway_dbus_path_of_bus (headway_bus_get_name (bus));
  self->gates = headway_gate_table_new ();
  return self;
}

const char *
headway_dbus_bus_impl_get_path (HeadwayDBusBusImpl *self)
{
  return self->path;
}

void
headway_dbus_bus_impl_end_fetches (HeadwayDBusBusImpl *self)
{
  headway_dbus_fetch_end_all (&self->fetches);
}

/* --- Its methods ---------------------------------------------------------------------------- */

static gboolean
handle_publish_many (HeadwayDBusBus *object, GDBusMethodInvocation *invocation, GVariant *events, GVariant *options)
{
  HeadwayDBusBusImpl *self = HEADWAY_DBUS_BUS_IMPL (object);

  headway_dbus_publish_many (self->context, self->bus, invocation, events, options);
  return G_DBUS_METHOD_INVOCATION_HANDLED;
}

static gboolean
handle_open_publisher (HeadwayDBusBus *object,
                       GDBusMethodInvocation *invocation,
                       GUnixFDList *fds,
                       const char *format,
                       GVariant *options)
{
  HeadwayDBusBusImpl *self = HEADWAY_DBUS_BUS_IMPL (object);

  headway_dbus_publisher_open (self->context, self->bus, invocation, format, options);
  return G_DBUS_METHOD_INVOCATION_HANDLED;
}

static gboolean
handle_subscribe (HeadwayDBusBus *object,
                  GDBusMethodInvocation *invocation,
                  const char *const *patterns,
                  GVariant *options)
{
  HeadwayDBusBusImpl *self = HEADWAY_DBUS_BUS_IMPL (object);

  const HeadwayDBusSubscribeTarget target = { self->context, self->bus, self->path, self->gates };

  headway_dbus_subscribe (&target, invocation, patterns, options);
  return G_DBUS_METHOD_INVOCATION_HANDLED;
}

static gboolean
handle_register_handler (HeadwayDBusBus *object,
                         GDBusMethodInvocation *invocation,
                         const char *const *patterns,
                         const char *object_path,
                         GVariant *options)
{
  HeadwayDBusBusImpl *self = HEADWAY_DBUS_BUS_IMPL (object);
  const HeadwayDBusRegisterTarget target = { self->context, self->bus, self->path };

  headway_dbus_register_handler (&target, invocation, patterns, object_path, options);
  return G_DBUS_METHOD_INVOCATION_HANDLED;
}

static gboolean
handle_fetch (HeadwayDBusBus *object,
              GDBusMethodInvocation *invocation,
              guint64 after_id,
              guint max_events,
              GVariant *options)
{
  HeadwayDBusBusImpl *self = HEADWAY_DBUS_BUS_IMPL (object);
  HeadwayDBusPeer *peer = headway_dbus_peers_get (self->context->peers, invocation);

  headway_dbus_fetch_start (self->bus, peer, invocation, after_id, max_events, options, &self->fetches);
  return G_DBUS_METHOD_INVOCATION_HANDLED;
}

static void
report_unauthorized (HeadwayDBusBusImpl *self, HeadwayDBusPeer *peer)
{
  const HeadwayCaller *caller = &peer->caller;

  headway_bus_table_add_security (self->context->table, HEADWAY_SECURITY_NOT_AUTHORIZED, headway_bus_get_name (self->bus),
                                  caller->uid, caller->principal != NULL ? headway_principal_get_name (caller->principal) : NULL,
                                  headway_clock_now ());
}

static gboolean
handle_list_subscriptions (HeadwayDBusBus *object, GDBusMethodInvocation *invocation)
{
  HeadwayDBusBusImpl *self = HEADWAY_DBUS_BUS_IMPL (object);
  HeadwayDBusPeer *peer = headway_dbus_peers_get (self->context->peers, invocation);
  GVariant *list;

  if (!peer->caller.is_administrator)
    {
      report_unauthorized (self, peer);
      headway_dbus_error_refuse (invocation, HEADWAY_ERROR_NOT_AUTHORIZED,
                                 "user %u may not list subscriptions, only the user of headwayd and root may",
                                 peer->caller.uid);
      return G_DBUS_METHOD_INVOCATION_HANDLED;
    }
  list = headway_dbus_listing_new (self->bus);
  headway_dbus_account_send (&peer->account, g_variant_get_size (list));
  headway_dbus_bus_complete_list_subscriptions (object, invocation, list);
  return G_DBUS_METHOD_INVOCATION_HANDLED;
}

static gboolean
answer_closed (HeadwayDBusBusImpl *self, GDBusMethodInvocation *invocation)
{
  if (!headway_bus_is_closing (self->bus))
    return FALSE;
  headway_dbus_error_refuse (invocation, HEADWAY_ERROR_CLOSED, "bus \"%s\" is closed", headway_bus_get_name (self->bus));
  return TRUE;
}

/* Returns: (transfer none) (nullable): NULL: the call is answered. */
static HeadwayGate *
find_gate (HeadwayDBusBusImpl *self, GDBusMethodInvocation *invocation, const char *name)
{
  GError *error = NULL;
  HeadwayGate *gate;

  if (answer_closed (self, invocation))
    return NULL;
  gate = headway_gate_table_lookup (self->gates, g_dbus_method_invocation_get_sender (invocation), name, &error);
  if (gate == NULL)
    headway_dbus_error_answer (invocation, error);
  return gate;
}

static gboolean
handle_open_gate (HeadwayDBusBus *object, GDBusMethodInvocation *invocation, const char *name)
{
  HeadwayGate *gate = find_gate (HEADWAY_DBUS_BUS_IMPL (object), invocation, name);
  GError *error = NULL;

  if (gate == NULL)
    return G_DBUS_METHOD_INVOCATION_HANDLED;
  if (headway_gate_open (gate, &error))
    headway_dbus_bus_complete_open_gate (object, invocation);
  else
    headway_dbus_error_answer (invocation, error);
  return G_DBUS_METHOD_INVOCATION_HANDLED;
}

static gboolean
handle_retire_gate (HeadwayDBusBus *object, GDBusMethodInvocation *invocation, const char *name)
{
  HeadwayGate *gate = find_gate (HEADWAY_DBUS_BUS_IMPL (object), invocation, name);

  if (gate == NULL)
    return G_DBUS_METHOD_INVOCATION_HANDLED;
  headway_gate_retire (gate);
  headway_dbus_bus_complete_retire_gate (object, invocation);
  return G_DBUS_METHOD_INVOCATION_HANDLED;
}

static gboolean
handle_swap_gates (HeadwayDBusBus *object, GDBusMethodInvocation *invocation, const char *retire, const char *open)
{
  HeadwayDBusBusImpl *self = HEADWAY_DBUS_BUS_IMPL (object);
  HeadwayGate *from = find_gate (self, invocation, retire);
  HeadwayGate *to = from != NULL ? find_gate (self, invocation, open) : NULL;
  GError *error = NULL;

  if (to == NULL)
    return G_DBUS_METHOD_INVOCATION_HANDLED;
  if (headway_gate_swap (from, to, &error))
    headway_dbus_bus_complete_swap_gates (object, invocation);
  else
    headway_dbus_error_answer (invocation, error);
  return G_DBUS_METHOD_INVOCATION_HANDLED;
}

static gboolean
handle_set_snapshot (HeadwayDBusBus *object, GDBusMethodInvocation *invocation, const char *data)
{
  HeadwayDBusBusImpl *self = HEADWAY_DBUS_BUS_IMPL (object);
  guint64 bytes_max = headway_bus_table_get_limits (self->context->table)->event_max_bytes;
  GError *error = NULL;

  if (answer_closed (self, invocation))
    return G_DBUS_METHOD_INVOCATION_HANDLED;
  if (headway_bus_set_snapshot (self->bus, data, strlen (data), MIN (bytes_max, HEADWAY_EVENT_CEILING), &error))
    headway_dbus_bus_complete_set_snapshot (object, invocation);
  else
    headway_dbus_error_answer (invocation, error);
  return G_DBUS_METHOD_INVOCATION_HANDLED;
}

static gboolean
handle_close (HeadwayDBusBus *object, GDBusMethodInvocation *invocation)
{
  HeadwayDBusBusImpl *self = HEADWAY_DBUS_BUS_IMPL (object);
  HeadwayDBusPeer *peer = headway_dbus_peers_get (self->context->peers, invocation);

  if (!headway_caller_may_close (&peer->caller, headway_bus_get_creator (self->bus)))
    {
      report_unauthorized (self, peer);
      headway_dbus_error_refuse (invocation, HEADWAY_ERROR_NOT_AUTHORIZED,
                                 "user %u may not close bus \"%s\", only its creator and administrators may",
                                 peer->caller.uid, headway_bus_get_name (self->bus));
      return G_DBUS_METHOD_INVOCATION_HANDLED;
    }
  if (answer_closed (self, invocation))
    return G_DBUS_METHOD_INVOCATION_HANDLED;
  headway_bus_close_session (self->bus, headway_clock_now ());
  headway_dbus_bus_complete_close (object, invocation);
  return G_DBUS_METHOD_INVOCATION_HANDLED;
}

static void
bus_iface_init (HeadwayDBusBusIface *iface)
{
  iface->handle_publish_many = handle_publish_many;
  iface->handle_open_publisher = handle_open_publisher;
  iface->handle_subscribe = handle_subscribe;
  iface->handle_register_handler = handle_register_handler;
  iface->handle_fetch = handle_fetch;
  iface->handle_list_subscriptions = handle_list_subscriptions;
  iface->handle_open_gate = handle_open_gate;
  iface->handle_retire_gate = handle_retire_gate;
  iface->handle_swap_gates = handle_swap_gates;
  iface->handle_set_snapshot = handle_set_snapshot;
  iface->handle_close = handle_close;
}

/* --- Its guard: calls are small ------------------------------------------------------------- */

static gsize
bytes_max_of (const char *method)
{
  if (strcmp (method, "PublishMany") == 0)
    return HEADWAY_BATCH_BYTES_MAX + PUBLISH_MANY_SLACK;
  if (strcmp (method, "Publish") == 0 || strcmp (method, "SetSnapshot") == 0)
    return HEADWAY_EVENT_CEILING + PUBLISH_SLACK;
  return HEADWAY_DBUS_CALL_BYTES_MAX;
}

static HeadwayDBusContext *
get_context (GDBusInterfaceSkeleton *skeleton)
{
  return HEADWAY_DBUS_BUS_IMPL (skeleton)->context;
}

/* What is called for every event does not take the way over the signals of the generated code, which costs more
 * than the publish itself. GDBus has checked the types. */
static gboolean
answer (GDBusInterfaceSkeleton *skeleton, GDBusMethodInvocation *invocation)
{
  HeadwayDBusBusImpl *self = HEADWAY_DBUS_BUS_IMPL (skeleton);
  g_autoptr (GVariant) options = NULL;
  const char *topic;
  const char *data;

  if (headway_dbus_context_answer_shut_down (self->context, invocation))
    return TRUE;
  if (!g_str_equal (g_dbus_method_invocation_get_method_name (invocation), "Publish"))
    return FALSE;

  g_variant_get (g_dbus_method_invocation_get_parameters (invocation), "(&s&s@a{sv})", &topic, &data, &options);
  headway_dbus_publish_one (self->context, self->bus, invocation, topic, data, options);
  return TRUE;
}

static const HeadwayDBusGuard guard = { get_context, NULL, bytes_max_of, answer };

/* --- Its class ------------------------------------------------------------------------------ */

static void
headway_dbus_bus_impl_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  HeadwayDBusBusImpl *self = HEADWAY_DBUS_BUS_IMPL (object);

  switch (id)
    {
    case PROP_NAME:
      g_value_set_string (value, headway_bus_get_name (self->bus));
      break;
    case PROP_EPOCH:
      g_value_set_string (value, headway_bus_get_epoch (self->bus));
      break;
    case PROP_RING_SIZE:
      g_value_set_uint (value, headway_bus_get_options (self->bus)->ring_size);
      break;
    case PROP_LAST_EVENT_ID:
      g_value_set_uint64 (value, headway_bus_get_last_id (self->bus));
      break;
    case PROP_FIRST_EVENT_ID:
      g_value_set_uint64 (value, headway_ring_get_first_id (headway_bus_get_ring (self->bus)));
      break;
    case PROP_RING_BYTES:
      g_value_set_uint64 (value, headway_ring_get_bytes (headway_bus_get_ring (self->bus)));
      break;
    case PROP_SUBSCRIBER_COUNT:
      g_value_set_uint (value, headway_bus_get_subscriber_count (self->bus));
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    }
}

/* GObject wants one, since the generated properties are writable inside the process. */
static void
headway_dbus_bus_impl_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static void
headway_dbus_bus_impl_finalize (GObject *object)
{
  HeadwayDBusBusImpl *self = HEADWAY_DBUS_BUS_IMPL (object);

  headway_dbus_bus_impl_end_fetches (self);
  g_object_unref (self->bus);
  headway_dbus_context_unref (self->context);
  headway_gate_table_free (self->gates);
  g_free (self->path);
  G_OBJECT_CLASS (headway_dbus_bus_impl_parent_class)->finalize (object);
}

static void
headway_dbus_bus_impl_class_init (HeadwayDBusBusImplClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->get_property = headway_dbus_bus_impl_get_property;
  object_class->set_property = headway_dbus_bus_impl_set_property;
  object_class->finalize = headway_dbus_bus_impl_finalize;
  /* Properties of the parent would be read by the parent's getter, from its own copies. */
  headway_dbus_bus_override_properties (object_class, PROP_NAME);
  headway_dbus_guard_install (G_DBUS_INTERFACE_SKELETON_CLASS (klass), &guard);
}

static void
headway_dbus_bus_impl_init (HeadwayDBusBusImpl *self)
{
  g_queue_init (&self->fetches);
}
