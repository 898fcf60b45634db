/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Publishes the lines of a descriptor, in order, over the socket of OpenPublisher.
 *
 * Lines are sent ahead of their answers, as many as the window holds; while it is full, nothing is
 * read. A line that is refused ends the input, as over HTTP: the daemon takes nothing behind it.
 *
 * When the daemon goes, the lines without an answer are sent to its successor. Some of them may
 * have been published: at most as many as the last id of the bus has grown since the last answer.
 */
#include "config.h"

#include "cli/headway-cli-line-stream.h"

#include "cli/headway-cli-connection.h"
#include "cli/headway-cli-error.h"
#include "cli/headway-cli-json.h"
#include "cli/headway-cli-line-input.h"
#include "cli/headway-cli-line-link.h"
#include "cli/headway-cli-line-window.h"
#include "cli/headway-cli-text.h"

#include <glib/gi18n.h>
#include <string.h>

#define FIRST_DELAY_MS   100
#define DELAY_MAX_MS     1000
#define ID_PREFIX        "{\"id\":"
#define ID_PREFIX_LENGTH (sizeof ID_PREFIX - 1)

typedef struct
{
  const HeadwayCliDraft *defaults; /* borrowed, outlives self */
  HeadwayCliLines kind;
  guint retry_s;
  GMainLoop *loop;              /* owned */
  HeadwayCliLineInput *input;   /* owned */
  HeadwayCliLineWindow *window; /* owned */
  HeadwayCliLineLink *link;     /* owned */
  GString *tail;                /* owned: what follows the data of each line */
  HeadwayCliLineOutcome outcome;
  guint64 known_id; /* all ids up to it are not of lines in the window */
  GError *stop;     /* owned, nullable: of the first line of the window: its answer, the last one where the daemon or the bus ends */
  guint64 refused;  /* of the first that was refused; 0: none was */
  guint n_behind;   /* lines behind that one that are published */
  guint n_in_doubt; /* lines that were sent before the last break */
  gboolean was_open;
  gboolean is_opening;
  gboolean is_finished;
  gint64 away_since_us; /* 0: the daemon is there */
  guint delay_ms;
} LineStream;

static void proceed (gpointer user_data);

static void
finish (LineStream *self)
{
  self->is_finished = TRUE;
  headway_cli_line_input_stop (self->input);
  headway_cli_line_link_close (self->link);
  if (headway_cli_line_input_is_over (self->input))
    g_main_loop_quit (self->loop);
}

static void
fail (LineStream *self,
      const GError *error)
{
  headway_cli_line_outcome_fail (&self->outcome, 0, error);
  finish (self);
}

/* An event of its own kind is read and written anew, because the daemon would not take all that
 * headway_cli_draft_new_from_json() passes over; of the others only the data is new. */
static gboolean
append_event (LineStream *self,
              GString *out,
              const char *line,
              gsize length,
              GError **error)
{
  g_autoptr (HeadwayCliDraft) draft = NULL;

  if (self->kind == HEADWAY_CLI_LINES_EVENT)
    {
      draft = headway_cli_draft_new_from_json (line, length, error);
      if (draft == NULL || !headway_cli_draft_check_topic (draft, self->defaults, error))
        return FALSE;
      headway_cli_draft_append_json (draft, self->defaults, out);
      return TRUE;
    }
  if (self->kind == HEADWAY_CLI_LINES_DATA && !headway_cli_draft_check_data (line, length, error))
    return FALSE;
  g_string_append_len (out, self->tail->str, HEADWAY_CLI_DRAFT_DATA_OFFSET);
  if (self->kind == HEADWAY_CLI_LINES_DATA)
    g_string_append_len (out, line, (gssize) length);
  else
    self->outcome.n_repaired += headway_cli_json_append_string (out, line, length);
  g_string_append_len (out, self->tail->str + HEADWAY_CLI_DRAFT_DATA_OFFSET, (gssize) (self->tail->len - HEADWAY_CLI_DRAFT_DATA_OFFSET));
  return TRUE;
}

