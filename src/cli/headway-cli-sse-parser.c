/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The event stream format of the HTML standard ("Server-sent events", section "Parsing an
 * event stream"), fed with pieces of any size. Lines end in LF, CR LF or CR; a CR at the end
 * of a piece is not known to be one or the other until the next byte. A frame that the end of
 * the stream cuts off is dropped, as the standard wants.
 */
#include "config.h"

#include "cli/headway-cli-sse-parser.h"

#include "cli/headway-cli-error.h"

#include <glib/gi18n.h>
#include <string.h>

struct _HeadwayCliSseParser
{
  HeadwayCliSseFunc func;
  gpointer user_data; /* borrowed, outlives self */
  GString *line;      /* owned: a line that has not ended yet */
  GString *data;      /* owned */
  GString *event;     /* owned */
  GString *id;        /* owned */
  gboolean has_id;
  gboolean has_data;
  gboolean after_cr;   /* an LF now belongs to the line end before */
  gboolean first_line; /* a byte order mark may come */
  guint retry_ms;
  guint64 n_comments;
};

/**
 * headway_cli_sse_parser_new:
 * @func: called for each frame with data, from within headway_cli_sse_parser_feed()
 * @user_data: passed to it
 *
 * Returns: (transfer full): a parser at the start of a stream
 */
HeadwayCliSseParser *
headway_cli_sse_parser_new (HeadwayCliSseFunc func,
                            gpointer user_data)
{
  HeadwayCliSseParser *self = g_new0 (HeadwayCliSseParser, 1);

  self->func = func;
  self->user_data = user_data;
  self->line = g_string_new (NULL);
  self->data = g_string_new (NULL);
  self->event = g_string_new (NULL);
  self->id = g_string_new (NULL);
  self->first_line = TRUE;
  return self;
}

/**
 * headway_cli_sse_parser_free:
 * @self: a parser
 *
 * Frees it.
 */
void
headway_cli_sse_parser_free (HeadwayCliSseParser *self)
{
  g_string_free (self->line, TRUE);
  g_string_free (self->data, TRUE);
  g_string_free (self->event, TRUE);
  g_string_free (self->id, TRUE);
  g_free (self);
}

static void
dispatch (HeadwayCliSseParser *self)
{
  if (self->has_data)
    {
      const HeadwayCliSseFrame frame = {
        .event = self->event->len > 0 ? self->event->str : "message",
        .data = self->data->str,
        .length = self->data->len,
        .id = self->has_id ? self->id->str : NULL,
      };

      self->func (&frame, self->user_data);
    }
  self->has_id = FALSE;
  self->has_data = FALSE;
  g_string_truncate (self->event, 0);
  g_string_truncate (self->data, 0);
}

static void
take_retry (HeadwayCliSseParser *self,
            const char *value,
            gsize length)
{
  g_autofree char *digits = g_strndup (value, length);
  guint64 retry;

  if (g_ascii_string_to_unsigned (digits, 10, 0, G_MAXINT, &retry, NULL))
    self->retry_ms = (guint) retry;
}

static void
take_field (HeadwayCliSseParser *self,
            const char *name,
            gsize name_length,
            const char *value,
            gsize length)
{
  if (name_length == 4 && memcmp (name, "data", 4) == 0)
    {
      if (self->has_data)
        g_string_append_c (self->data, '\n');
      g_string_append_len (self->data, value, (gssize) length);
      self->has_data = TRUE;
    }
  else if (name_length == 5 && memcmp (name, "event", 5) == 0)
    {
      g_string_truncate (self->event, 0);
      g_string_append_len (self->event, value, (gssize) length);
    }
  else if (name_length == 2 && memcmp (name, "id", 2) == 0 && memchr (value, '\0', length) == NULL)
    {
      g_string_truncate (self->id, 0);
      g_string_append_len (self->id, value, (gssize) length);
      self->has_id = TRUE;
    }
  else if (name_length == 5 && memcmp (name, "retry", 5) == 0)
    take_retry (self, value, length);
}

static void
take_line (HeadwayCliSseParser *self,
           const char *line,
           gsize length)
{
  const char *colon;
  const char *value;

  if (self->first_line && length >= 3 && memcmp (line, "\357\273\277", 3) == 0)
    {
      line += 3;
      length -= 3;
    }
  self->first_line = FALSE;
  if (length == 0)
    {
      dispatch (self);
      return;
    }
  colon = memchr (line, ':', length);
  if (colon == line)
    {
      self->n_comments++;
      return;
    }
  if (colon == NULL)
    {
      take_field (self, line, length, "", 0);
      return;
    }
  value = colon + 1;
  if (value < line + length && *value == ' ')
    value++;
  take_field (self, line, (gsize) (colon - line), value, (gsize) (line + length - value));
}

/* Ends the line whose last part is @part; a line that came in one piece is not copied. */
static void
end_line (HeadwayCliSseParser *self,
          const char *part,
          gsize length)
{
  if (self->line->len == 0)
    {
      take_line (self, part, length);
      return;
    }
  g_string_append_len (self->line, part, (gssize) length);
  take_line (self, self->line->str, self->line->len);
  g_string_truncate (self->line, 0);
}

static const char *
find_line_end (const char *p,
               const char *end)
{
  const char *lf = memchr (p, '\n', (gsize) (end - p));
  const char *cr = memchr (p, '\r', (gsize) ((lf != NULL ? lf : end) - p));

  return cr != NULL ? cr : lf;
}

/**
 * headway_cli_sse_parser_feed:
 * @self: a parser
 * @bytes: (array length=length): the next bytes of the stream
 * @length: how many
 * @error: return location
 *
 * Takes a piece of the stream, and calls the function for each frame that is complete.
 *
 * Returns: FALSE with HEADWAY_CLI_ERROR_FAILED if a frame is over HEADWAY_CLI_SSE_FRAME_MAX;
 *   the stream is then of no use any more
 */
gboolean
headway_cli_sse_parser_feed (HeadwayCliSseParser *self,
                             const char *bytes,
                             gsize length,
                             GError **error)
{
  const char *end = bytes + length;

  for (const char *p = bytes; p < end;)
    {
      const char *line_end;

      if (self->after_cr && *p == '\n')
        p++;
      self->after_cr = FALSE;
      if (p == end)
        break;
      line_end = find_line_end (p, end);
      if (self->line->len + self->data->len + (gsize) ((line_end != NULL ? line_end : end) - p) > HEADWAY_CLI_SSE_FRAME_MAX)
        {
          g_set_error (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_FAILED,
                       _ ("a frame of the stream is longer than %d bytes"), HEADWAY_CLI_SSE_FRAME_MAX);
          return FALSE;
        }
      if (line_end == NULL)
        {
          g_string_append_len (self->line, p, end - p);
          break;
        }
      end_line (self, p, (gsize) (line_end - p));
      self->after_cr = *line_end == '\r';
      p = line_end + 1;
    }
  return TRUE;
}

/**
 * headway_cli_sse_parser_get_retry_ms:
 * @self: a parser
 *
 * Returns: after how many milliseconds the server wants to be asked again, 0 if it did not say
 */
guint
headway_cli_sse_parser_get_retry_ms (HeadwayCliSseParser *self)
{
  return self->retry_ms;
}

/**
 * headway_cli_sse_parser_get_n_comments:
 * @self: a parser
 *
 * Returns: how many comments came, which is how heartbeats look
 */
guint64
headway_cli_sse_parser_get_n_comments (HeadwayCliSseParser *self)
{
  return self->n_comments;
}
