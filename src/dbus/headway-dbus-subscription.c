/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-subscription.h"

#include "dbus/headway-dbus-error.h"
#include "dbus/headway-dbus-guard.h"
#include "dbus/headway-dbus-listing.h"
#include "dbus/headway-dbus-path.h"
#include "dbus/headway-dbus-receive.h"
#include "dbus/headway-dbus-signals.h"
#include "dbus/headway-dbus-stream.h"
#include "wire/headway-clock.h"
#include "wire/headway-variant.h"

enum
{
  PROP_0,
  /* From here the properties of the interface, in the order of the XML. */
  PROP_BUS,
  PROP_PATTERNS,
  PROP_MODE,
  PROP_STATE,
  PROP_QUEUED,
  PROP_QUEUED_BYTES,
  PROP_DROPPED,
  PROP_ACTIVE_PRINCIPALS,
};

/* What the subscription sees of its reader. It is attached for as long as the object is there, also
 * while nobody receives: so the end of the subscription is noticed. */
typedef struct
{
  HeadwaySink sink;
  HeadwayDBusSubscriptionImpl *impl; /* borrowed: it is embedded in it */
} Reader;

struct _HeadwayDBusSubscriptionImpl
{
  HeadwayDBusSubscriptionSkeleton parent_instance;

  HeadwayDBusContext *context; /* owned */
  HeadwayDBusPeer *owner;      /* owned */
  HeadwayDBusCharge charge;
  HeadwaySubscription *subscription; /* owned, nullable until it is exported */
  char *bus_path;                    /* owned */
  Reader reader;
  HeadwayDBusReceive *receive; /* owned, nullable: the call that is pending */
  HeadwayDBusSignals *signals; /* owned, nullable until it is exported */
  HeadwayDBusStream *stream;   /* borrowed, nullable: tells when it goes */
  guint linger;
  gboolean is_retired;
};

