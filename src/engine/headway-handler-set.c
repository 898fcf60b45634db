/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-handler-set.h"

#include "engine/headway-decision.h"
#include "engine/headway-dispatcher-private.h"
#include "engine/headway-topic-index.h"

HeadwayHandlerSet *
headway_handler_set_new (HeadwayDispatcher *dispatcher, HeadwayBus *bus)
{
  HeadwayHandlerSet *self = g_new0 (HeadwayHandlerSet, 1);

  self->dispatcher = dispatcher;
  self->bus = bus;
  self->all = g_ptr_array_new_with_free_func (g_object_unref);
  self->matches = g_ptr_array_new ();
  self->lines = headway_decision_lines_new ();
  for (guint i = 0; i < HEADWAY_N_PHASES; i++)
    {
      self->groups[i].index = headway_topic_index_new ();
      self->groups[i].unfiltered = g_ptr_array_new ();
    }
  return self;
}

void
headway_handler_set_free (HeadwayHandlerSet *self)
{
  for (guint i = 0; i < HEADWAY_N_PHASES; i++)
    {
      headway_topic_index_free (self->groups[i].index);
      g_ptr_array_unref (self->groups[i].unfiltered);
    }
  g_hash_table_unref (self->lines);
  g_ptr_array_unref (self->matches);
  g_ptr_array_unref (self->all);
  g_free (self);
}

void
headway_handler_set_add (HeadwayHandlerSet *self, HeadwayHandler *handler)
{
  HeadwayHandlerGroup *group = &self->groups[handler->phase];
  const char *const *patterns = headway_filter_get_patterns (handler->filter);

  g_ptr_array_add (self->all, g_object_ref (handler));
  handler->is_matching = TRUE;
  group->n++;
  if (patterns[0] == NULL)
    g_ptr_array_add (group->unfiltered, handler);
  for (guint i = 0; patterns[i] != NULL; i++)
    headway_topic_index_add (group->index, patterns[i], handler);
}

void
headway_handler_set_remove (HeadwayHandlerSet *self, HeadwayHandler *handler)
{
  HeadwayHandlerGroup *group = &self->groups[handler->phase];
  const char *const *patterns = headway_filter_get_patterns (handler->filter);

  group->n--;
  self->n_draining -= handler->last_decision > 0 ? 1 : 0;
  if (patterns[0] == NULL)
    g_ptr_array_remove (group->unfiltered, handler);
  for (guint i = 0; patterns[i] != NULL; i++)
    headway_topic_index_remove (group->index, patterns[i], handler);
}

void
headway_handler_set_forget (HeadwayHandlerSet *self, HeadwayHandler *handler)
{
  g_ptr_array_remove (self->all, handler);
}

static int
compare_matches (gconstpointer a, gconstpointer b)
{
  return headway_handler_compare (*(HeadwayHandler *const *) a, *(HeadwayHandler *const *) b);
}

/* In order, each once, and who is left out is out. */
static void
tidy_matches (GPtrArray *matches, gconstpointer skip, guint64 decision)
{
  guint n = 0;

  g_ptr_array_sort (matches, compare_matches);
  for (guint i = 0; i < matches->len; i++)
    {
      HeadwayHandler *handler = g_ptr_array_index (matches, i);

      if ((n > 0 && g_ptr_array_index (matches, n - 1) == handler) || (skip != NULL && handler->origin == skip) ||
          (handler->last_decision > 0 && handler->last_decision < decision))
        continue;
      g_ptr_array_index (matches, n++) = handler;
    }
  g_ptr_array_set_size (matches, (gint) n);
}

GPtrArray *
headway_handler_set_match (HeadwayHandlerSet *self,
                           HeadwayPhase phase,
                           const HeadwayEvent *event,
                           gconstpointer skip,
                           guint64 decision)
{
  HeadwayHandlerGroup *group = &self->groups[phase];

  g_ptr_array_set_size (self->matches, 0);
  g_ptr_array_extend (self->matches, group->unfiltered, NULL, NULL);
  headway_topic_index_match (group->index, headway_event_get_topic (event), self->matches);
  if (self->matches->len > 1 || skip != NULL || self->n_draining > 0)
    tidy_matches (self->matches, skip, decision);
  return self->matches;
}

void
headway_handler_set_offer (HeadwayHandlerSet *self, HeadwayEvent *event, HeadwayInstant now)
{
  GPtrArray *matches;

  if (self->groups[HEADWAY_PHASE_POST].n == 0)
    return;
  matches = headway_handler_set_match (self, HEADWAY_PHASE_POST, event, NULL, G_MAXUINT64);
  if (matches->len == 0)
    return;
  headway_work_post (self->dispatcher, (HeadwayHandler *const *) matches->pdata, matches->len, event, now);
  headway_dispatcher_settle (self->dispatcher, now);
}
