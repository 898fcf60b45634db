/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-bus.h"
#include "headway-test-stream-model.h"

#include "engine/headway-error.h"

#include <string.h>

/* Random life of a bus and its readers, step by step beside the model: the bytes of everything that
 * is delivered, and after each step every number that can be seen. HEADWAY_MODEL_STEPS says how many. */

#define N_STEPS (250000 / TEST_SLOWDOWN)
#define N_SLOTS 8

typedef struct
{
  HeadwaySubscription *real; /* owned */
  ModelSub *model;           /* owned */
  HeadwaySink sink;          /* attached while the model has_sink; room is the model's own */
  guint room;
  GPtrArray *sink_got; /* char *, owned */
} Slot;

typedef struct
{
  TestResult result;
  ModelBatch *model; /* owned */
} Ticket;

typedef struct
{
  TestBus t;
  ModelBus *model; /* owned */
  Slot slots[N_SLOTS];
  GPtrArray *tickets; /* Ticket, owned */
  gint64 clock_us;
  guint n_lives;
  guint64 n_delivered;
  guint64 n_seen[16]; /* of `kinds` */
} World;

/* What must come up in a life that is long enough. */
static const char *const kinds[] = {
  "ring_evicted", "epoch_reset", "epoch_mismatch", "seeded_replay_not_in_ring", "replay_budget_exceeded",
  "\"replay_complete\"", "\"filtered\":true", "\"threshold\":\"frames\"", "\"threshold\":\"bytes\"",
  "frames_and_bytes", "\"queue_overflow\"", "queue_bytes_overflow", "writer_idle_timeout", "session_snapshot",
  "session_closed"
};

G_STATIC_ASSERT (G_N_ELEMENTS (kinds) <= 16);

static const char *const epochs[] = { "e0", "e1", "e2", "e3" };
static const char *const pattern_lists[][4] = {
  { "a.b", NULL }, { "a.*", "a.b", "*.b", NULL }, { "*", NULL }, { "a.*.c", "b", NULL }, { "foo", "b.*", NULL }
};
static const char *const type_lists[][3] = { { "foo", NULL }, { "bar", "baz", NULL } };

/* --- The reader's end ------------------------------------------------------------------------ */

static gboolean
slot_put (HeadwaySink *sink, HeadwayEvent *event, guint64 resume_id)
{
  Slot *self = (Slot *) (gpointer) ((char *) sink - G_STRUCT_OFFSET (Slot, sink));

  if (self->room == 0)
    return FALSE;
  self->room--;
  g_ptr_array_add (self->sink_got, test_dup_envelope (event, NULL));
  return TRUE;
}

static void
slot_wake (HeadwaySink *sink)
{
}

static const HeadwaySinkClass slot_class = { slot_put, slot_wake };

static void
assert_same_texts (GPtrArray *got, GPtrArray *expected)
{
  for (guint i = 0; i < MIN (got->len, expected->len); i++)
    g_assert_cmpstr (g_ptr_array_index (got, i), ==, g_ptr_array_index (expected, i));
  g_assert_cmpuint (got->len, ==, expected->len);
}

static void
count_kinds (World *w, const char *envelope)
{
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++)
    w->n_seen[i] += strstr (envelope, kinds[i]) != NULL;
}

static void
slot_take (World *w, Slot *slot, guint max_events, gsize max_bytes)
{
  g_autoptr (GPtrArray) got = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GPtrArray) expected = g_ptr_array_new_with_free_func (g_free);
  HeadwayDelivery deliveries[64];
  guint n;

  n = headway_subscription_take (slot->real, w->t.now, max_events, max_bytes, deliveries);
  for (guint i = 0; i < n; i++)
    {
      g_ptr_array_add (got, test_dup_envelope (deliveries[i].event, NULL));
      g_assert_cmpuint (deliveries[i].resume_id, ==, headway_event_get_id (deliveries[i].event));
      if (headway_event_is_synthetic (deliveries[i].event) || headway_event_passes_filters (deliveries[i].event))
        count_kinds (w, g_ptr_array_index (got, i));
      w->n_delivered += deliveries[i].resume_id > 0;
      headway_event_unref (deliveries[i].event);
    }
  model_sub_take (slot->model, w->t.now.real_us / 1000, max_events, max_bytes, expected);
  assert_same_texts (got, expected);
}

