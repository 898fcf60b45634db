/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-bus-table.h"
#include "engine/headway-rate-limiter.h"

G_BEGIN_DECLS

HeadwayRateLimiter *headway_bus_table_get_limiter (HeadwayBusTable *self);
/* (nullable): NULL once the table is being disposed of. */
HeadwaySecurityLog *headway_bus_table_get_security_log (HeadwayBusTable *self);

G_END_DECLS
