/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef enum
{
  HEADWAY_CLI_LINES_STRING, /* each line is text */
  HEADWAY_CLI_LINES_DATA,   /* each line is JSON data */
  HEADWAY_CLI_LINES_EVENT,  /* each line is an object as over HTTP */
} HeadwayCliLines;

/**
 * HeadwayCliLineOutcome:
 *
 * What became of the lines of an input.
 */
typedef struct
{
  guint64 first_id; /* 0: nothing is published */
  guint64 last_id;
  guint64 n_published;
  guint n_repaired; /* places that were no UTF-8 */
  GError *error;    /* owned, nullable: why not all are */
} HeadwayCliLineOutcome;

void headway_cli_line_outcome_clear (HeadwayCliLineOutcome *self);
void headway_cli_line_outcome_count (HeadwayCliLineOutcome *self,
                                     guint64 first_id,
                                     guint64 n_published);
void headway_cli_line_outcome_fail (HeadwayCliLineOutcome *self,
                                    guint64 line,
                                    const GError *error);
int headway_cli_line_outcome_report (const HeadwayCliLineOutcome *self,
                                     HeadwayCliLines kind);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (HeadwayCliLineOutcome, headway_cli_line_outcome_clear)

G_END_DECLS
