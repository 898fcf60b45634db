/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-bus.h"

#include <string.h>

HeadwayInstant
test_instant (gint64 us)
{
  return (HeadwayInstant){ .monotonic_us = 1000000 + us, .real_us = 1700000000000000 + us };
}

TestBus
test_bus_new (HeadwayBusOptions options, const char *epoch, guint64 last_id)
{
  TestBus self = { .now = test_instant (0) };
  HeadwayLimits limits;

  headway_limits_init (&limits);
  for (const HeadwayBusOptionSpec *spec = headway_bus_option_specs (); spec->key != NULL; spec++)
    if (headway_bus_options_get (&options, spec) != 0)
      g_assert_true (headway_bus_options_set (&limits.bus, spec, headway_bus_options_get (&options, spec), NULL));
  self.principals = headway_principal_table_new ();
  self.bus = headway_bus_new ("test", epoch, last_id, &limits.bus, self.principals);
  return self;
}

void
test_bus_clear (TestBus *self)
{
  g_clear_object (&self->bus);
  g_clear_pointer (&self->principals, headway_principal_table_unref);
}

/* --- Publishing ----------------------------------------------------------------------------- */

static HeadwayEvent *
make_event (HeadwayPublication *publication)
{
  g_autoptr (GError) error = NULL;
  HeadwayEvent *event;

  publication->data_length = strlen (publication->data);
  publication->meta = "{\"serverTimestamp\":1}";
  publication->meta_length = strlen (publication->meta);
  event = headway_event_new (publication, HEADWAY_EVENT_CEILING, test_instant (0), &error);
  g_assert_no_error (error);
  return event;
}

HeadwayEvent *
test_event (HeadwayPrincipal *principal, const char *data)
{
  HeadwayPublication publication = { .type = "foo", .principal = principal, .data = data };

  return make_event (&publication);
}

HeadwayEvent *
test_event_on (HeadwayPrincipal *principal, const char *topic, const char *type)
{
  HeadwayPublication publication = { .topic = topic, .type = type, .principal = principal, .data = "1" };

  return make_event (&publication);
}

char *
test_string (guint n)
{
  char *text = g_malloc (n + 3);

  memset (text, 'x', n + 2);
  text[0] = text[n + 1] = '"';
  text[n + 2] = '\0';
  return text;
}

static void
publish_event (TestBus *self, HeadwayEvent *event)
{
  HeadwayBatch *batch = headway_batch_new (1, NULL, NULL);

  headway_batch_add (batch, event);
  headway_bus_publish (self->bus, batch, self->now);
}

void
test_pub (TestBus *self, guint n)
{
  for (guint i = 0; i < n; i++)
    publish_event (self, test_event (headway_bus_get_system (self->bus), "1"));
}

void
test_pub_data (TestBus *self, const char *data)
{
  publish_event (self, test_event (headway_bus_get_system (self->bus), data));
}

void
test_pub_chars (TestBus *self, guint n)
{
  g_autofree char *data = test_string (n);

  test_pub_data (self, data);
}

void
test_pub_on (TestBus *self, const char *topic, const char *type)
{
  publish_event (self, test_event_on (headway_bus_get_system (self->bus), topic, type));
}

void
test_seed (TestBus *self, guint n)
{
  HeadwayBatch *batch = test_batch (self, n, NULL);

  headway_batch_set_seed (batch, TRUE);
  headway_bus_publish (self->bus, batch, self->now);
  test_run (self);
}

static void
on_batch_done (HeadwayBatch *batch, const GError *error, gpointer user_data)
{
  TestResult *result = user_data;

  if (result == NULL)
    return;
  result->n_calls++;
  result->first_id = headway_batch_get_first_id (batch);
  result->outcome = *headway_batch_get_outcome (batch);
  g_clear_error (&result->error);
  result->error = error != NULL ? g_error_copy (error) : NULL;
}

void
test_result_clear (TestResult *self)
{
  g_clear_error (&self->error);
}

HeadwayBatch *
test_batch (TestBus *self, guint n, TestResult *result)
{
  HeadwayBatch *batch = headway_batch_new (n, on_batch_done, result);

  for (guint i = 0; i < n; i++)
    headway_batch_add (batch, test_event (headway_bus_get_system (self->bus), "1"));
  return batch;
}

guint
test_run (TestBus *self)
{
  guint n = 1;

  while (headway_bus_run (self->bus, self->now))
    n++;
  return n;
}

/* --- Subscribing ---------------------------------------------------------------------------- */

HeadwaySubscription *
test_subscribe (TestBus *self, const HeadwaySubscribeOptions *options)
{
  g_autoptr (GError) error = NULL;
  HeadwaySubscription *subscription = headway_bus_subscribe (self->bus, options, self->now, &error);

  g_assert_no_error (error);
  g_assert_nonnull (subscription);
  return subscription;
}

HeadwaySubscription *
test_live (TestBus *self, guint max_queued)
{
  HeadwaySubscribeOptions options;

  headway_subscribe_options_init (&options);
  if (max_queued > 0)
    options.max_queued = max_queued;
  return test_subscribe (self, &options);
}

HeadwaySubscription *
test_from_epoch (TestBus *self, guint64 cursor, const char *epoch)
{
  HeadwaySubscribeOptions options;

  headway_subscribe_options_init (&options);
  options.cursor = (HeadwayCursor){ .is_set = TRUE, .last_event_id = cursor, .epoch = epoch };
  return test_subscribe (self, &options);
}

HeadwaySubscription *
test_from (TestBus *self, guint64 cursor)
{
  return test_from_epoch (self, cursor, NULL);
}

HeadwayFilter *
test_filter (const char *patterns, const char *types)
{
  g_auto (GStrv) pattern_list = patterns != NULL ? g_strsplit (patterns, " ", -1) : NULL;
  g_auto (GStrv) type_list = types != NULL ? g_strsplit (types, " ", -1) : NULL;
  g_autoptr (GError) error = NULL;
  HeadwayFilter *filter;

  filter = headway_filter_new ((const char *const *) pattern_list, (const char *const *) type_list, &error);
  g_assert_no_error (error);
  return filter;
}

HeadwaySubscription *
test_filtered (TestBus *self, const char *patterns, const char *types)
{
  g_autoptr (HeadwayFilter) filter = test_filter (patterns, types);
  HeadwaySubscribeOptions options;

  headway_subscribe_options_init (&options);
  options.filter = filter;
  return test_subscribe (self, &options);
}

HeadwayEvent *
test_take_event (TestBus *t, HeadwaySubscription *subscription)
{
  HeadwayDelivery delivery;

  g_assert_cmpuint (headway_subscription_take (subscription, t->now, 1, G_MAXSIZE, &delivery), ==, 1);
  return delivery.event;
}
