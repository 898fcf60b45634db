/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "daemon/headway-daemon.h"
#include "program/headway-program.h"

#include <glib-unix.h>
#include <glib/gi18n.h>
#include <sys/resource.h>

#define EXIT_USAGE 2

static gboolean
on_signal (gpointer user_data)
{
  headway_daemon_stop (user_data);
  return G_SOURCE_CONTINUE;
}

/* Each reader is a descriptor, and the usual soft limit is 1024; the hard one is the administrator's. */
static void
raise_descriptor_limit (void)
{
  struct rlimit limit;

  if (getrlimit (RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
    return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit (RLIMIT_NOFILE, &limit);
}

/* A wrong option is the caller's fault, everything else ours or the machine's. */
static int
fail (const GError *error, int status)
{
  g_printerr ("headwayd: %s\n", error->message);
  return status;
}

int
main (int argc, char **argv)
{
  g_auto (HeadwayDaemonOptions) options = { 0 };
  g_autoptr (HeadwayDaemon) daemon = NULL;
  g_autoptr (GError) error = NULL;

  headway_program_begin ("headwayd");
  /* A request over HTTP/2 could not be stolen from libsoup, and would abort us: before any thread. */
  g_unsetenv ("SOUP_SERVER_HTTP2");
  /* Standard output is for the ready line alone; GLib would put debug messages there. */
  g_log_writer_default_set_use_stderr (TRUE);

  if (!headway_daemon_options_parse (&options, &argc, &argv, &error))
    return fail (error, EXIT_USAGE);
  if (options.is_version)
    {
      g_print ("headwayd %s\n", PACKAGE_VERSION);
      return 0;
    }
  if (options.is_verbose)
    g_log_set_debug_enabled (TRUE);

  raise_descriptor_limit ();
  daemon = headway_daemon_new (&options);
  g_unix_signal_add (SIGTERM, on_signal, daemon);
  g_unix_signal_add (SIGINT, on_signal, daemon);
  if (!headway_daemon_start (daemon, &error))
    return fail (error, 1);
  return headway_daemon_run (daemon);
}
