/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs a command for each event: an object on our connection that implements Handler, registered with
 * the daemon that is there now, and again with its successor. The daemon calls it as often at a time as
 * `parallel` says, so nothing waits here.
 */
#include "config.h"

#include "cli/headway-cli-handler.h"

#include "cli/headway-cli-command.h"
#include "cli/headway-cli-connection.h"
#include "cli/headway-cli-error.h"
#include "cli/headway-cli-event.h"
#include "cli/headway-cli-output.h"
#include "cli/headway-cli-printer.h"
#include "cli/headway-cli-text.h"
#include "engine/headway-json.h"
#include "engine/headway-limits.h"

#include <glib-unix.h>
#include <glib/gi18n.h>
#include <string.h>
#include <unistd.h>

#define OBJECT_PATH            "/org/headway/cli/handler"
#define REGISTRATION_INTERFACE "org.headway.Headway1.HandlerRegistration"

static const char handler_xml[] =
  "<node><interface name='org.headway.Headway1.Handler'><method name='HandleEvent'>"
  "<arg type='(tsssxsa{sv})' direction='in'/><arg type='a{sv}' direction='in'/>"
  "<arg type='s' direction='out'/><arg type='s' direction='out'/><arg type='a{sv}' direction='out'/>"
  "</method></interface></node>";

typedef struct
{
  GDBusConnection *connection; /* owned */
  const HeadwayCliHandlerOptions *options;
  GMainLoop *loop;           /* owned */
  GCancellable *cancellable; /* owned: calls to the present daemon */
  char *owner;               /* owned, nullable: unique name of the daemon */
  char *registration;        /* owned, nullable: its object */
  char *bus_path;            /* owned */
  GHashTable *running;       /* HeadwayCliCommand (borrowed) */
  gboolean was_registered;
  gboolean is_leaving;
  gboolean is_signalled;
  gboolean is_bus_gone;
  int status;
} Handler;

/* An event that a command decides. */
typedef struct
{
  Handler *handler; /* borrowed, outlives self */
  GDBusMethodInvocation *invocation;
  gboolean is_pre;
} Step;

static void
end (Handler *self,
     int status)
{
  self->status = status;
  g_main_loop_quit (self->loop);
}

static void
fail (Handler *self,
      const GError *error)
{
  end (self, headway_cli_fail (error));
}

/* --- Verdicts ------------------------------------------------------------------------------- */

static void
answer (Step *step,
        const char *verdict,
        const char *data)
{
  g_dbus_method_invocation_return_value (step->invocation, g_variant_new ("(ss@a{sv})", verdict, data,
                                                                          g_variant_new_array (G_VARIANT_TYPE ("{sv}"), NULL, 0)));
}

/* @text: (transfer full): an error of the step, said here and there. */
static void
answer_error (Step *step,
              char *text)
{
  headway_cli_say ("%s", text);
  g_dbus_method_invocation_return_dbus_error (step->invocation, "org.freedesktop.DBus.Error.Failed", text);
  g_free (text);
}

/* headwayd tells its journal what is wrong with the data, but not us: so it is judged here, just as there. */
static void
answer_output (Step *step,
               const HeadwayCliCommandResult *result)
{
  g_autofree char *data = g_strstrip (g_strndup (result->output, result->output_length));
  g_autoptr (GError) error = NULL;
  HeadwayJson json;

  if (result->output_length > HEADWAY_CLI_OUTPUT_MAX)
    answer_error (step, g_strdup_printf (_ ("the command wrote more than %d bytes"), HEADWAY_CLI_OUTPUT_MAX));
  else if (*data == '\0' && memchr (result->output, '\0', result->output_length) == NULL)
    answer (step, "continue", "");
  else if (strlen (data) < result->output_length && memchr (result->output, '\0', result->output_length) != NULL)
    answer_error (step, g_strdup (_ ("the command wrote no JSON: it has a NUL byte")));
  else if (!g_utf8_validate (data, -1, NULL))
    answer_error (step, g_strdup (_ ("the command wrote no JSON: it is no UTF-8")));
  else if (!headway_json_validate (data, strlen (data), HEADWAY_JSON_DEPTH_MAX, &json, &error))
    answer_error (step, g_strdup_printf (_ ("the command wrote no JSON: %s"), error->message));
  else
    answer (step, "continue", data);
}

