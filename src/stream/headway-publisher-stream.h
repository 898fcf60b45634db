/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "access/headway-event-maker.h"
#include "engine/headway-bus-table.h"

G_BEGIN_DECLS

/* What one publisher may have under way: lines that were published and are not answered yet, and their
 * cost in bytes, which only a single event may exceed. */
#define HEADWAY_PUBLISHER_WINDOW       (4 * HEADWAY_DISPATCH_EVENTS)
#define HEADWAY_PUBLISHER_WINDOW_BYTES (1024 * 1024)
/* Bytes of answers that wait for the client to read them; beyond these nothing more is taken from it. */
#define HEADWAY_PUBLISHER_ANSWERS_MAX (64 * 1024)

typedef struct _HeadwayPublisherStream HeadwayPublisherStream;

/* The stream is over and its descriptor closed. */
typedef void (*HeadwayPublisherClosed) (HeadwayPublisherStream *stream, gpointer user_data);

/**
 * HeadwayPublisherOptions:
 * @caller: borrowed, outlives the stream until that has closed
 * @principal: (nullable): of lines that name none; referenced. NULL: the caller's own
 * @client: (nullable): `originatorClientId` of lines without one; copied
 * @origin: (nullable): stands for the client's connection, see headway_batch_set_origin()
 * @refuses: a line over the rates is refused; else its stream waits until they allow it
 * @stops: the first line that is refused is the last one that is taken
 */
typedef struct
{
  HeadwayBusTable *table;
  HeadwayBus *bus;
  const HeadwayCaller *caller;
  HeadwayPrincipal *principal;
  const char *client;
  gconstpointer origin;
  gboolean refuses;
  gboolean stops;
} HeadwayPublisherOptions;

/**
 * HeadwayPublisherStream:
 *
 * Our end of a stream socket on which lines of NDJSON are published, one event each, and answered by one
 * line each, in their order (dbus-api.md, OpenPublisher; http-api.md). A line that is refused is answered
 * with its error, and the next one is taken, or with @stops none, and the stream closes behind the last
 * answer; blank lines have a number but no answer.
 *
 * Back-pressure is that nothing is read: while the rates say wait, while HEADWAY_PUBLISHER_WINDOW is under
 * way, and while the client leaves too many answers unread. In a turn of the main loop it takes as many
 * lines as the window has, HEADWAY_DISPATCH_EVENTS of them in one batch.
 *
 * Once the bus is closed, the next line is answered with `closed`, and the stream ends; so it does with
 * `unavailable` when headwayd stops. It does not keep its bus alive. At the end of the input the last line
 * may lack its LF, and the stream closes behind the last answer. Reference-counted.
 */
HeadwayPublisherStream *headway_publisher_stream_new (int fd,
                                                      const HeadwayPublisherOptions *options,
                                                      HeadwayPublisherClosed closed,
                                                      gpointer user_data);
void headway_publisher_stream_unref (HeadwayPublisherStream *self);

/* Whoever opened it has left the message bus: what it had sent by now is published, as far as the rates
 * allow at once (decisions.md 13), then the stream closes. Answers are sent as far as they are read. */
void headway_publisher_stream_leave (HeadwayPublisherStream *self);
/* headwayd stops: reads nothing more, answers what was read, closes. */
void headway_publisher_stream_stop (HeadwayPublisherStream *self);
/* Closes at once, without @closed. */
void headway_publisher_stream_close (HeadwayPublisherStream *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayPublisherStream, headway_publisher_stream_unref)

G_END_DECLS
