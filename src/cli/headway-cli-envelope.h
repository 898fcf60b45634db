/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "cli/headway-cli-event.h"

G_BEGIN_DECLS

/**
 * HeadwayCliEnvelope:
 *
 * An event that came as the JSON envelope of http-api.md.
 */
typedef struct
{
  HeadwayCliEvent event; /* its texts are those below, its envelope is borrowed */
  char *topic;           /* owned, as are the texts below */
  char *type;
  char *principal;
  char *data;
} HeadwayCliEnvelope;

void headway_cli_envelope_init (HeadwayCliEnvelope *self,
                                HeadwayCliSlice json);
void headway_cli_envelope_clear (HeadwayCliEnvelope *self);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (HeadwayCliEnvelope, headway_cli_envelope_clear)

G_END_DECLS
