/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "cli/headway-cli-draft.h"
#include "cli/headway-cli.h"

G_BEGIN_DECLS

#define HEADWAY_TYPE_CLI_PUBLISHER (headway_cli_publisher_get_type ())
G_DECLARE_FINAL_TYPE (HeadwayCliPublisher, headway_cli_publisher, HEADWAY, CLI_PUBLISHER, GObject)

HeadwayCliPublisher *headway_cli_publisher_new (HeadwayCli *cli,
                                                const char *bus_name,
                                                const HeadwayCliDraft *defaults,
                                                GError **error);
gboolean headway_cli_publisher_publish (HeadwayCliPublisher *self,
                                        const HeadwayCliDraft *draft,
                                        guint64 *id,
                                        GError **error);
void headway_cli_publisher_publish_many_async (HeadwayCliPublisher *self,
                                               HeadwayCliDraft *const *drafts,
                                               guint n_drafts,
                                               GAsyncReadyCallback callback,
                                               gpointer user_data);
gboolean headway_cli_publisher_publish_many_finish (HeadwayCliPublisher *self,
                                                    GAsyncResult *result,
                                                    guint64 *first_id,
                                                    GError **error);

G_END_DECLS
