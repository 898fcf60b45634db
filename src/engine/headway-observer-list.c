/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-observer-list.h"

typedef struct
{
  guint id; /* 0: removed while being told; the slot goes afterwards */
  HeadwayObserver func;
  gpointer user_data;
  GDestroyNotify destroy;
} Observer;

void
headway_observer_list_init (HeadwayObserverList *self)
{
  self->observers = g_array_new (FALSE, FALSE, sizeof (Observer));
  self->last_id = 0;
  self->is_notifying = FALSE;
}

void
headway_observer_list_clear (HeadwayObserverList *self)
{
  for (guint i = 0; i < self->observers->len; i++)
    {
      Observer *observer = &g_array_index (self->observers, Observer, i);

      if (observer->destroy != NULL)
        observer->destroy (observer->user_data);
    }
  g_array_unref (self->observers);
}

guint
headway_observer_list_add (HeadwayObserverList *self,
                           HeadwayObserver func,
                           gpointer user_data,
                           GDestroyNotify destroy)
{
  Observer observer = { ++self->last_id, func, user_data, destroy };

  g_array_append_val (self->observers, observer);
  return observer.id;
}

void
headway_observer_list_remove (HeadwayObserverList *self, guint id)
{
  for (guint i = 0; i < self->observers->len; i++)
    {
      Observer *observer = &g_array_index (self->observers, Observer, i);
      Observer removed = *observer;

      if (removed.id != id)
        continue;
      *observer = (Observer){ 0 };
      if (!self->is_notifying)
        g_array_remove_index (self->observers, i);
      if (removed.destroy != NULL)
        removed.destroy (removed.user_data);
      return;
    }
}

void
headway_observer_list_notify (HeadwayObserverList *self, HeadwayBus *bus, HeadwayEvent *event, HeadwayInstant now)
{
  guint n = self->observers->len;

  if (n == 0)
    return;
  self->is_notifying = TRUE;
  for (guint i = 0; i < n; i++)
    {
      Observer observer = g_array_index (self->observers, Observer, i);

      if (observer.id != 0)
        observer.func (bus, event, now, observer.user_data);
    }
  self->is_notifying = FALSE;
  for (guint i = self->observers->len; i > 0; i--)
    if (g_array_index (self->observers, Observer, i - 1).id == 0)
      g_array_remove_index (self->observers, i - 1);
}
