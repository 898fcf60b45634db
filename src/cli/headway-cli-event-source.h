/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "cli/headway-cli-reader.h"

G_BEGIN_DECLS

typedef struct _HeadwayCliEventSource HeadwayCliEventSource;

HeadwayCliEventSource *headway_cli_event_source_new (HeadwayCli *cli,
                                                     const HeadwayCliSubOptions *options,
                                                     HeadwayCliReader *reader,
                                                     GError **error);
void headway_cli_event_source_free (HeadwayCliEventSource *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayCliEventSource, headway_cli_event_source_free)

G_END_DECLS
