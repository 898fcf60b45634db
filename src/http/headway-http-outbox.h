/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Small answers wait here until there is no further request at hand. */
#define HEADWAY_HTTP_OUTBOX_BYTES (8 * 1024)

/* So many leave at once, if the socket takes them: a client with a window then has answers to go on with
 * while the rest of its requests is still being worked off. */
#define HEADWAY_HTTP_OUTBOX_FLUSH_BYTES 1024

/**
 * HeadwayHttpOutbox:
 *
 * Answers on their way to a socket. libsoup writes header block and body of each answer by
 * themselves; with what is kept back here, the answers to a run of pipelined requests leave in few
 * pieces. All zero is empty.
 */
typedef struct
{
  GByteArray *bytes; /* owned, nullable */
} HeadwayHttpOutbox;

/* Takes up to @count bytes. Returns: how many, or -1 with errno, EAGAIN among them. */
gssize headway_http_outbox_put (HeadwayHttpOutbox *self, int fd, const void *bytes, gsize count);

/* Writes what waits, as far as @fd takes it. FALSE with errno: something is left. */
gboolean headway_http_outbox_flush (HeadwayHttpOutbox *self, int fd);

/* What is left. (transfer full) (nullable) */
GByteArray *headway_http_outbox_steal (HeadwayHttpOutbox *self);
void headway_http_outbox_clear (HeadwayHttpOutbox *self);

G_END_DECLS
