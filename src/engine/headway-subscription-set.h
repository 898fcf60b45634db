/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-subscription.h"

G_BEGIN_DECLS

/**
 * HeadwaySubscriptionSet:
 *
 * The registered subscriptions of a bus, and who of them wants an event. It borrows them: each takes
 * itself out before it goes. Plain, embedded in its bus.
 */
typedef struct
{
  GPtrArray *all;           /* owned array of borrowed HeadwaySubscription */
  GPtrArray *unfiltered;    /* those of `all` without patterns */
  HeadwayTopicIndex *index; /* owned: the others, by pattern */
  GPtrArray *matches;       /* owned scratch of one publish */
} HeadwaySubscriptionSet;

void headway_subscription_set_init (HeadwaySubscriptionSet *self);
void headway_subscription_set_clear (HeadwaySubscriptionSet *self);

void headway_subscription_set_add (HeadwaySubscriptionSet *self, HeadwaySubscription *subscription);
void headway_subscription_set_remove (HeadwaySubscriptionSet *self, HeadwaySubscription *subscription);
guint headway_subscription_set_size (const HeadwaySubscriptionSet *self);

/* Returns: (transfer none): who wants @event by its topic, those with several matching patterns
 * several times. A copy that lasts until the next call, since an eviction takes its subscription
 * out of the set at once. */
GPtrArray *headway_subscription_set_match (HeadwaySubscriptionSet *self, const HeadwayEvent *event);

/* Returns: (transfer container): all, in order of registration. */
GPtrArray *headway_subscription_set_list (const HeadwaySubscriptionSet *self);

G_END_DECLS