static gboolean
on_line (const char *line,
         gsize length,
         gpointer user_data)
{
  LineStream *self = user_data;
  guint64 number = headway_cli_line_input_get_n_lines (self->input);
  g_autoptr (GError) error = NULL;

  if (self->is_finished || self->refused > 0)
    return FALSE;
  if (self->kind != HEADWAY_CLI_LINES_STRING && headway_cli_line_is_blank (line, length))
    return TRUE;
  if (append_event (self, headway_cli_line_window_begin (self->window), line, length, &error))
    {
      headway_cli_line_window_end (self->window, number);
      return TRUE;
    }
  g_prefix_error (&error, "InvalidData: ");
  headway_cli_line_outcome_fail (&self->outcome, number, error);
  return FALSE;
}

static gboolean
read_id (const char *line,
         gsize length,
         guint64 *id)
{
  guint64 number = 0;

  if (length < ID_PREFIX_LENGTH + 2 || memcmp (line, ID_PREFIX, ID_PREFIX_LENGTH) != 0 || line[length - 1] != '}')
    return FALSE;
  for (gsize i = ID_PREFIX_LENGTH; i < length - 1; i++)
    {
      if (!g_ascii_isdigit (line[i]) || number > G_MAXUINT64 / 100)
        return FALSE;
      number = number * 10 + (guint64) (line[i] - '0');
    }
  *id = number;
  return number > 0;
}

/* Where the JSON of the line breaks off, not that of what was made around it. */
static GError *
create_refusal (LineStream *self,
                const char *answer,
                gsize length)
{
  gint64 position;
  g_autoptr (GError) error = headway_cli_error_from_http (400, answer, length, &position);

  if (self->kind != HEADWAY_CLI_LINES_DATA || position < HEADWAY_CLI_DRAFT_DATA_OFFSET ||
      !g_error_matches (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_DATA))
    return g_steal_pointer (&error);
  return g_error_new (HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_DATA,
                      _ ("InvalidData: no JSON at byte %s"), HEADWAY_CLI_NUMBER ((guint64) (position - HEADWAY_CLI_DRAFT_DATA_OFFSET)));
}

static void
take_refusal (LineStream *self,
              guint64 number,
              const GError *error)
{
  if (self->refused > 0)
    return;
  self->refused = number;
  headway_cli_line_outcome_clear (&self->outcome); /* that of a line further behind */
  headway_cli_line_outcome_fail (&self->outcome, number, error);
  headway_cli_line_window_drop_unsent (self->window);
  headway_cli_line_input_stop (self->input);
}

static gboolean
is_stop (const GError *error)
{
  return g_error_matches (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_UNREACHABLE) ||
         g_error_matches (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_CLOSED);
}

/* The first line is answered. @error: (nullable): why it is not published; else @id. */
static void
pop_line (LineStream *self,
          guint64 id,
          const GError *error)
{
  guint64 number = headway_cli_line_window_get_number (self->window);
  g_autoptr (GError) surplus = NULL;

  if (error != NULL && headway_cli_line_window_is_begun (self->window))
    {
      take_refusal (self, number, error); /* refused before its end: it is too long */
      headway_cli_line_link_close (self->link);
      return;
    }
  if (!headway_cli_line_window_pop (self->window))
    {
      surplus = g_error_new_literal (HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_FAILED, _ ("headwayd has answered a line that was not sent"));
      fail (self, surplus);
      return;
    }
  if (error != NULL)
    {
      take_refusal (self, number, error);
      return;
    }
  self->known_id = MAX (self->known_id, id);
  self->n_behind += self->refused > 0;
  headway_cli_line_outcome_count (&self->outcome, id, 1);
}