static void
on_done (HeadwayCliCommand *command,
         const HeadwayCliCommandResult *result,
         gpointer user_data)
{
  Step *step = user_data;
  Handler *self = step->handler;

  g_hash_table_remove (self->running, command);
  if (result->is_late)
    answer_error (step, g_strdup_printf (_ ("the command took longer than %u ms and was killed"), self->options->timeout_ms));
  else if (result->status < 0)
    answer_error (step, g_strdup_printf (_ ("the command was ended by signal %d"), result->signal));
  else if (result->status == 1)
    answer (step, "deny", *result->reason != '\0' ? result->reason : _ ("the command denied it"));
  else if (result->status != 0)
    answer_error (step, g_strdup_printf (_ ("the command ended with %d"), result->status));
  else if (step->is_pre)
    answer_output (step, result);
  else
    answer (step, "continue", "");
  g_free (step);
  if (self->is_bus_gone && g_hash_table_size (self->running) == 0)
    end (self, HEADWAY_CLI_EXIT_OK);
}

/* --- Events --------------------------------------------------------------------------------- */

static char **
new_environment (const HeadwayCliEvent *event,
                 const char *lost)
{
  char **environment = g_get_environ ();

  environment = g_environ_setenv (environment, "HEADWAY_ID", HEADWAY_CLI_NUMBER (event->id), TRUE);
  environment = g_environ_setenv (environment, "HEADWAY_TOPIC", event->topic, TRUE);
  environment = g_environ_setenv (environment, "HEADWAY_TYPE", event->type, TRUE);
  environment = g_environ_setenv (environment, "HEADWAY_PRINCIPAL", event->principal, TRUE);
  if (lost != NULL)
    return g_environ_setenv (environment, "HEADWAY_LOST", lost, TRUE);
  return g_environ_unsetenv (environment, "HEADWAY_LOST");
}

static void
run_command (Handler *self,
             Step *step,
             const HeadwayCliEvent *event,
             const char *lost)
{
  g_auto (GStrv) environment = new_environment (event, lost);
  g_autoptr (GString) input = g_string_new (NULL);
  g_autoptr (GError) error = NULL;
  HeadwayCliCommandOptions options = { .argv = self->options->command, .environment = environment };
  HeadwayCliCommand *command;

  headway_cli_printer_append_json (input, event);
  options.input = input->str;
  options.timeout_ms = self->options->timeout_ms;
  options.takes_output = step->is_pre;
  command = headway_cli_command_start (&options, on_done, step, &error);
  if (command != NULL)
    {
      g_hash_table_add (self->running, command);
      return;
    }
  answer_error (step, g_strdup (error->message));
  g_free (step);
}

static void
on_call (GDBusConnection *connection,
         const char *sender,
         const char *path,
         const char *interface,
         const char *method,
         GVariant *parameters,
         GDBusMethodInvocation *invocation,
         gpointer user_data)
{
  Handler *self = user_data;
  g_autoptr (GVariant) extra = NULL;
  g_autoptr (GVariant) context = NULL;
  HeadwayCliEvent event = { 0 };
  const char *phase = "";
  const char *lost = NULL;
  Step *step;

  /* Whoever else is on the message bus has nothing to run here. */
  if (g_strcmp0 (sender, self->owner) != 0)
    {
      g_dbus_method_invocation_return_dbus_error (invocation, "org.freedesktop.DBus.Error.AccessDenied", "only headwayd may call this");
      return;
    }
  g_variant_get (parameters, "((t&s&s&sx&s@a{sv})@a{sv})", &event.id, &event.topic, &event.type, &event.principal,
                 &event.timestamp_us, &event.data, &extra, &context);
  event.resume_id = event.id;
  g_variant_lookup (extra, "client", "&s", &event.client);
  g_variant_lookup (extra, "meta", "&s", &event.meta);
  g_variant_lookup (context, "phase", "&s", &phase);
  g_variant_lookup (context, "lost", "&s", &lost);
  step = g_new0 (Step, 1);
  step->handler = self;
  step->invocation = invocation;
  step->is_pre = g_str_equal (phase, "pre");
  run_command (self, step, &event, lost);
}

/* --- Registration --------------------------------------------------------------------------- */

