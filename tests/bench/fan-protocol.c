/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "fan-protocol.h"

#include <stdio.h>
#include <string.h>

/* Placeholder for the size of a chunk: as many hexadecimal digits as it has zeros. */
static const char chunk_head[] = "00000000\r\n";

gboolean
fan_protocol_from_text (const char *text, FanProtocol *protocol)
{
  static const char *const names[FAN_N_PROTOCOLS] = { "plain-post", "event-post", "event-lines", "redis", "nats" };

  for (guint i = 0; i < FAN_N_PROTOCOLS; i++)
    {
      if (g_strcmp0 (text, names[i]) == 0)
        {
          *protocol = (FanProtocol) i;
          return TRUE;
        }
    }
  return FALSE;
}

void
fan_append_subscribe (const FanDialect *self, GString *out)
{
  switch (self->protocol)
    {
    case FAN_REDIS:
      g_string_append (out, "*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nt\r\n");
      break;
    case FAN_NATS:
      g_string_append (out, "CONNECT {\"verbose\":false,\"pedantic\":false}\r\nSUB t 1\r\nPING\r\n");
      break;
    case FAN_PLAIN_POST:
    case FAN_EVENT_POST:
    case FAN_EVENT_LINES:
    case FAN_N_PROTOCOLS:
    default:
      g_string_append_printf (out, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%sAccept: text/event-stream\r\n\r\n",
                              self->subscribe_path, self->port, self->header);
      break;
    }
}

void
fan_append_hello (const FanDialect *self, GString *out)
{
  if (self->protocol == FAN_NATS)
    g_string_append (out, "CONNECT {\"verbose\":false,\"pedantic\":false,\"echo\":false}\r\nPING\r\n");
  if (self->protocol == FAN_EVENT_LINES)
    g_string_append_printf (out,
                            "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%sContent-Type: application/x-ndjson\r\n"
                            "Transfer-Encoding: chunked\r\n\r\n",
                            self->publish_path, self->port, self->header);
}

gsize
fan_begin_portion (const FanDialect *self, GString *out)
{
  gsize mark = out->len;

  if (self->protocol == FAN_EVENT_LINES)
    g_string_append (out, chunk_head);
  return mark;
}

void
fan_end_portion (const FanDialect *self, GString *out, gsize mark)
{
  gsize size = out->len - mark - strlen (chunk_head);
  char digits[sizeof chunk_head];

  if (self->protocol != FAN_EVENT_LINES)
    return;
  g_snprintf (digits, sizeof digits, "%08" G_GSIZE_MODIFIER "x\r\n", size);
  memcpy (out->str + mark, digits, strlen (chunk_head));
  g_string_append (out, "\r\n");
}

static void
append_payload (const FanDialect *self, GString *out, guint64 sequence, gint64 now_ns)
{
  gsize begin = out->len;

  g_string_append_printf (out, "@#%" G_GUINT64_FORMAT " %" G_GINT64_FORMAT " ", sequence, now_ns);
  while (out->len < begin + self->payload_bytes)
    g_string_append_len (out, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", (gssize) MIN (32, begin + self->payload_bytes - out->len));
}

static gsize
digits_of (guint64 number)
{
  gsize n = 1;

  for (; number >= 10; number /= 10)
    n++;
  return n;
}

/* How long append_payload() makes it. */
static gsize
payload_length (const FanDialect *self, guint64 sequence, gint64 now_ns)
{
  return MAX (self->payload_bytes, 4 + digits_of (sequence) + digits_of ((guint64) now_ns));
}

static void
append_object (const FanDialect *self, GString *out, guint64 sequence, gint64 now_ns)
{
  g_string_append (out, "{\"type\":\"t\",");
  if (self->n_principals > 0)
    g_string_append_printf (out, "\"principal\":\"p%" G_GUINT64_FORMAT "\",", sequence % self->n_principals);
  g_string_append (out, "\"data\":\"");
  append_payload (self, out, sequence, now_ns);
  g_string_append (out, "\"}");
}

static void
append_post (const FanDialect *self, GString *out, const char *type, gsize length)
{
  g_string_append_printf (out, "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%sContent-Type: %s\r\nContent-Length: %" G_GSIZE_FORMAT "\r\n\r\n",
                          self->publish_path, self->port, self->header, type, length);
}

void
fan_append_event (const FanDialect *self, GString *out, guint64 sequence, gint64 now_ns)
{
  gsize length = payload_length (self, sequence, now_ns);

  switch (self->protocol)
    {
    case FAN_EVENT_POST:
      {
        g_autoptr (GString) object = g_string_sized_new (length + 128);

        append_object (self, object, sequence, now_ns);
        append_post (self, out, "application/json", object->len);
        g_string_append_len (out, object->str, (gssize) object->len);
        break;
      }
    case FAN_EVENT_LINES:
      append_object (self, out, sequence, now_ns);
      g_string_append_c (out, '\n');
      break;
    case FAN_REDIS:
      g_string_append_printf (out, "*3\r\n$7\r\nPUBLISH\r\n$1\r\nt\r\n$%" G_GSIZE_FORMAT "\r\n", length);
      append_payload (self, out, sequence, now_ns);
      g_string_append (out, "\r\n");
      break;
    case FAN_NATS:
      g_string_append_printf (out, "PUB t %" G_GSIZE_FORMAT "\r\n", length);
      append_payload (self, out, sequence, now_ns);
      g_string_append (out, "\r\n");
      break;
    case FAN_PLAIN_POST:
    case FAN_N_PROTOCOLS:
    default:
      append_post (self, out, "text/plain", length);
      append_payload (self, out, sequence, now_ns);
      break;
    }
}

void
fan_append_goodbye (const FanDialect *self, GString *out)
{
  if (self->protocol == FAN_EVENT_LINES)
    g_string_append (out, "0\r\n\r\n");
}

/* Numbers of our own making: no sign, no overflow. */
static const char *
parse_number (const char *at, const char *end, guint64 *number)
{
  *number = 0;
  for (; at < end && *at >= '0' && *at <= '9'; at++)
    *number = *number * 10 + (guint64) (*at - '0');
  return at;
}

gboolean
fan_parse_line (const FanDialect *self, const char *line, gsize length, guint64 *sequence, gint64 *sent_ns)
{
  const char *end = line + length;
  const char *at;
  guint64 time;

  if (length < 8 || (self->protocol <= FAN_EVENT_LINES && line[0] != 'd'))
    return FALSE;
  at = memchr (line, '@', length);
  if (at == NULL || at + 2 >= end || at[1] != '#')
    return FALSE;

  at = parse_number (at + 2, end, sequence);
  parse_number (at + 1, end, &time);
  *sent_ns = (gint64) time;
  return TRUE;
}
