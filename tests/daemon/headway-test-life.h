/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "daemon/headway-state-store.h"
#include "daemon/headway-state-table.h"

/* Lives of the daemon's store on a real folder, with a real bus table and worker thread. */

#define TEST_ID_BLOCK 10000
/* In the environment: the folder, instead of one of the test's own. */
#define TEST_FOLDER_ENV "HEADWAY_TEST_FOLDER"

typedef struct
{
  HeadwayStateStore *store; /* owned */
  HeadwayBusTable *table;   /* owned */
} TestLife;

/* Of a CreateBus. */
typedef struct
{
  guint n_calls;
  HeadwayBus *bus; /* owned, nullable */
  GError *error;   /* owned, nullable */
} TestAnswer;

/* Of a publish. */
typedef struct
{
  guint n_calls;
  guint64 first_id;
  GError *error; /* owned, nullable */
} TestResult;

void test_answer_clear (TestAnswer *self);
void test_result_clear (TestResult *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (TestAnswer, test_answer_clear)
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (TestResult, test_result_clear)

const char *test_life_folder (void);
/* A path in the folder. (transfer full) */
char *test_life_path (const char *file);

TestLife test_life_new (void);
/* Without a word to the disk, but for what is under way there. */
void test_life_crash (TestLife *self);
void test_life_end (TestLife *self);

/* A HeadwayBusReady whose user data is a TestAnswer. */
void test_answer_ready (HeadwayBus *bus, const GError *error, gpointer user_data);
/* The creator is 1234. */
void test_life_begin_create (TestLife *life, const char *name, const HeadwayBusOptions *options, TestAnswer *answer);
void test_answer_await (TestAnswer *answer);
/* Both must be. (transfer none) */
HeadwayBus *test_life_create (TestLife *life, const char *name);
HeadwayBus *test_life_lookup (TestLife *life, const char *name);

void test_life_begin_publish (HeadwayBus *bus, guint n, TestResult *result);
/* Publishes @n events; returns the id of the first. Runs the main loop only to wait for ids. */
guint64 test_life_publish (TestLife *life, HeadwayBus *bus, guint n);
/* Publishes within the block that is granted until exactly @n ids of it are left. */
void test_life_publish_until_left (TestLife *life, HeadwayBus *bus, guint n);

/* What is on the disk; (transfer full). */
char *test_life_read_file (gsize *length);
HeadwayStateTable *test_life_read_disk (void);
guint64 test_life_mark_on_disk (const char *name);
gboolean test_life_is_on_disk (const char *name);

/* From here to there no table can be written. */
void test_life_block_writing (void);
void test_life_unblock_writing (void);
/* That this is told, once. */
void test_life_expect_warning (const char *pattern);
void test_life_expect_recovery (void);
