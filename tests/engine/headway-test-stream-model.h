/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

/* What a bus and its `stream` subscriptions do, written down a second time from sse-contract.md
 * and decisions.md as plainly as possible: arrays that are searched and shifted, texts that are
 * printed, real numbers for thresholds. It includes nothing of the engine. */

typedef struct
{
  guint64 id;
  const char *topic; /* static */
  const char *type;  /* static */
  char *text;        /* owned GRefString: the envelope */
  gboolean passes_filters;
} ModelEvent;

/* An event, or a notice whose text still lacks what is known when it is read. */
typedef struct
{
  char *text; /* owned GRefString */
  guint64 id; /* 0: a notice */
  gboolean says_last_delivered;
} ModelItem;

/* What a publisher gives. Strings are static but @data. */
typedef struct
{
  const char *topic; /* NULL: the type */
  const char *type;
  char *data; /* owned */
  gint64 stamp_ms;
  gboolean is_last_word; /* session_closed */
} ModelDraft;

typedef enum
{
  MODEL_BATCH_WAITS,
  MODEL_BATCH_DONE,
  MODEL_BATCH_CLOSED,
} ModelBatchState;

typedef struct
{
  GArray *drafts; /* ModelDraft */
  guint next;
  gboolean is_seed;
  ModelBatchState state;
  guint64 first_id;
  guint subscriptions;
  guint refused;
  gboolean is_ours; /* nobody else holds it */
} ModelBatch;

typedef struct
{
  guint ring_size;
  guint64 ring_max_bytes;
  guint max_subscribers;
  guint64 max_queued_bytes;
  guint64 replay_budget_bytes;
} ModelOptions;

typedef struct
{
  const char *epoch; /* static */
  ModelOptions options;
  guint64 last_id;
  GArray *ring;         /* ModelEvent */
  GPtrArray *pending;   /* ModelBatch */
  GPtrArray *subs;      /* ModelSub */
  const char *snapshot; /* static, data of session_snapshot */
  gboolean is_closing;
  gboolean is_closed;
} ModelBus;

typedef struct
{
  const char *const *patterns; /* static, NULL: none */
  const char *const *types;    /* static, NULL: none */
  gboolean has_cursor;
  guint64 cursor;
  const char *epoch; /* static, nullable */
  guint max_queued;
  gboolean wants_snapshot;
} ModelWish;

typedef struct
{
  ModelBus *bus;
  ModelWish wish;
  gboolean is_registered;
  gboolean is_ended;
  gboolean is_evicted;

  const char *opening; /* reason, until it is told */
  gboolean is_mismatch;
  gboolean is_replaying;
  gboolean owes_complete;
  const char *snapshot; /* until it is told */
  guint64 next;
  guint64 until;
  gboolean has_gap;
  guint64 last_sent;
  guint64 last_replayed;
  guint64 n_replayed;
  guint64 spent;

  GArray *queue; /* ModelItem */
  guint n_live;
  guint64 live_bytes;
  gboolean is_warned;

  gboolean has_sink;
  guint sink_room;
  GPtrArray *sink_got; /* char *, owned */

  guint64 admitted;
  guint64 delivered;
  guint64 dropped;
  guint64 last_delivered;
} ModelSub;

ModelBus *model_bus_new (const char *epoch, guint64 last_id, const ModelOptions *options);
void model_bus_free (ModelBus *self); /* all of its subscriptions are gone */
/* @batch: owned by the caller until it is done, unless `is_ours`. */
void model_bus_publish (ModelBus *self, ModelBatch *batch);
gboolean model_bus_run (ModelBus *self);
void model_bus_close (ModelBus *self);
void model_bus_close_session (ModelBus *self, gint64 now_ms);
guint64 model_bus_ring_bytes (ModelBus *self);
guint64 model_bus_ring_first (ModelBus *self);
guint model_bus_n_registered (ModelBus *self);

/* NULL: too many. */
ModelSub *model_bus_subscribe (ModelBus *self, const ModelWish *wish);
void model_sub_abort (ModelSub *self);
void model_sub_evict_idle (ModelSub *self, gint64 idle_ms, gint64 timeout_ms);
void model_sub_free (ModelSub *self);
gboolean model_sub_is_live (ModelSub *self);
gboolean model_sub_is_ready (ModelSub *self);
/* FALSE: refused. */
gboolean model_sub_offer (ModelSub *self, const ModelEvent *event);
gboolean model_sub_wants (ModelSub *self, const ModelEvent *event);
void model_sub_end (ModelSub *self, gboolean is_evicted);
/* Adds the envelopes that a reader gets to @texts. */
void model_sub_take (ModelSub *self, gint64 now_ms, guint max_events, gsize max_bytes, GPtrArray *texts);

ModelBatch *model_batch_new (gboolean is_seed);
void model_batch_free (ModelBatch *self);
void model_batch_add (ModelBatch *self, const char *topic, const char *type, guint n_chars);

/* Whether an observer publishes from inside event @id. */
gboolean model_is_nesting (guint64 id);
const char *model_topic (guint64 n); /* some topic, or NULL */
const char *model_type (guint64 n);
