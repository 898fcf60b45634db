/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-subscription-set.h"

#include "engine/headway-topic-index.h"

void
headway_subscription_set_init (HeadwaySubscriptionSet *self)
{
  self->all = g_ptr_array_new ();
  self->unfiltered = g_ptr_array_new ();
  self->index = headway_topic_index_new ();
  self->matches = g_ptr_array_new ();
}

void
headway_subscription_set_clear (HeadwaySubscriptionSet *self)
{
  g_ptr_array_unref (self->all);
  g_ptr_array_unref (self->unfiltered);
  headway_topic_index_free (self->index);
  g_ptr_array_unref (self->matches);
}

static const char *const *
patterns_of (HeadwaySubscription *subscription)
{
  return headway_filter_get_patterns (headway_subscription_get_filter (subscription));
}

void
headway_subscription_set_add (HeadwaySubscriptionSet *self, HeadwaySubscription *subscription)
{
  const char *const *patterns = patterns_of (subscription);

  g_ptr_array_add (self->all, subscription);
  if (patterns[0] == NULL)
    g_ptr_array_add (self->unfiltered, subscription);
  for (guint i = 0; patterns[i] != NULL; i++)
    headway_topic_index_add (self->index, patterns[i], subscription);
}

void
headway_subscription_set_remove (HeadwaySubscriptionSet *self, HeadwaySubscription *subscription)
{
  const char *const *patterns = patterns_of (subscription);

  g_ptr_array_remove_fast (self->all, subscription);
  if (patterns[0] == NULL)
    g_ptr_array_remove_fast (self->unfiltered, subscription);
  for (guint i = 0; patterns[i] != NULL; i++)
    headway_topic_index_remove (self->index, patterns[i], subscription);
}

guint
headway_subscription_set_size (const HeadwaySubscriptionSet *self)
{
  return self->all->len;
}

GPtrArray *
headway_subscription_set_match (HeadwaySubscriptionSet *self, const HeadwayEvent *event)
{
  gboolean is_for_all = headway_event_passes_filters (event);

  g_ptr_array_set_size (self->matches, 0);
  g_ptr_array_extend (self->matches, is_for_all ? self->all : self->unfiltered, NULL, NULL);
  if (!is_for_all)
    headway_topic_index_match (self->index, headway_event_get_topic (event), self->matches);
  return self->matches;
}

static int
compare_numbers (gconstpointer a, gconstpointer b)
{
  guint first = headway_subscription_get_number (*(HeadwaySubscription *const *) a);
  guint second = headway_subscription_get_number (*(HeadwaySubscription *const *) b);

  return (first > second) - (first < second);
}

GPtrArray *
headway_subscription_set_list (const HeadwaySubscriptionSet *self)
{
  GPtrArray *list = g_ptr_array_copy (self->all, NULL, NULL);

  g_ptr_array_sort (list, compare_numbers);
  return list;
}
