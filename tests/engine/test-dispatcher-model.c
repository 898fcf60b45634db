/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-dispatch.h"

#include <string.h>

/* Random steps: publishes of several principals, answers of every kind, time, handlers that come, go, stop
 * reading and read again. After each step the books balance; on the way the transport checks that
 *
 *   - a handler and principal have one call at a time (but for those that share a queue, who have one in all),
 *   - the events of one principal come to a handler in order, single ones and chains alike,
 *   - the steps of a chain come by priority, and the chains of one principal that share a handler do not overlap,
 *   - what a publisher was told is what happened: ids without holes, order kept, nothing of what was denied.
 */

#define STEPS        (120000 / SLOWDOWN)
#define N_HANDLERS   6
#define N_PRINCIPALS 5

#ifdef __SANITIZE_ADDRESS__
#define SLOWDOWN 10
#else
#define SLOWDOWN 1
#endif

static const char *const topics[] = { "a.x", "b.x", "c.x" };
static const char *const pattern_sets[][3] = { { "a.*", NULL }, { "b.*", NULL }, { "a.*", "b.*", NULL }, { "c.*", NULL } };
static const char *const verdicts[] = { "continue", "continue", "continue", "final", "deny", "nonsense" };

typedef struct _Model Model;

/* A registered handler and what it saw. */
typedef struct
{
  Model *model;
  HeadwayHandler *handler;        /* owned */
  GPtrArray *calls;               /* HeadwayHandlerCall (owned) */
  guint last[N_PRINCIPALS];       /* the number of the last event called for, of each */
  gboolean is_busy[N_PRINCIPALS]; /* a call that is not abandoned */
  guint n_busy;
  guint64 n_lost_told;
  gboolean has_ended;
} Peer;

struct _Model
{
  TestDispatch f;
  GPtrArray *peers; /* owned Peer: all that ever were */
  guint next;       /* number of the next event, its data */
  guint last_seen[N_PRINCIPALS];
  guint n_published;
  guint n_answered;
  guint n_denied;
};

static void
peer_free (gpointer data)
{
  Peer *self = data;

  for (guint i = 0; i < self->calls->len; i++)
    headway_handler_call_fail (g_ptr_array_index (self->calls, i), NULL, self->model->f.now);
  g_ptr_array_unref (self->calls);
  g_object_unref (self->handler);
  g_free (self);
}

static guint
number_of (HeadwayEvent *event)
{
  gsize length;
  const char *data = headway_event_get_data (event, &length);

  return (guint) g_ascii_strtoull (data, NULL, 10);
}

static guint
principal_of (HeadwayEvent *event)
{
  return (guint) headway_principal_get_name (headway_event_get_principal (event))[1] - '0';
}

static guint64
count_lost (HeadwayEvent *gap)
{
  gsize length;
  const char *data = gap != NULL ? headway_event_get_data (gap, &length) : NULL;
  const char *count = data != NULL ? g_strstr_len (data, (gssize) length, "\"count\":") : NULL;

  return count != NULL ? g_ascii_strtoull (count + strlen ("\"count\":"), NULL, 10) : 0;
}

static void
on_call (HeadwayHandler *handler, HeadwayHandlerCall *call, gpointer user_data)
{
  Peer *self = user_data;
  HeadwayEvent *event = headway_handler_call_get_event (call);
  guint principal = principal_of (event);

  g_assert_false (self->has_ended);
  g_assert_false (self->is_busy[principal]);
  /* A call that could not be made may come again. */
  g_assert_cmpuint (number_of (event), >=, self->last[principal]);
  self->last[principal] = number_of (event);
  self->is_busy[principal] = TRUE;
  self->n_busy++;
  self->n_lost_told += count_lost (headway_handler_call_get_lost (call));
  g_ptr_array_add (self->calls, call);
}

static void
set_free (Peer *self, HeadwayHandlerCall *call)
{
  self->is_busy[principal_of (headway_handler_call_get_event (call))] = FALSE;
  self->n_busy--;
}

static void
on_abandon (HeadwayHandler *handler, HeadwayHandlerCall *call, gpointer user_data)
{
  set_free (user_data, call);
}

static void
on_ended (HeadwayHandler *handler, gpointer user_data)
{
  Peer *self = user_data;

  g_assert_false (self->has_ended);
  self->has_ended = TRUE;
  g_assert_cmpuint (self->n_busy, ==, 0);
  g_assert_cmpuint (headway_handler_get_admitted (handler), ==, headway_handler_get_handled (handler) + headway_handler_get_dropped (handler));
}

static const HeadwayHandlerTransport transport = { on_call, on_abandon, on_ended };