static void subscription_iface_init (HeadwayDBusSubscriptionIface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (HeadwayDBusSubscriptionImpl,
                               headway_dbus_subscription_impl,
                               HEADWAY_DBUS_TYPE_SUBSCRIPTION_SKELETON,
                               G_IMPLEMENT_INTERFACE (HEADWAY_DBUS_TYPE_SUBSCRIPTION, subscription_iface_init))

static const char *const mode_names[] = {
  [HEADWAY_MODE_STREAM] = "stream",
  [HEADWAY_MODE_ROUTED] = "routed",
  [HEADWAY_MODE_BROADCAST] = "broadcast",
};

static const char *const state_names[] = {
  [HEADWAY_STATE_REPLAYING] = "replaying",
  [HEADWAY_STATE_LIVE] = "live",
  [HEADWAY_STATE_EVICTED] = "evicted",
  [HEADWAY_STATE_ENDED] = "ended",
};

/* --- Its life ------------------------------------------------------------------------------- */

void
headway_dbus_subscription_impl_retire (HeadwayDBusSubscriptionImpl *self)
{
  g_autoptr (HeadwayDBusSubscriptionImpl) keep = g_object_ref (self);

  if (self->is_retired)
    return;
  self->is_retired = TRUE;
  g_clear_handle_id (&self->linger, g_source_remove);
  headway_dbus_charge_release (&self->charge);
  if (self->subscription == NULL)
    return;
  headway_subscription_detach (self->subscription, &self->reader.sink);
  if (self->stream != NULL)
    headway_dbus_stream_end (g_steal_pointer (&self->stream));
  else
    headway_subscription_abort (self->subscription);
  if (self->receive != NULL)
    headway_dbus_receive_end (self->receive);
  g_clear_pointer (&self->signals, headway_dbus_signals_free);
  headway_dbus_context_unexport (self->context, G_DBUS_INTERFACE_SKELETON (self));
  g_hash_table_remove (self->context->subscriptions, self);
}

static void
on_owner_left (HeadwayDBusCharge *charge)
{
  headway_dbus_subscription_impl_retire (
    (HeadwayDBusSubscriptionImpl *) ((char *) charge - G_STRUCT_OFFSET (HeadwayDBusSubscriptionImpl, charge)));
}

static gboolean
on_linger (gpointer user_data)
{
  HeadwayDBusSubscriptionImpl *self = user_data;

  self->linger = 0;
  headway_dbus_subscription_impl_retire (self);
  return G_SOURCE_REMOVE;
}

/* Once it has ended, its owner has a minute to read it out. */
static void
watch_end (HeadwayDBusSubscriptionImpl *self)
{
  HeadwayState state = headway_subscription_get_state (self->subscription);

  if (self->linger == 0 && !self->is_retired && (state == HEADWAY_STATE_EVICTED || state == HEADWAY_STATE_ENDED))
    self->linger = g_timeout_add (self->context->linger_ms, on_linger, self);
}

static gboolean
has_signals (HeadwayDBusSubscriptionImpl *self)
{
  return self->signals != NULL && headway_dbus_signals_is_on (self->signals);
}

static gboolean
reader_put (HeadwaySink *sink, HeadwayEvent *event, guint64 resume_id)
{
  HeadwayDBusSubscriptionImpl *self = ((Reader *) sink)->impl;

  if (has_signals (self))
    return headway_dbus_signals_put (self->signals, event, resume_id);
  return self->receive != NULL && headway_dbus_receive_put (self->receive, event, resume_id);
}

static void
reader_wake (HeadwaySink *sink)
{
  HeadwayDBusSubscriptionImpl *self = ((Reader *) sink)->impl;

  if (self->receive != NULL)
    headway_dbus_receive_wake (self->receive);
  if (has_signals (self))
    headway_dbus_signals_wake (self->signals);
  watch_end (self);
}

static const HeadwaySinkClass reader_class = { reader_put, reader_wake };

static void
on_signals_done (HeadwayDBusSignals *signals, gpointer user_data)
{
  headway_dbus_subscription_impl_retire (user_data);
}

HeadwayDBusSubscriptionImpl *
headway_dbus_subscription_impl_new (HeadwayDBusContext *context, HeadwayDBusPeer *owner, GError **error)
{
  g_autoptr (HeadwayDBusSubscriptionImpl) self = g_object_new (HEADWAY_DBUS_TYPE_SUBSCRIPTION_IMPL, NULL);

  self->context = headway_dbus_context_ref (context);
  self->owner = headway_dbus_peer_ref (owner);
  self->reader = (Reader){ { &reader_class }, self };
  if (!headway_dbus_charge_take (&self->charge, owner, HEADWAY_DBUS_CHARGE_SUBSCRIPTION, 0, on_owner_left, error))
    return NULL;
  return g_steal_pointer (&self);
}

gboolean
headway_dbus_subscription_impl_export (HeadwayDBusSubscriptionImpl *self,
                                       HeadwaySubscription *subscription,
                                       const char *bus_path,
                                       GError **error)
{
  g_autofree char *path = headway_dbus_path_of_subscription (headway_subscription_get_number (subscription));

  self->subscription = g_object_ref (subscription);
  self->bus_path = g_strdup (bus_path);
  self->signals = headway_dbus_signals_new (self->context->connection, subscription, self->owner, path, on_signals_done, self);
  headway_subscription_set_owner (subscription, self->owner->name, self->owner->caller.uid);
  headway_subscription_set_sink_kind (subscription, "dbus");
  if (!headway_subscription_attach (subscription, &self->reader.sink, error) ||
      !headway_dbus_context_export (self->context, G_DBUS_INTERFACE_SKELETON (self), path, error))
    {
      headway_dbus_subscription_impl_retire (self);
      return FALSE;
    }
  g_hash_table_add (self->context->subscriptions, g_object_ref (self));
  watch_end (self);
  return TRUE;
}

void
headway_dbus_subscription_impl_end_receive (HeadwayDBusSubscriptionImpl *self)
{
  if (self->receive != NULL)
    headway_dbus_receive_end (self->receive);
}

/* --- Its methods ---------------------------------------------------------------------------- */

static gboolean
answer_busy (HeadwayDBusSubscriptionImpl *self, GDBusMethodInvocation *invocation)
{
  if (self->receive == NULL && self->stream == NULL && !has_signals (self))
    return FALSE;
  headway_dbus_error_refuse (invocation, HEADWAY_ERROR_BUSY, "subscription %u already has a reader, one is allowed",
                             headway_subscription_get_number (self->subscription));
  return TRUE;
}

static void
on_receive_done (HeadwayDBusReceive *receive, gboolean is_closed, gpointer user_data)
{
  HeadwayDBusSubscriptionImpl *self = user_data;

  self->receive = NULL;
  if (is_closed)
    headway_dbus_subscription_impl_retire (self);
}

static void
start_receive (HeadwayDBusSubscriptionImpl *self,
               GDBusMethodInvocation *invocation,
               guint max_events,
               guint64 max_cost,
               guint wait_ms)
{
  self->receive = headway_dbus_receive_new (self->subscription, self->owner, invocation, max_events, max_cost, wait_ms,
                                            on_receive_done, self);
  headway_dbus_receive_start (self->receive);
  /* A service that stops hands out what is there and waits for nothing. */
  if (self->context->is_shut_down)
    headway_dbus_subscription_impl_end_receive (self);
}

static gboolean
handle_receive (HeadwayDBusSubscription *object, GDBusMethodInvocation *invocation, guint max_events, int timeout_ms)
{
  HeadwayDBusSubscriptionImpl *self = HEADWAY_DBUS_SUBSCRIPTION_IMPL (object);
  guint wait_ms;

  if (max_events == 0)
    {
      headway_dbus_error_refuse (invocation, HEADWAY_ERROR_INVALID_OPTION,
                                 "max_events is 0, it takes 1 or more, of which %d are returned at most",
                                 HEADWAY_REPLY_EVENTS);
      return G_DBUS_METHOD_INVOCATION_HANDLED;
    }
  if (timeout_ms < -1)
    {
      headway_dbus_error_refuse (invocation, HEADWAY_ERROR_INVALID_OPTION,
                                 "timeout_ms is %d, it takes -1 or more, of which %d are waited at most",
                                 timeout_ms, HEADWAY_DBUS_WAIT_MAX_MS);
      return G_DBUS_METHOD_INVOCATION_HANDLED;
    }
  if (answer_busy (self, invocation))
    return G_DBUS_METHOD_INVOCATION_HANDLED;

  wait_ms = timeout_ms < 0 ? HEADWAY_DBUS_WAIT_MAX_MS : MIN ((guint) timeout_ms, HEADWAY_DBUS_WAIT_MAX_MS);
  start_receive (self, invocation, max_events, G_MAXUINT64, wait_ms);
  return G_DBUS_METHOD_INVOCATION_HANDLED;
}

static gboolean
handle_drain (HeadwayDBusSubscription *object, GDBusMethodInvocation *invocation, guint64 budget_bytes)
{
  HeadwayDBusSubscriptionImpl *self = HEADWAY_DBUS_SUBSCRIPTION_IMPL (object);

  if (answer_busy (self, invocation))
    return G_DBUS_METHOD_INVOCATION_HANDLED;
  if (budget_bytes > 0)
    start_receive (self, invocation, HEADWAY_REPLY_EVENTS, budget_bytes, 0);
  else
    headway_dbus_subscription_complete_drain (object, invocation,
                                              g_variant_new_array (G_VARIANT_TYPE (HEADWAY_VARIANT_EVENT), NULL, 0));
  return G_DBUS_METHOD_INVOCATION_HANDLED;
}

/* Returns: TRUE once the call is answered. */
static gboolean
answer_read_out (HeadwayDBusSubscriptionImpl *self, GDBusMethodInvocation *invocation)
{
  if (!headway_subscription_is_finished (self->subscription))
    return FALSE;
  headway_dbus_error_refuse (invocation, HEADWAY_ERROR_CLOSED, "subscription %u has ended and is read out",
                             headway_subscription_get_number (self->subscription));
  headway_dbus_subscription_impl_retire (self);
  return TRUE;
}

static gboolean
handle_start_signals (HeadwayDBusSubscription *object, GDBusMethodInvocation *invocation, guint window)
{
  HeadwayDBusSubscriptionImpl *self = HEADWAY_DBUS_SUBSCRIPTION_IMPL (object);
  GError *error = NULL;

  if (headway_dbus_context_answer_shut_down (self->context, invocation) || answer_busy (self, invocation))
    return G_DBUS_METHOD_INVOCATION_HANDLED;
  if (!headway_dbus_signals_start (self->signals, window, &error))
    headway_dbus_error_answer (invocation, error);
  else if (!answer_read_out (self, invocation))
    headway_dbus_subscription_complete_start_signals (object, invocation);
  return G_DBUS_METHOD_INVOCATION_HANDLED;
}

static gboolean
handle_stop_signals (HeadwayDBusSubscription *object, GDBusMethodInvocation *invocation)
{
  HeadwayDBusSubscriptionImpl *self = HEADWAY_DBUS_SUBSCRIPTION_IMPL (object);

  headway_dbus_signals_stop (self->signals);
  headway_dbus_subscription_complete_stop_signals (object, invocation);
  return G_DBUS_METHOD_INVOCATION_HANDLED;
}

static gboolean
handle_acknowledge (HeadwayDBusSubscription *object, GDBusMethodInvocation *invocation, guint64 sequence)
{
  HeadwayDBusSubscriptionImpl *self = HEADWAY_DBUS_SUBSCRIPTION_IMPL (object);
  GError *error = NULL;

  if (headway_dbus_signals_acknowledge (self->signals, sequence, &error))
    headway_dbus_subscription_complete_acknowledge (object, invocation);
  else
    headway_dbus_error_answer (invocation, error);
  return G_DBUS_METHOD_INVOCATION_HANDLED;
}

static void
on_stream_done (HeadwayDBusStream *stream, gpointer user_data)
{
  HeadwayDBusSubscriptionImpl *self = user_data;

  self->stream = NULL;
  headway_dbus_subscription_impl_retire (self);
}

static HeadwayDBusStream *
open_stream (HeadwayDBusSubscriptionImpl *self, HeadwayStreamFormat format, int *fd, GError **error)
{
  HeadwayDBusStream *stream;

  headway_subscription_detach (self->subscription, &self->reader.sink);
  stream = headway_dbus_stream_new (self->context, self->subscription, self->owner, format, on_stream_done, self, fd, error);
  if (stream == NULL)
    headway_subscription_attach (self->subscription, &self->reader.sink, NULL);
  return stream;
}

static gboolean
handle_open_stream (HeadwayDBusSubscription *object,
                    GDBusMethodInvocation *invocation,
                    GUnixFDList *fds,
                    const char *word,
                    GVariant *options)
{
  HeadwayDBusSubscriptionImpl *self = HEADWAY_DBUS_SUBSCRIPTION_IMPL (object);
  HeadwayStreamFormat format = HEADWAY_STREAM_FORMAT_SSE;
  GError *error = NULL;
  int fd = -1;

  if (headway_dbus_context_answer_shut_down (self->context, invocation) || answer_busy (self, invocation))
    return G_DBUS_METHOD_INVOCATION_HANDLED;
  if (headway_dbus_stream_check (self->context, word, options, &format, &error))
    {
      if (answer_read_out (self, invocation))
        return G_DBUS_METHOD_INVOCATION_HANDLED;
      self->stream = open_stream (self, format, &fd, &error);
    }
  if (self->stream == NULL)
    {
      headway_dbus_error_answer (invocation, error);
      return G_DBUS_METHOD_INVOCATION_HANDLED;
    }
  /* What is left to read is bounded by the drain window. */
  g_clear_handle_id (&self->linger, g_source_remove);
  headway_dbus_stream_answer (invocation, fd);
  return G_DBUS_METHOD_INVOCATION_HANDLED;
}

static gboolean
handle_drain_lagged (HeadwayDBusSubscription *object, GDBusMethodInvocation *invocation)
{
  HeadwayDBusSubscriptionImpl *self = HEADWAY_DBUS_SUBSCRIPTION_IMPL (object);

  headway_dbus_subscription_complete_drain_lagged (object, invocation, headway_subscription_drain_lagged (self->subscription));
  return G_DBUS_METHOD_INVOCATION_HANDLED;
}

static gboolean
handle_list_principals (HeadwayDBusSubscription *object, GDBusMethodInvocation *invocation)
{
  HeadwayDBusSubscriptionImpl *self = HEADWAY_DBUS_SUBSCRIPTION_IMPL (object);

  GVariant *list = headway_dbus_listing_new_principals (self->subscription, HEADWAY_PRINCIPALS_LISTED);

  headway_dbus_account_send (&self->owner->account, g_variant_get_size (list));
  headway_dbus_subscription_complete_list_principals (object, invocation, list);
  return G_DBUS_METHOD_INVOCATION_HANDLED;
}

static gboolean
handle_close (HeadwayDBusSubscription *object, GDBusMethodInvocation *invocation)
{
  headway_dbus_subscription_complete_close (object, invocation);
  headway_dbus_subscription_impl_retire (HEADWAY_DBUS_SUBSCRIPTION_IMPL (object));
  return G_DBUS_METHOD_INVOCATION_HANDLED;
}

static void
subscription_iface_init (HeadwayDBusSubscriptionIface *iface)
{
  iface->handle_receive = handle_receive;
  iface->handle_drain = handle_drain;
  iface->handle_start_signals = handle_start_signals;
  iface->handle_stop_signals = handle_stop_signals;
  iface->handle_acknowledge = handle_acknowledge;
  iface->handle_open_stream = handle_open_stream;
  iface->handle_drain_lagged = handle_drain_lagged;
  iface->handle_list_principals = handle_list_principals;
  iface->handle_close = handle_close;
}

/* --- Its guard: the owner alone ------------------------------------------------------------- */

static HeadwayDBusContext *
get_context (GDBusInterfaceSkeleton *skeleton)
{
  return HEADWAY_DBUS_SUBSCRIPTION_IMPL (skeleton)->context;
}

static gboolean
check_owner (GDBusInterfaceSkeleton *skeleton, const char *sender, GError **error)
{
  HeadwayDBusSubscriptionImpl *self = HEADWAY_DBUS_SUBSCRIPTION_IMPL (skeleton);
  HeadwayDBusContext *context = self->context;
  HeadwayBus *bus = headway_subscription_get_bus (self->subscription);

  if (g_strcmp0 (sender, self->owner->name) == 0)
    return TRUE;
  headway_bus_table_add_security (context->table, HEADWAY_SECURITY_NOT_OWNER, headway_bus_get_name (bus),
                                  headway_dbus_peers_get_uid (context->peers, sender), NULL, headway_clock_now ());
  g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_NOT_OWNER, "subscription %u does not belong to connection %s",
               headway_subscription_get_number (self->subscription), sender != NULL ? sender : "without a name");
  return FALSE;
}