static void
take_answer (LineStream *self,
             const char *answer,
             gsize length)
{
  g_autoptr (GError) stop = g_steal_pointer (&self->stop);
  g_autoptr (GError) error = NULL;
  guint64 id = 0;

  /* An answer behind it: so nothing ended there, that line was refused. */
  if (stop != NULL)
    pop_line (self, 0, stop);
  if (!read_id (answer, length, &id))
    error = create_refusal (self, answer, length);
  if (error != NULL && is_stop (error))
    self->stop = g_steal_pointer (&error);
  else if (!self->is_finished)
    pop_line (self, id, error);
}

static void
reopen (LineStream *self,
        const GError *reason)
{
  gint64 now_us = g_get_monotonic_time ();
  g_autoptr (GError) error = NULL;

  if (self->away_since_us == 0)
    {
      self->away_since_us = now_us;
      self->delay_ms = FIRST_DELAY_MS;
      if (self->retry_s > 0)
        headway_cli_say (_ ("%s; waiting to go on with line %s"), reason->message, HEADWAY_CLI_NUMBER (headway_cli_line_window_get_number (self->window)));
    }
  if (now_us - self->away_since_us < self->retry_s * (gint64) G_USEC_PER_SEC)
    {
      self->is_opening = TRUE;
      headway_cli_line_link_open (self->link, self->delay_ms);
      self->delay_ms = MIN (2 * self->delay_ms, DELAY_MAX_MS);
      return;
    }
  error = g_error_new (HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_FAILED,
                       _ ("%s; given up after %u s: line %s and what follows it may be missing"),
                       reason->message, self->retry_s, HEADWAY_CLI_NUMBER (headway_cli_line_window_get_number (self->window)));
  fail (self, error);
}

static void
on_lost (gpointer user_data)
{
  LineStream *self = user_data;
  g_autoptr (GError) stop = g_steal_pointer (&self->stop);

  /* Behind the line that tells of a stop nothing is published. */
  self->n_in_doubt = stop == NULL ? headway_cli_line_window_get_n_sent (self->window) : 0;
  headway_cli_line_window_rewind (self->window);
  if (stop != NULL && self->refused == 0)
    reopen (self, stop);
  proceed (self);
}

static gboolean
on_answered (const char *line,
             gsize length,
             gpointer user_data)
{
  LineStream *self = user_data;

  take_answer (self, line, length);
  return !self->is_finished;
}

static void
on_opened (guint64 last_id,
           gpointer user_data)
{
  LineStream *self = user_data;
  guint n_twice = self->n_in_doubt;
  guint64 number = headway_cli_line_window_get_number (self->window);

  self->is_opening = FALSE;
  if (last_id >= self->known_id)
    n_twice = (guint) MIN (n_twice, last_id - self->known_id);
  if (self->was_open && n_twice == 0 && self->away_since_us > 0)
    headway_cli_say (_ ("going on with line %s"), HEADWAY_CLI_NUMBER (number));
  else if (self->was_open && n_twice > 0)
    headway_cli_say (g_dngettext (GETTEXT_PACKAGE, "going on with line %s; %u line from there was not answered and may be published twice",
                                  "going on with line %s; up to %u lines from there were not answered and may be published twice", n_twice),
                     HEADWAY_CLI_NUMBER (number), n_twice);
  self->was_open = TRUE;
  self->n_in_doubt = 0;
  self->known_id = last_id;
  self->away_since_us = 0;
  proceed (self);
}

static void
on_refused (const GError *error,
            gpointer user_data)
{
  LineStream *self = user_data;

  self->is_opening = FALSE;
  if (self->was_open && is_stop (error))
    reopen (self, error);
  else
    fail (self, error);
}

static void
send_lines (LineStream *self)
{
  gsize length;
  const char *unsent = headway_cli_line_window_get_unsent (self->window, &length);

  if (length > 0)
    headway_cli_line_window_add_sent (self->window, headway_cli_line_link_send (self->link, unsent, length));
}

/* Whether nothing is left to do: behind a line that was refused nothing is sent again. */
static gboolean
is_all (LineStream *self)
{
  if (self->refused > 0 && !headway_cli_line_link_is_open (self->link))
    return TRUE;
  return headway_cli_line_window_get_n_lines (self->window) == 0 && headway_cli_line_input_is_over (self->input);
}

