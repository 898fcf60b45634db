/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-limits.h"

G_BEGIN_DECLS

/* What is kept of a bus (decisions.md 3). */
typedef struct
{
  char *name;  /* owned; key of the table */
  char *epoch; /* owned */
  guint32 creator;
  guint64 mark; /* no id over it was ever used */
  HeadwayBusOptions options;
} HeadwayStateRecord;

/**
 * HeadwayStateTable:
 *
 * What outlives the daemon: open buses, the marks of closed ones, and a floor for all names that
 * are in neither. Its text form has a checksum in every line, so that damage costs one record, not
 * the file. Plain; used by one thread at a time.
 */
typedef struct
{
  GHashTable *buses; /* name (owned by the record) → HeadwayStateRecord (owned) */
  GHashTable *marks; /* name of a closed bus (owned) → GList link in `order` (borrowed) */
  GQueue order;      /* HeadwayStateMark (owned), oldest first */
  guint64 floor;
} HeadwayStateTable;

HeadwayStateTable *headway_state_table_new (void);
void headway_state_table_free (HeadwayStateTable *self);

/* @record: (transfer full). A closed bus of that name is closed no longer. */
void headway_state_table_put (HeadwayStateTable *self, HeadwayStateRecord *record);
HeadwayStateRecord *headway_state_table_lookup (HeadwayStateTable *self, const char *name);
/* The bus is closed: only its mark stays, and of more than 4096 marks the oldest become the floor. */
void headway_state_table_close (HeadwayStateTable *self, const char *name, guint64 mark);
/* No id over it was ever used by a bus of that name. */
guint64 headway_state_table_get_mark (HeadwayStateTable *self, const char *name);

/* Returns: (transfer full): the text form. */
GBytes *headway_state_table_to_bytes (HeadwayStateTable *self);

/**
 * headway_state_table_load:
 * @bytes: (nullable): the text form, or NULL if there is no file in a folder that was used before
 * @real_us: microseconds since 1970
 * @damage: (out) (transfer full) (nullable): what was wrong, in words; NULL if nothing was
 *
 * Reads what can be read. Where a record may be missing, the floor becomes the highest of every
 * readable mark and the time in microseconds, which no id has reached (decisions.md 4).
 */
HeadwayStateTable *headway_state_table_load (GBytes *bytes, gint64 real_us, char **damage);

HeadwayStateRecord *headway_state_record_new (const char *name,
                                              const char *epoch,
                                              guint32 creator,
                                              guint64 mark,
                                              const HeadwayBusOptions *options);
void headway_state_record_free (HeadwayStateRecord *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayStateTable, headway_state_table_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayStateRecord, headway_state_record_free)

G_END_DECLS