static gboolean
answer_retired (GDBusInterfaceSkeleton *skeleton, GDBusMethodInvocation *invocation)
{
  if (!HEADWAY_DBUS_SUBSCRIPTION_IMPL (skeleton)->is_retired)
    return FALSE;
  headway_dbus_error_refuse (invocation, HEADWAY_ERROR_CLOSED, "the subscription is closed");
  return TRUE;
}

static const HeadwayDBusGuard guard = { get_context, check_owner, NULL, answer_retired };

/* --- Its class ------------------------------------------------------------------------------ */

static void
headway_dbus_subscription_impl_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  HeadwayDBusSubscriptionImpl *self = HEADWAY_DBUS_SUBSCRIPTION_IMPL (object);
  HeadwaySubscription *subscription = self->subscription;

  if (subscription == NULL)
    return;
  switch (id)
    {
    case PROP_BUS:
      g_value_set_string (value, self->bus_path);
      break;
    case PROP_PATTERNS:
      g_value_set_boxed (value, headway_filter_get_patterns (headway_subscription_get_filter (subscription)));
      break;
    case PROP_MODE:
      g_value_set_string (value, mode_names[headway_subscription_get_mode (subscription)]);
      break;
    case PROP_STATE:
      g_value_set_string (value, state_names[headway_subscription_get_state (subscription)]);
      break;
    case PROP_QUEUED:
      g_value_set_uint (value, headway_subscription_get_queued (subscription));
      break;
    case PROP_QUEUED_BYTES:
      g_value_set_uint64 (value, headway_subscription_get_queued_bytes (subscription));
      break;
    case PROP_DROPPED:
      g_value_set_uint64 (value, headway_subscription_get_dropped (subscription));
      break;
    case PROP_ACTIVE_PRINCIPALS:
      g_value_set_uint (value, headway_subscription_get_active_principals (subscription));
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    }
}