/* Does what can be done now: sends, reads, opens, ends. */
static void
proceed (gpointer user_data)
{
  LineStream *self = user_data;
  gboolean has_lines = headway_cli_line_window_get_n_lines (self->window) > 0;
  g_autoptr (GError) absence = NULL;

  if (self->is_finished || (self->was_open && is_all (self)))
    {
      finish (self);
      return;
    }
  if (headway_cli_line_link_is_open (self->link))
    send_lines (self);
  else if (has_lines && !self->is_opening)
    {
      absence = g_error_new_literal (HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_UNREACHABLE, _ ("headwayd has gone"));
      reopen (self, absence);
    }
  if (!self->is_finished && headway_cli_line_window_has_room (self->window))
    headway_cli_line_input_read (self->input);
}

static int
report (LineStream *self)
{
  int status;

  if (headway_cli_line_input_get_error (self->input) != NULL)
    headway_cli_line_outcome_fail (&self->outcome, 0, headway_cli_line_input_get_error (self->input));
  status = headway_cli_line_outcome_report (&self->outcome, self->kind);
  if (self->n_behind > 0)
    headway_cli_say (g_dngettext (GETTEXT_PACKAGE, "%u line behind it was under way and is published", "%u lines behind it were under way and are published", self->n_behind),
                     self->n_behind);
  return status;
}

static void
clear (LineStream *self)
{
  g_clear_pointer (&self->link, headway_cli_line_link_free);
  g_clear_pointer (&self->input, headway_cli_line_input_free);
  g_clear_pointer (&self->window, headway_cli_line_window_free);
  g_clear_pointer (&self->loop, g_main_loop_unref);
  g_string_free (self->tail, TRUE);
  headway_cli_line_outcome_clear (&self->outcome);
  g_clear_error (&self->stop);
}

/* An event with no data: what is put around that of each line. */
static GString *
create_tail (const HeadwayCliDraft *defaults)
{
  char none[] = "";
  const HeadwayCliDraft empty = { .data = none };
  GString *tail = g_string_new (NULL);

  headway_cli_draft_append_json (&empty, defaults, tail);
  return tail;
}

/**
 * headway_cli_line_stream_run:
 * @cli: the global options
 * @bus_name: name of a bus; the daemon creates it where its settings allow that
 * @defaults: what holds for every event that does not say it
 * @kind: what a line is
 * @retry_s: for how long to wait for a daemon that has gone; 0: not at all
 * @fd: what to read, to its end
 *
 * Publishes each line, then prints `first-last count`; `0-0 0` if there was nothing.
 *
 * Returns: the exit status
 */
int
headway_cli_line_stream_run (HeadwayCli *cli,
                             const char *bus_name,
                             const HeadwayCliDraft *defaults,
                             HeadwayCliLines kind,
                             guint retry_s,
                             int fd)
{
  const HeadwayCliLineLinkEvents events = { on_opened, on_refused, on_answered, proceed, on_lost };
  g_autoptr (GError) error = NULL;
  g_autoptr (GDBusConnection) connection = headway_cli_connection_open (cli, &error);
  g_autofree char *bus_path = connection != NULL ? headway_cli_connection_get_bus (connection, bus_name, &error) : NULL;
  LineStream self = { .defaults = defaults, .kind = kind, .retry_s = retry_s };
  int status;

  if (bus_path == NULL)
    return headway_cli_fail (error);
  self.loop = g_main_loop_new (NULL, FALSE);
  self.input = headway_cli_line_input_new (fd, on_line, proceed, &self);
  self.window = headway_cli_line_window_new ();
  self.link = headway_cli_line_link_new (connection, bus_name, &events, &self);
  self.tail = create_tail (defaults);
  self.is_opening = TRUE;
  headway_cli_line_link_open (self.link, 0);
  g_main_loop_run (self.loop);
  status = report (&self);
  clear (&self);
  return status;
}
