/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-json.h"
#include "engine/headway-limits.h"
#include "engine/headway-principal.h"

G_BEGIN_DECLS

/**
 * HeadwayPublication:
 * @topic: (nullable): NULL: the type is the topic
 * @type: (nullable): NULL: "message"
 * @principal: who publishes; borrowed
 * @client: (nullable): shown as originatorClientId
 * @data: JSON text, @data_length bytes
 * @meta: (nullable): JSON object, @meta_length bytes
 * @is_final: eviction of routed subscriptions spares it (routing.md 3.4.5)
 * @is_valid_json: @data and @meta are slices that headway_json_validate() has passed already
 *
 * What a publisher gives, still unchecked. Everything is borrowed: headway_event_new() copies.
 */
typedef struct
{
  const char *topic;
  const char *type;
  HeadwayPrincipal *principal;
  const char *client;
  const char *data;
  gsize data_length;
  const char *meta;
  gsize meta_length;
  gboolean is_final;
  gboolean is_valid_json;
} HeadwayPublication;

/**
 * headway_event_new:
 * @publication: what to publish
 * @cost_max: bytes of data, topic and meta allowed (decisions.md 9)
 * @now: stamps the event
 *
 * Checks everything about one event and builds its envelope (sse-contract.md 1.4), but for the id,
 * which headway_event_set_id() gives it when the bus takes one: so a refused event has used no id.
 *
 * Returns: (transfer full) (nullable): NULL with INVALID_TOPIC, INVALID_TYPE, INVALID_OPTION,
 *   INVALID_DATA or TOO_LARGE.
 */
HeadwayEvent *headway_event_new (const HeadwayPublication *publication,
                                 guint64 cost_max,
                                 HeadwayInstant now,
                                 GError **error);

/**
 * headway_event_new_with_data:
 * @data: JSON text of @length bytes
 * @cost_max: bytes of data, topic and meta allowed
 *
 * What a handler made of @self: the same event (with the id of @self, if it has one), with other data.
 *
 * Returns: (transfer full) (nullable): NULL with INVALID_DATA or TOO_LARGE.
 */
HeadwayEvent *headway_event_new_with_data (const HeadwayEvent *self,
                                           const char *data,
                                           gsize length,
                                           guint64 cost_max,
                                           GError **error);

/**
 * headway_event_new_synthetic:
 * @type: one of the synthetic types (http-api.md)
 * @data: JSON text of @length bytes, made by us
 *
 * Returns: (transfer full): an event without an id: no `id` member, headway_event_get_id() is 0.
 */
HeadwayEvent *headway_event_new_synthetic (const char *type,
                                           const char *data,
                                           gsize length,
                                           HeadwayPrincipal *system,
                                           HeadwayInstant now);

/* The last event of a bus (decisions.md 2): passes every filter and scope, has a reserved type. */
HeadwayEvent *headway_event_new_session_closed (const char *bus_name,
                                                HeadwayPrincipal *system,
                                                HeadwayInstant now);

/* Gives @self its id, 1 … HEADWAY_ID_MAX, once, before anybody else sees it. */
void headway_event_set_id (HeadwayEvent *self, guint64 id);

HeadwayEvent *headway_event_ref (HeadwayEvent *self);
void headway_event_unref (HeadwayEvent *self);

guint64 headway_event_get_id (const HeadwayEvent *self);
/* Microseconds since 1970 by headwayd's clock. */
gint64 headway_event_get_timestamp (const HeadwayEvent *self);
/* Strings below end in NUL and live as long as @self. */
const char *headway_event_get_topic (const HeadwayEvent *self); /* "" if synthetic */
const char *headway_event_get_type (const HeadwayEvent *self);
const char *headway_event_get_client (const HeadwayEvent *self); /* (nullable) */
HeadwayPrincipal *headway_event_get_principal (const HeadwayEvent *self);
/* Slices of the envelope, not ended by NUL. @length: (out). */
const char *headway_event_get_data (const HeadwayEvent *self, gsize *length);
/* The object `_meta` as it stands in the envelope; (nullable): NULL if the publisher gave none. */
const char *headway_event_get_meta (const HeadwayEvent *self, gsize *length);

/**
 * headway_event_write_envelope:
 * @to: headway_event_get_size() bytes
 *
 * Writes the envelope (sse-contract.md 1.4): `{"id":…` unless it has no id, then the rest, which was built
 * with the event.
 *
 * Returns: behind the last byte; nothing ends it
 */
char *headway_event_write_envelope (const HeadwayEvent *self, char *to);
/* Event size: bytes of the envelope (decisions.md 9). */
gsize headway_event_get_size (const HeadwayEvent *self);
/* Routing cost: bytes of data, topic and meta as published (decisions.md 9). */
gsize headway_event_get_cost (const HeadwayEvent *self);
gboolean headway_event_is_final (const HeadwayEvent *self);
gboolean headway_event_is_synthetic (const HeadwayEvent *self);
/* TRUE for session_closed, which no filter holds back. */
gboolean headway_event_passes_filters (const HeadwayEvent *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayEvent, headway_event_unref)

G_END_DECLS