static void
on_unregistered (GObject *source,
                 GAsyncResult *result,
                 gpointer user_data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GVariant) reply = g_dbus_connection_call_finish (G_DBUS_CONNECTION (source), result, &error);

  if (!g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    end (user_data, HEADWAY_CLI_EXIT_OK);
}

/* What waits is handled first. */
static void
unregister (Handler *self)
{
  g_dbus_connection_call (self->connection, self->owner, self->registration, REGISTRATION_INTERFACE, "Unregister", NULL, NULL,
                          G_DBUS_CALL_FLAGS_NO_AUTO_START, G_MAXINT, self->cancellable, on_unregistered, self);
}

static void
on_registered (GObject *source,
               GAsyncResult *result,
               gpointer user_data)
{
  Handler *self = user_data;
  const char *bus = self->options->words[0];
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) reason = NULL;
  g_autoptr (GVariant) reply = g_dbus_connection_call_finish (G_DBUS_CONNECTION (source), result, &error);

  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    return;
  if (error != NULL)
    {
      reason = headway_cli_error_from_dbus (error, bus);
      /* The daemon has gone meanwhile, which its name will tell. */
      if (!self->was_registered || !g_error_matches (reason, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_UNREACHABLE))
        fail (self, reason);
      return;
    }
  g_variant_get (reply, "(o)", &self->registration);
  if (self->was_registered)
    headway_cli_say (_ ("registered again at bus \"%s\""), bus);
  else
    headway_cli_say (_ ("registered at bus \"%s\""), bus);
  self->was_registered = TRUE;
  if (self->is_leaving)
    unregister (self);
}

static GVariant *
collect_options (const HeadwayCliHandlerOptions *options)
{
  g_auto (GVariantDict) dict = G_VARIANT_DICT_INIT (NULL);

  if (options->phase != NULL)
    g_variant_dict_insert (&dict, "phase", "s", options->phase);
  if (options->on_error != NULL)
    g_variant_dict_insert (&dict, "on-error", "s", options->on_error);
  if (options->name != NULL)
    g_variant_dict_insert (&dict, "name", "s", options->name);
  if (options->priority >= 0)
    g_variant_dict_insert (&dict, "priority", "u", (guint32) options->priority);
  g_variant_dict_insert (&dict, "timeout-ms", "u", options->timeout_ms);
  g_variant_dict_insert (&dict, "parallel", "u", options->parallel);
  return g_variant_dict_end (&dict);
}

static void
forget_daemon (Handler *self)
{
  g_cancellable_cancel (self->cancellable);
  g_clear_object (&self->cancellable);
  self->cancellable = g_cancellable_new ();
  g_clear_pointer (&self->owner, g_free);
  g_clear_pointer (&self->registration, g_free);
}

static void
on_appeared (GDBusConnection *connection,
             const char *name,
             const char *owner,
             gpointer user_data)
{
  Handler *self = user_data;

  forget_daemon (self);
  self->owner = g_strdup (owner);
  g_dbus_connection_call (connection, owner, self->bus_path, HEADWAY_CLI_BUS_INTERFACE, "RegisterHandler",
                          g_variant_new ("(^aso@a{sv})", self->options->words + 1, OBJECT_PATH, collect_options (self->options)),
                          G_VARIANT_TYPE ("(o)"), G_DBUS_CALL_FLAGS_NO_AUTO_START, HEADWAY_CLI_CALL_TIMEOUT_MS,
                          self->cancellable, on_registered, self);
}

static void
on_vanished (GDBusConnection *connection,
             const char *name,
             gpointer user_data)
{
  Handler *self = user_data;
  g_autoptr (GError) error = NULL;

  forget_daemon (self);
  if (self->is_leaving)
    end (self, HEADWAY_CLI_EXIT_OK);
  else if (connection == NULL || g_dbus_connection_is_closed (connection))
    error = g_error_new_literal (HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_FAILED, _ ("the message bus is gone"));
  else if (!self->was_registered)
    error = g_error_new_literal (HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_UNREACHABLE, _ ("headwayd is not running on this message bus"));
  else
    headway_cli_say (_ ("%s; waiting to go on"), _ ("headwayd is not running on this message bus"));
  if (error != NULL)
    fail (self, error);
}

