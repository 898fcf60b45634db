/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-table.h"
#include "cli/headway-cli-top-view.h"

#include <string.h>

static void
add (HeadwayCliSample *sample,
     const char *objects,
     const char *subscriptions,
     const char *metrics)
{
  g_autoptr (GVariant) first = g_variant_ref_sink (g_variant_new_parsed (objects));
  g_autoptr (GVariant) second = g_variant_ref_sink (g_variant_new_parsed (subscriptions));
  g_autoptr (GVariant) third = g_variant_ref_sink (g_variant_new_parsed (metrics));

  headway_cli_sample_add_buses (sample, first);
  headway_cli_sample_add_subscriptions (sample, "b", second);
  headway_cli_sample_add_metrics (sample, third);
}

/* Two seconds apart; in between 100 events, 40 of them lost. */
static HeadwayCliSample *
create_sample (void)
{
  g_autoptr (HeadwayCliSample) before = headway_cli_sample_new (1000000);
  HeadwayCliSample *sample = headway_cli_sample_new (3000000);

  add (before,
       "{objectpath '/b': {'org.headway.Headway1.Bus': {'Name': <'b'>, 'Epoch': <'e'>, 'LastEventId': <uint64 100>}}}",
       "[{'number': <uint32 7>, 'owner': <':1.1'>, 'mode': <'routed'>, 'queued': <uint32 1>, 'dropped': <uint64 10>}]",
       "[('headway_events_published_total', {'kind': 'event'}, 100.0), ('headway_route_drops_total', {'reason': 'budget'}, 10.0)]");
  add (sample,
       "{objectpath '/b': {'org.headway.Headway1.Bus': {'Name': <'b'>, 'Epoch': <'e'>, 'LastEventId': <uint64 200>}}}",
       "[{'number': <uint32 7>, 'owner': <'\\u001b[2J\\u009b'>, 'mode': <'routed'>, 'queued': <uint32 2>, 'dropped': <uint64 50>,"
       "  'principals': <@a(suttt) [('', 1, 10, 0, 1), ('a:\\u202e', 1, 90, 3, 2)]>}]",
       "[('headway_events_published_total', {'kind': 'event'}, 200.0), ('headway_route_drops_total', {'reason': 'budget'}, 50.0),"
       " ('headway_route_drops_total', {'reason': 'oversize'}, 0.0)]");
  headway_cli_sample_finish (before, NULL);
  headway_cli_sample_finish (sample, before);
  return sample;
}

static void
test_rates (void)
{
  g_autoptr (HeadwayCliSample) sample = create_sample ();
  const HeadwayCliSampleSubscription *subscription = g_ptr_array_index (sample->subscriptions, 0);
  const HeadwayCliSamplePrincipal *principal = g_ptr_array_index (sample->principals, 0);
  const HeadwayCliSampleLoss *loss = g_ptr_array_index (sample->losses, 0);

  g_assert_cmpfloat (((HeadwayCliSampleBus *) g_ptr_array_index (sample->buses, 0))->events_per_second, ==, 50);
  g_assert_cmpfloat (sample->published_per_second, ==, 50);
  g_assert_cmpfloat (subscription->dropped_per_second, ==, 20);
  g_assert_true (subscription->is_slow);
  g_assert_cmpuint (sample->losses->len, ==, 1);
  g_assert_cmpfloat (loss->per_second, ==, 20);
  g_assert_cmpuint (principal->queued_bytes, ==, 90);
  g_assert_true (principal->is_flooding);
  g_assert_false (((HeadwayCliSamplePrincipal *) g_ptr_array_index (sample->principals, 1))->is_flooding);
}

static void
test_new_epoch_has_no_rate (void)
{
  g_autoptr (HeadwayCliSample) before = headway_cli_sample_new (0);
  g_autoptr (HeadwayCliSample) sample = headway_cli_sample_new (1000000);

  add (before, "{objectpath '/b': {'org.headway.Headway1.Bus': {'Name': <'b'>, 'Epoch': <'e'>, 'LastEventId': <uint64 1>}}}",
       "@aa{sv} []", "[('headway_events_published_total', @a{ss} {}, 9.0)]");
  add (sample, "{objectpath '/b': {'org.headway.Headway1.Bus': {'Name': <'b'>, 'Epoch': <'f'>, 'LastEventId': <uint64 10000>}}}",
       "@aa{sv} []", "[('headway_events_published_total', @a{ss} {}, 0.0)]");
  headway_cli_sample_finish (sample, before);
  g_assert_cmpfloat (((HeadwayCliSampleBus *) g_ptr_array_index (sample->buses, 0))->events_per_second, ==, HEADWAY_CLI_RATE_UNKNOWN);
  g_assert_cmpfloat (sample->published_per_second, ==, HEADWAY_CLI_RATE_UNKNOWN);
}

static void
test_lines_fit_and_are_harmless (void)
{
  g_autoptr (HeadwayCliSample) sample = create_sample ();

  for (guint width = 1; width < 140; width++)
    {
      for (guint height = 0; height < 30; height++)
        {
          g_autoptr (GPtrArray) lines = headway_cli_top_view_create_lines (sample, width, height, FALSE);

          g_assert_true (height == 0 || lines->len <= height);
          for (guint i = 0; i < lines->len; i++)
            {
              const char *line = g_ptr_array_index (lines, i);

              g_assert_cmpint (g_utf8_strlen (line, -1), <=, width);
              g_assert_null (strpbrk (line, "\033\r\n"));
              g_assert_null (strstr (line, "\302\233"));
              g_assert_null (strstr (line, "\342\200\256"));
            }
        }
    }
}

static void
test_fitted (void)
{
  g_autoptr (GString) line = g_string_new (NULL);

  headway_cli_table_append_fitted (line, "ab", 4, FALSE);
  headway_cli_table_append_fitted (line, "ab", 4, TRUE);
  headway_cli_table_append_fitted (line, "abcde", 4, TRUE);
  headway_cli_table_append_fitted (line, "\303\244\346\274\242x", 3, FALSE);
  headway_cli_table_append_fitted (line, "x", 0, FALSE);
  g_assert_cmpstr (line->str, ==, "ab    ababc~\303\244~ ");
}

int
main (int argc,
      char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/cli/top/rates", test_rates);
  g_test_add_func ("/cli/top/new-epoch-has-no-rate", test_new_epoch_has_no_rate);
  g_test_add_func ("/cli/top/lines-fit-and-are-harmless", test_lines_fit_and_are_harmless);
  g_test_add_func ("/cli/top/fitted-text", test_fitted);
  return g_test_run ();
}
