/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-batch.h"
#include "engine/headway-limits.h"

G_BEGIN_DECLS

/* Keys beyond these share one quota (routing.md 3.6). The same for users. */
#define HEADWAY_RATE_KEYS_MAX 65536

/* What headway_rate_limiter_wait_us() answers for what can never pass. */
#define HEADWAY_RATE_NEVER G_MAXINT64

/**
 * HeadwayCharge:
 * @principal: borrowed
 * @bytes: cost: data, topic and meta (decisions.md 9)
 * @events: how many events have that cost together
 *
 * What one principal publishes at once.
 */
typedef struct
{
  HeadwayPrincipal *principal;
  guint64 bytes;
  guint events;
} HeadwayCharge;

/**
 * HeadwayRateLimiter:
 *
 * How fast may be published (routing.md 3.6, decisions.md 13-15): each (bus, principal) has a quota in
 * bytes and one in events, and what it publishes counts for the uid behind it as well, so that new
 * names make nobody faster. The algorithm is GCRA with a burst of one second of rate: an amount B and
 * a rate B still allow 2 B within any one second. All quotas concerned are charged, or none.
 *
 * It is asked about what is otherwise fit to be published: what is malformed or forbidden charges
 * nothing (case 14).
 *
 * Rates come with each call, and hold at once. A rate of 0 is no limit. Should the clock go
 * backwards, it stands still here until it is where it was.
 *
 * Buses are told apart by address, principals by identity; a bus that goes is to be forgotten.
 */
typedef struct _HeadwayRateLimiter HeadwayRateLimiter;

HeadwayRateLimiter *headway_rate_limiter_new (void);
void headway_rate_limiter_free (HeadwayRateLimiter *self);

/**
 * headway_rate_limiter_charge:
 * @limits: the rates in force
 * @bus: of the event; only compared
 * @uid: of the caller, the parent of the principal's quota
 * @bytes: cost of the events together
 * @events: how many they are; with 0 only bytes are charged
 *
 * Charges everything, or nothing. FALSE with
 *
 * - TOO_LARGE: over HEADWAY_EVENT_CEILING, whatever the rates (details: limit);
 * - QUOTA_EXCEEDED: more than a second of some rate, which never passes (details: limit);
 * - RATE_LIMITED: not now (details: limit, retry_after_ms; the message ends in `retry-after-ms=<n>`).
 */
gboolean headway_rate_limiter_charge (HeadwayRateLimiter *self,
                                      const HeadwayLimits *limits,
                                      gconstpointer bus,
                                      HeadwayPrincipal *principal,
                                      guint32 uid,
                                      guint64 bytes,
                                      guint events,
                                      HeadwayInstant now,
                                      GError **error);

/* The same for a whole batch, whose events may have several principals (decisions.md 13): each is
 * charged for its own, the uid for all. */
gboolean headway_rate_limiter_charge_batch (HeadwayRateLimiter *self,
                                            const HeadwayLimits *limits,
                                            gconstpointer bus,
                                            const HeadwayBatch *batch,
                                            guint32 uid,
                                            HeadwayInstant now,
                                            GError **error);

/**
 * headway_rate_limiter_wait_us:
 *
 * For publishers that are held up instead of refused (NDJSON, decisions.md 13). Charges nothing.
 *
 * Returns: 0 if headway_rate_limiter_charge() would say yes; else microseconds until it will, if
 *   nothing else is charged in between; HEADWAY_RATE_NEVER if it never will: then ask it for the error.
 */
gint64 headway_rate_limiter_wait_us (HeadwayRateLimiter *self,
                                     const HeadwayLimits *limits,
                                     gconstpointer bus,
                                     HeadwayPrincipal *principal,
                                     guint32 uid,
                                     guint64 bytes,
                                     guint events,
                                     HeadwayInstant now);
gint64 headway_rate_limiter_batch_wait_us (HeadwayRateLimiter *self,
                                           const HeadwayLimits *limits,
                                           gconstpointer bus,
                                           const HeadwayBatch *batch,
                                           guint32 uid,
                                           HeadwayInstant now);

/* Looks at the @n keys charged longest ago, and as many users, and drops those that say nothing any
 * more. Each charge looks at two; this is for times when nobody publishes. */
void headway_rate_limiter_reclaim (HeadwayRateLimiter *self, guint n, HeadwayInstant now);
/* @bus is going: another one may get its address. */
void headway_rate_limiter_forget_bus (HeadwayRateLimiter *self, gconstpointer bus);

/* Keys of (bus, principal). */
guint headway_rate_limiter_size (const HeadwayRateLimiter *self);
guint headway_rate_limiter_n_uids (const HeadwayRateLimiter *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayRateLimiter, headway_rate_limiter_free)

G_END_DECLS
