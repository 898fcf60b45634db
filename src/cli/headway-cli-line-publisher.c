/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Publishes the lines of a descriptor, in order.
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
#include "cli/headway-cli-text.h"

#include <gio/gunixinputstream.h>
#include <glib-unix.h>
#include <glib/gi18n.h>
#include <string.h>

#define PIECE_BYTES      (64 * 1024)
#define LINE_BYTES_MAX   (16 * 1024 * 1024)
#define BATCH_EVENTS_MAX 1024
#define BATCH_BYTES_MAX  (1024 * 1024)

typedef struct
{
  HeadwayCliPublisher *publisher;  /* borrowed, outlives self */
  const HeadwayCliDraft *defaults; /* borrowed, outlives self */
  HeadwayCliLines kind;
  GMainLoop *loop;           /* owned */
  GInputStream *input;       /* owned */
  GCancellable *cancellable; /* owned: ends the reading */
  char *piece;               /* owned, PIECE_BYTES */
  GString *line;             /* owned: a line that has not ended yet */
  GPtrArray *drafts;         /* HeadwayCliDraft (owned): waiting, in order */
  gsize waiting_bytes;
  guint64 n_lines;
  guint n_repaired;
  guint n_sent; /* drafts in the batch under way; 0: none is */
  guint limit;  /* most events of the next batch */
  gboolean is_reading;
  gboolean at_end; /* nothing more will be read */
  guint64 first_id;
  guint64 last_id;
  guint64 n_published;
  GError *error; /* owned, nullable: the reason to stop; what waits is published first if it came from reading */
  gboolean is_refused;
  guint retry_source;
  guint interrupt_source;
  guint terminate_source;
} LinePublisher;

static void proceed (LinePublisher *self);

static void
stop_reading (LinePublisher *self,
              GError *error)
{
  self->at_end = TRUE;
  if (self->error == NULL)
    self->error = error;
  else
    g_clear_error (&error);
}

static HeadwayCliDraft *
create_draft (LinePublisher *self,
              const char *text,
              gsize length,
              GError **error)
{
  g_autoptr (HeadwayCliDraft) draft = NULL;

  if (self->kind == HEADWAY_CLI_LINES_STRING)
    draft = headway_cli_draft_new_for_string (text, length, &self->n_repaired);
  else if (self->kind == HEADWAY_CLI_LINES_DATA)
    draft = headway_cli_draft_new_for_data (text, length, error);
  else
    draft = headway_cli_draft_new_from_json (text, length, error);
  if (draft == NULL || !headway_cli_draft_check_topic (draft, self->defaults, error))
    return NULL;
  return g_steal_pointer (&draft);
}

static gboolean
is_blank (const char *text,
          gsize length)
{
  for (gsize i = 0; i < length; i++)
    {
      if (strchr (" \t\r", text[i]) == NULL || text[i] == '\0')
        return FALSE;
    }
  return TRUE;
}

static void
take_line (LinePublisher *self,
           const char *text,
           gsize length)
{
  g_autoptr (GError) error = NULL;
  HeadwayCliDraft *draft;

  self->n_lines++;
  if (self->kind != HEADWAY_CLI_LINES_STRING && is_blank (text, length))
    return;
  draft = create_draft (self, text, length, &error);
  if (draft == NULL)
    {
      stop_reading (self, g_error_new (error->domain, error->code, _ ("line %s: %s"), HEADWAY_CLI_NUMBER (self->n_lines), error->message));
      return;
    }
  draft->line = self->n_lines;
  self->waiting_bytes += headway_cli_draft_get_size (draft);
  g_ptr_array_add (self->drafts, draft);
}

static void
take_piece (LinePublisher *self,
            const char *bytes,
            gsize length)
{
  const char *end = bytes + length;

  for (const char *p = bytes; p < end && !self->at_end;)
    {
      const char *line_end = memchr (p, '\n', (gsize) (end - p));

      if (line_end == NULL || self->line->len > 0)
        g_string_append_len (self->line, p, (line_end != NULL ? line_end : end) - p);
      if (self->line->len > LINE_BYTES_MAX)
        {
          stop_reading (self, g_error_new (HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_FAILED,
                                           _ ("line %s: longer than %d bytes"), HEADWAY_CLI_NUMBER (self->n_lines + 1), LINE_BYTES_MAX));
          return;
        }
      if (line_end == NULL)
        return;
      if (self->line->len > 0)
        take_line (self, self->line->str, self->line->len);
      else
        take_line (self, p, (gsize) (line_end - p));
      g_string_truncate (self->line, 0);
      p = line_end + 1;
    }
}