static void
on_objects_gone (GDBusConnection *connection,
                 const char *sender,
                 const char *path,
                 const char *interface,
                 const char *signal,
                 GVariant *parameters,
                 gpointer user_data)
{
  Handler *self = user_data;
  const char *object;

  g_variant_get (parameters, "(&oas)", &object, NULL);
  if (g_strcmp0 (sender, self->owner) != 0 || !g_str_equal (object, self->bus_path))
    return;
  self->is_bus_gone = TRUE;
  if (g_hash_table_size (self->running) == 0)
    end (self, HEADWAY_CLI_EXIT_OK);
}

/* --- Life ----------------------------------------------------------------------------------- */

static void
leave (Handler *self)
{
  if (self->is_leaving)
    return;
  self->is_leaving = TRUE;
  if (self->registration != NULL)
    unregister (self);
  else if (self->owner == NULL)
    end (self, HEADWAY_CLI_EXIT_OK);
}

/* The second time it does not wait. */
static gboolean
on_signal (gpointer user_data)
{
  Handler *self = user_data;

  if (self->is_signalled)
    {
      headway_cli_say (_ ("ended before all was handled; what was running is killed"));
      end (self, HEADWAY_CLI_EXIT_FAILED);
    }
  self->is_signalled = TRUE;
  leave (self);
  return G_SOURCE_CONTINUE;
}

static void
on_reader_gone (int error_number,
                gpointer user_data)
{
  leave (user_data);
}

static void
kill_all (Handler *self)
{
  GHashTableIter iter;
  gpointer command;

  g_hash_table_iter_init (&iter, self->running);
  while (g_hash_table_iter_next (&iter, &command, NULL))
    headway_cli_command_kill (command);
}

static void
run (Handler *self)
{
  g_autoptr (HeadwayCliOutput) output = headway_cli_output_new (STDOUT_FILENO);
  guint terminate = g_unix_signal_add (SIGTERM, on_signal, self);
  guint interrupt = g_unix_signal_add (SIGINT, on_signal, self);
  guint objects = g_dbus_connection_signal_subscribe (self->connection, HEADWAY_CLI_DBUS_NAME, HEADWAY_CLI_OBJECTS_INTERFACE, "InterfacesRemoved",
                                                      HEADWAY_CLI_DBUS_PATH, NULL, G_DBUS_SIGNAL_FLAGS_NONE, on_objects_gone, self, NULL);
  guint watch = g_bus_watch_name_on_connection (self->connection, HEADWAY_CLI_DBUS_NAME, G_BUS_NAME_WATCHER_FLAGS_AUTO_START,
                                                on_appeared, on_vanished, self, NULL);

  /* In the phase pre what a command writes is for us. */
  if (g_strcmp0 (self->options->phase, "pre") != 0)
    headway_cli_output_watch_reader (output, on_reader_gone, self);
  g_main_loop_run (self->loop);
  kill_all (self);
  g_dbus_connection_flush_sync (self->connection, NULL, NULL);
  g_bus_unwatch_name (watch);
  g_dbus_connection_signal_unsubscribe (self->connection, objects);
  g_source_remove (interrupt);
  g_source_remove (terminate);
}

/**
 * headway_cli_handler_run:
 * @cli: the global options
 * @options: what to handle, and how
 *
 * Handles events until it is told to end or the bus is closed.
 *
 * Returns: the exit status
 */
int
headway_cli_handler_run (HeadwayCli *cli,
                         const HeadwayCliHandlerOptions *options)
{
  static const GDBusInterfaceVTable vtable = { on_call, NULL, NULL, { NULL } };
  g_autoptr (GDBusNodeInfo) info = g_dbus_node_info_new_for_xml (handler_xml, NULL);
  g_autoptr (GError) error = NULL;
  Handler self = { .options = options };

  self.connection = headway_cli_connection_open (cli, &error);
  if (self.connection == NULL)
    return headway_cli_fail (error);
  self.loop = g_main_loop_new (NULL, FALSE);
  self.running = g_hash_table_new (NULL, NULL);
  self.bus_path = headway_cli_connection_get_bus_path (options->words[0]);
  if (g_dbus_connection_register_object (self.connection, OBJECT_PATH, info->interfaces[0], &vtable, &self, NULL, &error) == 0)
    self.status = headway_cli_fail (error);
  else
    run (&self);
  forget_daemon (&self);
  g_object_unref (self.cancellable);
  g_hash_table_unref (self.running);
  g_main_loop_unref (self.loop);
  g_free (self.bus_path);
  g_object_unref (self.connection);
  return self.status;
}
