/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-bus-table.h"
#include "engine/headway-error.h"
#include "engine/headway-rate-limiter.h"
#include "engine/headway-ring.h"

#include <string.h>

/* Rates, metrics and the security log where events are published. */

#define UID 1000

typedef struct
{
  HeadwayBusTable *table; /* owned */
  HeadwayBus *bus;        /* borrowed: of the table */
  HeadwayLimits *limits;  /* borrowed: of the table */
  GError *error;          /* owned, nullable: of the last publish */
  GString *told;          /* owned: security reports */
} Fixture;

static HeadwayInstant
at (gint64 ms)
{
  return (HeadwayInstant){ .monotonic_us = ms * 1000 };
}

static void
on_ready (HeadwayBus *bus, const GError *error, gpointer user_data)
{
  g_assert_no_error (error);
  *(HeadwayBus **) user_data = bus;
}

static void
on_security_report (HeadwayBusTable *table, const HeadwaySecurityReport *report, Fixture *self)
{
  g_string_append_printf (self->told, "%s%s*%" G_GUINT64_FORMAT, self->told->len > 0 ? " " : "",
                          headway_security_kind_get_name (report->kind), report->count);
}

static void
fixture_init (Fixture *self)
{
  self->table = headway_bus_table_new (NULL);
  self->limits = headway_bus_table_get_limits (self->table);
  self->told = g_string_new (NULL);
  g_signal_connect (self->table, "security-report", G_CALLBACK (on_security_report), self);
  headway_bus_table_create (self->table, "one", NULL, UID, at (0), on_ready, &self->bus);
}

static void
fixture_clear (Fixture *self)
{
  g_object_unref (self->table);
  g_clear_error (&self->error);
  g_string_free (self->told, TRUE);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, fixture_clear)

static void
on_done (HeadwayBatch *batch, const GError *error, gpointer user_data)
{
  Fixture *self = user_data;

  g_clear_error (&self->error);
  self->error = error != NULL ? g_error_copy (error) : NULL;
  if (error != NULL)
    headway_bus_table_add_refusal (self->table, "one", UID, NULL, error, at (0));
}

/* @cost: topic `t` and a string. */
static void
add (Fixture *self, HeadwayBatch *batch, const char *principal_name, gsize cost)
{
  g_autoptr (HeadwayPrincipal) principal = headway_principal_table_intern (headway_bus_table_get_principals (self->table), principal_name, NULL);
  g_autofree char *data = g_strnfill (cost - 1, 'x');
  HeadwayPublication publication = { .topic = "t", .principal = principal, .data = data, .data_length = cost - 1 };

  data[0] = data[cost - 2] = '"';
  headway_batch_add (batch, headway_event_new (&publication, self->limits->event_max_bytes, at (0), NULL));
}

/* TRUE: published. */
static gboolean
publish (Fixture *self, const char *principal, gsize cost, gint64 ms)
{
  HeadwayBatch *batch = headway_batch_new (1, on_done, self);

  add (self, batch, principal, cost);
  headway_bus_table_publish (self->table, self->bus, UID, batch, at (ms));
  return self->error == NULL;
}

static gint64
get (Fixture *self, guint series)
{
  return headway_metrics_get (headway_bus_table_get_metrics (self->table), series);
}

static void
test_over_the_rate_takes_no_id (void)
{
  g_auto (Fixture) self = { 0 };

  fixture_init (&self);
  self.limits->principal_bytes_per_second = 100;
  g_assert_true (publish (&self, "alice", 100, 0));
  g_assert_false (publish (&self, "alice", 10, 0));
  g_assert_error (self.error, HEADWAY_ERROR, HEADWAY_ERROR_RATE_LIMITED);
  g_assert_true (g_str_has_suffix (self.error->message, "retry-after-ms=100"));
  g_assert_cmpuint (headway_bus_get_last_id (self.bus), ==, 1);
  g_assert_true (publish (&self, "bob", 10, 0));
  g_assert_true (publish (&self, "alice", 10, 100));
  g_assert_cmpuint (headway_bus_get_last_id (self.bus), ==, 3);
  g_assert_cmpint (get (&self, HEADWAY_METRIC_EVENTS_PUBLISHED), ==, 3);
  g_assert_cmpint (get (&self, HEADWAY_METRIC_PUBLISH_BYTES), ==, 120);
  g_assert_cmpint (get (&self, HEADWAY_METRIC_PUBLISH_REJECTED + HEADWAY_REJECT_RATE), ==, 1);
}

