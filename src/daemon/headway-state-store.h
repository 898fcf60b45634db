/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-bus-table.h"

#include <gio/gio.h>

G_BEGIN_DECLS

#define HEADWAY_TYPE_STATE_STORE (headway_state_store_get_type ())
G_DECLARE_FINAL_TYPE (HeadwayStateStore, headway_state_store, HEADWAY, STATE_STORE, GObject)

/**
 * HeadwayStateStore:
 *
 * The HeadwayBusStore of the daemon: one table file in the state directory, written whole by a worker
 * thread, to a new file that is synced and then takes the place of the old one. What happens while a
 * write is under way goes into the next.
 *
 * headway_state_store_open() creates @folder if need be, locks it and reads the table. Blocks: only
 * during start. @wait_us: how long to wait for the lock. G_IO_ERROR: the folder cannot be used, or
 * G_IO_ERROR_BUSY: another instance has it.
 */
HeadwayStateStore *headway_state_store_open (const char *folder, gint64 wait_us, GError **error);

/* Makes the buses of the last life again in @table, each with a block of ids reserved; blocks, only
 * during start. @table is the one that the store serves from then on. */
void headway_state_store_restore (HeadwayStateStore *self, HeadwayBusTable *table);

/* Writes the exact marks; blocks, only at the end. FALSE if they could not be written: the reserved
 * ones hold then. */
gboolean headway_state_store_close (HeadwayStateStore *self, GError **error);

G_END_DECLS
