/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-envelope.h"

#include "engine/headway-digits.h"

#include <string.h>

static char *
put (char *to, const char *text, gsize length)
{
  memcpy (to, text, length);
  return to + length;
}

#define PUT_LITERAL(to, literal) put ((to), (literal), sizeof (literal) - 1)

static char *
put_number (char *to, gint64 number)
{
  char digits[HEADWAY_DIGITS_MAX];
  char *end = digits + sizeof digits;
  char *at = headway_digits_write_before (end, number < 0 ? -(guint64) number : (guint64) number);

  if (number < 0)
    *to++ = '-';
  return put (to, at, (gsize) (end - at));
}

/* Topics hold no control characters, so that quotes and backslashes are all there is to escape. */
static char *
put_escaped (char *to, const char *text)
{
  for (const char *at = text; *at != '\0'; at++)
    {
      if (*at == '"' || *at == '\\')
        *to++ = '\\';
      *to++ = *at;
    }
  return to;
}

gsize
headway_envelope_size_max (const HeadwayPublication *publication)
{
  gsize topic = publication->topic != NULL ? 2 * strlen (publication->topic) : 0;
  gsize client = publication->client != NULL ? strlen (publication->client) : 0;

  return 192 + strlen (publication->type) + topic + client +
         strlen (headway_principal_get_name (publication->principal)) +
         publication->data_length + publication->meta_length;
}

/* The last member `serverTimestamp` of @meta, as readers of duplicate names see it. */
static gboolean
find_timestamp (const HeadwayJson *meta, HeadwayJson *timestamp)
{
  HeadwayJsonIter iter;
  HeadwayJson name, value;
  gboolean is_found = FALSE;

  headway_json_iter_init (&iter, meta);
  while (headway_json_iter_next (&iter, &name, &value))
    if (headway_json_string_equals (&name, "serverTimestamp"))
      {
        *timestamp = value;
        is_found = TRUE;
      }
  return is_found;
}

static char *
put_line (char *to, const char *text, gsize length)
{
  headway_json_copy_line (to, text, length);
  return to + length;
}

/* `_meta`: the publisher's members as they are, and a finite serverTimestamp in any case. */
static char *
put_meta (char *to, const HeadwayPublication *publication, gint64 timestamp_us)
{
  HeadwayJson meta = { publication->meta, publication->meta_length, HEADWAY_JSON_OBJECT };
  HeadwayJson timestamp, name;
  HeadwayJsonIter iter;
  gboolean is_empty;
  const char *end;

  if (publication->meta == NULL)
    {
      to = PUT_LITERAL (to, "{\"serverTimestamp\":");
      to = put_number (to, timestamp_us / 1000);
      return PUT_LITERAL (to, "}");
    }

  end = meta.text + meta.length;
  if (!find_timestamp (&meta, &timestamp))
    {
      headway_json_iter_init (&iter, &meta);
      is_empty = !headway_json_iter_next (&iter, &name, &timestamp);
      to = put_line (to, meta.text, meta.length - 1);
      to = is_empty ? PUT_LITERAL (to, "\"serverTimestamp\":") : PUT_LITERAL (to, ",\"serverTimestamp\":");
      to = put_number (to, timestamp_us / 1000);
      return PUT_LITERAL (to, "}");
    }
  if (headway_json_is_finite (&timestamp))
    return put_line (to, meta.text, meta.length);

  to = put_line (to, meta.text, timestamp.text - meta.text);
  to = put_number (to, timestamp_us / 1000);
  return put_line (to, timestamp.text + timestamp.length, end - timestamp.text - timestamp.length);
}

void
headway_envelope_write (char *to,
                        const HeadwayPublication *publication,
                        gboolean is_synthetic,
                        gint64 timestamp_us,
                        HeadwayEnvelopeLayout *layout)
{
  const char *principal = headway_principal_get_name (publication->principal);
  char *at = to;

  at = is_synthetic ? PUT_LITERAL (at, "{\"v\":1,\"type\":\"") : PUT_LITERAL (at, ",\"v\":1,\"type\":\"");
  at = put (at, publication->type, strlen (publication->type));
  at = PUT_LITERAL (at, "\",\"data\":");
  layout->data_offset = at - to;
  layout->data_length = publication->data_length;
  at = put_line (at, publication->data, publication->data_length);
  if (publication->topic != NULL && strcmp (publication->topic, publication->type) != 0)
    {
      at = PUT_LITERAL (at, ",\"topic\":\"");
      at = put_escaped (at, publication->topic);
      *at++ = '"';
    }
  if (*principal != '\0')
    {
      at = PUT_LITERAL (at, ",\"principal\":\"");
      at = put (at, principal, strlen (principal));
      *at++ = '"';
    }
  if (publication->client != NULL)
    {
      at = PUT_LITERAL (at, ",\"originatorClientId\":\"");
      at = put (at, publication->client, strlen (publication->client));
      *at++ = '"';
    }
  at = PUT_LITERAL (at, ",\"_meta\":");
  layout->meta_offset = at - to;
  at = put_meta (at, publication, timestamp_us);
  layout->meta_length = at - to - layout->meta_offset;
  *at++ = '}';
  layout->length = at - to;
}

gsize
headway_envelope_head_length (guint64 id)
{
  gsize length = strlen ("{\"id\":") + 1;

  /* Two digits a step, as they are written. */
  for (; id >= 100; id /= 100)
    length += 2;
  return id >= 10 ? length + 1 : length;
}

gsize
headway_envelope_write_head (char *end, guint64 id)
{
  char *at = headway_digits_write_before (end, id);

  at -= strlen ("{\"id\":");
  memcpy (at, "{\"id\":", strlen ("{\"id\":"));
  return end - at;
}
