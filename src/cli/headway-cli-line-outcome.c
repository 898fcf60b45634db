/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-line-outcome.h"

#include "cli/headway-cli-error.h"
#include "cli/headway-cli-text.h"
#include "cli/headway-cli.h"

#include <glib/gi18n.h>

/**
 * headway_cli_line_outcome_clear:
 * @self: an outcome
 *
 * Frees what it holds.
 */
void
headway_cli_line_outcome_clear (HeadwayCliLineOutcome *self)
{
  g_clear_error (&self->error);
}

/**
 * headway_cli_line_outcome_count:
 * @self: an outcome
 * @first_id: id of the first of some events
 * @n_published: how many, whose ids follow each other
 *
 * They are published.
 */
void
headway_cli_line_outcome_count (HeadwayCliLineOutcome *self,
                                guint64 first_id,
                                guint64 n_published)
{
  if (self->n_published == 0)
    self->first_id = first_id;
  self->last_id = first_id + n_published - 1;
  self->n_published += n_published;
}

/**
 * headway_cli_line_outcome_fail:
 * @self: an outcome
 * @line: number of the line that it is about, from 1; 0: none
 * @error: what went wrong
 *
 * Remembers why not all is published. The first reason counts.
 */
void
headway_cli_line_outcome_fail (HeadwayCliLineOutcome *self,
                               guint64 line,
                               const GError *error)
{
  if (self->error != NULL)
    return;
  if (line == 0)
    self->error = g_error_copy (error);
  else
    self->error = g_error_new (error->domain, error->code, _ ("line %s: %s"), HEADWAY_CLI_NUMBER (line), error->message);
}

/**
 * headway_cli_line_outcome_report:
 * @self: an outcome
 * @kind: what a line was
 *
 * Prints `first-last count` (decisions.md 36); `0-0 0` if there was nothing. Says what went wrong.
 *
 * Returns: the exit status
 */
int
headway_cli_line_outcome_report (const HeadwayCliLineOutcome *self,
                                 HeadwayCliLines kind)
{
  g_autofree char *summary = NULL;
  int status;

  summary = g_strdup_printf ("%" G_GUINT64_FORMAT "-%" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT, self->first_id, self->last_id, self->n_published);
  status = headway_cli_print_line (summary);
  if (self->n_repaired > 0)
    headway_cli_say (g_dngettext (GETTEXT_PACKAGE, "%u place was no UTF-8 and became U+FFFD", "%u places were no UTF-8 and became U+FFFD", self->n_repaired),
                     self->n_repaired);
  if (self->error == NULL)
    return status;
  status = headway_cli_fail (self->error);
  if (kind == HEADWAY_CLI_LINES_DATA && g_error_matches (self->error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_DATA))
    headway_cli_say (_ ("--lines publishes each line as a string"));
  return status;
}