static void
slot_free (Slot *slot)
{
  if (slot->model->has_sink)
    headway_subscription_detach (slot->real, &slot->sink);
  g_object_unref (slot->real);
  model_sub_free (slot->model);
  g_ptr_array_unref (slot->sink_got);
  *slot = (Slot){ 0 };
}

/* --- Looking at both ------------------------------------------------------------------------- */

static void
check_slot (Slot *slot)
{
  HeadwaySubscription *real = slot->real;
  ModelSub *model = slot->model;
  HeadwayState state = HEADWAY_STATE_LIVE;

  if (model->is_ended)
    state = model->is_evicted ? HEADWAY_STATE_EVICTED : HEADWAY_STATE_ENDED;
  else if (!model_sub_is_live (model))
    state = HEADWAY_STATE_REPLAYING;
  assert_books (real);
  g_assert_cmpuint (headway_subscription_get_admitted (real), ==, model->admitted);
  g_assert_cmpuint (headway_subscription_get_delivered (real), ==, model->delivered);
  g_assert_cmpuint (headway_subscription_get_dropped (real), ==, model->dropped);
  g_assert_cmpuint (headway_subscription_get_queued (real), ==, model->n_live);
  g_assert_cmpuint (headway_subscription_get_queued_bytes (real), ==, model->live_bytes);
  g_assert_cmpuint (headway_subscription_get_last_delivered_id (real), ==, model->last_delivered);
  g_assert_cmpint (headway_subscription_get_state (real), ==, state);
  g_assert_cmpint (headway_subscription_is_ready (real), ==, model_sub_is_ready (model));
  g_assert_cmpint (headway_subscription_is_finished (real), ==, model->is_ended && !model_sub_is_ready (model));
  assert_same_texts (slot->sink_got, model->sink_got);
  g_assert_cmpuint (slot->room, ==, model->sink_room);
  g_ptr_array_set_size (slot->sink_got, 0);
  g_ptr_array_set_size (model->sink_got, 0);
}

static gboolean
check_ticket (Ticket *ticket)
{
  TestResult *result = &ticket->result;
  ModelBatch *model = ticket->model;

  g_assert_cmpuint (result->n_calls, ==, model->state == MODEL_BATCH_WAITS ? 0 : 1);
  if (model->state == MODEL_BATCH_WAITS)
    return FALSE;
  if (model->state == MODEL_BATCH_CLOSED)
    {
      g_assert_error (result->error, HEADWAY_ERROR, HEADWAY_ERROR_CLOSED);
      return TRUE;
    }
  g_assert_no_error (result->error);
  g_assert_cmpuint (result->first_id, ==, model->first_id);
  g_assert_cmpuint (result->outcome.subscriptions, ==, model->subscriptions);
  g_assert_cmpuint (result->outcome.refused, ==, model->refused);
  g_assert_cmpuint (result->outcome.evicted, ==, 0);
  return TRUE;
}

static void
ticket_free (gpointer data)
{
  Ticket *self = data;

  test_result_clear (&self->result);
  model_batch_free (self->model);
  g_free (self);
}

