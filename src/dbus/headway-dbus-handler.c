/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-handler.h"

#include "dbus/headway-dbus-error.h"
#include "dbus/headway-dbus-guard.h"
#include "dbus/headway-dbus-names.h"
#include "wire/headway-clock.h"

enum
{
  PROP_0,
  /* From here the properties of the interface, in the order of the XML. */
  PROP_PATTERNS,
  PROP_PRIORITY,
  PROP_PHASE,
  PROP_PENDING,
  PROP_HANDLED,
  PROP_DROPPED,
  PROP_ACTIVE_PRINCIPALS,
};

struct _HeadwayDBusHandlerImpl
{
  HeadwayDBusHandlerRegistrationSkeleton parent_instance;

  HeadwayDBusContext *context; /* owned */
  HeadwayDBusPeer *owner;      /* owned */
  HeadwayDBusCharge charge;
  HeadwayHandlerTarget *target; /* owned */
  GQueue waiting;               /* PendingUnregister (owned): calls that wait until it has ended */
};

/* A call of Unregister() whose handler still drains. */
typedef struct
{
  GDBusMethodInvocation *invocation; /* owned */
  HeadwayDBusCharge charge;
} PendingUnregister;

static void handler_iface_init (HeadwayDBusHandlerRegistrationIface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (HeadwayDBusHandlerImpl,
                               headway_dbus_handler_impl,
                               HEADWAY_DBUS_TYPE_HANDLER_REGISTRATION_SKELETON,
                               G_IMPLEMENT_INTERFACE (HEADWAY_DBUS_TYPE_HANDLER_REGISTRATION, handler_iface_init))

/* --- Its life ------------------------------------------------------------------------------- */

static void
answer_unregister (HeadwayDBusHandlerImpl *self, PendingUnregister *pending)
{
  headway_dbus_charge_release (&pending->charge);
  headway_dbus_handler_registration_complete_unregister (HEADWAY_DBUS_HANDLER_REGISTRATION (self), pending->invocation);
  g_free (pending);
}

static void
on_ended (gpointer user_data)
{
  HeadwayDBusHandlerImpl *self = user_data;
  g_autoptr (HeadwayDBusHandlerImpl) keep = g_object_ref (self);
  PendingUnregister *pending;

  headway_dbus_charge_release (&self->charge);
  while ((pending = g_queue_pop_head (&self->waiting)) != NULL)
    answer_unregister (self, pending);
  headway_dbus_context_unexport (self->context, G_DBUS_INTERFACE_SKELETON (self));
  g_hash_table_remove (self->context->handlers, self);
}

static void
on_owner_left (HeadwayDBusCharge *charge)
{
  HeadwayDBusHandlerImpl *self = (HeadwayDBusHandlerImpl *) ((char *) charge - G_STRUCT_OFFSET (HeadwayDBusHandlerImpl, charge));

  headway_handler_drop (headway_handler_target_get_handler (self->target), headway_clock_now ());
}

HeadwayDBusHandlerImpl *
headway_dbus_handler_impl_new (HeadwayDBusContext *context,
                               HeadwayDBusPeer *owner,
                               const HeadwayHandlerPlace *place,
                               GError **error)
{
  g_autoptr (HeadwayDBusHandlerImpl) self = g_object_new (HEADWAY_DBUS_TYPE_HANDLER_IMPL, NULL);

  self->context = headway_dbus_context_ref (context);
  self->owner = headway_dbus_peer_ref (owner);
  self->target = headway_handler_target_new (context->caller, place, on_ended, self);
  if (!headway_dbus_charge_take (&self->charge, owner, HEADWAY_DBUS_CHARGE_HANDLER, 0, on_owner_left, error))
    return NULL;
  return g_steal_pointer (&self);
}

gboolean
headway_dbus_handler_impl_register (HeadwayDBusHandlerImpl *self,
                                    HeadwayBus *bus,
                                    const HeadwayHandlerOptions *options,
                                    GError **error)
{
  HeadwayDispatcher *dispatcher = headway_bus_table_get_dispatcher (self->context->table);
  HeadwayInstant now = headway_clock_now ();
  HeadwayHandler *handler;

  handler = headway_handler_target_register (self->target, dispatcher, bus, options, HEADWAY_DBUS_HANDLER_PREFIX, now, error);
  if (handler == NULL)
    {
      headway_dbus_charge_release (&self->charge);
      return FALSE;
    }
  g_hash_table_add (self->context->handlers, g_object_ref (self));
  if (headway_dbus_context_export (self->context, G_DBUS_INTERFACE_SKELETON (self),
                                   headway_handler_target_get_path (self->target), error))
    return TRUE;
  headway_handler_drop (handler, now);
  return FALSE;
}

/* --- Its method ----------------------------------------------------------------------------- */

static gboolean
handle_unregister (HeadwayDBusHandlerRegistration *object, GDBusMethodInvocation *invocation)
{
  HeadwayDBusHandlerImpl *self = HEADWAY_DBUS_HANDLER_IMPL (object);
  PendingUnregister *pending = g_new0 (PendingUnregister, 1);
  GError *error = NULL;

  pending->invocation = invocation;
  if (!headway_dbus_charge_take (&pending->charge, self->owner, HEADWAY_DBUS_CHARGE_CALL, 0, NULL, &error))
    {
      headway_dbus_error_answer (invocation, error);
      g_free (pending);
      return G_DBUS_METHOD_INVOCATION_HANDLED;
    }
  g_queue_push_tail (&self->waiting, pending);
  headway_handler_unregister (headway_handler_target_get_handler (self->target), headway_clock_now ());
  return G_DBUS_METHOD_INVOCATION_HANDLED;
}

static void
handler_iface_init (HeadwayDBusHandlerRegistrationIface *iface)
{
  iface->handle_unregister = handle_unregister;
}

/* --- Its guard: the owner alone ------------------------------------------------------------- */

static HeadwayDBusContext *
get_context (GDBusInterfaceSkeleton *skeleton)
{
  return HEADWAY_DBUS_HANDLER_IMPL (skeleton)->context;
}

static gboolean
check_owner (GDBusInterfaceSkeleton *skeleton, const char *sender, GError **error)
{
  HeadwayDBusHandlerImpl *self = HEADWAY_DBUS_HANDLER_IMPL (skeleton);
  HeadwayHandler *handler = headway_handler_target_get_handler (self->target);

  if (g_strcmp0 (sender, self->owner->name) == 0)
    return TRUE;
  headway_bus_table_add_security (self->context->table, HEADWAY_SECURITY_NOT_OWNER,
                                  headway_bus_get_name (headway_handler_get_bus (handler)),
                                  headway_dbus_peers_get_uid (self->context->peers, sender), NULL, headway_clock_now ());
  g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_NOT_OWNER, "handler %u does not belong to connection %s",
               headway_handler_get_number (handler), sender != NULL ? sender : "without a name");
  return FALSE;
}

