/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What `headway sub` remembers, whichever way the events come: how far it has printed, what
 * ends it, and where to go on after a break.
 *
 * A source opens the stream at headway_cli_reader_get_cursor(), says so with _opened(), hands
 * over events with _take(), and asks for more only from within the answer of _flush(): so
 * nothing piles up here when standard output is slow. When its stream ends it asks _end()
 * whether that is all; if not, it opens the next one behind the cursor.
 *
 * Ids never go backwards over a restart of the daemon. In mode `routed` events come out of
 * order; the cursor is then the low-water mark, all up to it having been printed or told as lost.
 * Behind a break the daemon sends everything above it once more: what was printed of that is
 * remembered by its own ids.
 */
#include "config.h"

#include "cli/headway-cli-reader.h"

#include "cli/headway-cli-error.h"
#include "cli/headway-cli-printer.h"
#include "cli/headway-cli-seen.h"
#include "cli/headway-cli-text.h"

#include <errno.h>
#include <glib-unix.h>
#include <glib/gi18n.h>
#include <unistd.h>

#define FIRST_DELAY_MS 100

/* Eight times what may wait in a routed subscription by default. */
#define SEEN_MAX (8 * 65536)

struct _HeadwayCliReader
{
  const HeadwayCliSubOptions *options; /* borrowed, outlives self */
  GMainLoop *loop;                     /* owned */
  HeadwayCliOutput *output;            /* owned */
  char *epoch;                         /* owned, nullable */
  guint64 highest;                     /* id printed; 0: nothing yet */
  guint64 floor;                       /* up to here all was printed before this stream */
  HeadwayCliSeen *seen;                /* owned: ids printed above the cursor */
  guint64 cursor;
  gboolean has_cursor;
  guint64 n_printed;
  guint64 evicted_behind;
  gboolean evicted;    /* in this stream */
  gboolean closed;     /* the bus said that it closes */
  gboolean was_opened; /* at least once */
  gboolean is_waiting; /* the break has been told */
  gboolean colour;
  gboolean quitting;
  guint delay_ms;
  int status;
  HeadwayCliReaderFunc flushed;
  gpointer flushed_data; /* borrowed, outlives self */
  guint timeout_source;
  guint interrupt_source;
  guint terminate_source;
};

/**
 * headway_cli_reader_quit:
 * @self: a reader
 * @status: exit status; the first one counts
 *
 * Ends headway_cli_reader_run().
 */
void
headway_cli_reader_quit (HeadwayCliReader *self,
                         int status)
{
  if (!self->quitting)
    self->status = status;
  self->quitting = TRUE;
  g_main_loop_quit (self->loop);
}

/**
 * headway_cli_reader_fail:
 * @self: a reader
 * @error: what went wrong
 *
 * Says it and ends headway_cli_reader_run() with the status that goes with it.
 */
void
headway_cli_reader_fail (HeadwayCliReader *self,
                         const GError *error)
{
  if (!self->quitting)
    headway_cli_reader_quit (self, headway_cli_fail (error));
}

static void
on_reader_gone (int error_number,
                gpointer user_data)
{
  headway_cli_reader_quit (user_data, HEADWAY_CLI_EXIT_OK);
}

static gboolean
on_timeout (gpointer user_data)
{
  HeadwayCliReader *self = user_data;

  self->timeout_source = 0;
  headway_cli_reader_quit (self, self->options->count > 0 ? HEADWAY_CLI_EXIT_TIMEOUT : HEADWAY_CLI_EXIT_OK);
  return G_SOURCE_REMOVE;
}

static gboolean
on_signal (gpointer user_data)
{
  headway_cli_reader_quit (user_data, HEADWAY_CLI_EXIT_OK);
  return G_SOURCE_CONTINUE;
}

/**
 * headway_cli_reader_new:
 * @options: what was asked for; outlives the reader
 *
 * Prepares standard output, signals and the time limit.
 *
 * Returns: (transfer full): a reader that has read nothing
 */
HeadwayCliReader *
headway_cli_reader_new (const HeadwayCliSubOptions *options)
{
  HeadwayCliReader *self = g_new0 (HeadwayCliReader, 1);
  const char *no_colour = g_getenv ("NO_COLOR");

  self->options = options;
  self->loop = g_main_loop_new (NULL, FALSE);
  self->output = headway_cli_output_new (STDOUT_FILENO);
  self->epoch = g_strdup (options->epoch);
  self->seen = headway_cli_seen_new (SEEN_MAX);
  self->has_cursor = options->after_text != NULL;
  self->cursor = options->after;
  self->colour = isatty (STDOUT_FILENO) && (no_colour == NULL || *no_colour == '\0');
  self->delay_ms = FIRST_DELAY_MS;
  headway_cli_output_watch_reader (self->output, on_reader_gone, self);
  if (options->timeout_s > 0)
    self->timeout_source = g_timeout_add ((guint) (options->timeout_s * 1000), on_timeout, self);
  self->interrupt_source = g_unix_signal_add (SIGINT, on_signal, self);
  self->terminate_source = g_unix_signal_add (SIGTERM, on_signal, self);
  return self;
}