/* Case 14: what is refused for another reason leaves the quota alone. */
static void
test_case_14_other_refusals_charge_nothing (void)
{
  g_auto (Fixture) self = { 0 };
  g_autoptr (HeadwayBus) bus = NULL;

  fixture_init (&self);
  self.limits->principal_bytes_per_second = 100;
  g_assert_false (publish (&self, "alice", 101, 0));
  g_assert_error (self.error, HEADWAY_ERROR, HEADWAY_ERROR_QUOTA_EXCEEDED);
  g_assert_true (publish (&self, "alice", 60, 0));
  bus = g_object_ref (self.bus);
  headway_bus_close (bus);
  g_assert_false (publish (&self, "alice", 40, 0));
  g_assert_error (self.error, HEADWAY_ERROR, HEADWAY_ERROR_CLOSED);
  headway_bus_table_collect (self.table);
  g_assert_cmpint (get (&self, HEADWAY_METRIC_QUOTA_KEYS + HEADWAY_QUOTA_LEVEL_PRINCIPAL), ==, 1);
  g_assert_cmpint (get (&self, HEADWAY_METRIC_PUBLISH_REJECTED + HEADWAY_REJECT_UNAVAILABLE), ==, 1);
  /* The bus goes, and its keys with it. */
  headway_bus_table_run (self.table, at (0));
  headway_bus_table_collect (self.table);
  g_assert_cmpint (get (&self, HEADWAY_METRIC_QUOTA_KEYS + HEADWAY_QUOTA_LEVEL_PRINCIPAL), ==, 0);
  g_assert_cmpint (get (&self, HEADWAY_METRIC_QUOTA_KEYS + HEADWAY_QUOTA_LEVEL_UID), ==, 1);
  headway_bus_table_tick (self.table, at (5000), 0);
  headway_bus_table_collect (self.table);
  g_assert_cmpint (get (&self, HEADWAY_METRIC_QUOTA_KEYS + HEADWAY_QUOTA_LEVEL_UID), ==, 0);
}

static void
test_batch_waits_or_is_refused_whole (void)
{
  g_auto (Fixture) self = { 0 };
  HeadwayBatch *batch;

  fixture_init (&self);
  self.limits->principal_events_per_second = 3;
  g_assert_true (publish (&self, "alice", 10, 0));
  batch = headway_batch_new (4, on_done, &self);
  for (guint i = 0; i < 3; i++)
    add (&self, batch, "alice", 10);
  add (&self, batch, "bob", 10);
  g_assert_cmpint (headway_bus_table_get_wait_us (self.table, self.bus, UID, batch, at (0)), ==, 333334);
  headway_bus_table_publish (self.table, self.bus, UID, batch, at (0));
  g_assert_error (self.error, HEADWAY_ERROR, HEADWAY_ERROR_RATE_LIMITED);
  g_assert_cmpint (headway_error_get_details (self.error)->index, ==, -1);
  g_assert_cmpuint (headway_bus_get_last_id (self.bus), ==, 1);

  batch = headway_batch_new (4, on_done, &self);
  for (guint i = 0; i < 4; i++)
    add (&self, batch, "alice", 10);
  g_assert_cmpint (headway_bus_table_get_wait_us (self.table, self.bus, UID, batch, at (0)), ==, HEADWAY_RATE_NEVER);
  headway_bus_table_publish (self.table, self.bus, UID, batch, at (0));
  g_assert_error (self.error, HEADWAY_ERROR, HEADWAY_ERROR_QUOTA_EXCEEDED);
  g_assert_true (headway_bus_table_fits_rates (self.table, 10, 3));
  g_assert_false (headway_bus_table_fits_rates (self.table, 10, 4));
}

