/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-types.h"

G_BEGIN_DECLS

typedef struct _HeadwayPublisherFlight HeadwayPublisherFlight;
typedef struct _HeadwayPublisherStream HeadwayPublisherStream;

/**
 * HeadwayPublisherLine:
 * @number: of the line in its stream, from 1
 * @id: of its event, 0 as long as it has none
 * @error: (nullable): why it has none; NULL with an @id of 0: nobody knows yet
 */
typedef struct
{
  HeadwayPublisherFlight *flight; /* borrowed: has self */
  guint64 number;
  guint64 id;
  GError *error; /* owned */
} HeadwayPublisherLine;

/**
 * HeadwayPublisherFlight:
 * @n_pending: what must end before the lines can be answered: batches, or the wait for the rates
 * @cost: of the events under way, in bytes
 * @is_last: the stream ends with the answer to its first line
 *
 * Lines of a publisher that were taken together and are answered together, in the order in which they came
 * (HeadwayPublisherStream).
 */
struct _HeadwayPublisherFlight
{
  HeadwayPublisherStream *stream; /* owned, once for each thing that is pending */
  GList link;
  HeadwayPublisherLine lines[HEADWAY_DISPATCH_EVENTS];
  guint n_lines;
  guint n_pending;
  guint64 cost;
  gboolean is_last;
};

HeadwayPublisherFlight *headway_publisher_flight_new (HeadwayPublisherStream *stream);
void headway_publisher_flight_free (HeadwayPublisherFlight *self);

/* @error: (transfer full) (nullable). There must be room. */
HeadwayPublisherLine *headway_publisher_flight_add (HeadwayPublisherFlight *self, guint64 number, GError *error);
gboolean headway_publisher_flight_is_full (const HeadwayPublisherFlight *self);

/* The lines that have an event were published with ids from @first_id on. */
void headway_publisher_flight_set_ids (HeadwayPublisherFlight *self, guint64 first_id);
/* Those lines were refused for @error. */
void headway_publisher_flight_refuse (HeadwayPublisherFlight *self, const GError *error);

/* Appends `{"id":n}` or `{"error":…,"code":…,"line":n}` and LF (http-api.md, Errors). */
void headway_publisher_line_append_answer (const HeadwayPublisherLine *self, GString *answers);

G_END_DECLS