/**
 * headway_cli_reader_free:
 * @self: a reader that does not run
 *
 * Frees it.
 */
void
headway_cli_reader_free (HeadwayCliReader *self)
{
  g_clear_handle_id (&self->timeout_source, g_source_remove);
  g_clear_handle_id (&self->interrupt_source, g_source_remove);
  g_clear_handle_id (&self->terminate_source, g_source_remove);
  g_clear_pointer (&self->output, headway_cli_output_free);
  g_clear_pointer (&self->loop, g_main_loop_unref);
  g_clear_pointer (&self->seen, headway_cli_seen_free);
  g_free (self->epoch);
  g_free (self);
}

/**
 * headway_cli_reader_run:
 * @self: a reader whose source is at work
 *
 * Waits until something ends it.
 *
 * Returns: the exit status
 */
int
headway_cli_reader_run (HeadwayCliReader *self)
{
  if (!self->quitting)
    g_main_loop_run (self->loop);
  return self->status;
}

/**
 * headway_cli_reader_opened:
 * @self: a reader
 * @epoch: (nullable): epoch of the bus
 * @last_id: last id that the bus had given when the stream opened
 * @has_last_id: whether that is known
 *
 * A stream is open. Its start is the place to go on from until something is printed.
 */
void
headway_cli_reader_opened (HeadwayCliReader *self,
                           const char *epoch,
                           guint64 last_id,
                           gboolean has_last_id)
{
  if (epoch != NULL && g_strcmp0 (self->epoch, epoch) != 0)
    {
      g_free (self->epoch);
      self->epoch = g_strdup (epoch);
    }
  if (has_last_id && last_id < self->highest)
    {
      headway_cli_say (_ ("the ids of this bus have started anew: its last one is %s"), HEADWAY_CLI_NUMBER (last_id));
      self->highest = 0;
      headway_cli_seen_clear (self->seen);
    }
  if (has_last_id && !self->has_cursor)
    {
      self->cursor = last_id;
      self->has_cursor = TRUE;
    }
  if (self->was_opened && self->has_cursor && self->is_waiting)
    headway_cli_say (_ ("resumed behind %s"), HEADWAY_CLI_NUMBER (self->cursor));
  self->floor = self->highest > 0 ? self->cursor : 0;
  self->was_opened = TRUE;
  self->is_waiting = FALSE;
  self->evicted = FALSE;
}

static void
take_notice (HeadwayCliReader *self,
             const HeadwayCliEvent *event)
{
  g_autofree char *text = NULL;

  if (headway_cli_event_is_type (event, "client_evicted"))
    {
      self->evicted = TRUE;
      self->evicted_behind = headway_cli_event_get_data_uint64 (event, "lastDeliveredId");
    }
  if (self->options->json)
    {
      headway_cli_printer_append_json (headway_cli_output_get_buffer (self->output), event);
      return;
    }
  text = headway_cli_printer_describe_notice (event);
  headway_cli_say ("%s", text);
}

static gboolean
is_enough (HeadwayCliReader *self)
{
  return self->options->count > 0 && self->n_printed >= self->options->count;
}

static gboolean
was_printed (HeadwayCliReader *self,
             guint64 id)
{
  return id <= self->floor || headway_cli_seen_contains (self->seen, id);
}

static void
remember (HeadwayCliReader *self,
          const HeadwayCliEvent *event)
{
  self->highest = MAX (self->highest, event->id);
  headway_cli_seen_add (self->seen, event->id);
  if (event->resume_id == 0)
    return; /* nothing can be said yet: the very first event of the bus still waits */
  self->cursor = event->resume_id;
  self->has_cursor = TRUE;
  headway_cli_seen_forget_up_to (self->seen, self->cursor);
}

/**
 * headway_cli_reader_take:
 * @self: a reader
 * @event: an event
 *
 * Prints @event into the buffer, unless it was printed before the last break or enough were.
 */
void
headway_cli_reader_take (HeadwayCliReader *self,
                         const HeadwayCliEvent *event)
{
  GString *buffer = headway_cli_output_get_buffer (self->output);

  if (is_enough (self))
    return;
  if (event->id == 0)
    {
      take_notice (self, event);
      return;
    }
  if (was_printed (self, event->id))
    return;
  if (self->options->json)
    headway_cli_printer_append_json (buffer, event);
  else
    headway_cli_printer_append_readable (buffer, event, self->colour);
  remember (self, event);
  self->n_printed++;
  self->delay_ms = FIRST_DELAY_MS;
  self->closed = headway_cli_event_is_type (event, "session_closed");
}

