/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-standard.h"

#include "dbus/headway-dbus-diverter.h"
#include "dbus/headway-dbus-error.h"
#include "dbus/headway-dbus-introspection.h"
#include "dbus/headway-dbus-names.h"
#include "dbus/headway-dbus-path.h"
#include "headway-dbus-generated.h"

#include <string.h>

#define INVALID_ARGS   "org.freedesktop.DBus.Error.InvalidArgs"
#define UNKNOWN_METHOD "org.freedesktop.DBus.Error.UnknownMethod"

/* Where objects come and go; an unknown one is answered here. */
typedef struct
{
  HeadwayDBusStandard *standard; /* borrowed: it is embedded in it */
  GDBusInterfaceInfo *info;
  guint id;
} Place;

struct _HeadwayDBusStandard
{
  GObject parent_instance;

  HeadwayDBusContext *context;   /* owned */
  GDBusObjectManager *objects;   /* owned */
  GDBusNodeInfo *node;           /* owned: of what is diverted to */
  HeadwayDBusDiverter *diverter; /* owned */
  guint diverted;                /* registration */
  Place places[3];
  char *machine_id; /* owned, nullable */
};

G_DEFINE_FINAL_TYPE (HeadwayDBusStandard, headway_dbus_standard, G_TYPE_OBJECT)

static const char diverted_xml[] =
  "<node><interface name='" HEADWAY_DBUS_DIVERTED_INTERFACE "'>"
#define METHOD(name, out)                                                                \
  "<method name='" name "'><arg type='s' direction='in'/><arg type='s' direction='in'/>" \
  "<arg type='s' direction='in'/><arg type='v' direction='in'/>" out "</method>"
  METHOD ("Get", "<arg type='v' direction='out'/>")
    METHOD ("GetAll", "<arg type='a{sv}' direction='out'/>")
      METHOD ("Set", "")
        METHOD ("Introspect", "<arg type='s' direction='out'/>")
          METHOD ("Ping", "")
            METHOD ("GetMachineId", "<arg type='s' direction='out'/>")
              METHOD ("GetManagedObjects", "<arg type='a{oa{sa{sv}}}' direction='out'/>")
                METHOD ("Refuse", "")
#undef METHOD
                  "</interface></node>";

/* One call in its turn. */
typedef struct
{
  HeadwayDBusStandard *self;
  GDBusMethodInvocation *invocation; /* owned until it is answered */
  const char *path;
  const char *interface;
  const char *member;
  GVariant *arguments; /* owned */
} Call;

/* --- Answers -------------------------------------------------------------------------------- */

static void
charge (Call *call, gsize bytes)
{
  headway_dbus_account_send (&headway_dbus_peers_get (call->self->context->peers, call->invocation)->account, bytes);
}

/* @value: (transfer floating) (nullable): the one result. */
static void
answer (Call *call, GVariant *value)
{
  if (value == NULL)
    {
      g_dbus_method_invocation_return_value (call->invocation, NULL);
      return;
    }
  charge (call, g_variant_get_size (value));
  g_dbus_method_invocation_return_value (call->invocation, g_variant_new_tuple (&value, 1));
}

/* @error: (transfer full) */
static void
answer_error (Call *call, GError *error)
{
  charge (call, strlen (error->message));
  headway_dbus_error_answer (call->invocation, error);
}

static void G_GNUC_PRINTF (3, 4)
  refuse (Call *call, const char *name, const char *format, ...)
{
  g_autofree char *message = NULL;
  va_list args;

  va_start (args, format);
  message = g_strdup_vprintf (format, args);
  va_end (args);
  charge (call, strlen (message));
  g_dbus_method_invocation_return_dbus_error (call->invocation, name, message);
}

static void
refuse_object (Call *call)
{
  g_autofree char *name = headway_dbus_path_to_bus (call->path);
  GError *error;

  if (!g_str_has_prefix (call->path, HEADWAY_DBUS_BUS_PREFIX))
    {
      refuse (call, UNKNOWN_METHOD, "Object does not exist at path \"%s\"", call->path);
      return;
    }
  if (name != NULL)
    error = g_error_new (HEADWAY_ERROR, HEADWAY_ERROR_NO_SUCH_BUS, "there is no bus \"%s\"", name);
  else
    error = g_error_new (HEADWAY_ERROR, HEADWAY_ERROR_NO_SUCH_BUS, "there is no bus at %s", call->path);
  answer_error (call, error);
}

