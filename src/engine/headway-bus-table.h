/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-bus.h"
#include "engine/headway-bus-store.h"
#include "engine/headway-metrics.h"

G_BEGIN_DECLS

#define HEADWAY_TYPE_BUS_TABLE (headway_bus_table_get_type ())
G_DECLARE_FINAL_TYPE (HeadwayBusTable, headway_bus_table, HEADWAY, BUS_TABLE, GObject)

/**
 * HeadwayBusTable:
 *
 * All buses of a daemon by name, and what they share: limits, principals, the store.
 *
 * Signals: `bus-added (HeadwayBus *)` when a bus is there to be used; `bus-removed (HeadwayBus *)`
 * when it has drained and its name is free; `work-pending ()` when headway_bus_table_run() wants to
 * be called; `collect-metrics ()` from headway_bus_table_collect(), for those who know gauges that
 * the table does not; `security-report (HeadwaySecurityReport *)`, see HeadwaySecurityLog.
 *
 * @store: (nullable): NULL: nothing outlives the table, every id may be used
 */
HeadwayBusTable *headway_bus_table_new (HeadwayBusStore *store);

/* Writable; the owner changes it when settings change. */
HeadwayLimits *headway_bus_table_get_limits (HeadwayBusTable *self);
HeadwayPrincipalTable *headway_bus_table_get_principals (HeadwayBusTable *self);
/* (transfer none): to count with; headway_bus_table_collect() before it is shown. */
HeadwayMetrics *headway_bus_table_get_metrics (HeadwayBusTable *self);
/* (transfer none): calls the handlers of all buses. */
HeadwayDispatcher *headway_bus_table_get_dispatcher (HeadwayBusTable *self);

/* An open bus, (transfer none) (nullable): NULL with NO_SUCH_BUS, or CLOSED while it drains.
 * INVALID_NAME if @name is none. */
HeadwayBus *headway_bus_table_lookup (HeadwayBusTable *self, const char *name, GError **error);

/* @bus: (nullable) (transfer none): NULL with @error. Called exactly once, maybe before
 * headway_bus_table_create() returns. */
typedef void (*HeadwayBusReady) (HeadwayBus *bus, const GError *error, gpointer user_data);

/**
 * headway_bus_table_create:
 * @options: (nullable): NULL for the defaults
 * @uid: the creator (decisions.md 2)
 *
 * Creates a bus and answers when its first ids are safe. Errors: INVALID_NAME, BUS_EXISTS, CLOSED (a
 * bus of that name is draining), QUOTA_EXCEEDED (max-buses), UNAVAILABLE. A second caller for a
 * name that is being created waits for the same answer, and gets BUS_EXISTS.
 */
void headway_bus_table_create (HeadwayBusTable *self,
                               const char *name,
                               const HeadwayBusOptions *options,
                               guint32 uid,
                               HeadwayInstant now,
                               HeadwayBusReady ready,
                               gpointer user_data);

/* The bus of that name; creates it with default options where auto-create-buses is on, else
 * NO_SUCH_BUS. Other errors as headway_bus_table_create(). */
void headway_bus_table_ensure (HeadwayBusTable *self,
                               const char *name,
                               guint32 uid,
                               HeadwayInstant now,
                               HeadwayBusReady ready,
                               gpointer user_data);

/* A bus of an earlier life of the daemon, at start: there at once, before any listener is. */
HeadwayBus *headway_bus_table_restore (HeadwayBusTable *self,
                                       const char *name,
                                       guint64 last_id,
                                       guint64 granted_id,
                                       const HeadwayBusOptions *options,
                                       guint32 creator,
                                       HeadwayInstant now);

/**
 * headway_bus_table_publish:
 * @uid: of the caller: what is charged beside the principals of @batch
 * @batch: (transfer full)
 *
 * What adapters publish with: headway_bus_publish() within the rates (routing.md 3.6). Beside its
 * errors, through the batch: RATE_LIMITED, QUOTA_EXCEEDED. A closed bus charges nothing.
 */
void headway_bus_table_publish (HeadwayBusTable *self, HeadwayBus *bus, guint32 uid, HeadwayBatch *batch, HeadwayInstant now);
/* Microseconds until the rates let @batch pass: 0, or HEADWAY_RATE_NEVER (decisions.md 13, NDJSON). While too much of its
 * principals waits for handlers of phase `pre`, a little, after which to ask again (decisions.md 35). */
gint64 headway_bus_table_get_wait_us (HeadwayBusTable *self,
                                      HeadwayBus *bus,
                                      guint32 uid,
                                      const HeadwayBatch *batch,
                                      HeadwayInstant now);
/* FALSE: so much at once is over a second of some rate, and never passes. */
gboolean headway_bus_table_fits_rates (HeadwayBusTable *self, guint64 bytes, guint events);

/* An adapter has refused a publish, or was refused one: counts it, and logs what is of interest there.
 * @bus_name, @principal: (nullable): only names that have passed their checks. */
void headway_bus_table_add_refusal (HeadwayBusTable *self,
                                    const char *bus_name,
                                    guint32 uid,
                                    HeadwayPrincipal *principal,
                                    const GError *error,
                                    HeadwayInstant now);
/* Any other security event. */
void headway_bus_table_add_security (HeadwayBusTable *self,
                                     HeadwaySecurityKind kind,
                                     const char *bus_name,
                                     guint32 uid,
                                     const char *principal,
                                     HeadwayInstant now);
/* Brings the gauges up to date: looks at every bus and every subscription. */
void headway_bus_table_collect (HeadwayBusTable *self);

/* For the store: ids of @bus up to @up_to are safe to use. Runs what waited for them. */
void headway_bus_table_ids_granted (HeadwayBusTable *self, HeadwayBus *bus, guint64 up_to, HeadwayInstant now);
/* For the store: why it cannot reserve ids at present, or NULL; copied. What waits for them is told
 * when its 5 s are over. */
void headway_bus_table_set_ids_trouble (HeadwayBusTable *self, const char *reason);
/* For the store: none could be reserved. What waits for them fails with UNAVAILABLE and @reason. */
void headway_bus_table_ids_refused (HeadwayBusTable *self, HeadwayBus *bus, const char *reason);

/* Open buses, sorted by name (element-type HeadwayBus) (transfer container). */
GPtrArray *headway_bus_table_list (HeadwayBusTable *self);
/* The same and those that are closed and not gone yet. */
GPtrArray *headway_bus_table_list_all (HeadwayBusTable *self);
guint headway_bus_table_size (HeadwayBusTable *self);

/* Runs every bus that has waiting publishes once, in turn. TRUE: call again. */
gboolean headway_bus_table_run (HeadwayBusTable *self, HeadwayInstant now);

/* Once a second or so: closes buses that nobody used for bus-expire-seconds, removes closed buses
 * that have drained or whose @drain_window_us has passed, fails publishes that have waited 5 s for
 * ids. */
void headway_bus_table_tick (HeadwayBusTable *self, HeadwayInstant now, gint64 drain_window_us);

/* Ends all buses, drained by whoever still reads; nothing can be created afterwards (UNAVAILABLE).
 * The store forgets none of them, and the table keeps them until it goes itself. */
void headway_bus_table_shut_down (HeadwayBusTable *self);
/* TRUE if no reader of a closed bus has anything left to read, and no handler anything left to do. */
gboolean headway_bus_table_is_drained (HeadwayBusTable *self);

G_END_DECLS
