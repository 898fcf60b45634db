/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "cli/headway-cli-json.h"
#include "cli/headway-cli.h"

G_BEGIN_DECLS

/* What a bus says about itself, over D-Bus and over HTTP alike. */
typedef struct
{
  char *name;  /* owned, nullable */
  char *epoch; /* owned, nullable */
  guint64 last_event_id;
  guint64 first_event_id;
  guint64 ring_size;   /* events */
  guint64 ring_bytes;  /* event size */
  guint64 subscribers; /* now */
} HeadwayCliBusInfo;

void headway_cli_bus_info_clear (HeadwayCliBusInfo *info);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (HeadwayCliBusInfo, headway_cli_bus_info_clear)

void headway_cli_bus_info_init_from_properties (HeadwayCliBusInfo *info,
                                                GVariant *properties);
gboolean headway_cli_bus_info_init_from_json (HeadwayCliBusInfo *info,
                                              HeadwayCliSlice json);
void headway_cli_bus_info_append_json (const HeadwayCliBusInfo *info,
                                       GString *json);
gboolean headway_cli_bus_info_fetch (HeadwayCliBusInfo *info,
                                     HeadwayCli *cli,
                                     const char *name,
                                     GError **error);
int headway_cli_bus_info_print (const HeadwayCliBusInfo *info,
                                gboolean json);

G_END_DECLS
