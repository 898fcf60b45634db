/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "wire/headway-line-buffer.h"

#include "engine/headway-error.h"

#include <string.h>

void
headway_line_buffer_clear (HeadwayLineBuffer *self)
{
  g_free (self->bytes);
  *self = (HeadwayLineBuffer){ 0 };
}

/* Moves what waits to the front. */
static void
tidy (HeadwayLineBuffer *self)
{
  if (self->start == 0)
    return;
  memmove (self->bytes, self->bytes + self->start, self->end - self->start);
  self->end -= self->start;
  self->searched -= self->start;
  self->start = 0;
}

char *
headway_line_buffer_reserve (HeadwayLineBuffer *self, gsize room, gsize *length)
{
  g_return_val_if_fail (room > 0, NULL);

  if (self->start == self->end || self->size - self->end < room)
    tidy (self);
  if (self->size - self->end < room)
    {
      self->size = MAX (self->end + room, self->end > 0 ? 2 * self->size : 0);
      self->bytes = g_realloc (self->bytes, self->size);
    }
  *length = self->size - self->end;
  return self->bytes + self->end;
}

void
headway_line_buffer_commit (HeadwayLineBuffer *self, gsize length)
{
  g_return_if_fail (length <= self->size - self->end);

  self->end += length;
}

void
headway_line_buffer_append (HeadwayLineBuffer *self, const char *bytes, gsize length)
{
  gsize room;

  if (length == 0)
    return;
  memcpy (headway_line_buffer_reserve (self, length, &room), bytes, length);
  headway_line_buffer_commit (self, length);
}

void
headway_line_buffer_end (HeadwayLineBuffer *self)
{
  self->is_complete = TRUE;
}

static gboolean
is_blank (const char *text, gsize length)
{
  for (gsize i = 0; i < length; i++)
    {
      if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r')
        return FALSE;
    }
  return TRUE;
}

/* A CR at the end does not count: it belongs to the line end, or the line goes on and is too long then. */
static gboolean
is_too_long (const char *text, gsize length, gsize max)
{
  return length > max && (length - max > 1 || text[length - 1] != '\r');
}

/* Everything up to @at is taken. */
static void
move_to (HeadwayLineBuffer *self, gsize at)
{
  self->start = self->searched = at;
}

/* FALSE: the line that is too long goes on. */
static gboolean
skip_rest (HeadwayLineBuffer *self)
{
  const char *lf = memchr (self->bytes + self->start, '\n', self->end - self->start);

  move_to (self, lf != NULL ? (gsize) (lf - self->bytes) + 1 : self->end);
  self->is_skipping = lf == NULL;
  return lf != NULL;
}

/* No LF: either the line goes on, or it is the last one, or it is too long already. */
static HeadwayLineKind
judge_beginning (HeadwayLineBuffer *self, gsize max)
{
  self->searched = self->end;
  if (!is_too_long (self->bytes + self->start, self->end - self->start, max))
    return self->is_complete ? HEADWAY_LINE_TEXT : HEADWAY_LINE_NONE;
  self->line++;
  self->is_skipping = TRUE;
  move_to (self, self->end);
  return HEADWAY_LINE_TOO_LONG;
}

HeadwayLineKind
headway_line_buffer_next (HeadwayLineBuffer *self, gsize max, const char **text, gsize *length)
{
  const char *lf;
  gsize end;

  if (self->start == self->end || (self->is_skipping && !skip_rest (self)) || self->start == self->end)
    return HEADWAY_LINE_NONE;

  lf = memchr (self->bytes + self->searched, '\n', self->end - self->searched);
  if (lf == NULL)
    {
      HeadwayLineKind kind = judge_beginning (self, max);

      if (kind != HEADWAY_LINE_TEXT)
        return kind;
    }
  end = lf != NULL ? (gsize) (lf - self->bytes) : self->end;
  self->line++;
  self->last_start = self->start;
  move_to (self, MIN (end + 1, self->end));
  *text = self->bytes + self->last_start;
  *length = end - self->last_start;
  if (is_too_long (*text, *length, max))
    return HEADWAY_LINE_TOO_LONG;
  return is_blank (*text, *length) ? HEADWAY_LINE_BLANK : HEADWAY_LINE_TEXT;
}

void
headway_line_buffer_give_back (HeadwayLineBuffer *self)
{
  g_return_if_fail (self->line > 0 && self->last_start < self->start);

  move_to (self, self->last_start);
  self->line--;
}

void
headway_line_buffer_set_too_long (GError **error, gsize max)
{
  headway_set_error_with_limit (error, HEADWAY_ERROR_TOO_LARGE, (gint64) max,
                                "the line is longer than %" G_GSIZE_FORMAT " bytes", max);
}

gsize
headway_line_buffer_get_waiting (const HeadwayLineBuffer *self)
{
  return self->end - self->start;
}

void
headway_line_buffer_trim (HeadwayLineBuffer *self)
{
  if (self->start < self->end)
    return;
  g_clear_pointer (&self->bytes, g_free);
  self->size = self->start = self->searched = self->end = self->last_start = 0;
}
