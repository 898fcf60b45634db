/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "access/headway-event-maker.h"

#include "engine/headway-limits.h"
#include "wire/headway-json-body.h"

/* The object itself is around `data`. */
#define DEPTH_IN_OBJECT (HEADWAY_JSON_DEPTH_MAX + 1)

/* Returns: (transfer full) (nullable) */
static HeadwayPrincipal *
choose_principal (const HeadwayEventMaker *self, const HeadwayPublishBody *body, GError **error)
{
  if (!body->is_principal_named && self->principal != NULL)
    return headway_principal_ref (self->principal);
  return headway_caller_choose_principal (self->caller, body->is_principal_named, body->principal, self->principals, error);
}

HeadwayEvent *
headway_event_maker_make (const HeadwayEventMaker *self, const HeadwayJson *json, HeadwayInstant now, GError **error)
{
  g_autoptr (HeadwayPrincipal) principal = NULL;
  g_auto (HeadwayPublishBody) body;
  HeadwayPublication publication = { 0 };

  headway_publish_body_init (&body);
  if (!headway_publish_body_parse (&body, json, error))
    return NULL;
  principal = choose_principal (self, &body, error);
  if (principal == NULL)
    return NULL;

  headway_publish_body_fill (&body, &publication);
  publication.principal = principal;
  if (publication.client == NULL)
    publication.client = self->client;
  return headway_event_new (&publication, self->cost_max, now, error);
}

HeadwayEvent *
headway_event_maker_make_from_text (const HeadwayEventMaker *self,
                                    const char *text,
                                    gsize length,
                                    HeadwayInstant now,
                                    GError **error)
{
  HeadwayJson json;

  if (!headway_json_validate (text, length, DEPTH_IN_OBJECT, &json, error))
    return NULL;
  return headway_event_maker_make (self, &json, now, error);
}