static void
check (World *w)
{
  HeadwayRing *ring = headway_bus_get_ring (w->t.bus);

  g_assert_cmpuint (headway_bus_get_last_id (w->t.bus), ==, w->model->last_id);
  g_assert_cmpuint (headway_ring_get_length (ring), ==, w->model->ring->len);
  g_assert_cmpuint (headway_ring_get_bytes (ring), ==, model_bus_ring_bytes (w->model));
  g_assert_cmpuint (headway_ring_get_first_id (ring), ==, model_bus_ring_first (w->model));
  g_assert_cmpuint (headway_bus_get_subscriber_count (w->t.bus), ==, model_bus_n_registered (w->model));
  g_assert_cmpint (headway_bus_is_closing (w->t.bus), ==, w->model->is_closing);
  g_assert_cmpint (headway_bus_is_closed (w->t.bus), ==, w->model->is_closed);
  for (guint i = 0; i < N_SLOTS; i++)
    if (w->slots[i].real != NULL)
      check_slot (&w->slots[i]);
  for (guint i = w->tickets->len; i > 0; i--)
    if (check_ticket (g_ptr_array_index (w->tickets, i - 1)))
      g_ptr_array_remove_index (w->tickets, i - 1);
}

/* --- Steps ----------------------------------------------------------------------------------- */

static guint
pick (guint n)
{
  return (guint) g_test_rand_int_range (0, (gint32) n);
}

static void
on_event (HeadwayBus *bus, HeadwayEvent *event, HeadwayInstant now, gpointer user_data)
{
  guint64 id = headway_event_get_id (event);
  HeadwayBatch *batch;
  g_autofree char *data = NULL;
  HeadwayPublication publication = {
    .topic = model_topic (id),
    .type = model_type (id),
    .principal = headway_bus_get_system (bus),
    .data = "\"xxxxx\"",
    .data_length = 7,
    .meta = "{\"serverTimestamp\":1}",
    .meta_length = 21,
  };

  if (!model_is_nesting (id))
    return;
  batch = headway_batch_new (1, NULL, NULL);
  headway_batch_add (batch, headway_event_new (&publication, G_MAXUINT64, test_instant (0), NULL));
  headway_bus_publish (bus, batch, test_instant (0));
}

static void
start_life (World *w, guint64 last_id)
{
  ModelOptions options = {
    .ring_size = 1 + pick (60),
    .ring_max_bytes = 100 + pick (8000),
    .max_subscribers = 2 + pick (N_SLOTS - 2),
    .max_queued_bytes = 100 + pick (3000),
    .replay_budget_bytes = pick (3) == 0 ? 1 + pick (2000) : 0,
  };
  const char *epoch = epochs[w->n_lives++ % G_N_ELEMENTS (epochs)];

  w->model = model_bus_new (epoch, last_id, &options);
  w->t = test_bus_new ((HeadwayBusOptions){ .ring_size = options.ring_size,
                                            .ring_max_bytes = options.ring_max_bytes,
                                            .max_subscribers = options.max_subscribers,
                                            .max_queued_bytes = options.max_queued_bytes,
                                            .replay_budget_bytes = options.replay_budget_bytes },
                       epoch, last_id);
  headway_bus_add_observer (w->t.bus, on_event, NULL, NULL);
}

/* Reads everybody to the end, and drops the bus. */
static void
end_life (World *w)
{
  headway_bus_close (w->t.bus);
  model_bus_close (w->model);
  check (w);
  for (guint i = 0; i < N_SLOTS; i++)
    {
      Slot *slot = &w->slots[i];

      if (slot->real == NULL)
        continue;
      while (headway_subscription_is_ready (slot->real))
        slot_take (w, slot, 64, G_MAXSIZE);
      check_slot (slot);
      slot_free (slot);
    }
  g_assert_cmpuint (G_OBJECT (w->t.bus)->ref_count, ==, 1);
  test_bus_clear (&w->t);
  g_clear_pointer (&w->model, model_bus_free);
}

