/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-types.h"

G_BEGIN_DECLS

/* What time it is, for the engine, which reads no clock itself. */
static inline HeadwayInstant
headway_clock_now (void)
{
  return (HeadwayInstant){ .monotonic_us = g_get_monotonic_time (), .real_us = g_get_real_time () };
}

G_END_DECLS