static void
test_refusals_reach_the_security_log (void)
{
  g_auto (Fixture) self = { 0 };

  fixture_init (&self);
  self.limits->principal_bytes_per_second = 10;
  g_assert_true (publish (&self, "alice", 10, 0));
  for (guint i = 0; i < 50; i++)
    g_assert_false (publish (&self, "alice", 10, 0));
  g_assert_cmpstr (self.told->str, ==, "rate_limited*1");
  headway_bus_table_tick (self.table, at (1000), 0);
  g_assert_cmpstr (self.told->str, ==, "rate_limited*1 rate_limited*49");
  g_assert_cmpint (get (&self, HEADWAY_METRIC_SECURITY_EVENTS + HEADWAY_SECURITY_RATE_LIMITED), ==, 50);
}

static void
test_gauges_match_and_come_back_to_zero (void)
{
  g_auto (Fixture) self = { 0 };
  HeadwaySubscribeOptions options;
  HeadwayDelivery deliveries[8];
  g_autoptr (HeadwaySubscription) subscription = NULL;

  fixture_init (&self);
  headway_subscribe_options_init (&options);
  options.max_queued = 4;
  subscription = headway_bus_subscribe (self.bus, &options, at (0), NULL);
  headway_subscription_set_sink_kind (subscription, "dbus");
  for (guint i = 0; i < 3; i++)
    publish (&self, "alice", 10, 0);
  headway_bus_table_collect (self.table);
  g_assert_cmpint (get (&self, HEADWAY_METRIC_BUSES), ==, 1);
  g_assert_cmpint (get (&self, HEADWAY_METRIC_SUBSCRIPTIONS + HEADWAY_MODE_STREAM), ==, 1);
  g_assert_cmpint (get (&self, HEADWAY_METRIC_QUEUED_EVENTS + HEADWAY_MODE_STREAM), ==, 3);
  g_assert_cmpint (get (&self, HEADWAY_METRIC_QUEUED_BYTES + HEADWAY_MODE_STREAM), ==,
                   (gint64) headway_subscription_get_queued_bytes (subscription));
  g_assert_cmpint (get (&self, HEADWAY_METRIC_RING_EVENTS), ==, 3);
  g_assert_cmpint (get (&self, HEADWAY_METRIC_RING_BYTES), ==, (gint64) headway_ring_get_bytes (headway_bus_get_ring (self.bus)));
  g_assert_cmpint (get (&self, HEADWAY_METRIC_STREAM_WARNINGS + HEADWAY_SUBSCRIBER_DBUS), ==, 1);

  for (guint i = 0; i < 2; i++)
    publish (&self, "alice", 10, 0);
  g_assert_cmpint (get (&self, headway_metric_stream_evictions (HEADWAY_SUBSCRIBER_DBUS, HEADWAY_EVICTION_QUEUE_OVERFLOW)), ==, 1);
  for (guint n = 1; n > 0;)
    {
      n = headway_subscription_take (subscription, at (0), G_N_ELEMENTS (deliveries), HEADWAY_REPLY_BYTES, deliveries);
      for (guint i = 0; i < n; i++)
        headway_event_unref (deliveries[i].event);
    }
  g_assert_cmpint (get (&self, HEADWAY_METRIC_EVENTS_DELIVERED + HEADWAY_SUBSCRIBER_DBUS), ==, 4);
  headway_bus_table_collect (self.table);
  g_assert_cmpint (get (&self, HEADWAY_METRIC_SUBSCRIPTIONS + HEADWAY_MODE_STREAM), ==, 0);
  g_assert_cmpint (get (&self, HEADWAY_METRIC_QUEUED_EVENTS + HEADWAY_MODE_STREAM), ==, 0);
  g_assert_cmpint (get (&self, HEADWAY_METRIC_QUEUED_BYTES + HEADWAY_MODE_STREAM), ==, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);

  g_test_add_func ("/publish-limits/over-the-rate-takes-no-id", test_over_the_rate_takes_no_id);
  g_test_add_func ("/publish-limits/case-14/other-refusals-charge-nothing", test_case_14_other_refusals_charge_nothing);
  g_test_add_func ("/publish-limits/batch-waits-or-is-refused-whole", test_batch_waits_or_is_refused_whole);
  g_test_add_func ("/publish-limits/refusals-reach-the-security-log", test_refusals_reach_the_security_log);
  g_test_add_func ("/publish-limits/gauges-match-and-come-back-to-zero", test_gauges_match_and_come_back_to_zero);

  return g_test_run ();
}
