/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "daemon/headway-daemon-options.h"

#include <gio/gio.h>

G_BEGIN_DECLS

#define HEADWAY_TYPE_DAEMON (headway_daemon_get_type ())
G_DECLARE_FINAL_TYPE (HeadwayDaemon, headway_daemon, HEADWAY, DAEMON, GObject)

/**
 * HeadwayDaemon:
 *
 * The root: builds settings, store, engine, D-Bus and HTTP and joins them.
 *
 * @options: borrowed, outlives the daemon
 */
HeadwayDaemon *headway_daemon_new (const HeadwayDaemonOptions *options);

/* Does everything up to asking for the name; blocks. FALSE: one clear line in @error. */
gboolean headway_daemon_start (HeadwayDaemon *self, GError **error);

/* Runs until it is told to stop, or has lost its name, or was idle. Returns: the exit status. */
int headway_daemon_run (HeadwayDaemon *self);

/* Refuse new work, drain readers, end (decisions.md 8). Any number of times. */
void headway_daemon_stop (HeadwayDaemon *self);

G_END_DECLS
