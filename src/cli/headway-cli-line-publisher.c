/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Publishes the lines of a descriptor over HTTP, in order.
 *
 * What one read brings is published at once, so that `tail -f` shows its lines without delay;
 * while the daemon works on a batch, the next one is read, up to a bound. There is never more
 * than one batch under way: a second one could be accepted although the first was refused for
 * its rate, and would overtake it.
 *
 * A batch that is refused because of one event is tried again by halves. So everything before
 * the bad line is published, nothing behind it, and its number is known.
 */
#include "config.h"

#include "cli/headway-cli-line-publisher.h"

#include "cli/headway-cli-error.h"
#include "cli/headway-cli-line-input.h"

#define BATCH_EVENTS_MAX 1024
#define BATCH_BYTES_MAX  (1024 * 1024)

typedef struct
{
  HeadwayCliPublisher *publisher;  /* borrowed, outlives self */
  const HeadwayCliDraft *defaults; /* borrowed, outlives self */
  HeadwayCliLines kind;
  GMainLoop *loop;            /* owned */
  HeadwayCliLineInput *input; /* owned */
  GPtrArray *drafts;          /* HeadwayCliDraft (owned): waiting, in order */
  gsize waiting_bytes;
  guint n_sent;                  /* drafts in the batch under way; 0: none is */
  guint limit;                   /* most events of the next batch */
  HeadwayCliLineOutcome outcome; /* a reason to stop that came from reading counts once all before is published */
  gboolean is_refused;
  guint retry_source;
} LinePublisher;

static void proceed (gpointer user_data);

static HeadwayCliDraft *
create_draft (LinePublisher *self,
              const char *text,
              gsize length,
              GError **error)
{
  g_autoptr (HeadwayCliDraft) draft = NULL;

  if (self->kind == HEADWAY_CLI_LINES_STRING)
    draft = headway_cli_draft_new_for_string (text, length, &self->outcome.n_repaired);
  else if (self->kind == HEADWAY_CLI_LINES_DATA)
    draft = headway_cli_draft_new_for_data (text, length, error);
  else
    draft = headway_cli_draft_new_from_json (text, length, error);
  if (draft == NULL || !headway_cli_draft_check_topic (draft, self->defaults, error))
    return NULL;
  return g_steal_pointer (&draft);
}

static gboolean
on_line (const char *line,
         gsize length,
         gpointer user_data)
{
  LinePublisher *self = user_data;
  guint64 number = headway_cli_line_input_get_n_lines (self->input);
  g_autoptr (GError) error = NULL;
  HeadwayCliDraft *draft;

  if (self->is_refused)
    return FALSE;
  if (self->kind != HEADWAY_CLI_LINES_STRING && headway_cli_line_is_blank (line, length))
    return TRUE;
  draft = create_draft (self, line, length, &error);
  if (draft == NULL)
    {
      g_prefix_error (&error, "InvalidData: ");
      headway_cli_line_outcome_fail (&self->outcome, number, error);
      return FALSE;
    }
  draft->line = number;
  self->waiting_bytes += headway_cli_draft_get_size (draft);
  g_ptr_array_add (self->drafts, draft);
  return TRUE;
}

static gboolean
on_retry (gpointer user_data)
{
  LinePublisher *self = user_data;

  self->retry_source = 0;
  proceed (self);
  return G_SOURCE_REMOVE;
}

static gboolean
is_about_one_event (const GError *error)
{
  return g_error_matches (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_EVENT) ||
         g_error_matches (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_DATA);
}

/* An error of one event alone: not by its place in a batch of one. */
static GError *
create_line_error (const GError *error)
{
  g_autoptr (GString) message = g_string_new (error->message);

  g_string_replace (message, ": event 0: ", ": ", 1);
  return g_error_new_literal (error->domain, error->code, message->str);
}