/* --- Objects -------------------------------------------------------------------------------- */

static gboolean
has_object (Call *call)
{
  g_autoptr (GDBusObject) object = NULL;

  if (g_hash_table_contains (call->self->context->exports, call->path))
    return TRUE;
  object = g_dbus_object_manager_get_object (call->self->objects, call->path);
  return object != NULL;
}

/* Returns: (transfer full) (nullable). */
static GDBusInterfaceSkeleton *
find (Call *call, const char *interface)
{
  GDBusInterfaceSkeleton *skeleton = g_hash_table_lookup (call->self->context->exports, call->path);
  GDBusInterface *found;

  if (skeleton == NULL)
    {
      found = g_dbus_object_manager_get_interface (call->self->objects, call->path, interface);
      return found != NULL ? G_DBUS_INTERFACE_SKELETON (found) : NULL;
    }
  return g_str_equal (g_dbus_interface_skeleton_get_info (skeleton)->name, interface) ? g_object_ref (skeleton) : NULL;
}

/* Returns: (transfer full) (nullable): NULL once the call is refused. */
static GDBusInterfaceSkeleton *
find_or_refuse (Call *call, const char *interface)
{
  GDBusInterfaceSkeleton *skeleton = find (call, interface);

  if (skeleton != NULL)
    return skeleton;
  if (has_object (call))
    refuse (call, INVALID_ARGS, "No such interface \"%s\"", interface);
  else
    refuse_object (call);
  return NULL;
}

static gboolean
check_type (Call *call, const char *type)
{
  if (g_variant_is_of_type (call->arguments, G_VARIANT_TYPE (type)))
    return TRUE;
  refuse (call, INVALID_ARGS, "the arguments of %s must be of type \"%s\"", call->member, type);
  return FALSE;
}

/* --- Properties ----------------------------------------------------------------------------- */

/* Returns: (transfer floating) (nullable): NULL with @error. */
static GVariant *
read_property (Call *call, GDBusInterfaceSkeleton *skeleton, const char *name, GError **error)
{
  return g_dbus_interface_skeleton_get_vtable (skeleton)->get_property (
    call->self->context->connection, g_dbus_method_invocation_get_sender (call->invocation), call->path,
    g_dbus_interface_skeleton_get_info (skeleton)->name, name, error, skeleton);
}

static void
handle_get (Call *call)
{
  g_autoptr (GDBusInterfaceSkeleton) skeleton = NULL;
  const char *interface;
  const char *name;
  GError *error = NULL;
  GVariant *value;

  if (!check_type (call, "(ss)"))
    return;
  g_variant_get (call->arguments, "(&s&s)", &interface, &name);
  skeleton = find_or_refuse (call, interface);
  if (skeleton == NULL)
    return;
  if (g_dbus_interface_info_lookup_property (g_dbus_interface_skeleton_get_info (skeleton), name) == NULL)
    {
      refuse (call, INVALID_ARGS, "No such property \"%s\"", name);
      return;
    }
  value = read_property (call, skeleton, name, &error);
  if (value != NULL)
    answer (call, g_variant_new_variant (value));
  else
    answer_error (call, error);
}

static void
handle_get_all (Call *call)
{
  g_autoptr (GDBusInterfaceSkeleton) skeleton = NULL;
  GDBusPropertyInfo **properties;
  GVariantDict dict;
  const char *interface;

  if (!check_type (call, "(s)"))
    return;
  g_variant_get (call->arguments, "(&s)", &interface);
  g_variant_dict_init (&dict, NULL);
  if (g_str_equal (call->path, HEADWAY_DBUS_PATH) && g_str_equal (interface, HEADWAY_DBUS_OBJECT_MANAGER_INTERFACE))
    {
      answer (call, g_variant_dict_end (&dict));
      return;
    }
  skeleton = find_or_refuse (call, interface);
  if (skeleton == NULL)
    {
      g_variant_dict_clear (&dict);
      return;
    }
  properties = g_dbus_interface_skeleton_get_info (skeleton)->properties;
  for (guint i = 0; properties != NULL && properties[i] != NULL; i++)
    {
      g_autoptr (GError) error = NULL;
      GVariant *value = read_property (call, skeleton, properties[i]->name, &error);

      /* What the caller may not read is left out. */
      if (value != NULL)
        g_variant_dict_insert_value (&dict, properties[i]->name, value);
    }
  answer (call, g_variant_dict_end (&dict));
}

