/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <libsoup/soup.h>

G_BEGIN_DECLS

#define HEADWAY_TYPE_HTTP_CONNECTION (headway_http_connection_get_type ())
G_DECLARE_FINAL_TYPE (HeadwayHttpConnection, headway_http_connection, HEADWAY, HTTP_CONNECTION, GObject)

/* Where a connection came in. */
typedef struct
{
  gboolean is_unix;
  gboolean is_loopback; /* TCP: bound to a loopback address */
  guint16 port;         /* TCP */
} HeadwayHttpPlace;

/**
 * HeadwayHttpConnection:
 *
 * One accepted socket. libsoup reads and writes it through the two streams of
 * headway_http_connection_get_stream(), which is what makes it obey (traps S2, S3, S5 and S9 of
 * models-and-style.md):
 *
 * - Reading is metered: a portion per turn of the main loop, nothing while it is held. A header block
 *   is given when all of it is there, never with bytes of what follows it.
 * - libsoup 3.2.3 never lets go of a connection whose peer leaves between two requests. Then the
 *   input first gives it the byte of a request that begins and after that an error, which it
 *   answers by dropping the connection.
 * - What libsoup cannot parse it would answer itself, without a body and without any check.
 *
 * Signals: `closed ()`, once, when the socket is closed; `refused ()`, from the main loop, when a header
 * block is malformed or too large: the handler has to answer and to take the socket.
 *
 * @fd: (transfer full): non-blocking
 * @uid: of the peer; G_MAXUINT32 over TCP
 */
HeadwayHttpConnection *headway_http_connection_new (int fd, const HeadwayHttpPlace *place, guint32 uid);

/* (transfer none): the connection whose stream it is, by the address that accept_iostream() got. */
HeadwayHttpConnection *headway_http_connection_from_address (GSocketAddress *address);
/* A new address for accept_iostream() that leads back to @self, and keeps it alive. */
GSocketAddress *headway_http_connection_new_address (HeadwayHttpConnection *self);
/* A new stream for libsoup, which keeps @self alive. */
GIOStream *headway_http_connection_new_stream (HeadwayHttpConnection *self);

const HeadwayHttpPlace *headway_http_connection_get_place (HeadwayHttpConnection *self);
guint32 headway_http_connection_get_uid (HeadwayHttpConnection *self);

/* What the connection is busy with; says which timer runs (decisions.md 19). */
typedef enum
{
  HEADWAY_HTTP_PHASE_HEADERS,  /* a request is to come whole within 15 s */
  HEADWAY_HTTP_PHASE_BODY,     /* the body or the answer flows: 30 s without any progress */
  HEADWAY_HTTP_PHASE_STREAM,   /* a body that comes as its lines are made: no timer */
  HEADWAY_HTTP_PHASE_HANDLING, /* the answer is being made: no timer */
  HEADWAY_HTTP_PHASE_IDLE,     /* between requests: 30 s */
} HeadwayHttpPhase;

void headway_http_connection_set_phase (HeadwayHttpConnection *self, HeadwayHttpPhase phase);
HeadwayHttpPhase headway_http_connection_get_phase (HeadwayHttpConnection *self);
/* The header block has been read; begins the phase of the body. */
void headway_http_connection_begin_body (HeadwayHttpConnection *self, gboolean is_chunked);
/* TRUE once the timer of the phase has run out at @now_us, or the peer has gone while it is held. */
gboolean headway_http_connection_is_late (HeadwayHttpConnection *self, gint64 now_us);
/* The status for a header block that libsoup does not get to see: too large, or not to be trusted;
 * 0: none. */
guint headway_http_connection_get_refusal (HeadwayHttpConnection *self);

/* While it is held, nothing more is read: back-pressure on a body. */
void headway_http_connection_hold (HeadwayHttpConnection *self);
void headway_http_connection_release (HeadwayHttpConnection *self);

/* Makes libsoup drop it: at once, but not from within this call. */
void headway_http_connection_end (HeadwayHttpConnection *self);
/* The same, but what is answered already goes out. */
void headway_http_connection_finish (HeadwayHttpConnection *self);

/* The request that is coming in or being answered; held weakly. */
void headway_http_connection_set_message (HeadwayHttpConnection *self, SoupServerMessage *message);
SoupServerMessage *headway_http_connection_get_message (HeadwayHttpConnection *self);

/* Takes the socket out; from now on the streams are dead. -1 if it is closed. Whoever has it calls
 * headway_http_connection_released() with a reference to @self once it is closed. */
int headway_http_connection_steal_fd (HeadwayHttpConnection *self);
/* The same while libsoup still reads from it; it will drop the connection then. */
int headway_http_connection_take_fd (HeadwayHttpConnection *self);
void headway_http_connection_released (gpointer connection);

/* --- For its streams ------------------------------------------------------------------------ */

gssize headway_http_connection_read (HeadwayHttpConnection *self, void *buffer, gsize count, GError **error);
gssize headway_http_connection_write (HeadwayHttpConnection *self, const void *buffer, gsize count, GError **error);
/* Sources of their pollable @stream that are ready when a read or a write is worth trying. (transfer full) */
GSource *headway_http_connection_create_read_source (HeadwayHttpConnection *self, GPollableInputStream *stream, GCancellable *cancellable);
GSource *headway_http_connection_create_write_source (HeadwayHttpConnection *self, GPollableOutputStream *stream, GCancellable *cancellable);
void headway_http_connection_close (HeadwayHttpConnection *self);

G_END_DECLS
