/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-stream-model.h"

#include <string.h>

#define LOOKS        32
#define NOTICE_BYTES 512

static void
item_clear (gpointer data)
{
  g_ref_string_release (((ModelItem *) data)->text);
}

/* --- Wanting -------------------------------------------------------------------------------- */

static gboolean
pattern_matches (const char *pattern, const char *topic)
{
  g_auto (GStrv) want = g_strsplit (pattern, ".", -1);
  g_auto (GStrv) have = g_strsplit (topic, ".", -1);
  guint n_want = g_strv_length (want);
  guint n_have = g_strv_length (have);
  gboolean is_open = n_want > 1 && strcmp (want[n_want - 1], "*") == 0;

  if (is_open ? n_have < n_want : n_have != n_want)
    return FALSE;
  for (guint i = 0; i < n_want; i++)
    if (strcmp (want[i], "*") != 0 && strcmp (want[i], have[i]) != 0)
      return FALSE;
  return TRUE;
}

gboolean
model_sub_wants (ModelSub *self, const ModelEvent *event)
{
  const ModelWish *wish = &self->wish;
  gboolean topic_matches = wish->patterns == NULL;
  gboolean type_matches = wish->types == NULL;

  if (event->passes_filters)
    return TRUE;
  for (guint i = 0; wish->patterns != NULL && wish->patterns[i] != NULL; i++)
    topic_matches |= pattern_matches (wish->patterns[i], event->topic);
  for (guint i = 0; wish->types != NULL && wish->types[i] != NULL; i++)
    type_matches |= strcmp (wish->types[i], event->type) == 0;
  return topic_matches && type_matches;
}

/* --- The queue ------------------------------------------------------------------------------ */

void
model_sub_end (ModelSub *self, gboolean is_evicted)
{
  self->is_registered = FALSE;
  self->is_ended = TRUE;
  self->is_evicted = is_evicted;
}

/* @data: members of the notice's data, without the last brace. */
static void
add_notice (ModelSub *self, const char *type, const char *data, gboolean says_last_delivered)
{
  g_autofree char *text = g_strdup_printf ("{\"v\":1,\"type\":\"%s\",\"data\":{%s", type, data);
  ModelItem item = { .text = g_ref_string_new (text), .says_last_delivered = says_last_delivered };

  g_array_append_val (self->queue, item);
}

static void
maybe_warn (ModelSub *self, guint64 id)
{
  double cap = self->wish.max_queued;
  double byte_cap = (double) self->bus->options.max_queued_bytes;
  gboolean over_frames = self->n_live >= 0.75 * cap;
  gboolean over_bytes = (double) self->live_bytes >= 0.75 * byte_cap;
  const char *threshold = over_frames && over_bytes ? "frames_and_bytes" : "frames";
  g_autofree char *data = NULL;

  if (self->is_warned && self->n_live <= 0.375 * cap && (double) self->live_bytes <= 0.375 * byte_cap)
    self->is_warned = FALSE;
  if (self->is_warned || id == 0 || !(over_frames || over_bytes))
    return;
  self->is_warned = TRUE;
  data = g_strdup_printf ("\"queueSize\":%u,\"maxQueued\":%u,\"lastEventId\":%" G_GUINT64_FORMAT
                          ",\"queuedBytes\":%" G_GUINT64_FORMAT ",\"maxQueuedBytes\":%" G_GUINT64_FORMAT
                          ",\"threshold\":\"%s\"",
                          self->n_live, self->wish.max_queued, id, self->live_bytes,
                          self->bus->options.max_queued_bytes, over_frames ? threshold : "bytes");
  add_notice (self, "slow_client_warning", data, FALSE);
}

