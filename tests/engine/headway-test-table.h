/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "headway-test-bus.h"
#include "headway-test-store.h"

#include "engine/headway-bus-table.h"
#include "engine/headway-error.h"

/* A table of buses to test with, and what it answered and signalled. */

#define TEST_DRAIN_US (5 * G_USEC_PER_SEC)

typedef struct
{
  HeadwayBusTable *table; /* owned */
  TestStore *store;       /* owned, nullable */
  HeadwayInstant now;
  GString *log; /* owned: `+name`, `-name`, `w` for work-pending */
} TestTable;

void test_table_set_up (TestTable *self, gboolean has_store);
void test_table_clear (TestTable *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (TestTable, test_table_clear)

/* What a caller of create or ensure was told. */
typedef struct
{
  guint n_calls;
  HeadwayBus *bus; /* owned */
  GError *error;   /* owned */
} TestAnswer;

void test_answer_clear (TestAnswer *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (TestAnswer, test_answer_clear)

void test_on_ready (HeadwayBus *bus, const GError *error, gpointer user_data);
/* By the uids 1000 and 1001. */
void test_table_create (TestTable *self, const char *name, TestAnswer *answer);
void test_table_ensure (TestTable *self, const char *name, TestAnswer *answer);
/* Grants what the store is asked for. Returns: (transfer none). */
HeadwayBus *test_table_must_create (TestTable *self, const char *name);
void test_table_lookup_fails (TestTable *self, const char *name, HeadwayError code);
void test_table_run (TestTable *self);
void test_table_pub (TestTable *self, HeadwayBus *bus, guint n);

#define assert_log(f, expected)                      \
  G_STMT_START                                       \
  {                                                  \
    g_assert_cmpstr ((f)->log->str, ==, (expected)); \
    g_string_truncate ((f)->log, 0);                 \
  }                                                  \
  G_STMT_END