static gboolean
answer_ended (GDBusInterfaceSkeleton *skeleton, GDBusMethodInvocation *invocation)
{
  HeadwayHandler *handler = headway_handler_target_get_handler (HEADWAY_DBUS_HANDLER_IMPL (skeleton)->target);

  if (!headway_handler_has_ended (handler))
    return FALSE;
  headway_dbus_error_refuse (invocation, HEADWAY_ERROR_CLOSED, "handler %u has ended", headway_handler_get_number (handler));
  return TRUE;
}

static const HeadwayDBusGuard guard = { get_context, check_owner, NULL, answer_ended };

/* --- Its class ------------------------------------------------------------------------------ */

static void
headway_dbus_handler_impl_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  HeadwayHandler *handler = headway_handler_target_get_handler (HEADWAY_DBUS_HANDLER_IMPL (object)->target);

  if (handler == NULL)
    return;
  switch (id)
    {
    case PROP_PATTERNS:
      g_value_set_boxed (value, headway_handler_get_patterns (handler));
      break;
    case PROP_PRIORITY:
      g_value_set_uint (value, headway_handler_get_priority (handler));
      break;
    case PROP_PHASE:
      g_value_set_string (value, headway_phase_get_name (headway_handler_get_phase (handler)));
      break;
    case PROP_PENDING:
      g_value_set_uint (value, headway_handler_get_pending (handler));
      break;
    case PROP_HANDLED:
      g_value_set_uint64 (value, headway_handler_get_handled (handler));
      break;
    case PROP_DROPPED:
      g_value_set_uint64 (value, headway_handler_get_dropped (handler));
      break;
    case PROP_ACTIVE_PRINCIPALS:
      g_value_set_uint (value, headway_handler_get_active_principals (handler));
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    }
}

/* GObject wants one, since the generated properties are writable inside the process. */
static void
headway_dbus_handler_impl_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static void
headway_dbus_handler_impl_finalize (GObject *object)
{
  HeadwayDBusHandlerImpl *self = HEADWAY_DBUS_HANDLER_IMPL (object);

  headway_dbus_charge_release (&self->charge);
  g_clear_pointer (&self->target, headway_handler_target_unref);
  g_clear_pointer (&self->owner, headway_dbus_peer_unref);
  g_clear_pointer (&self->context, headway_dbus_context_unref);
  G_OBJECT_CLASS (headway_dbus_handler_impl_parent_class)->finalize (object);
}

static void
headway_dbus_handler_impl_class_init (HeadwayDBusHandlerImplClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->get_property = headway_dbus_handler_impl_get_property;
  object_class->set_property = headway_dbus_handler_impl_set_property;
  object_class->finalize = headway_dbus_handler_impl_finalize;
  /* Properties of the parent would be read by the parent's getter, from its own copies. */
  headway_dbus_handler_registration_override_properties (object_class, PROP_PATTERNS);
  headway_dbus_guard_install (G_DBUS_INTERFACE_SKELETON_CLASS (klass), &guard);
}

static void
headway_dbus_handler_impl_init (HeadwayDBusHandlerImpl *self)
{
  g_queue_init (&self->waiting);
}
