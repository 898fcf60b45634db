/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The lines that are not answered yet, in one text: those in front are sent, then comes one that
 * may be sent in part, then those that wait. An answer takes the first one away, a break of the
 * connection makes all of them wait again.
 */
#include "config.h"

#include "cli/headway-cli-line-window.h"

/* Enough to keep the socket full both ways; what more costs is only memory, and lines that are in
 * doubt behind a break. */
#define LINES_MAX 8192
#define BYTES_MAX (1024 * 1024)

typedef struct
{
  guint64 number; /* of the input, from 1 */
  guint64 end;    /* bytes of all lines up to and with this one, since the beginning */
} Line;

struct _HeadwayCliLineWindow
{
  GString *text;     /* owned: the lines, each with its LF */
  gsize text_start;  /* bytes of it that are answered */
  GArray *lines;     /* Line (owned), in order */
  guint lines_start; /* of them that are answered */
  guint n_sent;      /* behind lines_start, sent as a whole */
  guint64 dropped;   /* bytes that were before the text */
  guint64 sent;      /* as the end of a line */
};

/**
 * headway_cli_line_window_new:
 *
 * Returns: (transfer full): a window of no lines
 */
HeadwayCliLineWindow *
headway_cli_line_window_new (void)
{
  HeadwayCliLineWindow *self = g_new0 (HeadwayCliLineWindow, 1);

  self->text = g_string_new (NULL);
  self->lines = g_array_new (FALSE, FALSE, sizeof (Line));
  return self;
}

/**
 * headway_cli_line_window_free:
 * @self: a window
 *
 * Frees it.
 */
void
headway_cli_line_window_free (HeadwayCliLineWindow *self)
{
  g_string_free (self->text, TRUE);
  g_array_unref (self->lines);
  g_free (self);
}

static Line *
get_line (HeadwayCliLineWindow *self,
          guint place)
{
  return &g_array_index (self->lines, Line, self->lines_start + place);
}

/**
 * headway_cli_line_window_begin:
 * @self: a window
 *
 * Returns: (transfer none): where to append a line, without its LF; then comes
 *   headway_cli_line_window_end()
 */
GString *
headway_cli_line_window_begin (HeadwayCliLineWindow *self)
{
  return self->text;
}

/**
 * headway_cli_line_window_end:
 * @self: a window
 * @number: number of the line that was appended, from 1
 *
 * Completes a line.
 */
void
headway_cli_line_window_end (HeadwayCliLineWindow *self,
                             guint64 number)
{
  Line line = { .number = number };

  g_string_append_c (self->text, '\n');
  line.end = self->dropped + self->text->len;
  g_array_append_val (self->lines, line);
}

/**
 * headway_cli_line_window_has_room:
 * @self: a window
 *
 * Returns: whether more lines should be read; there is always room for one
 */
gboolean
headway_cli_line_window_has_room (HeadwayCliLineWindow *self)
{
  return self->lines->len - self->lines_start < LINES_MAX && self->text->len - self->text_start < BYTES_MAX;
}

/**
 * headway_cli_line_window_get_n_lines:
 * @self: a window
 *
 * Returns: how many lines are not answered
 */
guint
headway_cli_line_window_get_n_lines (HeadwayCliLineWindow *self)
{
  return self->lines->len - self->lines_start;
}

/**
 * headway_cli_line_window_get_number:
 * @self: a window
 *
 * Returns: number of the first line that is not answered, 0 if there is none
 */
guint64
headway_cli_line_window_get_number (HeadwayCliLineWindow *self)
{
  return headway_cli_line_window_get_n_lines (self) > 0 ? get_line (self, 0)->number : 0;
}

/**
 * headway_cli_line_window_get_unsent:
 * @self: a window
 * @length: (out): bytes that are not sent
 *
 * Returns: (transfer none): what to send next
 */
const char *
headway_cli_line_window_get_unsent (HeadwayCliLineWindow *self,
                                    gsize *length)
{
  gsize offset = (gsize) (self->sent - self->dropped);

  *length = self->text->len - offset;
  return self->text->str + offset;
}

/**
 * headway_cli_line_window_add_sent:
 * @self: a window
 * @length: bytes of headway_cli_line_window_get_unsent() that are sent now
 */
void
headway_cli_line_window_add_sent (HeadwayCliLineWindow *self,
                                  gsize length)
{
  self->sent += length;
  while (self->n_sent < headway_cli_line_window_get_n_lines (self) && get_line (self, self->n_sent)->end <= self->sent)
    self->n_sent++;
}

/**
 * headway_cli_line_window_get_n_sent:
 * @self: a window
 *
 * Returns: how many lines are sent as a whole and not answered
 */
guint
headway_cli_line_window_get_n_sent (HeadwayCliLineWindow *self)
{
  return self->n_sent;
}

/**
 * headway_cli_line_window_is_begun:
 * @self: a window
 *
 * Returns: whether a part of the first line that is not answered is sent, and not all of it
 */
gboolean
headway_cli_line_window_is_begun (HeadwayCliLineWindow *self)
{
  return self->n_sent == 0 && self->sent > self->dropped + self->text_start;
}

/* What is answered goes many lines at a time. */
static void
forget_answered (HeadwayCliLineWindow *self)
{
  if (self->text_start < BYTES_MAX && self->lines_start < self->lines->len)
    return;
  self->dropped += self->text_start;
  g_string_erase (self->text, 0, (gssize) self->text_start);
  self->text_start = 0;
  g_array_remove_range (self->lines, 0, self->lines_start);
  self->lines_start = 0;
}

/**
 * headway_cli_line_window_pop:
 * @self: a window
 *
 * The first line is answered.
 *
 * Returns: FALSE if none was sent
 */
gboolean
headway_cli_line_window_pop (HeadwayCliLineWindow *self)
{
  if (self->n_sent == 0)
    return FALSE;
  self->text_start = (gsize) (get_line (self, 0)->end - self->dropped);
  self->lines_start++;
  self->n_sent--;
  forget_answered (self);
  return TRUE;
}

/**
 * headway_cli_line_window_rewind:
 * @self: a window
 *
 * All lines wait to be sent again.
 */
void
headway_cli_line_window_rewind (HeadwayCliLineWindow *self)
{
  self->sent = self->dropped + self->text_start;
  self->n_sent = 0;
}

/**
 * headway_cli_line_window_drop_unsent:
 * @self: a window
 *
 * Drops the lines of which nothing is sent.
 */
void
headway_cli_line_window_drop_unsent (HeadwayCliLineWindow *self)
{
  guint n_kept = self->n_sent;
  guint64 end = self->sent;

  if (n_kept < headway_cli_line_window_get_n_lines (self) && self->sent > (n_kept > 0 ? get_line (self, n_kept - 1)->end : self->dropped + self->text_start))
    end = get_line (self, n_kept++)->end;
  g_array_set_size (self->lines, self->lines_start + n_kept);
  g_string_truncate (self->text, (gsize) (end - self->dropped));
}