static void
take_refusal (LinePublisher *self,
              guint n_sent,
              const GError *error)
{
  const HeadwayCliDraft *first = g_ptr_array_index (self->drafts, 0);
  g_autoptr (GError) line_error = NULL;

  if (g_error_matches (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_RATE_LIMITED))
    {
      self->retry_source = g_timeout_add (headway_cli_error_get_retry_ms (error), on_retry, self);
      return;
    }
  if (n_sent > 1 && is_about_one_event (error))
    {
      self->limit = n_sent / 2;
      return;
    }
  self->is_refused = TRUE;
  line_error = create_line_error (error);
  headway_cli_line_outcome_clear (&self->outcome); /* that of a line further behind */
  headway_cli_line_outcome_fail (&self->outcome, is_about_one_event (error) ? first->line : 0, line_error);
  headway_cli_line_input_stop (self->input);
}

static void
on_published (GObject *source,
              GAsyncResult *result,
              gpointer user_data)
{
  LinePublisher *self = user_data;
  g_autoptr (GError) error = NULL;
  guint n_sent = self->n_sent;
  guint64 first_id;

  self->n_sent = 0;
  if (!headway_cli_publisher_publish_many_finish (self->publisher, result, &first_id, &error))
    {
      take_refusal (self, n_sent, error);
      proceed (self);
      return;
    }
  headway_cli_line_outcome_count (&self->outcome, first_id, n_sent);
  for (guint i = 0; i < n_sent; i++)
    self->waiting_bytes -= headway_cli_draft_get_size (g_ptr_array_index (self->drafts, i));
  g_ptr_array_remove_range (self->drafts, 0, n_sent);
  self->limit = MIN (self->limit * 2, BATCH_EVENTS_MAX);
  proceed (self);
}

static void
send_batch (LinePublisher *self)
{
  gsize bytes = 0;
  guint n = 0;

  while (n < MIN (self->drafts->len, self->limit))
    {
      bytes += headway_cli_draft_get_size (g_ptr_array_index (self->drafts, n));
      if (n > 0 && bytes > BATCH_BYTES_MAX)
        break;
      n++;
    }
  self->n_sent = n;
  headway_cli_publisher_publish_many_async (self->publisher, (HeadwayCliDraft *const *) self->drafts->pdata, n, on_published, self);
}

/* Does what can be done now: sends, reads, ends. */
static void
proceed (gpointer user_data)
{
  LinePublisher *self = user_data;

  if (self->n_sent == 0 && self->retry_source == 0 && self->drafts->len > 0 && !self->is_refused)
    send_batch (self);
  if (self->drafts->len < 2 * BATCH_EVENTS_MAX && self->waiting_bytes < 2 * BATCH_BYTES_MAX)
    headway_cli_line_input_read (self->input);
  if (headway_cli_line_input_is_over (self->input) && self->n_sent == 0 && (self->drafts->len == 0 || self->is_refused))
    g_main_loop_quit (self->loop);
}

static void
clear (LinePublisher *self)
{
  g_clear_handle_id (&self->retry_source, g_source_remove);
  g_clear_pointer (&self->loop, g_main_loop_unref);
  g_clear_pointer (&self->input, headway_cli_line_input_free);
  g_clear_pointer (&self->drafts, g_ptr_array_unref);
  headway_cli_line_outcome_clear (&self->outcome);
}

/**
 * headway_cli_line_publisher_run:
 * @publisher: where to publish
 * @defaults: what holds for every event that does not say it
 * @kind: what a line is
 * @fd: what to read, to its end
 *
 * Publishes each line, then prints `first-last count`; `0-0 0` if there was nothing.
 *
 * Returns: the exit status
 */
int
headway_cli_line_publisher_run (HeadwayCliPublisher *publisher,
                                const HeadwayCliDraft *defaults,
                                HeadwayCliLines kind,
                                int fd)
{
  LinePublisher self = {
    .publisher = publisher,
    .defaults = defaults,
    .kind = kind,
    .loop = g_main_loop_new (NULL, FALSE),
    .drafts = g_ptr_array_new_with_free_func ((GDestroyNotify) headway_cli_draft_free),
    .limit = BATCH_EVENTS_MAX,
  };
  int status;

  self.input = headway_cli_line_input_new (fd, on_line, proceed, &self);
  proceed (&self);
  g_main_loop_run (self.loop);
  if (headway_cli_line_input_get_error (self.input) != NULL)
    headway_cli_line_outcome_fail (&self.outcome, 0, headway_cli_line_input_get_error (self.input));
  status = headway_cli_line_outcome_report (&self.outcome, kind);
  clear (&self);
  return status;
}
