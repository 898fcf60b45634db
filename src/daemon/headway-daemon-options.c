/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "daemon/headway-daemon-options.h"

#include <glib/gi18n.h>
#include <string.h>

/* What GOption writes into, before it is checked. */
typedef struct
{
  gboolean is_session;
  gboolean no_http;
  char *http_auth;
  int idle_exit;
} Raw;

/* systemd names several directories with colons between them: the first is ours. */
static char *
directory_from (const char *variable)
{
  const char *value = g_getenv (variable);

  if (value == NULL || *value == '\0')
    return NULL;
  return g_strndup (value, strcspn (value, ":"));
}

static void
choose_directories (HeadwayDaemonOptions *self)
{
  if (self->state_dir == NULL)
    self->state_dir = directory_from ("STATE_DIRECTORY");
  if (self->state_dir == NULL)
    self->state_dir = self->is_system ? g_strdup ("/var/lib/headway")
                                      : g_build_filename (g_get_user_state_dir (), "headway", NULL);
  if (self->runtime_dir == NULL)
    self->runtime_dir = directory_from ("RUNTIME_DIRECTORY");
  if (self->runtime_dir == NULL)
    self->runtime_dir = self->is_system ? g_strdup ("/run/headway")
                                        : g_build_filename (g_get_user_runtime_dir (), "headway", NULL);
  if (self->http_socket == NULL)
    self->http_socket = g_build_filename (self->runtime_dir, "http.sock", NULL);
}

static gboolean
bad_usage (GError **error, const char *text)
{
  g_set_error_literal (error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, text);
  return FALSE;
}

static gboolean
check (HeadwayDaemonOptions *self, const Raw *raw, GError **error)
{
  if (raw->is_session && self->is_system)
    return bad_usage (error, _ ("--session and --system exclude each other"));
  if (raw->http_auth != NULL && strcmp (raw->http_auth, "token") != 0 && strcmp (raw->http_auth, "none") != 0)
    return bad_usage (error, _ ("--http-auth takes “token” or “none”"));
  if (raw->idle_exit < 0)
    return bad_usage (error, _ ("--idle-exit takes a number of seconds, 0 or more"));
  if (raw->no_http && (self->http_addresses != NULL || self->http_socket != NULL))
    return bad_usage (error, _ ("--no-http excludes --http-address and --http-socket"));
  self->has_http = !raw->no_http;
  self->has_auth = raw->http_auth == NULL || strcmp (raw->http_auth, "token") == 0;
  self->idle_exit_seconds = raw->idle_exit;
  return TRUE;
}

gboolean
headway_daemon_options_parse (HeadwayDaemonOptions *self, int *argc, char ***argv, GError **error)
{
  Raw raw = { 0 };
  const GOptionEntry entries[] = {
    { "session", 0, 0, G_OPTION_ARG_NONE, &raw.is_session, N_ ("Use the session bus (default)"), NULL },
    { "system", 0, 0, G_OPTION_ARG_NONE, &self->is_system, N_ ("Use the system bus and its rules"), NULL },
    { "bus-address", 0, 0, G_OPTION_ARG_STRING, &self->bus_address, N_ ("Use the message bus at ADDRESS"), N_ ("ADDRESS") },
    { "config", 0, 0, G_OPTION_ARG_FILENAME, &self->config_file, N_ ("Read the settings from the key file FILE"), N_ ("FILE") },
    { "http-address", 0, 0, G_OPTION_ARG_STRING_ARRAY, &self->http_addresses, N_ ("Listen for HTTP on HOST:PORT (repeatable; port 0 picks one)"), N_ ("HOST:PORT") },
    { "http-socket", 0, 0, G_OPTION_ARG_FILENAME, &self->http_socket, N_ ("Listen for HTTP on the Unix socket PATH"), N_ ("PATH") },
    { "no-http", 0, 0, G_OPTION_ARG_NONE, &raw.no_http, N_ ("Do not listen for HTTP"), NULL },
    { "http-auth", 0, 0, G_OPTION_ARG_STRING, &raw.http_auth, N_ ("“token” (default), or “none” on loopback addresses only"), N_ ("token|none") },
    { "state-dir", 0, 0, G_OPTION_ARG_FILENAME, &self->state_dir, N_ ("Keep buses and ids in DIR"), N_ ("DIR") },
    { "runtime-dir", 0, 0, G_OPTION_ARG_FILENAME, &self->runtime_dir, N_ ("Put socket and token into DIR"), N_ ("DIR") },
    { "idle-exit", 0, 0, G_OPTION_ARG_INT, &raw.idle_exit, N_ ("Leave after SECONDS without clients and events (0: never)"), N_ ("SECONDS") },
    { "replace", 0, 0, G_OPTION_ARG_NONE, &self->may_replace, N_ ("Take over from a running instance"), NULL },
    { "verbose", 'v', 0, G_OPTION_ARG_NONE, &self->is_verbose, N_ ("Log more"), NULL },
    { "version", 0, 0, G_OPTION_ARG_NONE, &self->is_version, N_ ("Show the version and exit"), NULL },
    { NULL }
  };
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);
  gboolean is_good;

  g_option_context_set_translation_domain (context, GETTEXT_PACKAGE);
  g_option_context_set_summary (context, _ ("A fair, replayable event bus for the Linux desktop and server."));
  g_option_context_add_main_entries (context, entries, GETTEXT_PACKAGE);
  is_good = g_option_context_parse (context, argc, argv, error);
  if (is_good && *argc > 1)
    {
      g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, _ ("unexpected argument “%s”"), (*argv)[1]);
      is_good = FALSE;
    }
  is_good = is_good && check (self, &raw, error);
  g_free (raw.http_auth);
  if (is_good)
    choose_directories (self);
  return is_good;
}

void
headway_daemon_options_clear (HeadwayDaemonOptions *self)
{
  g_free (self->bus_address);
  g_free (self->config_file);
  g_strfreev (self->http_addresses);
  g_free (self->http_socket);
  g_free (self->state_dir);
  g_free (self->runtime_dir);
}