static void
step_publish (World *w, guint n_events, gboolean is_seed)
{
  Ticket *ticket = g_new0 (Ticket, 1);
  HeadwayBatch *batch = test_batch (&w->t, 0, &ticket->result);

  ticket->model = model_batch_new (is_seed);
  headway_batch_set_seed (batch, is_seed);
  for (guint i = 0; i < n_events; i++)
    {
      const char *topic = model_topic (pick (100));
      const char *type = model_type (pick (100));
      guint n_chars = pick (20) == 0 ? pick (2000) : pick (60);
      g_autofree char *data = test_string (n_chars);
      HeadwayPublication publication = {
        .topic = topic,
        .type = type,
        .principal = headway_bus_get_system (w->t.bus),
        .data = data,
        .data_length = n_chars + 2,
        .meta = "{\"serverTimestamp\":1}",
        .meta_length = 21,
      };

      headway_batch_add (batch, headway_event_new (&publication, G_MAXUINT64, w->t.now, NULL));
      model_batch_add (ticket->model, topic, type, n_chars);
    }
  g_ptr_array_add (w->tickets, ticket);
  headway_bus_publish (w->t.bus, batch, w->t.now);
  model_bus_publish (w->model, ticket->model);
}

static void
step_run (World *w)
{
  gboolean wants_more = headway_bus_run (w->t.bus, w->t.now);

  g_assert_cmpint (wants_more, ==, model_bus_run (w->model));
}

static guint64
pick_cursor (World *w)
{
  guint64 last = w->model->last_id;
  guint back = pick (100);

  if (back == 99)
    return HEADWAY_ID_MAX;
  if (back == 98)
    return 0;
  if (back >= 95)
    return last + back - 95;
  return last > back ? last - back : 0;
}

static void
step_subscribe (World *w)
{
  Slot *slot = &w->slots[pick (N_SLOTS)];
  g_autoptr (HeadwayFilter) filter = NULL;
  g_autoptr (GError) error = NULL;
  HeadwaySubscribeOptions options;
  ModelWish wish = {
    .patterns = pick (2) == 0 ? pattern_lists[pick (G_N_ELEMENTS (pattern_lists))] : NULL,
    .types = pick (4) == 0 ? type_lists[pick (G_N_ELEMENTS (type_lists))] : NULL,
    .has_cursor = pick (4) > 0,
    .cursor = pick_cursor (w),
    .epoch = pick (3) == 0 ? epochs[pick (G_N_ELEMENTS (epochs))] : NULL,
    .max_queued = pick (4) == 0 ? 1 + pick (4) : 1 + pick (100),
    .wants_snapshot = pick (4) == 0,
  };

  if (slot->real != NULL)
    slot_free (slot);
  headway_subscribe_options_init (&options);
  filter = headway_filter_new (wish.patterns, wish.types, NULL);
  options.filter = pick (2) == 0 || !headway_filter_is_empty (filter) ? filter : NULL;
  options.cursor = (HeadwayCursor){ wish.has_cursor, wish.cursor, wish.epoch };
  options.max_queued = wish.max_queued;
  options.wants_snapshot = wish.wants_snapshot;
  slot->model = model_bus_subscribe (w->model, &wish);
  slot->real = headway_bus_subscribe (w->t.bus, &options, w->t.now, &error);
  slot->sink.klass = &slot_class;
  g_assert_true ((slot->real == NULL) == (slot->model == NULL));
  if (slot->real == NULL)
    g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_SUBSCRIBER_LIMIT);
  else
    slot->sink_got = g_ptr_array_new_with_free_func (g_free);
}

static void
step_sink (World *w, Slot *slot)
{
  ModelSub *model = slot->model;

  if (model->has_sink && pick (3) == 0)
    {
      headway_subscription_detach (slot->real, &slot->sink);
      model->has_sink = FALSE;
    }
  else if (!model->has_sink)
    {
      g_assert_true (headway_subscription_attach (slot->real, &slot->sink, NULL));
      model->has_sink = TRUE;
    }
  slot->room = model->sink_room = pick (2) == 0 ? 0 : pick (50);
}

