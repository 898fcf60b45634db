/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "access/headway-caller.h"
#include "engine/headway-event.h"

G_BEGIN_DECLS

/**
 * HeadwayEventMaker:
 * @caller: borrowed: who publishes
 * @principals: borrowed
 * @cost_max: cost that one event may have, in bytes (decisions.md 9)
 * @principal: (nullable): borrowed: of events that name none; NULL: the caller's own
 * @client: (nullable): borrowed: `originatorClientId` of events that give none
 *
 * Makes events of the publish objects of http-api.md: the elements of an HTTP body, the lines of NDJSON.
 */
typedef struct
{
  const HeadwayCaller *caller;
  HeadwayPrincipalTable *principals;
  guint64 cost_max;
  HeadwayPrincipal *principal;
  const char *client;
} HeadwayEventMaker;

/**
 * headway_event_maker_make:
 * @json: a slice that headway_json_validate() has passed
 *
 * Decodes and checks one publish object, as the caller may publish it.
 *
 * Returns: (transfer full) (nullable): NULL with an error of HEADWAY_ERROR or HEADWAY_JSON_BODY_ERROR.
 */
HeadwayEvent *headway_event_maker_make (const HeadwayEventMaker *self,
                                        const HeadwayJson *json,
                                        HeadwayInstant now,
                                        GError **error);
/* The same for text that nobody has looked at. */
HeadwayEvent *headway_event_maker_make_from_text (const HeadwayEventMaker *self,
                                                  const char *text,
                                                  gsize length,
                                                  HeadwayInstant now,
                                                  GError **error);

G_END_DECLS
