/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "wire/headway-sse-frame.h"

#include "engine/headway-error.h"

#include <string.h>

#define EPOCH_MAX 64

/* Room for the size of a chunk in hexadecimal digits and CR LF. */
#define CHUNK_HEAD_MAX 20
#define CHUNK_TAIL     "\r\n"

/* Room for an `id:` line, an `event:` line, and the beginning of an envelope with two ids. */
#define HEAD_MAX (HEADWAY_TYPE_MAX + 128)

/* A frame whose inner bytes the caller fills in at bytes + body_offset. The head of the chunk is
 * written first, so that nothing is moved afterwards. */
static HeadwaySseFrame *
frame_alloc (gsize body_length)
{
  char head[CHUNK_HEAD_MAX];
  gsize head_length = (gsize) g_snprintf (head, sizeof head, "%" G_GSIZE_MODIFIER "x\r\n", body_length);
  gsize length = head_length + body_length + strlen (CHUNK_TAIL);
  HeadwaySseFrame *self = g_malloc (sizeof *self + length);

  self->ref = 1;
  self->is_last = FALSE;
  self->length = length;
  self->body_offset = head_length;
  self->body_length = body_length;
  self->line_offset = 0;
  self->rest = NULL;
  self->rest_offset = 0;
  memcpy (self->bytes, head, head_length);
  memcpy (self->bytes + head_length + body_length, CHUNK_TAIL, strlen (CHUNK_TAIL));
  return self;
}

static char *
write_bytes (char *to, const char *bytes, gsize length)
{
  memcpy (to, bytes, length);
  return to + length;
}

HeadwaySseFrame *
headway_sse_frame_new (const HeadwayEvent *event, guint64 resume_id)
{
  char id[40] = "";
  gsize id_length = 0;
  const char *type = headway_event_get_type (event);
  gsize type_length = strlen (type);
  gsize envelope_length = headway_event_get_size (event);
  HeadwaySseFrame *self;
  char *to;

  if (resume_id > 0)
    id_length = (gsize) g_snprintf (id, sizeof id, "id: %" G_GUINT64_FORMAT "\n", resume_id);

  self = frame_alloc (id_length + strlen ("event: \ndata: \n\n") + type_length + envelope_length);
  self->is_last = headway_event_passes_filters (event) && !headway_event_is_synthetic (event);
  to = write_bytes (self->bytes + self->body_offset, id, id_length);
  to = write_bytes (to, "event: ", 7);
  to = write_bytes (to, type, type_length);
  to = write_bytes (to, "\ndata: ", 7);
  self->line_offset = (gsize) (to - self->bytes);
  headway_event_write_envelope (event, to);
  /* An id is the first member, and its comma the first one. */
  if (headway_event_get_id (event) > 0)
    self->rest_offset = self->line_offset + (gsize) ((const char *) memchr (to, ',', envelope_length) - to);
  to += envelope_length;
  write_bytes (to, "\n\n", 2);
  return self;
}

HeadwaySseFrame *
headway_sse_frame_new_headed (HeadwaySseFrame *shared, const HeadwayEvent *event, guint64 resume_id)
{
  g_autoptr (GString) head = g_string_sized_new (HEAD_MAX);
  gsize rest_length = shared->length - shared->rest_offset - strlen (CHUNK_TAIL);
  HeadwaySseFrame *self;
  gsize line_offset;
  gsize offset;

  if (resume_id > 0)
    g_string_append_printf (head, "id: %" G_GUINT64_FORMAT "\n", resume_id);
  g_string_append_printf (head, "event: %s\ndata: ", headway_event_get_type (event));
  line_offset = head->len;
  g_string_append_c (head, '{');
  if (resume_id > 0)
    g_string_append_printf (head, "\"id\":%" G_GUINT64_FORMAT ",", resume_id);
  g_string_append_printf (head, "\"seq\":%" G_GUINT64_FORMAT, headway_event_get_id (event));

  self = g_malloc (sizeof *self + CHUNK_HEAD_MAX + head->len);
  offset = (gsize) g_snprintf (self->bytes, CHUNK_HEAD_MAX, "%" G_GSIZE_MODIFIER "x\r\n", head->len + rest_length);
  memcpy (self->bytes + offset, head->str, head->len);
  self->ref = 1;
  self->is_last = shared->is_last;
  self->body_offset = offset;
  self->body_length = head->len + rest_length;
  self->line_offset = offset + line_offset;
  self->length = offset + self->body_length + strlen (CHUNK_TAIL);
  self->rest = headway_sse_frame_ref (shared);
  self->rest_offset = shared->rest_offset;
  return self;
}