static void
evict (ModelSub *self, const ModelEvent *event, gboolean is_bytes)
{
  g_autofree char *bytes = is_bytes ? g_strdup_printf (",\"eventBytes\":%zu", strlen (event->text)) : g_strdup ("");
  g_autofree char *data =
    g_strdup_printf ("\"reason\":\"%s\",\"droppedAfter\":%" G_GUINT64_FORMAT ",\"queueSize\":%u,\"maxQueued\":%u"
                     ",\"queuedBytes\":%" G_GUINT64_FORMAT ",\"maxQueuedBytes\":%" G_GUINT64_FORMAT "%s",
                     is_bytes ? "queue_bytes_overflow" : "queue_overflow", event->id, self->n_live,
                     self->wish.max_queued, self->live_bytes, self->bus->options.max_queued_bytes, bytes);

  add_notice (self, "client_evicted", data, TRUE);
  self->dropped++;
  model_sub_end (self, TRUE);
}

gboolean
model_sub_offer (ModelSub *self, const ModelEvent *event)
{
  gsize size = strlen (event->text);
  ModelItem item = { .id = event->id };

  self->admitted++;
  if (self->has_sink && self->sink_room > 0 && model_sub_is_live (self) && self->queue->len == 0)
    {
      self->sink_room--;
      self->delivered++;
      self->last_delivered = event->id;
      g_ptr_array_add (self->sink_got, g_strdup (event->text));
      maybe_warn (self, 0);
      return TRUE;
    }
  if (self->n_live >= self->wish.max_queued)
    {
      evict (self, event, FALSE);
      return FALSE;
    }
  if (self->n_live > 0 && self->live_bytes + size > self->bus->options.max_queued_bytes)
    {
      evict (self, event, TRUE);
      return FALSE;
    }
  item.text = g_ref_string_acquire (event->text);
  g_array_append_val (self->queue, item);
  self->n_live++;
  self->live_bytes += size;
  maybe_warn (self, event->id);
  return TRUE;
}

/* --- Life ----------------------------------------------------------------------------------- */

static void
open_replay (ModelSub *self)
{
  guint64 next_id = self->bus->last_id + 1;
  guint64 first = model_bus_ring_first (self->bus);
  const ModelWish *wish = &self->wish;

  self->is_replaying = TRUE;
  self->owes_complete = TRUE;
  self->until = self->bus->last_id;
  self->next = wish->cursor + 1;
  self->last_sent = wish->cursor;
  self->is_mismatch = wish->epoch != NULL && strcmp (wish->epoch, self->bus->epoch) != 0;
  if (self->is_mismatch || wish->cursor >= next_id)
    self->opening = "epoch_reset";
  else if (first == 0 && wish->cursor < next_id - 1)
    self->opening = "seeded_replay_not_in_ring";
  else if (first > wish->cursor + 1)
    self->opening = "ring_evicted";
  if (self->opening != NULL)
    self->next = first > 0 ? first : next_id;
}

ModelSub *
model_bus_subscribe (ModelBus *self, const ModelWish *wish)
{
  ModelSub *sub;

  if (model_bus_n_registered (self) >= self->options.max_subscribers)
    return NULL;
  sub = g_new0 (ModelSub, 1);
  sub->bus = self;
  sub->wish = *wish;
  sub->queue = g_array_new (FALSE, FALSE, sizeof (ModelItem));
  g_array_set_clear_func (sub->queue, item_clear);
  sub->sink_got = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (self->subs, sub);
  sub->last_delivered = wish->has_cursor ? wish->cursor : 0;
  if (self->is_closed)
    {
      model_sub_end (sub, FALSE);
      return sub;
    }
  sub->is_registered = TRUE;
  sub->snapshot = wish->wants_snapshot ? self->snapshot : NULL;
  if (wish->has_cursor)
    open_replay (sub);
  return sub;
}

void
model_sub_free (ModelSub *self)
{
  g_ptr_array_remove (self->bus->subs, self);
  g_array_unref (self->queue);
  g_ptr_array_unref (self->sink_got);
  g_free (self);
}

void
model_sub_abort (ModelSub *self)
{
  if (!self->is_ended)
    model_sub_end (self, FALSE);
  self->dropped += self->n_live;
  self->n_live = 0;
  self->live_bytes = 0;
  g_array_set_size (self->queue, 0);
  self->opening = self->snapshot = NULL;
  self->is_replaying = self->owes_complete = self->has_gap = self->has_sink = FALSE;
}

