/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-text.h"

#include <string.h>

/* Whether a terminal might do something else with @c than show it: controls of both ranges,
 * line and paragraph separators, and the invisible marks that turn the order of writing
 * around. The joiners stay, because emoji and some scripts are wrong without them. */
static gboolean
is_harmful (gunichar c)
{
  if (c < 0x20 || (c >= 0x7f && c < 0xa0))
    return TRUE;
  if (c == 0x200c || c == 0x200d)
    return FALSE;
  switch ((int) g_unichar_type (c))
    {
    case G_UNICODE_FORMAT:
    case G_UNICODE_LINE_SEPARATOR:
    case G_UNICODE_PARAGRAPH_SEPARATOR:
      return TRUE;
    default:
      return FALSE;
    }
}

/**
 * headway_cli_text_append_neutralised:
 * @line: text to append to
 * @text: (array length=length): bytes from outside
 * @length: how many, or -1 up to the NUL
 *
 * Appends @text so that it stays on one line and cannot control a terminal: what might is
 * shown as `\u001b`, what is no UTF-8 as `\xff`.
 */
void
headway_cli_text_append_neutralised (GString *line,
                                     const char *text,
                                     gssize length)
{
  const char *end = text + (length < 0 ? (gssize) strlen (text) : length);

  for (const char *p = text; p < end;)
    {
      const char *start = p;
      gunichar c;

      while (p < end && (guchar) *p >= 0x20 && (guchar) *p < 0x7f)
        p++;
      g_string_append_len (line, start, p - start);
      if (p == end)
        return;
      c = *p == '\0' ? 0 : g_utf8_get_char_validated (p, end - p);
      if (c == (gunichar) -1 || c == (gunichar) -2)
        {
          g_string_append_printf (line, "\\x%02x", (guint) (guchar) *p++);
          continue;
        }
      if (is_harmful (c))
        g_string_append_printf (line, "\\u%04x", c);
      else
        g_string_append_unichar (line, c);
      p = g_utf8_next_char (p);
    }
}

/**
 * headway_cli_text_neutralise:
 * @text: (array length=length): bytes from outside
 * @length: how many, or -1 up to the NUL
 *
 * Returns: (transfer full): @text as headway_cli_text_append_neutralised() shows it
 */
char *
headway_cli_text_neutralise (const char *text,
                             gssize length)
{
  GString *line = g_string_new (NULL);

  headway_cli_text_append_neutralised (line, text, length);
  return g_string_free (line, FALSE);
}

/**
 * headway_cli_text_print_number:
 * @number: a number
 * @buffer: HEADWAY_CLI_NUMBER_SIZE bytes for it
 *
 * Use HEADWAY_CLI_NUMBER().
 *
 * Returns: @buffer with @number in decimal
 */
const char *
headway_cli_text_print_number (guint64 number,
                               char *buffer)
{
  g_snprintf (buffer, HEADWAY_CLI_NUMBER_SIZE, "%" G_GUINT64_FORMAT, number);
  return buffer;
}