static void
add_peer (Model *self)
{
  g_autoptr (GError) error = NULL;
  HeadwayHandlerOptions options;
  Peer *peer = g_new0 (Peer, 1);

  headway_handler_options_init (&options);
  options.patterns = pattern_sets[g_test_rand_int_range (0, G_N_ELEMENTS (pattern_sets))];
  options.priority = (guint) g_test_rand_int_range (1, 4) * 50;
  options.phase = g_test_rand_int_range (0, 4) == 0 ? HEADWAY_PHASE_PRE : HEADWAY_PHASE_POST;
  options.on_error = g_test_rand_int_range (0, 4) == 0 ? HEADWAY_ON_ERROR_DENY : HEADWAY_ON_ERROR_CONTINUE;
  options.timeout_ms = (guint) g_test_rand_int_range (1, 200);
  peer->model = self;
  peer->calls = g_ptr_array_new ();
  peer->handler = headway_dispatcher_register (self->f.dispatcher, self->f.bus, &options, &transport, peer, self->f.now, &error);
  g_assert_no_error (error);
  g_ptr_array_add (self->peers, peer);
}

static Peer *
any_peer (Model *self)
{
  return g_ptr_array_index (self->peers, (guint) g_test_rand_int_range (0, (gint32) self->peers->len));
}

/* --- Publishing ----------------------------------------------------------------------------- */

/* What becomes of a publish is seen by the observer, in order of ids. */
static void
on_event (HeadwayBus *bus, HeadwayEvent *event, HeadwayInstant now, gpointer user_data)
{
  Model *self = user_data;
  guint principal = principal_of (event);

  g_assert_cmpuint (headway_event_get_id (event), ==, ++self->n_published);
  g_assert_cmpuint (number_of (event), >, self->last_seen[principal]);
  self->last_seen[principal] = number_of (event);
}

static void
on_done (HeadwayBatch *batch, const GError *error, gpointer user_data)
{
  Model *self = user_data;

  self->n_answered += headway_batch_get_count (batch);
  if (error != NULL)
    {
      self->n_denied += headway_batch_get_count (batch);
      g_assert_cmpuint (headway_batch_get_first_id (batch), ==, 0);
    }
}

static void
publish (Model *self)
{
  HeadwayPrincipalTable *principals = headway_bus_table_get_principals (self->f.table);
  guint n = g_test_rand_int_range (0, 8) == 0 ? 3 : 1;
  HeadwayBatch *batch = headway_batch_new (n, on_done, self);

  for (guint i = 0; i < n; i++)
    {
      g_autofree char *name = g_strdup_printf ("p%d", g_test_rand_int_range (0, N_PRINCIPALS));
      g_autoptr (HeadwayPrincipal) principal = headway_principal_table_intern (principals, name, NULL);
      g_autofree char *data = g_strdup_printf ("%u", ++self->next);
      HeadwayPublication publication = {
        .topic = topics[g_test_rand_int_range (0, G_N_ELEMENTS (topics))],
        .principal = principal,
        .data = data,
        .data_length = strlen (data),
      };

      headway_batch_add (batch, headway_event_new (&publication, 1000, self->f.now, NULL));
    }
  headway_bus_table_publish (self->f.table, self->f.bus, 1000, batch, self->f.now);
}

/* --- Answers -------------------------------------------------------------------------------- */

static void
answer (Model *self)
{
  Peer *peer = any_peer (self);
  HeadwayHandlerCall *call;
  const char *verdict = verdicts[g_test_rand_int_range (0, G_N_ELEMENTS (verdicts))];
  gint kind = g_test_rand_int_range (0, 20);

  if (peer->calls->len == 0)
    return;
  call = g_ptr_array_steal_index (peer->calls, (guint) g_test_rand_int_range (0, (gint32) peer->calls->len));
  if (!headway_handler_call_is_abandoned (call))
    {
      set_free (peer, call);
      if (kind == 0)
        peer->n_lost_told -= count_lost (headway_handler_call_get_lost (call));
    }
  if (kind == 0)
    headway_handler_call_retry (call, self->f.now);
  else if (kind == 1)
    headway_handler_call_fail (call, "failed", self->f.now);
  else if (kind == 2)
    headway_handler_call_skip (call, self->f.now);
  else
    headway_handler_call_finish (call, verdict, "", 0, self->f.now);
}

static void
come_and_go (Model *self)
{
  Peer *peer = any_peer (self);
  guint n = headway_dispatcher_count_handlers (self->f.dispatcher, self->f.bus);

  switch (g_test_rand_int_range (0, 6))
    {
    case 0:
      headway_handler_drop (peer->handler, self->f.now);
      break;
    case 1:
      headway_handler_unregister (peer->handler, self->f.now);
      break;
    case 2:
      headway_handler_set_room (peer->handler, FALSE, self->f.now);
      break;
    case 3:
    case 4:
      headway_handler_set_room (peer->handler, TRUE, self->f.now);
      break;
    default:
      break;
    }
  if (n < N_HANDLERS)
    add_peer (self);
}

