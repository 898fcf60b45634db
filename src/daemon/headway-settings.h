/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-limits.h"

#include <gio/gio.h>

G_BEGIN_DECLS

#define HEADWAY_TYPE_SETTINGS (headway_settings_get_type ())
G_DECLARE_FINAL_TYPE (HeadwaySettings, headway_settings, HEADWAY, SETTINGS, GObject)

/**
 * HeadwaySettings:
 *
 * The settings of cli.md, from a key file or from GSettings, or the built-in defaults where there is
 * neither. Signal `changed ()`: read again what can change while running.
 *
 * headway_settings_new() blocks, during start only. @config_file: (nullable): a key file with the
 * group [headway]. @default_file: (nullable): used if it exists and @config_file is NULL.
 * G_IO_ERROR_INVALID_DATA names the first bad key and what is allowed.
 */
HeadwaySettings *headway_settings_new (const char *config_file, const char *default_file, GError **error);

void headway_settings_get_limits (HeadwaySettings *self, HeadwayLimits *limits);
/* A key of type `u` or `t`. */
guint64 headway_settings_get_uint (HeadwaySettings *self, const char *key);
/* (transfer full): a key of type `as`. */
char **headway_settings_get_strv (HeadwaySettings *self, const char *key);

G_END_DECLS
