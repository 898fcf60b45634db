/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "access/headway-event-maker.h"
#include "http/headway-http-request.h"

G_BEGIN_DECLS

/* `POST /session/{bus}/events`: one object, an array, or NDJSON (http-api.md). */
void headway_http_publish_handle (HeadwayHttpRequest *request);

/* What events of @request are made with; borrows from it. */
HeadwayEventMaker headway_http_publish_get_maker (HeadwayHttpRequest *request);

/* The most bytes that one publish object may have. */
gsize headway_http_publish_object_max (HeadwayHttpRequest *request);

/* Counts a publish that is refused with @error, whatever the answer says. */
void headway_http_publish_add_refusal (HeadwayHttpRequest *request, const GError *error);

G_END_DECLS
