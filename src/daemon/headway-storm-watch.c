/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "daemon/headway-storm-watch.h"

#include "daemon/headway-journal.h"
#include "engine/headway-storm-monitor.h"

/* Counted: the table and every bus hold one reference besides the daemon's, since buses may outlive it. */
struct _HeadwayStormWatch
{
  HeadwayStormMonitor *monitor; /* owned, nullable: NULL once the daemon is through with it */
  gint64 told_us;               /* when a window ended that was a storm; 0: none has */
};

static void
on_storm (const HeadwayStormReport *report, gpointer user_data)
{
  HeadwayStormWatch *self = user_data;
  gint64 now_us = g_get_monotonic_time ();
  gboolean goes_on = self->told_us > 0 && now_us - self->told_us < 2 * report->window_us;

  self->told_us = now_us;
  headway_journal_write_storm (report, goes_on);
}

static void
on_event (HeadwayBus *bus, HeadwayEvent *event, HeadwayInstant now, gpointer user_data)
{
  HeadwayStormWatch *self = user_data;

  if (self->monitor != NULL)
    headway_storm_monitor_add (self->monitor, headway_event_get_topic (event), now);
}

static void
storm_watch_clear (gpointer data)
{
  g_clear_pointer (&((HeadwayStormWatch *) data)->monitor, headway_storm_monitor_free);
}

static void
storm_watch_unref (gpointer data)
{
  g_rc_box_release_full (data, storm_watch_clear);
}

static void
on_bus_added (HeadwayBusTable *table, HeadwayBus *bus, gpointer user_data)
{
  headway_bus_add_observer (bus, on_event, g_rc_box_acquire (user_data), storm_watch_unref);
}

static void
closure_unref (gpointer data, GClosure *closure)
{
  storm_watch_unref (data);
}

HeadwayStormWatch *
headway_storm_watch_new (HeadwayBusTable *table)
{
  HeadwayStormWatch *self = g_rc_box_new0 (HeadwayStormWatch);

  self->monitor = headway_storm_monitor_new (HEADWAY_STORM_RATE, on_storm, self);
  g_signal_connect_data (table, "bus-added", G_CALLBACK (on_bus_added), g_rc_box_acquire (self), closure_unref, 0);
  return self;
}

void
headway_storm_watch_free (HeadwayStormWatch *self)
{
  storm_watch_clear (self);
  storm_watch_unref (self);
}

void
headway_storm_watch_tick (HeadwayStormWatch *self, HeadwayInstant now)
{
  headway_storm_monitor_tick (self->monitor, now);
}