static void
handle_set (Call *call)
{
  g_autoptr (GDBusInterfaceSkeleton) skeleton = NULL;
  const char *interface;
  const char *name;

  if (!check_type (call, "(ssv)"))
    return;
  g_variant_get (call->arguments, "(&s&sv)", &interface, &name, NULL);
  skeleton = find_or_refuse (call, interface);
  if (skeleton == NULL)
    return;
  if (g_dbus_interface_info_lookup_property (g_dbus_interface_skeleton_get_info (skeleton), name) != NULL)
    refuse (call, INVALID_ARGS, "Property \"%s\" is not writable", name);
  else
    refuse (call, INVALID_ARGS, "No such property \"%s\"", name);
}

/* --- Objects as a whole --------------------------------------------------------------------- */

static void
handle_get_managed_objects (Call *call)
{
  GList *objects = NULL;
  GVariantBuilder builder;

  if (!check_type (call, "()"))
    return;
  if (!g_str_equal (call->path, HEADWAY_DBUS_PATH))
    {
      refuse (call, UNKNOWN_METHOD, "No such interface \"%s\" on object at path %s", call->interface, call->path);
      return;
    }
  g_variant_builder_init (&builder, G_VARIANT_TYPE ("a{oa{sa{sv}}}"));
  objects = g_dbus_object_manager_get_objects (call->self->objects);
  for (GList *at = objects; at != NULL; at = at->next)
    {
      GList *interfaces = g_dbus_object_get_interfaces (at->data);

      g_variant_builder_open (&builder, G_VARIANT_TYPE ("{oa{sa{sv}}}"));
      g_variant_builder_add (&builder, "o", g_dbus_object_get_object_path (at->data));
      g_variant_builder_open (&builder, G_VARIANT_TYPE ("a{sa{sv}}"));
      for (GList *with = interfaces; with != NULL; with = with->next)
        {
          g_autoptr (GVariant) properties = g_dbus_interface_skeleton_get_properties (with->data);

          g_variant_builder_add (&builder, "{s@a{sv}}", g_dbus_interface_skeleton_get_info (with->data)->name, properties);
        }
      g_variant_builder_close (&builder);
      g_variant_builder_close (&builder);
      g_list_free_full (interfaces, g_object_unref);
    }
  g_list_free_full (objects, g_object_unref);
  answer (call, g_variant_builder_end (&builder));
}

static void
handle_introspect (Call *call)
{
  HeadwayDBusStandard *self = call->self;
  HeadwayDBusIntrospection introspection;
  GDBusInterfaceSkeleton *skeleton = g_hash_table_lookup (self->context->exports, call->path);
  g_autoptr (GDBusInterface) bus = NULL;
  GHashTableIter iter;
  gpointer path;
  GList *objects;

  if (!check_type (call, "()"))
    return;
  headway_dbus_introspection_init (&introspection, call->path);
  bus = g_dbus_object_manager_get_interface (self->objects, call->path, headway_dbus_bus_interface_info ()->name);
  if (g_str_equal (call->path, HEADWAY_DBUS_PATH))
    headway_dbus_introspection_add_object_manager (&introspection);
  if (skeleton != NULL || bus != NULL)
    headway_dbus_introspection_add_interface (&introspection, g_dbus_interface_get_info (bus != NULL ? bus : G_DBUS_INTERFACE (skeleton)));
  g_hash_table_iter_init (&iter, self->context->exports);
  while (g_hash_table_iter_next (&iter, &path, NULL))
    headway_dbus_introspection_add_object (&introspection, path);
  objects = g_dbus_object_manager_get_objects (self->objects);
  for (GList *at = objects; at != NULL; at = at->next)
    headway_dbus_introspection_add_object (&introspection, g_dbus_object_get_object_path (at->data));
  g_list_free_full (objects, g_object_unref);
  answer (call, g_variant_new_take_string (headway_dbus_introspection_end (&introspection)));
}

/* --- Peer, and the rest --------------------------------------------------------------------- */

static void
handle_ping (Call *call)
{
  if (check_type (call, "()"))
    answer (call, NULL);
}

static void
handle_get_machine_id (Call *call)
{
  if (!check_type (call, "()"))
    return;
  if (call->self->machine_id != NULL)
    answer (call, g_variant_new_string (call->self->machine_id));
  else
    refuse (call, "org.freedesktop.DBus.Error.Failed", "this machine has no id in /var/lib/dbus or /etc");
}