void
model_sub_evict_idle (ModelSub *self, gint64 idle_ms, gint64 timeout_ms)
{
  g_autofree char *data =
    g_strdup_printf ("\"reason\":\"writer_idle_timeout\",\"errorKind\":\"writer_idle_timeout\""
                     ",\"idleForMs\":%" G_GINT64_FORMAT ",\"timeoutMs\":%" G_GINT64_FORMAT,
                     idle_ms, timeout_ms);

  if (self->is_ended)
    return;
  add_notice (self, "client_evicted", data, TRUE);
  model_sub_end (self, TRUE);
}

gboolean
model_sub_is_live (ModelSub *self)
{
  return !self->is_replaying && !self->owes_complete && self->snapshot == NULL;
}

gboolean
model_sub_is_ready (ModelSub *self)
{
  return !model_sub_is_live (self) || self->queue->len > 0;
}

/* --- Reading -------------------------------------------------------------------------------- */

static char *
resync (ModelSub *self, const char *reason, gint64 now_ms)
{
  gboolean is_opening = reason == self->opening;

  return g_strdup_printf ("{\"v\":1,\"type\":\"state_resync_required\",\"data\":{\"reason\":\"%s\",%s"
                          "\"lastDeliveredId\":%" G_GUINT64_FORMAT ",\"earliestAvailableId\":%" G_GUINT64_FORMAT
                          "},\"_meta\":{\"serverTimestamp\":%" G_GINT64_FORMAT "}}",
                          reason, is_opening && self->is_mismatch ? "\"detail\":\"epoch_mismatch\"," : "",
                          self->last_sent, self->next, now_ms);
}

static char *
replay_complete (ModelSub *self, gint64 now_ms)
{
  gboolean is_filtered = self->wish.patterns != NULL || self->wish.types != NULL;
  g_autofree char *last = g_strdup ("");

  if (self->n_replayed > 0)
    {
      g_free (last);
      last = g_strdup_printf ("\"lastReplayedEventId\":%" G_GUINT64_FORMAT ",\"lastEventId\":%" G_GUINT64_FORMAT ",",
                              self->last_replayed, self->last_replayed);
    }
  return g_strdup_printf ("{\"v\":1,\"type\":\"replay_complete\",\"data\":{%s\"replayedCount\":%" G_GUINT64_FORMAT
                          "%s},\"_meta\":{\"serverTimestamp\":%" G_GINT64_FORMAT "}}",
                          last, self->n_replayed, is_filtered ? ",\"filtered\":true" : "", now_ms);
}

typedef enum
{
  NOTHING,
  OPENING,
  GAP,
  BUDGET,
  REPLAYED,
  COMPLETE,
  SNAPSHOT,
  QUEUED,
} StepKind;

/* What a reader gets next. */
typedef struct
{
  StepKind kind;
  char *text; /* owned */
  gsize size;
  guint64 id;
} Step;

/* Steps over what the filter holds back, at most *@looks. NULL: nothing before the end that matches,
 * or no looks left. */
static ModelEvent *
find_replayed (ModelSub *self, guint *looks)
{
  guint64 first = model_bus_ring_first (self->bus);

  for (; self->next <= self->until; self->next++, --*looks)
    {
      ModelEvent *event;

      if (first == 0 || self->next < first)
        {
          self->has_gap = TRUE;
          self->next = first == 0 ? self->until + 1 : MIN (first, self->until + 1);
          if (self->next > self->until)
            return NULL;
        }
      if (*looks == 0)
        return NULL;
      event = &g_array_index (self->bus->ring, ModelEvent, self->next - first);
      g_assert_cmpuint (event->id, ==, self->next);
      if (model_sub_wants (self, event))
        return event;
    }
  return NULL;
}

