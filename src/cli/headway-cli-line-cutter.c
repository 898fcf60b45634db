/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-line-cutter.h"

#include <string.h>

struct _HeadwayCliLineCutter
{
  HeadwayCliLineFunc func;
  gpointer user_data; /* borrowed, outlives self */
  GString *begun;     /* owned: a line that has not ended yet */
  gboolean is_done;
};

/**
 * headway_cli_line_cutter_new:
 * @func: called for each line
 * @user_data: passed to it
 *
 * Cuts a stream of bytes into lines.
 *
 * Returns: (transfer full): a cutter at the start of a line
 */
HeadwayCliLineCutter *
headway_cli_line_cutter_new (HeadwayCliLineFunc func,
                             gpointer user_data)
{
  HeadwayCliLineCutter *self = g_new0 (HeadwayCliLineCutter, 1);

  self->func = func;
  self->user_data = user_data;
  self->begun = g_string_new (NULL);
  return self;
}

/**
 * headway_cli_line_cutter_free:
 * @self: a cutter
 *
 * Frees it; a line that has not ended is dropped.
 */
void
headway_cli_line_cutter_free (HeadwayCliLineCutter *self)
{
  g_string_free (self->begun, TRUE);
  g_free (self);
}

static void
hand_over (HeadwayCliLineCutter *self,
           const char *line,
           gsize length)
{
  self->is_done = !self->func (line, length, self->user_data);
}

/**
 * headway_cli_line_cutter_feed:
 * @self: a cutter
 * @bytes: (array length=length): what comes next
 * @length: how many
 *
 * Hands over the lines that end in @bytes, until no more are wanted. A line within @bytes is not
 * copied.
 *
 * Returns: FALSE if a line is longer than HEADWAY_CLI_LINE_MAX
 */
gboolean
headway_cli_line_cutter_feed (HeadwayCliLineCutter *self,
                              const char *bytes,
                              gsize length)
{
  const char *end = bytes + length;

  for (const char *p = bytes; p < end && !self->is_done;)
    {
      const char *line_end = memchr (p, '\n', (gsize) (end - p));
      gsize piece = (gsize) ((line_end != NULL ? line_end : end) - p);

      if (piece + self->begun->len > HEADWAY_CLI_LINE_MAX)
        return FALSE;
      if (line_end == NULL || self->begun->len > 0)
        g_string_append_len (self->begun, p, (gssize) piece);
      if (line_end == NULL)
        return TRUE;
      if (self->begun->len > 0)
        hand_over (self, self->begun->str, self->begun->len);
      else
        hand_over (self, p, piece);
      g_string_truncate (self->begun, 0);
      p = line_end + 1;
    }
  return TRUE;
}

/**
 * headway_cli_line_cutter_finish:
 * @self: a cutter
 *
 * Nothing more comes: hands over a last line that has no LF.
 */
void
headway_cli_line_cutter_finish (HeadwayCliLineCutter *self)
{
  if (self->begun->len > 0 && !self->is_done)
    hand_over (self, self->begun->str, self->begun->len);
  g_string_truncate (self->begun, 0);
}

/**
 * headway_cli_line_is_blank:
 * @line: (array length=length): a line without its LF
 * @length: how many bytes
 *
 * Returns: whether it has nothing but blanks, tabs and CR
 */
gboolean
headway_cli_line_is_blank (const char *line,
                           gsize length)
{
  for (gsize i = 0; i < length; i++)
    {
      if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
        return FALSE;
    }
  return TRUE;
}