/* --- After each step ------------------------------------------------------------------------ */

static void
check_peer (Peer *self)
{
  HeadwayHandler *handler = self->handler;

  g_assert_cmpuint (headway_handler_get_admitted (handler), ==,
                    headway_handler_get_handled (handler) + headway_handler_get_dropped (handler) +
                      headway_handler_get_pending (handler) + headway_handler_get_in_flight (handler));
  g_assert_cmpuint (headway_handler_get_in_flight (handler), ==, self->n_busy);
  g_assert_cmpuint (self->n_lost_told, <=, headway_handler_get_dropped (handler));
}

static void
check (Model *self)
{
  guint in_flight = 0;

  for (guint i = 0; i < self->peers->len; i++)
    {
      Peer *peer = g_ptr_array_index (self->peers, i);

      check_peer (peer);
      in_flight += headway_handler_get_in_flight (peer->handler);
    }
  g_assert_cmpuint (headway_dispatcher_get_in_flight (self->f.dispatcher), ==, in_flight);
  g_assert_cmpuint (in_flight, <=, HEADWAY_CALLS_MAX);
  g_assert_cmpuint (headway_bus_get_last_id (self->f.bus), ==, self->n_published);
}

/* Those that have ended and have nothing left to give back; else there would be thousands. */
static void
forget_peers (Model *self)
{
  for (guint i = self->peers->len; i > 0; i--)
    {
      Peer *peer = g_ptr_array_index (self->peers, i - 1);

      if (peer->has_ended && peer->calls->len == 0)
        g_ptr_array_remove_index_fast (self->peers, i - 1);
    }
}

static void
step (Model *self)
{
  gint kind = g_test_rand_int_range (0, 100);

  if (kind < 45)
    publish (self);
  else if (kind < 90)
    answer (self);
  else if (kind < 97)
    test_dispatch_pass (&self->f, g_test_rand_int_range (0, 30));
  else
    come_and_go (self);
  headway_bus_table_run (self->f.table, self->f.now);
}

/* All answers come, all that waits is handled: every publish was answered, and nothing is left. */
static void
finish (Model *self)
{
  for (guint i = 0; i < self->peers->len; i++)
    headway_handler_set_room (((Peer *) g_ptr_array_index (self->peers, i))->handler, TRUE, self->f.now);
  for (guint i = 0; i < 10000; i++)
    {
      for (guint j = 0; j < self->peers->len; j++)
        answer (self);
      test_dispatch_pass (&self->f, 10);
      headway_bus_table_run (self->f.table, self->f.now);
      check (self);
    }
  g_assert_cmpuint (headway_dispatcher_get_undecided (self->f.dispatcher), ==, 0);
  g_assert_cmpuint (headway_dispatcher_get_in_flight (self->f.dispatcher), ==, 0);
  g_assert_cmpuint (self->n_answered, ==, self->next);
  g_assert_cmpuint (self->n_published + self->n_denied, ==, self->next);
  for (guint i = 0; i < self->peers->len; i++)
    g_assert_cmpuint (headway_handler_get_pending (((Peer *) g_ptr_array_index (self->peers, i))->handler), ==, 0);
}

static void
run_model (guint queue_max, guint principals_max, guint64 budget)
{
  Model self = { 0 };
  HeadwayLimits *limits;

  test_dispatch_set_up (&self.f);
  limits = headway_bus_table_get_limits (self.f.table);
  limits->handler_queue = queue_max;
  limits->handler_principals = principals_max;
  limits->handler_idle_grace_ms = 20;
  limits->event_max_bytes = limits->route_budget_bytes = budget;
  self.peers = g_ptr_array_new_with_free_func (peer_free);
  headway_bus_add_observer (self.f.bus, on_event, &self, NULL);
  for (guint i = 0; i < N_HANDLERS; i++)
    add_peer (&self);
  for (guint i = 0; i < STEPS / 3; i++)
    {
      step (&self);
      check (&self);
      if (i % 100 == 0)
        forget_peers (&self);
      if (self.peers->len == 0)
        add_peer (&self);
    }
  finish (&self);
  g_test_message ("%u events, %u denied", self.next, self.n_denied);
  test_dispatch_clear (&self.f);
  g_ptr_array_unref (self.peers);
}

static void
test_with_room (void)
{
  run_model (64, 10000, 1 << 20);
}

static void
test_with_short_queues (void)
{
  run_model (3, 10000, 1 << 20);
}

static void
test_with_shared_queues_and_few_bytes (void)
{
  run_model (5, 2, 120);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/dispatcher/model/with-room", test_with_room);
  g_test_add_func ("/dispatcher/model/with-short-queues", test_with_short_queues);
  g_test_add_func ("/dispatcher/model/with-shared-queues-and-few-bytes", test_with_shared_queues_and_few_bytes);
  return g_test_run ();
}