static void
handle_refuse (Call *call)
{
  g_autoptr (GDBusInterfaceSkeleton) skeleton = find (call, call->interface);

  if (skeleton == NULL && !has_object (call))
    refuse_object (call);
  else if (skeleton == NULL ||
           g_dbus_interface_info_lookup_method (g_dbus_interface_skeleton_get_info (skeleton), call->member) == NULL)
    refuse (call, UNKNOWN_METHOD, "No such method \"%s\" of interface \"%s\" on object at path %s", call->member,
            call->interface, call->path);
  else
    refuse (call, INVALID_ARGS, "the arguments of %s cannot be of type \"%s\"", call->member,
            g_variant_get_type_string (call->arguments));
}

static const struct
{
  const char *method;
  void (*handle) (Call *call);
} handlers[] = {
  { "Get", handle_get },
  { "GetAll", handle_get_all },
  { "Set", handle_set },
  { "Introspect", handle_introspect },
  { "Ping", handle_ping },
  { "GetMachineId", handle_get_machine_id },
  { "GetManagedObjects", handle_get_managed_objects },
  { "Refuse", handle_refuse },
};

/* In its turn. */
static void
dispatch (GDBusConnection *connection,
          const char *sender,
          const char *path,
          const char *interface,
          const char *method,
          GVariant *parameters,
          GDBusMethodInvocation *invocation,
          gpointer user_data)
{
  g_autoptr (GVariant) arguments = NULL;
  Call call = { .self = user_data, .invocation = invocation };

  g_variant_get (parameters, "(&s&s&sv)", &call.path, &call.interface, &call.member, &arguments);
  call.arguments = arguments;
  for (guint i = 0; i < G_N_ELEMENTS (handlers); i++)
    if (g_str_equal (handlers[i].method, method))
      {
        /* The last of it: it answers the call, whose strings go then. */
        handlers[i].handle (&call);
        return;
      }
}

static void
on_diverted (GDBusConnection *connection,
             const char *sender,
             const char *path,
             const char *interface,
             const char *method,
             GVariant *parameters,
             GDBusMethodInvocation *invocation,
             gpointer user_data)
{
  HeadwayDBusStandard *self = user_data;
  HeadwayDBusPeers *peers = self->context->peers;
  g_autofree char *name = g_strdup (sender);
  g_autoptr (GArray) refused = NULL;

  headway_dbus_peers_admit (peers, invocation, dispatch, self);
  refused = headway_dbus_diverter_arrived (self->diverter, name);
  if (refused != NULL)
    headway_dbus_peers_refuse (peers, name, refused);
}

/* --- Places without an object --------------------------------------------------------------- */

/* Objects come first: a call gets here only if its path has none. */

static char **
enumerate_none (GDBusConnection *connection, const char *sender, const char *path, gpointer user_data)
{
  return g_new0 (char *, 1);
}

static GDBusInterfaceInfo **
introspect_none (GDBusConnection *connection, const char *sender, const char *path, const char *node, gpointer user_data)
{
  GDBusInterfaceInfo **infos;

  if (node == NULL)
    return NULL;
  infos = g_new0 (GDBusInterfaceInfo *, 2);
  infos[0] = g_dbus_interface_info_ref (((Place *) user_data)->info);
  return infos;
}

/* In its turn. */
static void
refuse_none (GDBusConnection *connection,
             const char *sender,
             const char *path,
             const char *interface,
             const char *method,
             GVariant *parameters,
             GDBusMethodInvocation *invocation,
             gpointer user_data)
{
  Call call = { .self = user_data, .invocation = invocation, .path = path };

  refuse_object (&call);
}

static void
call_none (GDBusConnection *connection,
           const char *sender,
           const char *path,
           const char *interface,
           const char *method,
           GVariant *parameters,
           GDBusMethodInvocation *invocation,
           gpointer user_data)
{
  HeadwayDBusStandard *self = ((Place *) user_data)->standard;

  headway_dbus_peers_admit (self->context->peers, invocation, refuse_none, self);
}

static const GDBusInterfaceVTable *
dispatch_none (GDBusConnection *connection,
               const char *sender,
               const char *path,
               const char *interface,
               const char *node,
               gpointer *out_user_data,
               gpointer user_data)
{
  static const GDBusInterfaceVTable vtable = { call_none, NULL, NULL, { NULL } };

  *out_user_data = user_data;
  return node != NULL ? &vtable : NULL;
}