static void
on_read (GObject *source,
         GAsyncResult *result,
         gpointer user_data)
{
  LinePublisher *self = user_data;
  g_autoptr (GError) error = NULL;
  gssize size = g_input_stream_read_finish (G_INPUT_STREAM (source), result, &error);

  self->is_reading = FALSE;
  if (size > 0)
    take_piece (self, self->piece, (gsize) size);
  else
    {
      if (self->line->len > 0)
        take_line (self, self->line->str, self->line->len);
      if (error != NULL && !g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
        stop_reading (self, g_error_new (HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_FAILED, _ ("cannot read standard input: %s"), error->message));
      self->at_end = TRUE;
    }
  proceed (self);
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

/* An error of the event of @draft alone: by its line, not by its place in a batch of one. */
static GError *
create_line_error (const HeadwayCliDraft *draft,
                   const GError *error)
{
  g_autoptr (GString) message = g_string_new (error->message);

  g_string_replace (message, ": event 0: ", ": ", 1);
  return g_error_new (error->domain, error->code, _ ("line %s: %s"), HEADWAY_CLI_NUMBER (draft->line), message->str);
}

static void
take_refusal (LinePublisher *self,
              guint n_sent,
              GError *error)
{
  const HeadwayCliDraft *first = g_ptr_array_index (self->drafts, 0);

  if (g_error_matches (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_RATE_LIMITED))
    self->retry_source = g_timeout_add (headway_cli_error_get_retry_ms (error), on_retry, self);
  else if (n_sent > 1 && is_about_one_event (error))
    self->limit = n_sent / 2;
  else
    {
      g_clear_error (&self->error);
      self->is_refused = TRUE;
      if (is_about_one_event (error))
        stop_reading (self, create_line_error (first, error));
      else
        stop_reading (self, g_error_copy (error));
      g_cancellable_cancel (self->cancellable);
    }
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
  if (self->n_published == 0)
    self->first_id = first_id;
  self->last_id = first_id + n_sent - 1;
  self->n_published += n_sent;
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
proceed (LinePublisher *self)
{
  if (self->n_sent == 0 && self->retry_source == 0 && self->drafts->len > 0 && !self->is_refused)
    send_batch (self);
  if (!self->at_end && !self->is_reading && self->drafts->len < 2 * BATCH_EVENTS_MAX && self->waiting_bytes < 2 * BATCH_BYTES_MAX)
    {
      self->is_reading = TRUE;
      g_input_stream_read_async (self->input, self->piece, PIECE_BYTES, G_PRIORITY_DEFAULT, self->cancellable, on_read, self);
    }
  if (self->at_end && !self->is_reading && self->n_sent == 0 && (self->drafts->len == 0 || self->is_refused))
    g_main_loop_quit (self->loop);
}

/* The first signal ends the input, the second one the program. */
static gboolean
on_signal (gpointer user_data)
{
  LinePublisher *self = user_data;

  g_cancellable_cancel (self->cancellable);
  self->at_end = TRUE;
  g_clear_handle_id (&self->interrupt_source, g_source_remove);
  g_clear_handle_id (&self->terminate_source, g_source_remove);
  proceed (self);
  return G_SOURCE_CONTINUE;
}

static int
report (LinePublisher *self)
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
  if (self->kind == HEADWAY_CLI_LINES_DATA && g_error_matches (self->error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_DATA))
    headway_cli_say (_ ("--lines publishes each line as a string"));
  return status;
}

static void
clear (LinePublisher *self)
{
  g_clear_handle_id (&self->retry_source, g_source_remove);
  g_clear_handle_id (&self->interrupt_source, g_source_remove);
  g_clear_handle_id (&self->terminate_source, g_source_remove);
  g_clear_pointer (&self->loop, g_main_loop_unref);
  g_clear_object (&self->input);
  g_clear_object (&self->cancellable);
  g_clear_pointer (&self->drafts, g_ptr_array_unref);
  g_string_free (self->line, TRUE);
  g_free (self->piece);
  g_clear_error (&self->error);
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
    .input = g_unix_input_stream_new (fd, FALSE),
    .cancellable = g_cancellable_new (),
    .piece = g_malloc (PIECE_BYTES),
    .line = g_string_new (NULL),
    .drafts = g_ptr_array_new_with_free_func ((GDestroyNotify) headway_cli_draft_free),
    .limit = BATCH_EVENTS_MAX,
  };
  int status;

  self.interrupt_source = g_unix_signal_add (SIGINT, on_signal, &self);
  self.terminate_source = g_unix_signal_add (SIGTERM, on_signal, &self);
  proceed (&self);
  g_main_loop_run (self.loop);
  status = report (&self);
  clear (&self);
  return status;
}
