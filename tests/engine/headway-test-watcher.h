/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "headway-test-bus.h"

/* An observer that writes down what it sees, and does things from inside. */
typedef struct
{
  GString *seen;   /* owned */
  HeadwayBus *bus; /* borrowed */
  guint n_nested;  /* publishes to make from inside */
  guint to_remove; /* an observer to remove from inside */
  gboolean must_close;
  TestResult result;
} TestWatcher;

TestWatcher test_watcher (TestBus *t);
void test_watcher_clear (TestWatcher *self);
/* The HeadwayObserver; its user data is a TestWatcher. */
void test_watcher_see (HeadwayBus *bus, HeadwayEvent *event, HeadwayInstant now, gpointer user_data);

/* One event with that topic. (transfer full) */
HeadwayBatch *test_batch_on (HeadwayBus *bus, const char *topic, HeadwayBatchDone done, gpointer user_data);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (TestWatcher, test_watcher_clear)
