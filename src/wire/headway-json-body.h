/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-event.h"
#include "engine/headway-limits.h"

G_BEGIN_DECLS

/* A body that is JSON but not what the route takes: a member that is missing, unknown, given twice
 * or of the wrong type. On HTTP: 400 `invalid_request`. */
#define HEADWAY_JSON_BODY_ERROR (headway_json_body_error_quark ())

typedef enum
{
  HEADWAY_JSON_BODY_ERROR_INVALID_REQUEST,
} HeadwayJsonBodyError;

GQuark headway_json_body_error_quark (void);

/**
 * HeadwayPublishBody:
 * @data: (not nullable): slice of the source text
 * @meta: slice of the source text; its text is NULL where none was given
 * @is_principal_named: whether the member `principal` was there; @principal is NULL for null
 *
 * One decoded publish object of http-api.md. Slices borrow from the source text. Strings that are no longer
 * than they may be stand in @room, so that nothing is allocated for a good event; none is copied with the
 * struct.
 */
typedef struct
{
  char *topic; /* in `room`, or owned; nullable, like those below */
  char *type;
  char *principal;
  char *client;
  guint used; /* bytes of `room` */
  HeadwayJson data;
  HeadwayJson meta;
  gboolean is_principal_named;
  gboolean is_final;
  char room[HEADWAY_TOPIC_MAX + HEADWAY_TYPE_MAX + HEADWAY_PRINCIPAL_MAX + HEADWAY_CLIENT_MAX + 8];
} HeadwayPublishBody;

void headway_publish_body_init (HeadwayPublishBody *self);
void headway_publish_body_clear (HeadwayPublishBody *self);

/**
 * headway_publish_body_parse:
 * @self: (inout): as headway_publish_body_init() left it; cleared by the caller, whatever comes of it
 * @json: a slice that headway_json_validate() has passed
 *
 * Decodes one object. A member that is not known is refused: a typo must not be silence.
 *
 * Returns: FALSE with HEADWAY_JSON_BODY_ERROR, or INVALID_DATA for a string that holds U+0000.
 */
gboolean headway_publish_body_parse (HeadwayPublishBody *self, const HeadwayJson *json, GError **error);

/* Copies what @self says into a HeadwayPublication, which borrows it; the principal is left alone. */
void headway_publish_body_fill (const HeadwayPublishBody *self, HeadwayPublication *publication);

/* One option of a bus that a body names. */
typedef struct
{
  const HeadwayBusOptionSpec *spec;
  guint64 value;
} HeadwayNamedOption;

/**
 * headway_json_body_parse_bus_options:
 * @text: the body, maybe empty
 * @options: (inout): what is named is set, the rest is left as it is
 * @named: (nullable): filled with HeadwayNamedOption, to compare with a bus that exists
 *
 * Decodes the options of CreateBus in camelCase.
 *
 * Returns: FALSE with INVALID_DATA, INVALID_OPTION or HEADWAY_JSON_BODY_ERROR.
 */
gboolean headway_json_body_parse_bus_options (const char *text,
                                              gsize length,
                                              HeadwayBusOptions *options,
                                              GArray *named,
                                              GError **error);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (HeadwayPublishBody, headway_publish_body_clear)

G_END_DECLS