static Step
replay_step (ModelSub *self, gint64 now_ms, guint *looks)
{
  guint64 first = model_bus_ring_first (self->bus);
  guint64 budget = self->bus->options.replay_budget_bytes;
  ModelEvent *event;

  if (self->opening != NULL)
    {
      self->next = MAX (self->next, first == 0 ? self->until + 1 : MIN (first, self->until + 1));
      return (Step){ OPENING, resync (self, self->opening, now_ms), NOTICE_BYTES, 0 };
    }
  event = find_replayed (self, looks);
  if (event == NULL && self->next <= self->until)
    return (Step){ NOTHING, NULL, 0, 0 };
  if (self->has_gap)
    return (Step){ GAP, resync (self, "ring_evicted", now_ms), NOTICE_BYTES, 0 };
  if (event == NULL)
    {
      self->is_replaying = FALSE;
      return (Step){ COMPLETE, replay_complete (self, now_ms), NOTICE_BYTES, 0 };
    }
  if (budget > 0 && self->n_replayed > 0 && self->spent + strlen (event->text) > budget)
    return (Step){ BUDGET, resync (self, "replay_budget_exceeded", now_ms), NOTICE_BYTES, 0 };
  return (Step){ REPLAYED, g_strdup (event->text), strlen (event->text), event->id };
}

static Step
queue_step (ModelSub *self, gint64 now_ms)
{
  ModelItem *item = &g_array_index (self->queue, ModelItem, 0);
  g_autofree char *last = g_strdup ("");
  char *text;

  if (item->id > 0)
    return (Step){ QUEUED, g_strdup (item->text), strlen (item->text), item->id };
  if (item->says_last_delivered)
    {
      g_free (last);
      last = g_strdup_printf (",\"lastDeliveredId\":%" G_GUINT64_FORMAT, self->last_delivered);
    }
  text = g_strdup_printf ("%s%s},\"_meta\":{\"serverTimestamp\":%" G_GINT64_FORMAT "}}", item->text, last, now_ms);
  return (Step){ QUEUED, text, NOTICE_BYTES, 0 };
}

static Step
next_step (ModelSub *self, gint64 now_ms, guint *looks)
{
  char *text;

  if (self->is_replaying)
    return replay_step (self, now_ms, looks);
  if (self->owes_complete)
    return (Step){ COMPLETE, replay_complete (self, now_ms), NOTICE_BYTES, 0 };
  if (self->snapshot != NULL)
    {
      text = g_strdup_printf ("{\"v\":1,\"type\":\"session_snapshot\",\"data\":%s,"
                              "\"_meta\":{\"serverTimestamp\":%" G_GINT64_FORMAT "}}",
                              self->snapshot, now_ms);
      return (Step){ SNAPSHOT, text, strlen (text), 0 };
    }
  if (self->queue->len > 0)
    return queue_step (self, now_ms);
  return (Step){ NOTHING, NULL, 0, 0 };
}

static void
did_step (ModelSub *self, const Step *step)
{
  if (step->id > 0)
    {
      self->admitted += step->kind == REPLAYED ? 1 : 0;
      self->delivered++;
      self->last_delivered = step->id;
    }
  self->opening = step->kind == OPENING ? NULL : self->opening;
  self->has_gap = step->kind == GAP ? FALSE : self->has_gap;
  self->owes_complete = step->kind == COMPLETE ? FALSE : self->owes_complete;
  self->snapshot = step->kind == SNAPSHOT ? NULL : self->snapshot;
  if (step->kind == BUDGET)
    self->next = self->until + 1;
  if (step->kind == REPLAYED)
    {
      self->n_replayed++;
      self->spent += step->size;
      self->last_sent = self->last_replayed = step->id;
      self->next = step->id + 1;
    }
  if (step->kind != QUEUED)
    return;
  if (step->id > 0)
    {
      self->n_live--;
      self->live_bytes -= step->size;
    }
  g_array_remove_index (self->queue, 0);
}

void
model_sub_take (ModelSub *self, gint64 now_ms, guint max_events, gsize max_bytes, GPtrArray *texts)
{
  guint looks = LOOKS;
  gsize bytes = 0;

  for (guint n = 0; n < max_events; n++)
    {
      Step step = next_step (self, now_ms, &looks);

      if (step.kind == NOTHING)
        return;
      if (n > 0 && bytes + step.size > max_bytes)
        {
          g_free (step.text);
          return;
        }
      bytes += step.size;
      g_ptr_array_add (texts, step.text);
      did_step (self, &step);
    }
}
