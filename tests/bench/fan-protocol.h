/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* How the generator speaks with a server. The first three are HTTP; readers get an SSE stream. */
typedef enum
{
  FAN_PLAIN_POST,  /* the body is the payload */
  FAN_EVENT_POST,  /* the body is an event of docs/http-api.md */
  FAN_EVENT_LINES, /* one request, an event a line, a chunk for all that are written in one go */
  FAN_REDIS,
  FAN_NATS,
  FAN_N_PROTOCOLS
} FanProtocol;

typedef struct
{
  FanProtocol protocol;
  const char *publish_path;
  const char *subscribe_path;
  const char *header; /* whole lines with CRLF, for both requests */
  guint port;
  guint payload_bytes;
  guint n_principals; /* 0: none is named */
} FanDialect;

/* "plain-post", "event-post", "event-lines", "redis" or "nats". */
gboolean fan_protocol_from_text (const char *text, FanProtocol *protocol);

/* What a reader sends when it has connected, and a publisher. Both may be empty. */
void fan_append_subscribe (const FanDialect *self, GString *out);
void fan_append_hello (const FanDialect *self, GString *out);

/* Events that are sent in one go stand between these two. */
gsize fan_begin_portion (const FanDialect *self, GString *out);
void fan_end_portion (const FanDialect *self, GString *out, gsize mark);
/* Payloads start `@#<sequence> <now_ns> `, which a reader finds again. */
void fan_append_event (const FanDialect *self, GString *out, guint64 sequence, gint64 now_ns);
/* No more events come. */
void fan_append_goodbye (const FanDialect *self, GString *out);

/* The sequence in a line that a reader got, behind which stands the time. FALSE: it carries none. */
gboolean fan_parse_line (const FanDialect *self, const char *line, gsize length, guint64 *sequence, gint64 *sent_ns);

G_END_DECLS
