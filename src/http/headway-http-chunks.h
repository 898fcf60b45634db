/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef enum
{
  HEADWAY_HTTP_CHUNKS_SIZE,    /* the line with the size of a chunk comes next */
  HEADWAY_HTTP_CHUNKS_DATA,    /* its bytes */
  HEADWAY_HTTP_CHUNKS_END,     /* the line end behind them */
  HEADWAY_HTTP_CHUNKS_TRAILER, /* header lines behind the last chunk, up to an empty one */
  HEADWAY_HTTP_CHUNKS_DONE,
} HeadwayHttpChunksState;

/**
 * HeadwayHttpChunks:
 *
 * Where a chunked body stands (RFC 9112, section 7.1). libsoup 3.2.3 takes anything for a size, takes
 * one trailer line for all of them, and reads on into what follows the body. All zero is the start.
 */
typedef struct
{
  HeadwayHttpChunksState state;
  guint64 left; /* bytes of the present chunk that are still to come */
  gsize trailer_bytes;
} HeadwayHttpChunks;

/**
 * headway_http_chunks_next:
 * @input: what has come in; trailers are removed from it
 * @count: the most that is wanted, at least HEADWAY_HTTP_CHUNKS_LINE_MAX
 *
 * Returns: how many bytes at the start of @input belong to the body and may be handed on together, 0
 *   if more input is needed or the body is complete, -1 if this is no chunked body.
 */
gssize headway_http_chunks_next (HeadwayHttpChunks *self, GByteArray *input, gsize count);

/* The longest line with a size, extensions included. */
#define HEADWAY_HTTP_CHUNKS_LINE_MAX 100

G_END_DECLS
