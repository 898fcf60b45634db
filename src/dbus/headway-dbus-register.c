/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-register.h"

#include "dbus/headway-dbus-error.h"
#include "dbus/headway-dbus-handler.h"
#include "wire/headway-clock.h"
#include "wire/headway-options.h"

#include <string.h>

typedef struct
{
  guint priority;
  const char *phase;
  const char *on_error;
  guint timeout_ms;
  const char *name;
  guint parallel;
} RegisterOptions;

static const char *const phase_words[] = { "post", "pre", NULL };
/* In the order of HeadwayOnError. */
static const char *const on_error_words[] = { "continue", "deny", NULL };

#define OFFSET(member) G_STRUCT_OFFSET (RegisterOptions, member)

static const HeadwayOptionSpec specs[] = {
  { "priority", HEADWAY_OPTION_UINT32, OFFSET (priority), 0, G_MAXUINT32 },
  { "phase", HEADWAY_OPTION_STRING, OFFSET (phase), 0, 0, NULL, phase_words },
  { "on-error", HEADWAY_OPTION_STRING, OFFSET (on_error), 0, 0, NULL, on_error_words },
  { "timeout-ms", HEADWAY_OPTION_UINT32, OFFSET (timeout_ms), 1, HEADWAY_HANDLER_TIMEOUT_MS_MAX },
  { "name", HEADWAY_OPTION_STRING, OFFSET (name), 1, HEADWAY_PRINCIPAL_MAX, "A-Z a-z 0-9 . _ : @ / -" },
  { "parallel", HEADWAY_OPTION_UINT32, OFFSET (parallel), 1, HEADWAY_HANDLER_PARALLEL_MAX },
  { NULL },
};

static gboolean
read_options (HeadwayHandlerOptions *options, HeadwayHandlerPlace *place, GVariant *arguments, GError **error)
{
  RegisterOptions values = {
    .priority = options->priority,
    .phase = headway_phase_get_name (options->phase),
    .on_error = on_error_words[options->on_error],
    .timeout_ms = options->timeout_ms,
    .name = options->name,
    .parallel = place->parallel,
  };

  if (!headway_options_parse (arguments, specs, &values, NULL, error))
    return FALSE;
  options->priority = values.priority;
  options->phase = strcmp (values.phase, "pre") == 0 ? HEADWAY_PHASE_PRE : HEADWAY_PHASE_POST;
  options->on_error = strcmp (values.on_error, "deny") == 0 ? HEADWAY_ON_ERROR_DENY : HEADWAY_ON_ERROR_CONTINUE;
  options->timeout_ms = values.timeout_ms;
  options->name = values.name;
  place->parallel = values.parallel;
  return TRUE;
}

/* Who decides what others publish answers for the bus (decisions.md 35). */
static gboolean
check_phase (const HeadwayDBusRegisterTarget *target, HeadwayDBusPeer *peer, const HeadwayHandlerOptions *options, GError **error)
{
  const HeadwayCaller *caller = &peer->caller;
  const char *bus_name = headway_bus_get_name (target->bus);

  if (options->phase != HEADWAY_PHASE_PRE || headway_caller_may_close (caller, headway_bus_get_creator (target->bus)))
    return TRUE;
  headway_bus_table_add_security (target->context->table, HEADWAY_SECURITY_NOT_AUTHORIZED, bus_name, caller->uid,
                                  caller->principal != NULL ? headway_principal_get_name (caller->principal) : NULL,
                                  headway_clock_now ());
  g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_NOT_AUTHORIZED,
               "phase \"pre\" is for the creator of bus \"%s\" and administrators, user %u is neither", bus_name, caller->uid);
  return FALSE;
}

void
headway_dbus_register_handler (const HeadwayDBusRegisterTarget *target,
                               GDBusMethodInvocation *invocation,
                               const char *const *patterns,
                               const char *object_path,
                               GVariant *arguments)
{
  HeadwayDBusPeer *peer = headway_dbus_peers_get (target->context->peers, invocation);
  g_autoptr (HeadwayDBusHandlerImpl) impl = NULL;
  HeadwayHandlerPlace place = { peer->name, object_path, target->bus_path, HEADWAY_HANDLER_PARALLEL_MAX };
  HeadwayHandlerOptions options;
  GError *error = NULL;

  headway_handler_options_init (&options);
  options.patterns = patterns;
  options.name = object_path;
  options.uid = peer->caller.uid;
  options.origin = peer;
  if (read_options (&options, &place, arguments, &error) && check_phase (target, peer, &options, &error))
    impl = headway_dbus_handler_impl_new (target->context, peer, &place, &error);
  if (impl == NULL || !headway_dbus_handler_impl_register (impl, target->bus, &options, &error))
    {
      headway_dbus_error_answer (invocation, error);
      return;
    }
  g_dbus_method_invocation_return_value (
    invocation, g_variant_new ("(o)", g_dbus_interface_skeleton_get_object_path (G_DBUS_INTERFACE_SKELETON (impl))));
}
