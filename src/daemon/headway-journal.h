/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-security-log.h"
#include "engine/headway-storm-monitor.h"

G_BEGIN_DECLS

/* Writes one security report as structured fields: HEADWAY_SECURITY (the kind), HEADWAY_COUNT,
 * HEADWAY_UID, HEADWAY_PRINCIPAL, HEADWAY_BUS, as far as they are known, and a sentence. */
void headway_journal_write_security (const HeadwaySecurityReport *report);

/* Writes who floods: HEADWAY_STORM_EVENTS, HEADWAY_STORM_WINDOW_MS, and a sentence with the busiest topics.
 * @goes_on: it has been told that it began. */
void headway_journal_write_storm (const HeadwayStormReport *report, gboolean goes_on);

G_END_DECLS