HeadwaySseFrame *
headway_sse_frame_new_text (const char *text, gsize length)
{
  HeadwaySseFrame *self = frame_alloc (length);

  memcpy (self->bytes + self->body_offset, text, length);
  return self;
}

HeadwaySseFrame *
headway_sse_frame_new_raw (const char *bytes, gsize length)
{
  HeadwaySseFrame *self = g_malloc (sizeof *self + length);

  *self = (HeadwaySseFrame){ .ref = 1, .length = length, .body_length = length };
  memcpy (self->bytes, bytes, length);
  return self;
}

void
headway_sse_frame_free (HeadwaySseFrame *self)
{
  g_clear_pointer (&self->rest, headway_sse_frame_unref);
  g_free (self);
}

/* Reads digits and nothing else. FALSE if there are none, others, or more than @maximum. */
static gboolean
parse_digits (const char *text, gsize length, guint64 maximum, guint64 *value)
{
  *value = 0;
  if (length == 0)
    return FALSE;

  for (gsize i = 0; i < length; i++)
    {
      guint digit = (guint) (text[i] - '0');

      if (!g_ascii_isdigit (text[i]) || *value > (maximum - digit) / 10)
        return FALSE;
      *value = *value * 10 + digit;
    }
  return TRUE;
}

static gboolean
is_blank (char byte)
{
  return byte == ' ' || byte == '\t';
}

gboolean
headway_sse_parse_last_event_id (const char *text, guint64 *id)
{
  gsize length;

  *id = 0;
  if (text == NULL)
    return FALSE;

  while (is_blank (*text))
    text++;
  length = strlen (text);
  while (length > 0 && is_blank (text[length - 1]))
    length--;

  return parse_digits (text, length, HEADWAY_ID_MAX, id);
}

gboolean
headway_sse_is_epoch (const char *text)
{
  gsize length = text != NULL ? strlen (text) : 0;

  if (length < 1 || length > EPOCH_MAX)
    return FALSE;

  for (gsize i = 0; i < length; i++)
    {
      if (!g_ascii_isalnum (text[i]) && text[i] != '_' && text[i] != '-')
        return FALSE;
    }
  return TRUE;
}

gboolean
headway_sse_parse_max_queued (const char *text, guint *max_queued, GError **error)
{
  gsize length = text != NULL ? strlen (text) : 0;
  guint64 value = 0;
  gboolean is_decimal = length > 0 && strspn (text, "0123456789") == length;

  if (!is_decimal)
    {
      g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION,
                   "maxQueued is not a decimal number, %d to %d is allowed",
                   HEADWAY_SSE_MAX_QUEUED_LEAST, HEADWAY_SSE_MAX_QUEUED_MOST);
      return FALSE;
    }
  if (!parse_digits (text, length, HEADWAY_SSE_MAX_QUEUED_MOST, &value) || value < HEADWAY_SSE_MAX_QUEUED_LEAST)
    {
      g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION,
                   "maxQueued %.32s is out of range, %d to %d is allowed",
                   text, HEADWAY_SSE_MAX_QUEUED_LEAST, HEADWAY_SSE_MAX_QUEUED_MOST);
      return FALSE;
    }
  *max_queued = (guint) value;
  return TRUE;
}
