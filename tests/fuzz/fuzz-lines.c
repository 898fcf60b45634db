/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "fuzz.h"

#include "wire/headway-line-buffer.h"

#include <string.h>

/* The same text in pieces of any size has the same lines as when it is cut in one go. The first byte
 * says how long the pieces are, the second one how long a line may be. */

const char *const fuzz_seeds[] = {
  "\003\020{\"topic\":\"a\",\"data\":1}\n\n{\"topic\":\"b\",\"data\":2}\r\n",
  "\001\004abcd\r\nabcd\re\nabcd\nabcde\n\n \nx",
  "\007\001\n\n\n",
  "\050\377no line feed",
  NULL,
};

/* The next line of @text as it ought to be; FALSE at the end. */
static gboolean
expect_line (const char **text, const char *end, const char **line, gsize *length)
{
  const char *lf = *text < end ? memchr (*text, '\n', (gsize) (end - *text)) : NULL;

  if (*text == end)
    return FALSE;
  *line = *text;
  *length = (gsize) ((lf != NULL ? lf : end) - *text);
  *text = lf != NULL ? lf + 1 : end;
  return TRUE;
}

static void
check_line (HeadwayLineKind kind, const char *found, gsize found_length, const char *line, gsize length, gsize max)
{
  gsize blanks = 0;

  while (blanks < length && (line[blanks] == ' ' || line[blanks] == '\t' || line[blanks] == '\r'))
    blanks++;
  if (length > max + 1 || (length == max + 1 && line[length - 1] != '\r'))
    {
      g_assert_cmpint (kind, ==, HEADWAY_LINE_TOO_LONG);
      return;
    }
  g_assert_cmpint (kind, ==, blanks == length ? HEADWAY_LINE_BLANK : HEADWAY_LINE_TEXT);
  if (kind == HEADWAY_LINE_TEXT)
    g_assert_cmpmem (found, found_length, line, length);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_auto (HeadwayLineBuffer) buffer = { 0 };
  const char *text = (const char *) data + 2;
  const char *expected = text;
  guint64 n_lines = 0;
  const char *end;
  const char *line = NULL;
  gsize length = 0;
  gsize piece;
  gsize max;

  if (size < 2)
    return 0;
  end = (const char *) data + size;
  piece = data[0] % 64 + 1;
  max = data[1];
  for (const char *at = text; at <= end; at += piece)
    {
      HeadwayLineKind kind;
      const char *found;
      gsize found_length;

      headway_line_buffer_append (&buffer, at, MIN (piece, (gsize) (end - at)));
      if ((gsize) (end - at) < piece)
        headway_line_buffer_end (&buffer);
      while ((kind = headway_line_buffer_next (&buffer, max, &found, &found_length)) != HEADWAY_LINE_NONE)
        {
          g_assert_true (expect_line (&expected, end, &line, &length));
          check_line (kind, found, found_length, line, length, max);
          g_assert_cmpuint (buffer.line, ==, ++n_lines);
        }
      g_assert_cmpuint (headway_line_buffer_get_waiting (&buffer), <=, max + 1);
    }
  g_assert_false (expect_line (&expected, end, &line, &length));
  return 0;
}
