/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-event.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/* An event on the message bus; org.headway.Headway1.Bus.xml says what its parts are. */
#define HEADWAY_VARIANT_EVENT  "(tsssxsa{sv})"
#define HEADWAY_VARIANT_EVENTS "a" HEADWAY_VARIANT_EVENT

/**
 * headway_variant_new_event:
 * @resume_id: (nullable): what `extra` names as `resume-id`, routed mode only; 0 for none
 *
 * Returns: (transfer floating): @event as HEADWAY_VARIANT_EVENT
 */
GVariant *headway_variant_new_event (HeadwayEvent *event, guint64 resume_id);

/**
 * HeadwayVariantPublication:
 * @publication: all but the principal; borrowed from what it was read from
 * @names_principal: whether the options name one
 * @principal: (nullable): its name, "" for the system principal
 *
 * What a Publish() says, still unchecked but for the options.
 */
typedef struct
{
  HeadwayPublication publication;
  gboolean names_principal;
  const char *principal;
} HeadwayVariantPublication;

/* Reads the topic, data and options of Publish(), or of one event of PublishMany(). Copies nothing.
 * HEADWAY_ERROR_INVALID_OPTION as headway_options_parse(). */
gboolean headway_variant_read_publication (HeadwayVariantPublication *self,
                                           const char *topic,
                                           const char *data,
                                           GVariant *options,
                                           GError **error);

G_END_DECLS
