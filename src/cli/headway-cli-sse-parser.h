/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* The most bytes of one unfinished frame, as other clients have it. */
#define HEADWAY_CLI_SSE_FRAME_MAX (16 * 1024 * 1024)

/* One event of the stream. All belongs to the parser and holds during the call. */
typedef struct
{
  const char *event; /* "message" where none was named */
  const char *data;  /* NUL-terminated, may hold NULs itself */
  gsize length;      /* bytes of data */
  const char *id;    /* nullable: this frame has none */
} HeadwayCliSseFrame;

typedef void (*HeadwayCliSseFunc) (const HeadwayCliSseFrame *frame,
                                   gpointer user_data);

typedef struct _HeadwayCliSseParser HeadwayCliSseParser;

HeadwayCliSseParser *headway_cli_sse_parser_new (HeadwayCliSseFunc func,
                                                 gpointer user_data);
void headway_cli_sse_parser_free (HeadwayCliSseParser *self);
gboolean headway_cli_sse_parser_feed (HeadwayCliSseParser *self,
                                      const char *bytes,
                                      gsize length,
                                      GError **error);
guint headway_cli_sse_parser_get_retry_ms (HeadwayCliSseParser *self);
guint64 headway_cli_sse_parser_get_n_comments (HeadwayCliSseParser *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayCliSseParser, headway_cli_sse_parser_free)

G_END_DECLS
