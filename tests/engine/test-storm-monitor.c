/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-storm-monitor.h"

/* `events: topic=n topic=n …` for each window that was told. */
static void
on_report (const HeadwayStormReport *report, gpointer user_data)
{
  GString *told = user_data;

  g_assert_cmpint (report->window_us, ==, 5 * G_USEC_PER_SEC);
  g_string_append_printf (told, "%" G_GUINT64_FORMAT ":", report->events);
  for (guint i = 0; i < report->n_topics; i++)
    g_string_append_printf (told, " %s=%" G_GUINT64_FORMAT, report->topics[i].topic, report->topics[i].count);
  g_string_append_c (told, '\n');
}

static HeadwayInstant
at (gint64 ms)
{
  return (HeadwayInstant){ .monotonic_us = ms * 1000 };
}

static void
add (HeadwayStormMonitor *monitor, const char *topic, guint n, gint64 ms)
{
  for (guint i = 0; i < n; i++)
    headway_storm_monitor_add (monitor, topic, at (ms));
}

static void
assert_told (GString *told, const char *expected)
{
  g_assert_cmpstr (told->str, ==, expected);
  g_string_truncate (told, 0);
}

static void
test_case_158_from_500_in_5_s (void)
{
  g_autoptr (GString) told = g_string_new (NULL);
  g_autoptr (HeadwayStormMonitor) monitor = headway_storm_monitor_new (HEADWAY_STORM_RATE, on_report, told);

  add (monitor, "a", 300, 0);
  add (monitor, "b", 199, 4999);
  headway_storm_monitor_tick (monitor, at (5000));
  assert_told (told, "");

  add (monitor, "a", 300, 10000);
  add (monitor, "b", 200, 14999);
  headway_storm_monitor_tick (monitor, at (14999));
  assert_told (told, "");
  headway_storm_monitor_tick (monitor, at (15000));
  assert_told (told, "500: a=300 b=200\n");
  headway_storm_monitor_tick (monitor, at (20000));
  assert_told (told, "");
}

static void
test_case_158_lost_events_count (void)
{
  g_autoptr (GString) told = g_string_new (NULL);
  g_autoptr (HeadwayStormMonitor) monitor = headway_storm_monitor_new (HEADWAY_STORM_RATE, on_report, told);

  add (monitor, "a", 100, 0);
  headway_storm_monitor_add_dropped (monitor, 400, at (1000));
  headway_storm_monitor_add_dropped (monitor, 0, at (9000));
  headway_storm_monitor_tick (monitor, at (5000));
  assert_told (told, "500: (dropped)=400 a=100\n");
  headway_storm_monitor_add_dropped (monitor, 500, at (6000));
  headway_storm_monitor_tick (monitor, at (11000));
  assert_told (told, "500: (dropped)=500\n");
}

static void
test_five_busiest_are_named (void)
{
  g_autoptr (GString) told = g_string_new (NULL);
  g_autoptr (HeadwayStormMonitor) monitor = headway_storm_monitor_new (HEADWAY_STORM_RATE, on_report, told);

  add (monitor, "g", 10, 0);
  add (monitor, "f", 100, 0);
  add (monitor, "e", 300, 0);
  add (monitor, "d", 100, 0);
  add (monitor, "c", 50, 0);
  add (monitor, "b", 400, 0);
  add (monitor, "a", 100, 0);
  headway_storm_monitor_tick (monitor, at (5000));
  assert_told (told, "1060: b=400 e=300 a=100 d=100 f=100\n");
}

static void
test_next_event_ends_a_window (void)
{
  g_autoptr (GString) told = g_string_new (NULL);
  g_autoptr (HeadwayStormMonitor) monitor = headway_storm_monitor_new (HEADWAY_STORM_RATE, on_report, told);

  add (monitor, "a", 600, 0);
  add (monitor, "b", 1, 5000);
  assert_told (told, "600: a=600\n");
  /* The new window began with that event. */
  add (monitor, "b", 499, 9999);
  headway_storm_monitor_tick (monitor, at (10000));
  assert_told (told, "500: b=500\n");
}

static void
test_made_up_topics_do_not_grow_it (void)
{
  g_autoptr (GString) told = g_string_new (NULL);
  g_autoptr (HeadwayStormMonitor) monitor = headway_storm_monitor_new (HEADWAY_STORM_RATE, on_report, told);

  for (guint i = 0; i < 1024 + 500; i++)
    {
      g_autofree char *topic = g_strdup_printf ("t.%04u", i);
      add (monitor, topic, 1, 0);
    }
  headway_storm_monitor_tick (monitor, at (5000));
  assert_told (told, "1524: (other)=500 t.0000=1 t.0001=1 t.0002=1 t.0003=1\n");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);

  g_test_add_func ("/storm-monitor/case-158/from-500-in-5-s", test_case_158_from_500_in_5_s);
  g_test_add_func ("/storm-monitor/case-158/lost-events-count", test_case_158_lost_events_count);
  g_test_add_func ("/storm-monitor/five-busiest-are-named", test_five_busiest_are_named);
  g_test_add_func ("/storm-monitor/next-event-ends-a-window", test_next_event_ends_a_window);
  g_test_add_func ("/storm-monitor/made-up-topics-do-not-grow-it", test_made_up_topics_do_not_grow_it);

  return g_test_run ();
}
