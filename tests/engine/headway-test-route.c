/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-route.h"

#include <string.h>

HeadwaySubscribeOptions
test_route_options (guint64 budget)
{
  HeadwaySubscribeOptions options;

  headway_subscribe_options_init (&options);
  options.mode = HEADWAY_MODE_ROUTED;
  if (budget > 0)
    options.route.budget_bytes = budget;
  return options;
}

HeadwaySubscription *
test_route (TestBus *self, guint64 budget)
{
  HeadwaySubscribeOptions options = test_route_options (budget);

  return test_subscribe (self, &options);
}

HeadwaySubscription *
test_broadcast (TestBus *self, const char *patterns, guint64 cursor, gboolean has_cursor)
{
  g_autoptr (HeadwayFilter) filter = test_filter (patterns, NULL);
  HeadwaySubscribeOptions options;

  headway_subscribe_options_init (&options);
  options.mode = HEADWAY_MODE_BROADCAST;
  options.filter = filter;
  options.cursor = (HeadwayCursor){ .is_set = has_cursor, .last_event_id = cursor };
  return test_subscribe (self, &options);
}

HeadwayPrincipal *
test_principal (TestBus *self, const char *name)
{
  static const char key[] = "test-principals";
  GPtrArray *kept = g_object_get_data (G_OBJECT (self->bus), key);
  g_autoptr (GError) error = NULL;
  HeadwayPrincipal *principal;

  if (name == NULL)
    return headway_bus_get_system (self->bus);
  principal = headway_principal_table_intern (self->principals, name, &error);
  g_assert_no_error (error);
  if (kept == NULL)
    {
      kept = g_ptr_array_new_with_free_func ((GDestroyNotify) headway_principal_unref);
      g_object_set_data_full (G_OBJECT (self->bus), key, kept, (GDestroyNotify) g_ptr_array_unref);
    }
  g_ptr_array_add (kept, principal);
  return principal;
}

