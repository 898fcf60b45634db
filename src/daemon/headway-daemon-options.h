/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* The command line of headwayd (cli.md). Strings are owned. */
typedef struct
{
  gboolean is_system;
  gboolean is_verbose;
  gboolean is_version;
  gboolean may_replace;
  gboolean has_http;
  gboolean has_auth;
  char *bus_address;     /* nullable: the session or system bus */
  char *config_file;     /* nullable */
  char **http_addresses; /* nullable: as the settings say */
  char *http_socket;     /* nullable: in the runtime directory */
  char *state_dir;
  char *runtime_dir;
  guint idle_exit_seconds; /* 0: never */
} HeadwayDaemonOptions;

/* Parses @argv; fills in the directories. G_OPTION_ERROR with one clear line for the user. */
gboolean headway_daemon_options_parse (HeadwayDaemonOptions *self, int *argc, char ***argv, GError **error);
void headway_daemon_options_clear (HeadwayDaemonOptions *self);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (HeadwayDaemonOptions, headway_daemon_options_clear)

G_END_DECLS
