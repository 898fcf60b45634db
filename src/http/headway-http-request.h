/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "access/headway-caller.h"
#include "engine/headway-bus-table.h"
#include "http/headway-http-connection.h"
#include "http/headway-http-error.h"
#include "http/headway-http-query.h"
#include "http/headway-http-server.h"

G_BEGIN_DECLS

typedef struct _HeadwayHttpRequest HeadwayHttpRequest;

/**
 * HeadwayHttpRequestClass:
 * @chunk: (nullable): a piece of the body
 * @body: (nullable): the body is complete
 * @stop: (nullable): the server stops; without it a request whose body is not complete is refused
 *
 * What a route does with a body. Not called any more once the request is answered or its client gone.
 */
typedef struct
{
  void (*chunk) (HeadwayHttpRequest *request, const char *bytes, gsize length);
  void (*body) (HeadwayHttpRequest *request);
  void (*stop) (HeadwayHttpRequest *request);
} HeadwayHttpRequestClass;

/**
 * HeadwayHttpRequest:
 *
 * One request, from its header block to its answer, which it gets exactly once. It is owned by
 * libsoup's message; whoever waits for something takes a reference, and may answer a request whose
 * client is gone: nothing happens then.
 */
struct _HeadwayHttpRequest
{
  guint ref;
  HeadwayHttpServer *server;         /* owned */
  HeadwayHttpConnection *connection; /* owned */
  SoupServerMessage *message;        /* borrowed, NULL once the client is gone or the answer is out */
  HeadwayCaller caller;
  const char *method;                   /* interned by libsoup */
  char **segments;                      /* owned: the path, still escaped, without empty last segment */
  GString *bus_name;                    /* owned, nullable: decoded; may hold U+0000 */
  HeadwayHttpQuery *query;              /* owned */
  const HeadwayHttpRequestClass *klass; /* nullable */
  gpointer data;                        /* owned by the route, nullable */
  GDestroyNotify free_data;             /* nullable */
  GByteArray *body;                     /* owned, nullable: what headway_http_request_collect() has */
  gsize body_max;
  gboolean has_body; /* there is one to read */
  gboolean is_whole; /* libsoup collects it: it is small */
  gboolean is_body_complete;
  gboolean is_answered;
  gboolean is_paused;
  gboolean is_watched; /* we are told when its client leaves */
};

/* (transfer full); attached to @message, which keeps it. */
HeadwayHttpRequest *headway_http_request_new (HeadwayHttpServer *server,
                                              HeadwayHttpConnection *connection,
                                              SoupServerMessage *message);
/* (transfer none) (nullable): that of headway_http_request_new(). */
HeadwayHttpRequest *headway_http_request_from_message (SoupServerMessage *message);

HeadwayHttpRequest *headway_http_request_ref (HeadwayHttpRequest *self);
void headway_http_request_unref (gpointer self);

/* TRUE while somebody waits for the answer. */
gboolean headway_http_request_is_open (const HeadwayHttpRequest *self);

/* Collects the body in @self->body and calls the class's `body` once it is there; 413 over @max bytes,
 * from Content-Length where there is one. FALSE: refused already. */
gboolean headway_http_request_collect (HeadwayHttpRequest *self, gsize max);
/* @class's functions get the body as it comes. */
void headway_http_request_read (HeadwayHttpRequest *self, const HeadwayHttpRequestClass *klass);
/* The body is complete; for the server. Pauses libsoup while the answer is not there. */
void headway_http_request_body_done (HeadwayHttpRequest *self);
/* The server stops: the rest of a body is not waited for. */
void headway_http_request_stop (HeadwayHttpRequest *self);

/* 415 unless Content-Type is @type; its parameters do not matter. */
gboolean headway_http_request_is_type (const HeadwayHttpRequest *self, const char *type);
/* The value of a request header, repeated ones joined by commas. (nullable) (transfer none) */
const char *headway_http_request_get_header (const HeadwayHttpRequest *self, const char *name);
/* Adds a header to the answer. */
void headway_http_request_set_header (HeadwayHttpRequest *self, const char *name, const char *value);

/* --- Answers: the first one counts ---------------------------------------------------------- */

/* @json: (transfer full) (nullable): NULL for an empty body. */
void headway_http_request_answer (HeadwayHttpRequest *self, guint status, GString *json);
/* The same with a body of @content_type, a literal, instead of JSON. */
void headway_http_request_answer_as (HeadwayHttpRequest *self, guint status, const char *content_type, GString *body);
void headway_http_request_answer_error (HeadwayHttpRequest *self, const GError *error);
/* @code: (nullable). */
void headway_http_request_answer_text (HeadwayHttpRequest *self,
                                       guint status,
                                       const char *code,
                                       const char *format,
                                       ...) G_GNUC_PRINTF (4, 5);
/* 404 with the name of the bus. */
void headway_http_request_answer_no_bus (HeadwayHttpRequest *self);
/* 405 with `Allow`. */
void headway_http_request_answer_method (HeadwayHttpRequest *self, const char *allow);

/* Takes the socket for a stream: the request is answered by whoever has it. -1 if it is gone. The
 * caller passes headway_http_connection_released() and @connection, (out) (transfer full), on. */
int headway_http_request_steal (HeadwayHttpRequest *self, HeadwayHttpConnection **connection);

/* The bus that is named, or NULL: answered with 404. (transfer none) */
HeadwayBus *headway_http_request_lookup (HeadwayHttpRequest *self);

/* The HTTP date of now. (transfer full) */
char *headway_http_date (void);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayHttpRequest, headway_http_request_unref)

G_END_DECLS
