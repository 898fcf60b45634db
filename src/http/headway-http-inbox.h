/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "http/headway-http-chunks.h"

G_BEGIN_DECLS

/* The largest header block that is served (sse-contract.md 1.2). */
#define HEADWAY_HTTP_HEADER_MAX (16 * 1024)

/**
 * HeadwayHttpInbox:
 * @block_bytes: the whole header block that starts @bytes; what libsoup has of it already is gone
 * @is_ended: the peer sends nothing more, or has gone
 *
 * What has come in from a socket and has not been handed on yet. It knows where a header block ends
 * and where a body does, so that nothing is handed on together with what follows it. All zero is
 * empty.
 */
typedef struct
{
  GByteArray *bytes; /* owned, nullable */
  gsize block_bytes;
  HeadwayHttpChunks chunks;
  gboolean is_chunked; /* the body of the present request */
  gboolean is_short;   /* what is there of it is not enough to go on */
  gboolean is_ended;
} HeadwayHttpInbox;

void headway_http_inbox_clear (HeadwayHttpInbox *self);

/* Whether a whole header block is there already. */
gboolean headway_http_inbox_has_block (HeadwayHttpInbox *self);
/* Whether the body can go on without reading. */
gboolean headway_http_inbox_has_body (const HeadwayHttpInbox *self);
/* Whether a request has begun to come in. */
gboolean headway_http_inbox_has_begun (const HeadwayHttpInbox *self);

/* Reads from @fd until a whole header block is there or nothing more comes. Returns: 0, or the status
 * to refuse it with: 431 or that of headway_http_check_block(). */
guint headway_http_inbox_read_block (HeadwayHttpInbox *self, int fd);

/* Starts the body behind a block. */
void headway_http_inbox_begin_body (HeadwayHttpInbox *self, gboolean is_chunked);

/* Reads until something of the body is there or nothing more comes. @n: (out): how much may be taken.
 * Returns: 0, or 400 if it is no body. */
guint headway_http_inbox_read_body (HeadwayHttpInbox *self, int fd, gsize count, gsize *n);

/* Moves @n bytes, that are there, to @to. */
void headway_http_inbox_take (HeadwayHttpInbox *self, void *to, gsize n);

G_END_DECLS