/* GObject wants one, since the generated properties are writable inside the process. */
static void
headway_dbus_subscription_impl_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static void
headway_dbus_subscription_impl_finalize (GObject *object)
{
  HeadwayDBusSubscriptionImpl *self = HEADWAY_DBUS_SUBSCRIPTION_IMPL (object);

  headway_dbus_charge_release (&self->charge);
  g_clear_object (&self->subscription);
  g_clear_pointer (&self->owner, headway_dbus_peer_unref);
  g_clear_pointer (&self->context, headway_dbus_context_unref);
  g_free (self->bus_path);
  G_OBJECT_CLASS (headway_dbus_subscription_impl_parent_class)->finalize (object);
}

static void
headway_dbus_subscription_impl_class_init (HeadwayDBusSubscriptionImplClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->get_property = headway_dbus_subscription_impl_get_property;
  object_class->set_property = headway_dbus_subscription_impl_set_property;
  object_class->finalize = headway_dbus_subscription_impl_finalize;
  /* Properties of the parent would be read by the parent's getter, from its own copies. */
  headway_dbus_subscription_override_properties (object_class, PROP_BUS);
  headway_dbus_guard_install (G_DBUS_INTERFACE_SKELETON_CLASS (klass), &guard);
}

static void
headway_dbus_subscription_impl_init (HeadwayDBusSubscriptionImpl *self)
{
}