static void
on_flushed (int error_number,
            gpointer user_data)
{
  HeadwayCliReader *self = user_data;

  if (self->quitting)
    return;
  if (error_number == EPIPE)
    headway_cli_reader_quit (self, HEADWAY_CLI_EXIT_OK);
  else if (error_number != 0)
    {
      headway_cli_say (_ ("cannot write to standard output: %s"), g_strerror (error_number));
      headway_cli_reader_quit (self, HEADWAY_CLI_EXIT_FAILED);
    }
  else if (is_enough (self))
    headway_cli_reader_quit (self, HEADWAY_CLI_EXIT_OK);
  else
    self->flushed (self->flushed_data);
}

/**
 * headway_cli_reader_flush:
 * @self: a reader
 * @func: called when all is written and more is wanted
 * @user_data: passed to it
 *
 * Writes what was taken. If that was all that is wanted, or nobody reads it any more, the
 * reader ends instead.
 */
void
headway_cli_reader_flush (HeadwayCliReader *self,
                          HeadwayCliReaderFunc func,
                          gpointer user_data)
{
  self->flushed = func;
  self->flushed_data = user_data;
  headway_cli_output_flush (self->output, on_flushed, self);
}

/**
 * headway_cli_reader_end:
 * @self: a reader
 *
 * A stream has ended and all of it is written.
 *
 * Returns: TRUE if the bus is closed and the reader with it, FALSE if the source shall open
 *   another stream
 */
gboolean
headway_cli_reader_end (HeadwayCliReader *self)
{
  if (self->closed)
    {
      headway_cli_reader_quit (self, HEADWAY_CLI_EXIT_OK);
      return TRUE;
    }
  if (self->evicted)
    {
      self->cursor = self->highest > 0 ? self->cursor : MAX (self->evicted_behind, self->cursor);
      headway_cli_say (_ ("evicted by the daemon; going on behind %s"), HEADWAY_CLI_NUMBER (self->cursor));
    }
  return FALSE;
}

/**
 * headway_cli_reader_may_wait:
 * @self: a reader
 * @error: why a stream could not be opened
 *
 * Returns: whether to try again: once a stream was open, what passes is waited for
 */
gboolean
headway_cli_reader_may_wait (HeadwayCliReader *self,
                             const GError *error)
{
  if (!self->was_opened)
    return FALSE;
  return g_error_matches (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_UNREACHABLE) ||
         g_error_matches (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_RATE_LIMITED) ||
         g_error_matches (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_CLOSED);
}

/**
 * headway_cli_reader_was_evicted:
 * @self: a reader
 *
 * Returns: whether the stream that has just ended did so because this reader was too slow
 */
gboolean
headway_cli_reader_was_evicted (HeadwayCliReader *self)
{
  return self->evicted;
}

/**
 * headway_cli_reader_is_over:
 * @self: a reader
 *
 * Returns: whether an event was taken that is the last one of its stream: the bus closes, or this
 *   reader was too slow
 */
gboolean
headway_cli_reader_is_over (HeadwayCliReader *self)
{
  return self->closed || self->evicted;
}

/**
 * headway_cli_reader_get_cursor:
 * @self: a reader
 * @cursor: (out): the id behind which to open a stream
 *
 * Returns: FALSE if it shall start with what comes from now on
 */
gboolean
headway_cli_reader_get_cursor (HeadwayCliReader *self,
                               guint64 *cursor)
{
  *cursor = self->cursor;
  return self->has_cursor;
}

/**
 * headway_cli_reader_get_epoch:
 * @self: a reader
 *
 * Returns: (nullable): the epoch that the cursor belongs to
 */
const char *
headway_cli_reader_get_epoch (HeadwayCliReader *self)
{
  return self->has_cursor ? self->epoch : NULL;
}

/**
 * headway_cli_reader_get_wanted:
 * @self: a reader
 * @maximum: most that can come at once
 *
 * Returns: how many events to ask for, 1 … @maximum
 */
guint
headway_cli_reader_get_wanted (HeadwayCliReader *self,
                               guint maximum)
{
  if (self->options->count == 0)
    return maximum;
  return (guint) CLAMP (self->options->count - self->n_printed, 1, maximum);
}

/**
 * headway_cli_reader_next_delay_ms:
 * @self: a reader
 * @maximum_ms: longest pause
 *
 * Returns: how long to wait before the next attempt; longer each time, until an event comes
 */
guint
headway_cli_reader_next_delay_ms (HeadwayCliReader *self,
                                  guint maximum_ms)
{
  guint delay_ms = MIN (self->delay_ms, maximum_ms);

  self->delay_ms = MIN (self->delay_ms * 2, maximum_ms);
  return delay_ms;
}

/**
 * headway_cli_reader_waiting:
 * @self: a reader
 * @reason: (nullable): what ended the stream
 *
 * Says once per break that the daemon is away and that it is waited for.
 */
void
headway_cli_reader_waiting (HeadwayCliReader *self,
                            const GError *reason)
{
  if (self->is_waiting)
    return;
  self->is_waiting = TRUE;
  if (reason != NULL)
    headway_cli_say (_ ("%s; waiting to go on"), reason->message);
  else
    headway_cli_say (_ ("the stream has ended; waiting to go on"));
}
