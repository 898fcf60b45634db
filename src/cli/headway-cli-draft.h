/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Where the data starts in what headway_cli_draft_append_json() writes. */
#define HEADWAY_CLI_DRAFT_DATA_OFFSET 8

/**
 * HeadwayCliDraft:
 *
 * An event that is not published yet. A text that is NULL was not given; what a draft does not
 * say, the command line may (see @defaults of the functions).
 */
typedef struct
{
  guint64 line; /* of the input, from 1; 0: from the command line */
  char *topic;  /* owned, nullable, as are the texts below */
  char *type;
  char *principal; /* "": the system principal */
  char *client;
  char *meta; /* JSON object */
  char *data; /* JSON */
  gboolean is_final;
} HeadwayCliDraft;

HeadwayCliDraft *headway_cli_draft_new_from_json (const char *text,
                                                  gsize length,
                                                  GError **error);
gboolean headway_cli_draft_check_data (const char *text,
                                       gsize length,
                                       GError **error);
HeadwayCliDraft *headway_cli_draft_new_for_data (const char *text,
                                                 gsize length,
                                                 GError **error);
HeadwayCliDraft *headway_cli_draft_new_for_string (const char *text,
                                                   gsize length,
                                                   guint *n_repaired);
void headway_cli_draft_clear (HeadwayCliDraft *draft);
void headway_cli_draft_free (HeadwayCliDraft *draft);
gsize headway_cli_draft_get_size (const HeadwayCliDraft *draft);
gboolean headway_cli_draft_check_topic (const HeadwayCliDraft *draft,
                                        const HeadwayCliDraft *defaults,
                                        GError **error);
GVariant *headway_cli_draft_to_variant (const HeadwayCliDraft *draft,
                                        const HeadwayCliDraft *defaults);
void headway_cli_draft_append_json (const HeadwayCliDraft *draft,
                                    const HeadwayCliDraft *defaults,
                                    GString *json);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (HeadwayCliDraft, headway_cli_draft_clear)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayCliDraft, headway_cli_draft_free)

G_END_DECLS
