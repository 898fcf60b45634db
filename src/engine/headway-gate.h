/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-types.h"

G_BEGIN_DECLS

typedef struct _HeadwayGate HeadwayGate;
typedef struct _HeadwayGateTable HeadwayGateTable;

typedef enum
{
  HEADWAY_GATE_STAGED, /* admits nothing yet */
  HEADWAY_GATE_OPEN,
  HEADWAY_GATE_RETIRED, /* admits nothing any more; what waits stays readable */
} HeadwayGateState;

/**
 * HeadwayGate:
 *
 * Whether subscriptions admit events (routing.md 1.6). Any number of subscriptions share one, so
 * that a service stages a set, and changes over from its old set in one step: no event falls
 * between the two, none comes twice. It governs live events; a replay was asked for by its cursor.
 * States only go forward. Reference-counted, owned by the engine's thread.
 */
HeadwayGate *headway_gate_new (const char *name);
HeadwayGate *headway_gate_ref (HeadwayGate *self);
void headway_gate_unref (HeadwayGate *self);
HeadwayGateState headway_gate_get_state (const HeadwayGate *self);
const char *headway_gate_get_name (const HeadwayGate *self);
gboolean headway_gate_is_open (const HeadwayGate *self);

/* Admits events from the next publish on. INVALID_OPTION if it is retired; nothing new if it is open. */
gboolean headway_gate_open (HeadwayGate *self, GError **error);
void headway_gate_retire (HeadwayGate *self);
/* Retires @from and opens @to between two publishes. INVALID_OPTION, and nothing changes, if @to is
 * retired or is @from. */
gboolean headway_gate_swap (HeadwayGate *from, HeadwayGate *to, GError **error);

/**
 * HeadwayGateTable:
 *
 * Gates by owner and name: one owner never reaches the gate of another (decisions.md 24). Holds them
 * weakly: a gate goes with the last subscription behind it. Gates may outlive the table.
 */
HeadwayGateTable *headway_gate_table_new (void);
void headway_gate_table_free (HeadwayGateTable *self);

/**
 * headway_gate_table_ensure:
 * @owner: whoever the adapter tells apart, such as a unique bus name
 * @name: 1 … 128 of the characters of a client (dbus-api.md), which says so in its INVALID_OPTION
 *
 * Returns: (transfer full) (nullable): that gate; a new one is staged.
 */
HeadwayGate *headway_gate_table_ensure (HeadwayGateTable *self, const char *owner, const char *name, GError **error);
/* Returns: (transfer none) (nullable): NULL with INVALID_OPTION if @owner has no such gate. */
HeadwayGate *headway_gate_table_lookup (HeadwayGateTable *self, const char *owner, const char *name, GError **error);
guint headway_gate_table_size (HeadwayGateTable *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayGate, headway_gate_unref)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayGateTable, headway_gate_table_free)

G_END_DECLS
