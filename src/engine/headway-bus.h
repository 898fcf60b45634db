/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-batch.h"
#include "engine/headway-subscription.h"

G_BEGIN_DECLS

#define HEADWAY_TYPE_BUS (headway_bus_get_type ())
G_DECLARE_FINAL_TYPE (HeadwayBus, headway_bus, HEADWAY, BUS, GObject)

/**
 * headway_bus_new:
 * @name: passes headway_bus_name_check()
 * @epoch: 1 … 64 of [A-Za-z0-9_-], different for each life of a bus
 * @last_id: the last id that any earlier life may have used; the first event gets @last_id + 1
 * @options: copied
 * @principals: referenced
 *
 * A bus without a HeadwayBusTable, which may use every id. Tests and benchmarks; the daemon's buses
 * come from headway_bus_table_create().
 */
HeadwayBus *headway_bus_new (const char *name,
                             const char *epoch,
                             guint64 last_id,
                             const HeadwayBusOptions *options,
                             HeadwayPrincipalTable *principals);

/**
 * headway_bus_publish:
 * @batch: (transfer full): 1 … HEADWAY_BATCH_EVENTS_MAX events
 *
 * Publishes in order. At once, when nothing is before it, it has no more than HEADWAY_DISPATCH_EVENTS
 * events and ids are at hand; else behind what waits, from headway_bus_run(). Never waits for a
 * subscription and never fails because of one. Errors, through the batch: CLOSED, UNAVAILABLE.
 */
void headway_bus_publish (HeadwayBus *self, HeadwayBatch *batch, HeadwayInstant now);

/* Offers up to HEADWAY_DISPATCH_EVENTS waiting events. TRUE: call again. */
gboolean headway_bus_run (HeadwayBus *self, HeadwayInstant now);

/**
 * headway_bus_subscribe:
 *
 * Registers a subscription; an event published after this returns is never missed and never comes
 * twice. On a closed bus it has ended already.
 *
 * Returns: (transfer full) (nullable): NULL with SUBSCRIBER_LIMIT (its details hold the limit),
 *   NOT_SUPPORTED for a mode that is not there yet, or INVALID_OPTION.
 */
HeadwaySubscription *headway_bus_subscribe (HeadwayBus *self,
                                            const HeadwaySubscribeOptions *options,
                                            HeadwayInstant now,
                                            GError **error);

/**
 * headway_bus_close:
 *
 * Ends the bus (the engine publishes nothing: decisions.md 2): waiting publishes fail with CLOSED,
 * subscriptions drain and end. Any number of times.
 */
void headway_bus_close (HeadwayBus *self);
/* The same since headwayd stops: waiting publishes, and those that come later, fail with UNAVAILABLE, for the bus will be
 * there again. */
void headway_bus_stop (HeadwayBus *self);
gboolean headway_bus_is_closed (HeadwayBus *self);

/* Publishes `session_closed` and closes; @done as of a batch. What waits is published first. */
void headway_bus_close_session (HeadwayBus *self, HeadwayInstant now);
/* From headway_bus_close_session() on. */
gboolean headway_bus_is_closing (HeadwayBus *self);

/* Runs @func for every event, @now as of its publish, before it is offered to subscriptions, until it is removed. An
 * observer may publish (that runs when the present publish has ended), add and remove observers. */
typedef void (*HeadwayObserver) (HeadwayBus *bus, HeadwayEvent *event, HeadwayInstant now, gpointer user_data);
guint headway_bus_add_observer (HeadwayBus *self, HeadwayObserver func, gpointer user_data, GDestroyNotify destroy);
void headway_bus_remove_observer (HeadwayBus *self, guint observer);

const char *headway_bus_get_name (HeadwayBus *self);
const char *headway_bus_get_epoch (HeadwayBus *self);
const HeadwayBusOptions *headway_bus_get_options (HeadwayBus *self);
HeadwayRing *headway_bus_get_ring (HeadwayBus *self);        /* (transfer none) */
HeadwayPrincipal *headway_bus_get_system (HeadwayBus *self); /* (transfer none) */
guint64 headway_bus_get_last_id (HeadwayBus *self);          /* last id taken */
guint headway_bus_get_subscriber_count (HeadwayBus *self);
/* Registered subscriptions (element-type HeadwaySubscription), in order of registration. (transfer container) */
GPtrArray *headway_bus_list_subscriptions (HeadwayBus *self);
/* The uid that created it, G_MAXUINT32 at first. */
guint32 headway_bus_get_creator (HeadwayBus *self);
void headway_bus_set_creator (HeadwayBus *self, guint32 uid);
/* Monotonic time of the last publish, reader or handler (decisions.md 5). */
gint64 headway_bus_get_last_used_us (HeadwayBus *self);
void headway_bus_touch (HeadwayBus *self, HeadwayInstant now);

/**
 * headway_bus_set_snapshot:
 * @text: a JSON object of @length bytes, or NULL for none
 *
 * Sets what `snapshot=1` sends (decisions.md 39). INVALID_DATA if it is no object, TOO_LARGE over
 * @max_bytes.
 */
gboolean headway_bus_set_snapshot (HeadwayBus *self,
                                   const char *text,
                                   gsize length,
                                   guint64 max_bytes,
                                   GError **error);

/* --- Ids in blocks (decisions.md 4): for the store ------------------------------------------ */

/* Ids up to @up_to are reserved: publishes may use them. Runs what waited for it. */
void headway_bus_grant_ids (HeadwayBus *self, guint64 up_to, HeadwayInstant now);
/* No block could be reserved: waiting publishes fail with UNAVAILABLE and @reason. */
void headway_bus_refuse_ids (HeadwayBus *self, const char *reason);
guint64 headway_bus_get_granted_id (HeadwayBus *self);
/* TRUE from asking the store until it has granted or refused. */
gboolean headway_bus_is_reserving_ids (HeadwayBus *self);
/* TRUE while a publish waits for ids; headway_bus_refuse_ids() after 5 s is up to the daemon. */
gboolean headway_bus_is_waiting_for_ids (HeadwayBus *self);

G_END_DECLS
