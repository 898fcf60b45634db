/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-handler-set.h"

G_BEGIN_DECLS

/* Publishes of one principal on one bus that wait for handlers of phase `pre`, and their cost. One that costs more
 * may wait alone. */
#define HEADWAY_DECISIONS_MAX       64
#define HEADWAY_DECISIONS_BYTES_MAX HEADWAY_BATCH_BYTES_MAX
/* The same of one user on all buses, so that many principals are no way around. */
#define HEADWAY_UID_DECISIONS_MAX       4096
#define HEADWAY_UID_DECISIONS_BYTES_MAX (4 * HEADWAY_BATCH_BYTES_MAX)

/**
 * HeadwayDecision:
 *
 * A publish that waits for handlers of phase `pre` (routing.md 3.7, decisions.md 35): all of its events are decided, then
 * all or none are published. It stands in a line for each principal it has events of. In a line one event is decided at a
 * time, in order, and a publish goes on when it is the first in all of its lines: so the events of one principal keep
 * their order, those that no handler matches too, and different principals do not wait for each other.
 *
 * Of one publish a handler that has missed a deadline is not asked about the rest: one that is dead costs a publish its
 * deadline, however many events that has.
 *
 * While a connection has a `pre` call in flight, what it publishes stands in lines of its own, and passes its own
 * handlers: the event being decided waits for that connection, and so must not be waited for.
 */
typedef struct _HeadwayDecision HeadwayDecision;

/* Whether a publish to the bus of @set may have to wait. */
gboolean headway_decision_may_wait (const HeadwayHandlerSet *set);

/**
 * headway_decision_submit:
 * @batch: (transfer full)
 *
 * headway_bus_publish(), at once where nothing is to be decided. Errors, through the batch: DENIED (the message is
 * the reason; of several events the details name the index), TOO_LARGE (several events, with what handlers made of
 * them), UNAVAILABLE (too much waits already), CLOSED.
 */
void headway_decision_submit (HeadwayHandlerSet *set, guint32 uid, HeadwayBatch *batch, HeadwayInstant now);

/* FALSE: headway_decision_submit() would refuse @batch of @uid with UNAVAILABLE at present, or nearly so: its cost
 * counts in full for each of its principals (decisions.md 13, 35). */
gboolean headway_decision_has_room (HeadwayHandlerSet *set, guint32 uid, const HeadwayBatch *batch);

/* @handler takes no new publishes. TRUE: it is still to be looked up for those that wait to be decided. */
gboolean headway_decision_keep (HeadwayHandlerSet *set, HeadwayHandler *handler);
/* Whether @handler, which drains, is looked up and a publish that came before waits. */
gboolean headway_decision_may_want (HeadwayHandler *handler);

/* All that waits fails with CLOSED. */
void headway_decision_close_bus (HeadwayHandlerSet *set, HeadwayInstant now);

/* For headway_dispatcher_settle(): tells publishers whose publish has failed. */
void headway_decision_tell_settled (HeadwayDispatcher *dispatcher, HeadwayInstant now);
/* Likewise: publishes what is decided, while @budget, in events, lasts. */
void headway_decision_publish (HeadwayDispatcher *dispatcher, guint *budget, HeadwayInstant now);

/* For HeadwayHandlerSet. Returns: (transfer full). */
GHashTable *headway_decision_lines_new (void);
/* For the dispatcher. Returns: (transfer full). */
GHashTable *headway_decision_accounts_new (void);

G_END_DECLS
