/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-watcher.h"

HeadwayBatch *
test_batch_on (HeadwayBus *bus, const char *topic, HeadwayBatchDone done, gpointer user_data)
{
  HeadwayBatch *batch = headway_batch_new (1, done, user_data);

  headway_batch_add (batch, test_event_on (headway_bus_get_system (bus), topic, NULL));
  return batch;
}

void
test_watcher_see (HeadwayBus *bus, HeadwayEvent *event, HeadwayInstant now, gpointer user_data)
{
  TestWatcher *self = user_data;

  g_string_append_printf (self->seen, "%s%s:%" G_GUINT64_FORMAT, self->seen->len > 0 ? " " : "",
                          headway_event_get_topic (event), headway_event_get_id (event));
  for (; self->n_nested > 0; self->n_nested--)
    headway_bus_publish (bus, test_batch_on (bus, "inner", NULL, NULL), test_instant (0));
  if (self->to_remove > 0)
    headway_bus_remove_observer (bus, self->to_remove);
  self->to_remove = 0;
  if (self->must_close)
    headway_bus_close (bus);
}

TestWatcher
test_watcher (TestBus *t)
{
  return (TestWatcher){ .seen = g_string_new (NULL), .bus = t->bus };
}

void
test_watcher_clear (TestWatcher *self)
{
  g_string_free (self->seen, TRUE);
}
