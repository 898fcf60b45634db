/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-stream-model.h"

#include <string.h>

#define TURN 32

static void
event_clear (gpointer data)
{
  g_ref_string_release (((ModelEvent *) data)->text);
}

const char *
model_topic (guint64 n)
{
  static const char *const topics[] = { NULL, "a", "b", "a.b", "a.c", "a.b.c", "b.b", "foo" };

  return topics[n % G_N_ELEMENTS (topics)];
}

const char *
model_type (guint64 n)
{
  static const char *const types[] = { "foo", "bar", "baz" };

  return types[n % G_N_ELEMENTS (types)];
}

gboolean
model_is_nesting (guint64 id)
{
  return id % 17 == 0;
}

/* --- Batches -------------------------------------------------------------------------------- */

static void
draft_clear (gpointer data)
{
  g_free (((ModelDraft *) data)->data);
}

ModelBatch *
model_batch_new (gboolean is_seed)
{
  ModelBatch *self = g_new0 (ModelBatch, 1);

  self->drafts = g_array_new (FALSE, FALSE, sizeof (ModelDraft));
  g_array_set_clear_func (self->drafts, draft_clear);
  self->is_seed = is_seed;
  return self;
}

void
model_batch_free (ModelBatch *self)
{
  g_array_unref (self->drafts);
  g_free (self);
}

void
model_batch_add (ModelBatch *self, const char *topic, const char *type, guint n_chars)
{
  ModelDraft draft = { .topic = topic, .type = type, .stamp_ms = 1 };
  g_autofree char *filler = g_strnfill (n_chars, 'x');

  draft.data = g_strdup_printf ("\"%s\"", filler);
  g_array_append_val (self->drafts, draft);
}

static void
batch_end (ModelBatch *self, ModelBatchState state)
{
  self->state = state;
  if (self->is_ours)
    model_batch_free (self);
}

/* --- The bus -------------------------------------------------------------------------------- */

ModelBus *
model_bus_new (const char *epoch, guint64 last_id, const ModelOptions *options)
{
  ModelBus *self = g_new0 (ModelBus, 1);

  self->epoch = epoch;
  self->last_id = last_id;
  self->options = *options;
  self->ring = g_array_new (FALSE, FALSE, sizeof (ModelEvent));
  g_array_set_clear_func (self->ring, event_clear);
  self->pending = g_ptr_array_new ();
  self->subs = g_ptr_array_new ();
  self->snapshot = "{\"sessionId\":\"test\",\"currentModelId\":null,\"currentApprovalMode\":null}";
  return self;
}

void
model_bus_free (ModelBus *self)
{
  g_assert_cmpuint (self->subs->len, ==, 0);
  g_assert_cmpuint (self->pending->len, ==, 0);
  g_ptr_array_unref (self->subs);
  g_ptr_array_unref (self->pending);
  g_array_unref (self->ring);
  g_free (self);
}

guint64
model_bus_ring_bytes (ModelBus *self)
{
  guint64 bytes = 0;

  for (guint i = 0; i < self->ring->len; i++)
    bytes += strlen (g_array_index (self->ring, ModelEvent, i).text);
  return bytes;
}

guint64
model_bus_ring_first (ModelBus *self)
{
  return self->ring->len > 0 ? g_array_index (self->ring, ModelEvent, 0).id : 0;
}

guint
model_bus_n_registered (ModelBus *self)
{
  guint n = 0;

  for (guint i = 0; i < self->subs->len; i++)
    n += ((ModelSub *) g_ptr_array_index (self->subs, i))->is_registered;
  return n;
}

static ModelEvent
make_event (ModelBus *self, const ModelDraft *draft)
{
  ModelEvent event = { .id = ++self->last_id, .type = draft->type, .passes_filters = draft->is_last_word };
  g_autofree char *topic = NULL;
  g_autofree char *text = NULL;

  event.topic = draft->topic != NULL ? draft->topic : draft->type;
  if (strcmp (event.topic, event.type) != 0)
    topic = g_strdup_printf (",\"topic\":\"%s\"", event.topic);
  text = g_strdup_printf ("{\"id\":%" G_GUINT64_FORMAT ",\"v\":1,\"type\":\"%s\",\"data\":%s%s,"
                          "\"_meta\":{\"serverTimestamp\":%" G_GINT64_FORMAT "}}",
                          event.id, event.type, draft->data, topic != NULL ? topic : "", draft->stamp_ms);
  event.text = g_ref_string_new (text);
  return event;
}

