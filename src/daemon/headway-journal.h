/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-security-log.h"

G_BEGIN_DECLS

/* Writes one security report as structured fields: HEADWAY_SECURITY (the kind), HEADWAY_COUNT,
 * HEADWAY_UID, HEADWAY_PRINCIPAL, HEADWAY_BUS, as far as they are known, and a sentence. */
void headway_journal_write_security (const HeadwaySecurityReport *report);

G_END_DECLS
