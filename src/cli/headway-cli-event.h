/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "cli/headway-cli-json.h"

#include <glib.h>

G_BEGIN_DECLS

/**
 * HeadwayCliEvent:
 *
 * An event as it came, whichever way. Everything in it is borrowed from the reply or the
 * frame, and untrusted.
 */
typedef struct
{
  guint64 id;        /* 0: synthetic */
  guint64 resume_id; /* where to go on behind it; below the id only in mode `routed`; 0: unknown */
  const char *topic; /* "" where it has none of its own */
  const char *type;
  const char *principal;    /* "": the system */
  const char *client;       /* nullable */
  gboolean has_seq;         /* the envelope has the id apart, as in mode `routed` */
  gint64 timestamp_us;      /* since 1970 */
  const char *data;         /* JSON */
  const char *meta;         /* nullable: JSON object */
  HeadwayCliSlice envelope; /* as the daemon wrote it; empty over D-Bus */
} HeadwayCliEvent;

gboolean headway_cli_event_is_type (const HeadwayCliEvent *event,
                                    const char *type);
guint64 headway_cli_event_get_data_uint64 (const HeadwayCliEvent *event,
                                           const char *name);
gboolean headway_cli_event_is_data_true (const HeadwayCliEvent *event,
                                         const char *name);
char *headway_cli_event_dup_data_string (const HeadwayCliEvent *event,
                                         const char *name);

G_END_DECLS
