/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "http/headway-http-request.h"

G_BEGIN_DECLS

/* `POST /session/{bus}/events`: one object, an array, or NDJSON (http-api.md). */
void headway_http_publish_handle (HeadwayHttpRequest *request);

/**
 * headway_http_publish_make_event:
 * @json: a validated slice: one publish object
 *
 * Decodes and checks one event, as the caller of @request may publish it.
 *
 * Returns: (transfer full) (nullable): NULL with an error of HEADWAY_ERROR or HEADWAY_JSON_BODY_ERROR.
 */
HeadwayEvent *headway_http_publish_make_event (HeadwayHttpRequest *request,
                                               const HeadwayJson *json,
                                               HeadwayInstant now,
                                               GError **error);

/* Bytes that a line or a body with one event may have beyond the event itself. */
#define HEADWAY_HTTP_EVENT_SLACK (64 * 1024)

/* The most bytes that one publish object may have. */
gsize headway_http_publish_object_max (HeadwayHttpRequest *request);

/* Counts a publish that is refused with @error, whatever the answer says. */
void headway_http_publish_add_refusal (HeadwayHttpRequest *request, const GError *error);

G_END_DECLS
