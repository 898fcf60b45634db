/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-bus-store.h"

/* A store that only writes down what it is asked; the test answers when it likes. */

#define TEST_TYPE_STORE (test_store_get_type ())
G_DECLARE_FINAL_TYPE (TestStore, test_store, TEST, STORE, GObject)

TestStore *test_store_new (void);
/* The last id that an earlier bus of that name may have used. */
void test_store_set_mark (TestStore *self, const char *name, guint64 mark);
guint64 test_store_get_mark (TestStore *self, const char *name);

/* How often headway_bus_store_reserve() was called so far, and for which id the last time. */
guint test_store_get_n_requests (TestStore *self);
guint64 test_store_get_last_request (TestStore *self);
/* The bus it was for; (transfer none). */
HeadwayBus *test_store_get_last_bus (TestStore *self);
guint test_store_get_n_forgotten (TestStore *self);
