/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-manager.h"

#include "dbus/headway-dbus-error.h"
#include "dbus/headway-dbus-guard.h"
#include "dbus/headway-dbus-path.h"
#include "wire/headway-clock.h"
#include "wire/headway-metrics-variant.h"
#include "wire/headway-options.h"

enum
{
  PROP_0,
  /* From here the properties of the interface, in the order of the XML. */
  PROP_VERSION,
  PROP_CAPABILITIES,
  PROP_HTTP_URIS,
  PROP_HTTP_TOKEN_FILE,
};

struct _HeadwayDBusManagerImpl
{
  HeadwayDBusManagerSkeleton parent_instance;

  HeadwayDBusContext *context; /* owned */
  char *version;               /* owned */
  char **capabilities;         /* owned */
  char **http_uris;            /* owned */
  char *http_token_file;       /* owned */
};

static void manager_iface_init (HeadwayDBusManagerIface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (HeadwayDBusManagerImpl,
                               headway_dbus_manager_impl,
                               HEADWAY_DBUS_TYPE_MANAGER_SKELETON,
                               G_IMPLEMENT_INTERFACE (HEADWAY_DBUS_TYPE_MANAGER, manager_iface_init))

static char **
dup_strv (const char *const *strings)
{
  static const char *const none[] = { NULL };

  return g_strdupv ((char **) (strings != NULL ? strings : none));
}

HeadwayDBusManagerImpl *
headway_dbus_manager_impl_new (HeadwayDBusContext *context, const HeadwayDBusServiceInfo *info)
{
  HeadwayDBusManagerImpl *self = g_object_new (HEADWAY_DBUS_TYPE_MANAGER_IMPL, NULL);

  self->context = headway_dbus_context_ref (context);
  self->version = g_strdup (info->version);
  self->capabilities = dup_strv (info->capabilities);
  self->http_uris = dup_strv (info->http_uris);
  self->http_token_file = g_strdup (info->http_token_file != NULL ? info->http_token_file : "");
  return self;
}

void
headway_dbus_manager_impl_set_http_uris (HeadwayDBusManagerImpl *self, const char *const *uris)
{
  g_auto (GStrv) old = self->http_uris;

  self->http_uris = dup_strv (uris);
}

/* --- Its methods ---------------------------------------------------------------------------- */

/* A call that waits for its bus to be ready. It cannot be taken back: if the caller leaves, the bus
 * is made all the same, and the answer goes nowhere. */
typedef struct
{
  GDBusMethodInvocation *invocation; /* owned until it is answered */
  HeadwayDBusCharge charge;
} PendingBus;

/* Returns: (transfer full) (nullable): NULL once @invocation is answered. */
static PendingBus *
pending_bus_new (HeadwayDBusManagerImpl *self, GDBusMethodInvocation *invocation, HeadwayDBusPeer *peer)
{
  PendingBus *pending = g_new0 (PendingBus, 1);
  GError *error = NULL;

  pending->invocation = invocation;
  if (headway_dbus_charge_take (&pending->charge, peer, HEADWAY_DBUS_CHARGE_CALL, 0, NULL, &error))
    return pending;
  headway_dbus_error_answer (invocation, error);
  g_free (pending);
  return NULL;
}

static void
on_bus_ready (HeadwayBus *bus, const GError *error, gpointer user_data)
{
  PendingBus *pending = user_data;
  g_autofree char *path = NULL;

  if (bus != NULL)
    {
      path = headway_dbus_path_of_bus (headway_bus_get_name (bus));
      g_dbus_method_invocation_return_value (pending->invocation, g_variant_new ("(o)", path));
    }
  else
    headway_dbus_error_answer (pending->invocation, g_error_copy (error));
  headway_dbus_charge_release (&pending->charge);
  g_free (pending);
}

static gboolean
handle_create_bus (HeadwayDBusManager *object, GDBusMethodInvocation *invocation, const char *name, GVariant *options)
{
  HeadwayDBusManagerImpl *self = HEADWAY_DBUS_MANAGER_IMPL (object);
  HeadwayBusTable *table = self->context->table;
  HeadwayBusOptions bus_options = headway_bus_table_get_limits (table)->bus;
  HeadwayDBusPeer *peer = headway_dbus_peers_get (self->context->peers, invocation);
  PendingBus *pending;
  GError *error = NULL;

  if (!headway_options_parse_bus (options, &bus_options, &error))
    {
      headway_dbus_error_answer (invocation, error);
      return G_DBUS_METHOD_INVOCATION_HANDLED;
    }
  pending = pending_bus_new (self, invocation, peer);
  if (pending != NULL)
    headway_bus_table_create (table, name, &bus_options, peer->caller.uid, headway_clock_now (), on_bus_ready, pending);
  return G_DBUS_METHOD_INVOCATION_HANDLED;
}

static gboolean
handle_get_bus (HeadwayDBusManager *object, GDBusMethodInvocation *invocation, const char *name)
{
  HeadwayDBusManagerImpl *self = HEADWAY_DBUS_MANAGER_IMPL (object);
  HeadwayDBusPeer *peer = headway_dbus_peers_get (self->context->peers, invocation);
  PendingBus *pending = pending_bus_new (self, invocation, peer);

  if (pending != NULL)
    headway_bus_table_ensure (self->context->table, name, peer->caller.uid, headway_clock_now (), on_bus_ready, pending);
  return G_DBUS_METHOD_INVOCATION_HANDLED;
}

static gboolean
handle_list_metrics (HeadwayDBusManager *object, GDBusMethodInvocation *invocation)
{
  HeadwayDBusContext *context = HEADWAY_DBUS_MANAGER_IMPL (object)->context;
  HeadwayDBusPeer *peer = headway_dbus_peers_get (context->peers, invocation);
  GVariant *list;

  headway_bus_table_collect (context->table);
  list = headway_metrics_to_variant (headway_bus_table_get_metrics (context->table));
  headway_dbus_account_send (&peer->account, g_variant_get_size (list));
  headway_dbus_manager_complete_list_metrics (object, invocation, list);
  return G_DBUS_METHOD_INVOCATION_HANDLED;
}

static void
manager_iface_init (HeadwayDBusManagerIface *iface)
{
  iface->handle_create_bus = handle_create_bus;
  iface->handle_get_bus = handle_get_bus;
  iface->handle_list_metrics = handle_list_metrics;
}

/* --- Its guard ------------------------------------------------------------------------------ */

static HeadwayDBusContext *
get_context (GDBusInterfaceSkeleton *skeleton)
{
  return HEADWAY_DBUS_MANAGER_IMPL (skeleton)->context;
}

static gboolean
answer_shut_down (GDBusInterfaceSkeleton *skeleton, GDBusMethodInvocation *invocation)
{
  return headway_dbus_context_answer_shut_down (get_context (skeleton), invocation);
}

static const HeadwayDBusGuard guard = { get_context, NULL, NULL, answer_shut_down };

/* --- Its class ------------------------------------------------------------------------------ */

static void
headway_dbus_manager_impl_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  HeadwayDBusManagerImpl *self = HEADWAY_DBUS_MANAGER_IMPL (object);

  switch (id)
    {
    case PROP_VERSION:
      g_value_set_string (value, self->version);
      break;
    case PROP_CAPABILITIES:
      g_value_set_boxed (value, self->capabilities);
      break;
    case PROP_HTTP_URIS:
      g_value_set_boxed (value, self->http_uris);
      break;
    case PROP_HTTP_TOKEN_FILE:
      g_value_set_string (value, self->http_token_file);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    }
}

/* GObject wants one, since the generated properties are writable inside the process. */
static void
headway_dbus_manager_impl_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static void
headway_dbus_manager_impl_finalize (GObject *object)
{
  HeadwayDBusManagerImpl *self = HEADWAY_DBUS_MANAGER_IMPL (object);

  headway_dbus_context_unref (self->context);
  g_free (self->version);
  g_strfreev (self->capabilities);
  g_strfreev (self->http_uris);
  g_free (self->http_token_file);
  G_OBJECT_CLASS (headway_dbus_manager_impl_parent_class)->finalize (object);
}

static void
headway_dbus_manager_impl_class_init (HeadwayDBusManagerImplClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->get_property = headway_dbus_manager_impl_get_property;
  object_class->set_property = headway_dbus_manager_impl_set_property;
  object_class->finalize = headway_dbus_manager_impl_finalize;
  /* Properties of the parent would be read by the parent's getter, from its own copies. */
  headway_dbus_manager_override_properties (object_class, PROP_VERSION);
  headway_dbus_guard_install (G_DBUS_INTERFACE_SKELETON_CLASS (klass), &guard);
}

static void
headway_dbus_manager_impl_init (HeadwayDBusManagerImpl *self)
{
}
