/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-envelope.h"

#include <string.h>

static gboolean
is_named (HeadwayCliSlice name,
          const char *text)
{
  gsize length = strlen (text);

  return name.length == length + 2 && memcmp (name.text + 1, text, length) == 0;
}

static void
take_text (char **text,
           HeadwayCliSlice value)
{
  g_free (*text);
  *text = headway_cli_json_dup_string (value);
}

static gint64
read_timestamp_us (HeadwayCliSlice meta)
{
  g_autofree char *number = NULL;
  HeadwayCliSlice value;
  double milliseconds;

  if (!headway_cli_json_get_member (meta, "serverTimestamp", &value))
    return 0;
  number = g_strndup (value.text, value.length);
  milliseconds = g_ascii_strtod (number, NULL);
  return milliseconds > -1e14 && milliseconds < 1e14 ? (gint64) (milliseconds * 1000) : 0;
}

static void
take_member (HeadwayCliEnvelope *self,
             HeadwayCliSlice name,
             HeadwayCliSlice value,
             guint64 *seq)
{
  if (is_named (name, "id"))
    headway_cli_json_get_uint64 (value, &self->event.resume_id);
  else if (is_named (name, "seq"))
    headway_cli_json_get_uint64 (value, seq);
  else if (is_named (name, "topic"))
    take_text (&self->topic, value);
  else if (is_named (name, "type"))
    take_text (&self->type, value);
  else if (is_named (name, "principal"))
    take_text (&self->principal, value);
  else if (is_named (name, "_meta"))
    self->event.timestamp_us = read_timestamp_us (value);
  else if (is_named (name, "data"))
    {
      g_free (self->data);
      self->data = g_strndup (value.text, value.length);
    }
}

/**
 * headway_cli_envelope_init:
 * @self: an envelope, uninitialised
 * @json: text of an object, valid UTF-8; outlives @self
 *
 * Reads an envelope. Its `id` is where to go on behind the event; the event's own id is `seq`
 * where that is there (decisions.md 32). What is missing or is no text is empty.
 */
void
headway_cli_envelope_init (HeadwayCliEnvelope *self,
                           HeadwayCliSlice json)
{
  HeadwayCliJsonIter iter;
  HeadwayCliSlice name;
  HeadwayCliSlice value;
  guint64 seq = 0;

  *self = (HeadwayCliEnvelope){ .event.envelope = json };
  headway_cli_json_iter_init (&iter, json);
  while (headway_cli_json_iter_next (&iter, &name, &value))
    take_member (self, name, value, &seq);
  self->event.id = seq != 0 ? seq : self->event.resume_id;
  self->event.topic = self->topic != NULL ? self->topic : "";
  self->event.type = self->type != NULL ? self->type : "";
  self->event.principal = self->principal != NULL ? self->principal : "";
  self->event.data = self->data != NULL ? self->data : "";
}

/**
 * headway_cli_envelope_clear:
 * @self: an envelope
 *
 * Frees what it holds.
 */
void
headway_cli_envelope_clear (HeadwayCliEnvelope *self)
{
  g_clear_pointer (&self->topic, g_free);
  g_clear_pointer (&self->type, g_free);
  g_clear_pointer (&self->principal, g_free);
  g_clear_pointer (&self->data, g_free);
}