static gboolean
watch_places (HeadwayDBusStandard *self, GError **error)
{
  static const GDBusSubtreeVTable vtable = { enumerate_none, introspect_none, dispatch_none, { NULL } };
  const char *const prefixes[] = { HEADWAY_DBUS_BUS_PREFIX, HEADWAY_DBUS_SUBSCRIPTION_PREFIX, HEADWAY_DBUS_HANDLER_PREFIX };
  GDBusInterfaceInfo *const infos[] = {
    headway_dbus_bus_interface_info (),
    headway_dbus_subscription_interface_info (),
    headway_dbus_handler_registration_interface_info (),
  };

  for (guint i = 0; i < G_N_ELEMENTS (self->places); i++)
    {
      Place *place = &self->places[i];
      g_autofree char *path = g_strndup (prefixes[i], strlen (prefixes[i]) - 1);

      *place = (Place){ self, infos[i], 0 };
      place->id = g_dbus_connection_register_subtree (self->context->connection, path, &vtable,
                                                      G_DBUS_SUBTREE_FLAGS_DISPATCH_TO_UNENUMERATED_NODES, place, NULL, error);
      if (place->id == 0)
        return FALSE;
    }
  return TRUE;
}

/* --- Its life ------------------------------------------------------------------------------- */

static char *
read_machine_id (void)
{
  const char *const files[] = { "/var/lib/dbus/machine-id", "/etc/machine-id" };

  for (guint i = 0; i < G_N_ELEMENTS (files); i++)
    {
      g_autofree char *text = NULL;

      if (g_file_get_contents (files[i], &text, NULL, NULL) && *g_strstrip (text) != '\0' && g_utf8_validate (text, -1, NULL))
        return g_steal_pointer (&text);
    }
  return NULL;
}

static void
headway_dbus_standard_dispose (GObject *object)
{
  HeadwayDBusStandard *self = HEADWAY_DBUS_STANDARD (object);

  g_clear_pointer (&self->diverter, headway_dbus_diverter_free);
  if (self->diverted != 0)
    g_dbus_connection_unregister_object (self->context->connection, self->diverted);
  self->diverted = 0;
  for (guint i = 0; i < G_N_ELEMENTS (self->places); i++)
    {
      if (self->places[i].id != 0)
        g_dbus_connection_unregister_subtree (self->context->connection, self->places[i].id);
      self->places[i].id = 0;
    }
  G_OBJECT_CLASS (headway_dbus_standard_parent_class)->dispose (object);
}

static void
headway_dbus_standard_finalize (GObject *object)
{
  HeadwayDBusStandard *self = HEADWAY_DBUS_STANDARD (object);

  g_dbus_node_info_unref (self->node);
  g_object_unref (self->objects);
  headway_dbus_context_unref (self->context);
  g_free (self->machine_id);
  G_OBJECT_CLASS (headway_dbus_standard_parent_class)->finalize (object);
}

static void
headway_dbus_standard_class_init (HeadwayDBusStandardClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = headway_dbus_standard_dispose;
  G_OBJECT_CLASS (klass)->finalize = headway_dbus_standard_finalize;
}

static void
headway_dbus_standard_init (HeadwayDBusStandard *self)
{
}

HeadwayDBusStandard *
headway_dbus_standard_new (HeadwayDBusContext *context,
                           GDBusObjectManagerServer *objects,
                           const char *spared_path,
                           GError **error)
{
  static const GDBusInterfaceVTable vtable = { on_diverted, NULL, NULL, { NULL } };
  g_autoptr (HeadwayDBusStandard) self = g_object_new (HEADWAY_DBUS_TYPE_STANDARD, NULL);

  self->context = headway_dbus_context_ref (context);
  self->objects = G_DBUS_OBJECT_MANAGER (g_object_ref (objects));
  self->node = g_dbus_node_info_new_for_xml (diverted_xml, NULL);
  self->machine_id = read_machine_id ();
  self->diverted = g_dbus_connection_register_object (context->connection, HEADWAY_DBUS_DIVERTED_PATH,
                                                      self->node->interfaces[0], &vtable, self, NULL, error);
  if (self->diverted == 0 || !watch_places (self, error))
    return NULL;
  self->diverter = headway_dbus_diverter_new (context->connection, spared_path);
  return g_steal_pointer (&self);
}