static void
publish_nested (ModelBus *self, guint64 id)
{
  ModelBatch *batch;

  if (!model_is_nesting (id) || self->is_closing)
    return;
  batch = model_batch_new (FALSE);
  batch->is_ours = TRUE;
  model_batch_add (batch, model_topic (id), model_type (id), 5);
  g_ptr_array_add (self->pending, batch);
}

static void
publish_one (ModelBus *self, ModelBatch *batch)
{
  ModelEvent event = make_event (self, &g_array_index (batch->drafts, ModelDraft, batch->next++));

  if (batch->is_seed)
    {
      event_clear (&event);
      g_array_set_size (self->ring, 0);
      return;
    }
  g_array_append_val (self->ring, event);
  while (self->ring->len > 1 &&
         (self->ring->len > self->options.ring_size || model_bus_ring_bytes (self) > self->options.ring_max_bytes))
    g_array_remove_index (self->ring, 0);
  publish_nested (self, event.id);
  for (guint i = 0; i < self->subs->len; i++)
    {
      ModelSub *sub = g_ptr_array_index (self->subs, i);

      if (!sub->is_registered || !model_sub_wants (sub, &event))
        continue;
      if (model_sub_offer (sub, &event))
        batch->subscriptions++;
      else
        batch->refused++;
    }
}

static void
run (ModelBus *self, guint budget)
{
  while (self->pending->len > 0)
    {
      ModelBatch *batch = g_ptr_array_index (self->pending, 0);

      batch->first_id = batch->next == 0 ? self->last_id + 1 : batch->first_id;
      for (; budget > 0 && batch->next < batch->drafts->len; budget--)
        publish_one (self, batch);
      if (batch->next < batch->drafts->len)
        return;
      g_ptr_array_remove_index (self->pending, 0);
      batch_end (batch, MODEL_BATCH_DONE);
    }
}

gboolean
model_bus_run (ModelBus *self)
{
  run (self, TURN);
  if (self->is_closing && self->pending->len == 0)
    model_bus_close (self);
  return self->pending->len > 0;
}

void
model_bus_publish (ModelBus *self, ModelBatch *batch)
{
  if (self->is_closing)
    {
      batch_end (batch, MODEL_BATCH_CLOSED);
      return;
    }
  g_ptr_array_add (self->pending, batch);
  if (self->pending->len == 1)
    model_bus_run (self);
}

void
model_bus_close_session (ModelBus *self, gint64 now_ms)
{
  ModelDraft draft = { .type = "session_closed", .stamp_ms = now_ms, .is_last_word = TRUE };
  ModelBatch *batch;

  if (self->is_closing)
    return;
  draft.data = g_strdup ("{\"sessionId\":\"test\",\"reason\":\"closed\"}");
  batch = model_batch_new (FALSE);
  batch->is_ours = TRUE;
  g_array_append_val (batch->drafts, draft);
  self->is_closing = TRUE;
  g_ptr_array_add (self->pending, batch);
  model_bus_run (self);
}

void
model_bus_close (ModelBus *self)
{
  if (self->is_closed)
    return;
  self->is_closing = TRUE;
  for (guint i = self->pending->len; i > 0; i--)
    {
      ModelBatch *batch = g_ptr_array_index (self->pending, i - 1);

      if (batch->next > 0)
        continue;
      g_ptr_array_remove_index (self->pending, i - 1);
      batch_end (batch, MODEL_BATCH_CLOSED);
    }
  run (self, G_MAXUINT);
  self->is_closed = TRUE;
  for (guint i = 0; i < self->subs->len; i++)
    {
      ModelSub *sub = g_ptr_array_index (self->subs, i);

      if (sub->is_registered)
        model_sub_end (sub, FALSE);
    }
}
