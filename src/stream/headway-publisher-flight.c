/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "stream/headway-publisher-flight.h"

#include "engine/headway-digits.h"
#include "wire/headway-error-json.h"

#include <string.h>

HeadwayPublisherFlight *
headway_publisher_flight_new (HeadwayPublisherStream *stream)
{
  HeadwayPublisherFlight *self = g_new0 (HeadwayPublisherFlight, 1);

  self->stream = stream;
  self->link.data = self;
  return self;
}

void
headway_publisher_flight_free (HeadwayPublisherFlight *self)
{
  for (guint i = 0; i < self->n_lines; i++)
    g_clear_error (&self->lines[i].error);
  g_free (self);
}

HeadwayPublisherLine *
headway_publisher_flight_add (HeadwayPublisherFlight *self, guint64 number, GError *error)
{
  HeadwayPublisherLine *line = &self->lines[self->n_lines++];

  *line = (HeadwayPublisherLine){ self, number, 0, error };
  return line;
}

gboolean
headway_publisher_flight_is_full (const HeadwayPublisherFlight *self)
{
  return self->n_lines == G_N_ELEMENTS (self->lines);
}

void
headway_publisher_flight_set_ids (HeadwayPublisherFlight *self, guint64 first_id)
{
  for (guint i = 0; i < self->n_lines; i++)
    {
      if (self->lines[i].error == NULL)
        self->lines[i].id = first_id++;
    }
}

void
headway_publisher_flight_refuse (HeadwayPublisherFlight *self, const GError *error)
{
  for (guint i = 0; i < self->n_lines; i++)
    {
      if (self->lines[i].error == NULL)
        self->lines[i].error = g_error_copy (error);
    }
}

static void
append_id (GString *answers, guint64 id)
{
  static const char head[] = "{\"id\":";
  char text[sizeof head + HEADWAY_DIGITS_MAX + 2];
  char *end = text + sizeof text;
  char *at = headway_digits_write_before (end - 2, id) - strlen (head);

  memcpy (at, head, strlen (head));
  memcpy (end - 2, "}\n", 2);
  g_string_append_len (answers, at, end - at);
}

void
headway_publisher_line_append_answer (const HeadwayPublisherLine *self, GString *answers)
{
  g_autoptr (GString) json = NULL;

  if (self->error == NULL)
    {
      append_id (answers, self->id);
      return;
    }
  json = headway_error_json_begin (self->error, headway_error_json_get_code (self->error));
  g_string_append_len (answers, json->str, (gssize) json->len);
  g_string_append_printf (answers, ",\"line\":%" G_GUINT64_FORMAT "}\n", self->number);
}