HeadwayEvent *
test_event_at (TestBus *self, const char *principal, const char *topic, gsize cost, gboolean is_final)
{
  g_autoptr (HeadwayPrincipal) interned = NULL;
  g_autoptr (GError) error = NULL;
  gsize length = cost - strlen (topic);
  g_autofree char *data = g_malloc (length);
  HeadwayPublication publication = {
    .topic = topic,
    .data = data,
    .data_length = length,
    .is_final = is_final,
  };
  HeadwayEvent *event;

  if (principal != NULL)
    interned = headway_principal_table_intern (self->principals, principal, &error);
  g_assert_no_error (error);
  publication.principal = interned != NULL ? interned : headway_bus_get_system (self->bus);
  memset (data, '1', length);
  event = headway_event_new (&publication, HEADWAY_EVENT_CEILING, self->now, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (headway_event_get_cost (event), ==, cost);
  return event;
}

HeadwayEvent *
test_event_of (TestBus *self, const char *principal, gsize cost, gboolean is_final)
{
  return test_event_at (self, principal, "t.x", cost, is_final);
}

/* A publish from inside another is answered when its caller has returned. */
typedef struct
{
  HeadwayOutcome outcome;
  gboolean is_answered;
  gboolean is_left;
} PublishCall;

static void
on_published (HeadwayBatch *batch, const GError *error, gpointer user_data)
{
  PublishCall *call = user_data;

  g_assert_no_error ((GError *) error);
  call->outcome = *headway_batch_get_outcome (batch);
  call->is_answered = TRUE;
  if (call->is_left)
    g_free (call);
}

HeadwayOutcome
test_publish (TestBus *self, HeadwayEvent *event)
{
  PublishCall *call = g_new0 (PublishCall, 1);
  HeadwayBatch *batch = headway_batch_new (1, on_published, call);
  HeadwayOutcome outcome;

  headway_batch_add (batch, event);
  headway_bus_publish (self->bus, batch, self->now);
  outcome = call->outcome;
  call->is_left = TRUE;
  if (call->is_answered)
    g_free (call);
  return outcome;
}

HeadwayOutcome
test_pub_as (TestBus *self, const char *principal, gsize cost, guint n)
{
  HeadwayOutcome sum = { 0 };

  for (guint i = 0; i < n; i++)
    {
      HeadwayOutcome outcome = test_publish (self, test_event_of (self, principal, cost, FALSE));

      sum.subscriptions += outcome.subscriptions;
      sum.refused += outcome.refused;
      sum.evicted += outcome.evicted;
    }
  return sum;
}

HeadwayOutcome
test_pub_final (TestBus *self, const char *principal, gsize cost)
{
  return test_publish (self, test_event_of (self, principal, cost, TRUE));
}

/* --- Reading -------------------------------------------------------------------------------- */

static char *
member_of (HeadwayEvent *event, const char *name)
{
  gsize length;
  const char *data = headway_event_get_data (event, &length);
  HeadwayJsonIter iter;
  HeadwayJson json, key, value;

  g_assert_true (headway_json_validate (data, length, HEADWAY_JSON_DEPTH_MAX, &json, NULL));
  headway_json_iter_init (&iter, &json);
  while (headway_json_iter_next (&iter, &key, &value))
    if (headway_json_string_equals (&key, name))
      return value.type == HEADWAY_JSON_STRING ? g_strndup (value.text + 1, value.length - 2)
                                               : g_strndup (value.text, value.length);
  return g_strdup ("-");
}

static void
append_gap (GString *text, HeadwayEvent *event)
{
  static const char *const members[] = { "reason", "principal", "count", "bytes", "firstId", "lastId", "filtered" };
  char *values[G_N_ELEMENTS (members)];

  g_assert_cmpuint (headway_event_get_size (event), <=, HEADWAY_NOTICE_SIZE_MAX);
  for (guint i = 0; i < G_N_ELEMENTS (members); i++)
    values[i] = member_of (event, members[i]);
  g_string_append_printf (text, "gap(%s,%s,%s,%s,%s..%s%s)", values[0], values[1], values[2], values[3], values[4],
                          values[5], strcmp (values[6], "true") == 0 ? ",filtered" : "");
  for (guint i = 0; i < G_N_ELEMENTS (members); i++)
    g_free (values[i]);
}

static void
append_synthetic (GString *text, HeadwayEvent *event)
{
  static const char *const words[][4] = {
    { "state_resync_required", "resync", "reason", NULL },
    { "replay_complete", "rc", "replayedCount", NULL },
    { "client_evicted", "evict", "reason", "lastDeliveredId" },
  };
  const char *type = headway_event_get_type (event);

  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    if (strcmp (type, words[i][0]) == 0)
      {
        g_autofree char *first = member_of (event, words[i][2]);
        g_autofree char *second = words[i][3] != NULL ? member_of (event, words[i][3]) : NULL;

        g_string_append_printf (text, "%s(%s%s%s)", words[i][1], first, second != NULL ? "," : "",
                                second != NULL ? second : "");
        return;
      }
  if (strcmp (type, "gap") == 0)
    {
      append_gap (text, event);
      return;
    }
  g_assert_cmpstr (type, ==, "session_snapshot");
  g_string_append (text, "snapshot");
}

void
test_route_append (GString *text, HeadwayEvent *event)
{
  if (text->len > 0)
    g_string_append_c (text, ' ');
  if (headway_event_is_synthetic (event))
    append_synthetic (text, event);
  else if (strcmp (headway_event_get_type (event), "session_closed") == 0)
    g_string_append (text, "closed");
  else
    g_string_append_printf (text, "%s#%" G_GUINT64_FORMAT,
                            headway_principal_get_name (headway_event_get_principal (event)),
                            headway_event_get_id (event));
}

static char *
take (TestBus *self, HeadwaySubscription *subscription, guint n, guint64 budget, gboolean wants_resume)
{
  g_autofree HeadwayDelivery *deliveries = g_new (HeadwayDelivery, n);
  GString *text = g_string_new (NULL);
  guint taken = headway_subscription_drain (subscription, self->now, budget, n, G_MAXSIZE, deliveries);

  g_assert_cmpuint (taken, <=, n);
  for (guint i = 0; i < taken; i++)
    {
      if (headway_event_is_synthetic (deliveries[i].event))
        g_assert_cmpuint (deliveries[i].resume_id, ==, 0);
      test_route_append (text, deliveries[i].event);
      if (wants_resume && !headway_event_is_synthetic (deliveries[i].event))
        g_string_append_printf (text, "@%" G_GUINT64_FORMAT, deliveries[i].resume_id);
      headway_event_unref (deliveries[i].event);
    }
  return g_string_free (text, FALSE);
}

char *
test_route_take (TestBus *self, HeadwaySubscription *subscription, guint n)
{
  return take (self, subscription, n, G_MAXUINT64, FALSE);
}

char *
test_route_take_resumable (TestBus *self, HeadwaySubscription *subscription, guint n)
{
  return take (self, subscription, n, G_MAXUINT64, TRUE);
}

char *
test_route_drain (TestBus *self, HeadwaySubscription *subscription, guint64 budget)
{
  return take (self, subscription, 10000, budget, FALSE);
}

TestTally
test_tally (TestBus *self, HeadwaySubscription *subscription, guint n, guint64 budget)
{
  g_autofree HeadwayDelivery *deliveries = g_new (HeadwayDelivery, n);
  TestTally tally = { 0 };
  guint taken = headway_subscription_drain (subscription, self->now, budget > 0 ? budget : G_MAXUINT64, n, G_MAXSIZE,
                                            deliveries);

  for (guint i = 0; i < taken; i++)
    {
      HeadwayEvent *event = deliveries[i].event;

      if (headway_event_is_synthetic (event))
        {
          g_autofree char *count = member_of (event, "count");

          tally.gaps++;
          tally.lost += g_ascii_strtoull (count, NULL, 10);
        }
      else
        {
          tally.events++;
          tally.cost += headway_event_get_cost (event);
        }
      headway_event_unref (event);
    }
  return tally;
}

/* --- A sink --------------------------------------------------------------------------------- */

static gboolean
sink_put (HeadwaySink *sink, HeadwayEvent *event, guint64 resume_id)
{
  TestRouteSink *self = (TestRouteSink *) sink;

  if (self->room == 0)
    return FALSE;
  self->room--;
  self->n_puts++;
  test_route_append (self->text, event);
  g_string_append_printf (self->text, "@%" G_GUINT64_FORMAT, resume_id);
  return TRUE;
}

static void
sink_wake (HeadwaySink *sink)
{
  ((TestRouteSink *) sink)->n_wakes++;
}

void
test_route_sink_init (TestRouteSink *self, guint room)
{
  static const HeadwaySinkClass klass = { .put = sink_put, .wake = sink_wake };

  *self = (TestRouteSink){ .base.klass = &klass, .room = room, .text = g_string_new (NULL) };
}

void
test_route_sink_clear (TestRouteSink *self)
{
  g_string_free (self->text, TRUE);
}
