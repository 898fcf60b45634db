/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-line-input.h"

#include "cli/headway-cli-error.h"
#include "cli/headway-cli-text.h"

#include <gio/gunixinputstream.h>
#include <glib-unix.h>
#include <glib/gi18n.h>

#define PIECE_BYTES (64 * 1024)

struct _HeadwayCliLineInput
{
  GInputStream *stream;         /* owned */
  GCancellable *cancellable;    /* owned: ends the reading */
  HeadwayCliLineCutter *cutter; /* owned */
  HeadwayCliLineFunc line_func;
  HeadwayCliLineInputFunc func;
  gpointer user_data; /* borrowed, outlives self */
  char *piece;        /* owned, PIECE_BYTES */
  guint64 n_lines;
  GError *error; /* owned, nullable */
  gboolean is_reading;
  gboolean is_stopped; /* nothing more will be read */
  guint interrupt_source;
  guint terminate_source;
};

static gboolean
on_line (const char *line,
         gsize length,
         gpointer user_data)
{
  HeadwayCliLineInput *self = user_data;

  self->n_lines++;
  if (self->line_func (line, length, self->user_data))
    return TRUE;
  self->is_stopped = TRUE;
  return FALSE;
}

/* The first signal ends the input, the second one the program. */
static gboolean
on_signal (gpointer user_data)
{
  HeadwayCliLineInput *self = user_data;

  g_clear_handle_id (&self->interrupt_source, g_source_remove);
  g_clear_handle_id (&self->terminate_source, g_source_remove);
  headway_cli_line_input_stop (self);
  if (!self->is_reading)
    self->func (self->user_data);
  return G_SOURCE_CONTINUE;
}

/**
 * headway_cli_line_input_new:
 * @fd: what to read, outlives the input
 * @line_func: called for each line
 * @func: called behind each piece; may free the input
 * @user_data: passed to both
 *
 * Reads lines when asked to. SIGINT and SIGTERM end the input.
 *
 * Returns: (transfer full): an input that has read nothing
 */
HeadwayCliLineInput *
headway_cli_line_input_new (int fd,
                            HeadwayCliLineFunc line_func,
                            HeadwayCliLineInputFunc func,
                            gpointer user_data)
{
  HeadwayCliLineInput *self = g_new0 (HeadwayCliLineInput, 1);

  self->stream = g_unix_input_stream_new (fd, FALSE);
  self->cancellable = g_cancellable_new ();
  self->cutter = headway_cli_line_cutter_new (on_line, self);
  self->line_func = line_func;
  self->func = func;
  self->user_data = user_data;
  self->piece = g_malloc (PIECE_BYTES);
  self->interrupt_source = g_unix_signal_add (SIGINT, on_signal, self);
  self->terminate_source = g_unix_signal_add (SIGTERM, on_signal, self);
  return self;
}

/**
 * headway_cli_line_input_free:
 * @self: an input that is over
 *
 * Frees it.
 */
void
headway_cli_line_input_free (HeadwayCliLineInput *self)
{
  g_return_if_fail (!self->is_reading);

  g_clear_handle_id (&self->interrupt_source, g_source_remove);
  g_clear_handle_id (&self->terminate_source, g_source_remove);
  g_clear_object (&self->stream);
  g_clear_object (&self->cancellable);
  g_clear_pointer (&self->cutter, headway_cli_line_cutter_free);
  g_clear_error (&self->error);
  g_free (self->piece);
  g_free (self);
}

static void
on_read (GObject *source,
         GAsyncResult *result,
         gpointer user_data)
{
  HeadwayCliLineInput *self = user_data;
  g_autoptr (GError) error = NULL;
  gssize size = g_input_stream_read_finish (G_INPUT_STREAM (source), result, &error);

  self->is_reading = FALSE;
  if (size > 0 && !headway_cli_line_cutter_feed (self->cutter, self->piece, (gsize) size))
    {
      self->error = g_error_new (HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_EVENT,
                                 _ ("line %s: TooLarge: the line is longer than %d bytes"), HEADWAY_CLI_NUMBER (self->n_lines + 1), HEADWAY_CLI_LINE_MAX);
      self->is_stopped = TRUE;
    }
  if (size <= 0)
    {
      headway_cli_line_cutter_finish (self->cutter);
      if (error != NULL && !g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
        self->error = g_error_new (HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_FAILED, _ ("cannot read standard input: %s"), error->message);
      self->is_stopped = TRUE;
    }
  self->func (self->user_data);
}

/**
 * headway_cli_line_input_read:
 * @self: an input
 *
 * Reads one more piece, unless one is being read or the input is over.
 */
void
headway_cli_line_input_read (HeadwayCliLineInput *self)
{
  if (self->is_reading || self->is_stopped)
    return;
  self->is_reading = TRUE;
  g_input_stream_read_async (self->stream, self->piece, PIECE_BYTES, G_PRIORITY_DEFAULT, self->cancellable, on_read, self);
}

/**
 * headway_cli_line_input_stop:
 * @self: an input
 *
 * Reads nothing more. If a piece is being read, the function is called once more.
 */
void
headway_cli_line_input_stop (HeadwayCliLineInput *self)
{
  self->is_stopped = TRUE;
  g_cancellable_cancel (self->cancellable);
}

/**
 * headway_cli_line_input_is_over:
 * @self: an input
 *
 * Returns: whether nothing more will come
 */
gboolean
headway_cli_line_input_is_over (HeadwayCliLineInput *self)
{
  return self->is_stopped && !self->is_reading;
}

/**
 * headway_cli_line_input_get_n_lines:
 * @self: an input
 *
 * Returns: how many lines were handed over: the number of the last one
 */
guint64
headway_cli_line_input_get_n_lines (HeadwayCliLineInput *self)
{
  return self->n_lines;
}

/**
 * headway_cli_line_input_get_error:
 * @self: an input
 *
 * Returns: (nullable) (transfer none): what ended the input too early, of HEADWAY_CLI_ERROR
 */
const GError *
headway_cli_line_input_get_error (HeadwayCliLineInput *self)
{
  return self->error;
}