static void
step_slot (World *w, Slot *slot)
{
  static const gsize bounds[] = { 1, 200, 600, 3000, G_MAXSIZE, G_MAXSIZE };
  guint what = pick (100);

  if (what < 80)
    slot_take (w, slot, 1 + pick (pick (2) == 0 ? 4 : 64), bounds[pick (G_N_ELEMENTS (bounds))]);
  else if (what < 93)
    step_sink (w, slot);
  else if (what < 97)
    {
      headway_subscription_abort (slot->real);
      model_sub_abort (slot->model);
    }
  else if (what < 98)
    {
      headway_subscription_evict_idle (slot->real, what, 90);
      model_sub_evict_idle (slot->model, what, 90);
    }
  else
    slot_free (slot);
}

static void
step_snapshot (World *w)
{
  static const char *const set = "{\"currentModelId\":\"m\"}";
  gboolean is_set = pick (2) == 0;

  g_assert_true (headway_bus_set_snapshot (w->t.bus, is_set ? set : NULL, is_set ? strlen (set) : 0, 1000, NULL));
  w->model->snapshot = is_set
                         ? "{\"sessionId\":\"test\",\"currentModelId\":\"m\",\"currentApprovalMode\":null}"
                         : "{\"sessionId\":\"test\",\"currentModelId\":null,\"currentApprovalMode\":null}";
}

static void
step_close (World *w)
{
  if (pick (2) == 0)
    {
      headway_bus_close (w->t.bus);
      model_bus_close (w->model);
      return;
    }
  headway_bus_close_session (w->t.bus, w->t.now);
  model_bus_close_session (w->model, w->t.now.real_us / 1000);
}

static void
step_restart (World *w)
{
  guint64 last_id;

  end_life (w);
  last_id = w->n_lives % 5 == 0 ? 0 : (guint64) pick (1000000);
  start_life (w, last_id);
}

static void
step (World *w)
{
  guint what = pick (1000);
  Slot *slot = &w->slots[pick (N_SLOTS)];

  /* Look for somebody to read: slots of readers that are gone stay empty for a while. */
  for (guint i = 0; i < 3 && slot->real == NULL; i++)
    slot = &w->slots[pick (N_SLOTS)];

  w->clock_us += pick (3000);
  w->t.now = test_instant (w->clock_us);
  if (w->model->is_closing && pick (5) == 0)
    step_restart (w);
  else if (what < 400)
    step_publish (w, 1, FALSE);
  else if (what < 450)
    step_publish (w, 2 + pick (pick (5) == 0 ? 150 : 30), FALSE);
  else if (what < 455)
    step_publish (w, 1 + pick (pick (3) == 0 ? 70 : 3), TRUE);
  else if (what < 550)
    step_run (w);
  else if (what < 620)
    step_subscribe (w);
  else if (what < 992 && slot->real != NULL)
    step_slot (w, slot);
  else if (what >= 995)
    step_snapshot (w);
  else if (what >= 992 && pick (3) == 0)
    step_close (w);
}

static guint
count_steps (void)
{
  const char *steps = g_getenv ("HEADWAY_MODEL_STEPS");

  return steps != NULL ? (guint) g_ascii_strtoull (steps, NULL, 10) : N_STEPS;
}

static void
test_random_life (void)
{
  World w = { .tickets = g_ptr_array_new_with_free_func (ticket_free) };
  guint n_steps = count_steps ();

  start_life (&w, 0);
  for (guint i = 0; i < n_steps; i++)
    {
      step (&w);
      check (&w);
    }
  end_life (&w);
  g_ptr_array_unref (w.tickets);
  g_test_message ("%u steps, %u buses, %" G_GUINT64_FORMAT " events read", n_steps, w.n_lives, w.n_delivered);
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++)
    {
      g_test_message ("%s: %" G_GUINT64_FORMAT, kinds[i], w.n_seen[i]);
      g_assert_true (w.n_seen[i] > 0 || n_steps < 250000);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/model/random-life", test_random_life);
  return g_test_run ();
}
