/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "cli/headway-cli-sample.h"

G_BEGIN_DECLS

typedef struct _HeadwayCliSampler HeadwayCliSampler;

/* @sample: (transfer full) (nullable); @error: (nullable): why there is none */
typedef void (*HeadwayCliSamplerFunc) (HeadwayCliSample *sample,
                                       const GError *error,
                                       gpointer user_data);

HeadwayCliSampler *headway_cli_sampler_new (GDBusConnection *connection,
                                            HeadwayCliSamplerFunc func,
                                            gpointer user_data);
void headway_cli_sampler_free (HeadwayCliSampler *self);
void headway_cli_sampler_start (HeadwayCliSampler *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayCliSampler, headway_cli_sampler_free)

G_END_DECLS
