/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "cli/headway-cli-reader.h"

G_BEGIN_DECLS

typedef struct _HeadwayCliReceiver HeadwayCliReceiver;

HeadwayCliReceiver *headway_cli_receiver_new (HeadwayCli *cli,
                                              const HeadwayCliSubOptions *options,
                                              HeadwayCliReader *reader,
                                              GError **error);
void headway_cli_receiver_free (HeadwayCliReceiver *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayCliReceiver, headway_cli_receiver_free)

G_END_DECLS
