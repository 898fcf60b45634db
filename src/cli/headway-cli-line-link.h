/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/**
 * HeadwayCliLineLinkEvents:
 * @opened: lines can be sent; @last_id is the last id that the bus has given
 * @refused: it could not be opened; @error is of HEADWAY_CLI_ERROR
 * @answered: the next answer, without its LF; FALSE if no more are wanted
 * @proceed: a piece of answers is through, or what could not be sent before can be sent now
 * @lost: the daemon has closed it, behind all its answers
 *
 * What a link has to tell. None comes from within a call of a function of the link.
 */
typedef struct
{
  void (*opened) (guint64 last_id, gpointer user_data);
  void (*refused) (const GError *error, gpointer user_data);
  gboolean (*answered) (const char *line, gsize length, gpointer user_data);
  void (*proceed) (gpointer user_data);
  void (*lost) (gpointer user_data);
} HeadwayCliLineLinkEvents;

typedef struct _HeadwayCliLineLink HeadwayCliLineLink;

HeadwayCliLineLink *headway_cli_line_link_new (GDBusConnection *connection,
                                               const char *bus_name,
                                               const HeadwayCliLineLinkEvents *events,
                                               gpointer user_data);
void headway_cli_line_link_free (HeadwayCliLineLink *self);
void headway_cli_line_link_open (HeadwayCliLineLink *self,
                                 guint delay_ms);
void headway_cli_line_link_close (HeadwayCliLineLink *self);
gboolean headway_cli_line_link_is_open (HeadwayCliLineLink *self);
gsize headway_cli_line_link_send (HeadwayCliLineLink *self,
                                  const char *bytes,
                                  gsize length);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayCliLineLink, headway_cli_line_link_free)

G_END_DECLS
