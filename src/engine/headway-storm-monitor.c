/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-storm-monitor.h"

#include <string.h>

/* Topics of one window that are told apart: a peer that makes up topics must not grow it. */
#define TOPICS_MAX 1024

struct _HeadwayStormMonitor
{
  guint64 threshold; /* events in a window */
  HeadwayStormFunc func;
  gpointer user_data; /* borrowed, outlives self */

  gboolean is_open; /* a window has begun */
  gint64 start_us;
  guint64 events;
  guint64 dropped;
  guint64 other;
  GHashTable *topics; /* topic (owned) → guint64 (owned): events */
};

HeadwayStormMonitor *
headway_storm_monitor_new (guint rate, HeadwayStormFunc func, gpointer user_data)
{
  HeadwayStormMonitor *self = g_new0 (HeadwayStormMonitor, 1);

  g_assert (rate > 0 && func != NULL);
  self->threshold = (guint64) rate * HEADWAY_STORM_WINDOW_US / G_USEC_PER_SEC;
  self->func = func;
  self->user_data = user_data;
  self->topics = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  return self;
}

void
headway_storm_monitor_free (HeadwayStormMonitor *self)
{
  g_hash_table_unref (self->topics);
  g_free (self);
}

/* Puts @topic where it belongs among the busiest so far. */
static void
rank (HeadwayStormReport *report, const char *topic, guint64 count)
{
  guint at = report->n_topics;

  if (count == 0)
    return;
  while (at > 0 && (report->topics[at - 1].count < count ||
                    (report->topics[at - 1].count == count && strcmp (report->topics[at - 1].topic, topic) > 0)))
    at--;
  if (at == HEADWAY_STORM_TOPICS)
    return;
  report->n_topics = MIN (report->n_topics + 1, HEADWAY_STORM_TOPICS);
  memmove (&report->topics[at + 1], &report->topics[at], (report->n_topics - 1 - at) * sizeof report->topics[0]);
  report->topics[at] = (HeadwayStormTopic){ topic, count };
}

static void
tell (HeadwayStormMonitor *self)
{
  HeadwayStormReport report = { .events = self->events, .window_us = HEADWAY_STORM_WINDOW_US };
  GHashTableIter iter;
  gpointer topic, count;

  g_hash_table_iter_init (&iter, self->topics);
  while (g_hash_table_iter_next (&iter, &topic, &count))
    rank (&report, topic, *(guint64 *) count);
  rank (&report, HEADWAY_STORM_DROPPED, self->dropped);
  rank (&report, HEADWAY_STORM_OTHER, self->other);
  self->func (&report, self->user_data);
}

void
headway_storm_monitor_tick (HeadwayStormMonitor *self, HeadwayInstant now)
{
  if (!self->is_open || now.monotonic_us - self->start_us < HEADWAY_STORM_WINDOW_US)
    return;
  if (self->events >= self->threshold)
    tell (self);
  g_hash_table_remove_all (self->topics);
  self->events = self->dropped = self->other = 0;
  self->is_open = FALSE;
}

static void
count_events (HeadwayStormMonitor *self, guint64 count, HeadwayInstant now)
{
  headway_storm_monitor_tick (self, now);
  if (!self->is_open)
    {
      self->is_open = TRUE;
      self->start_us = now.monotonic_us;
    }
  self->events += count;
}

void
headway_storm_monitor_add (HeadwayStormMonitor *self, const char *topic, HeadwayInstant now)
{
  guint64 *count;

  count_events (self, 1, now);
  count = g_hash_table_lookup (self->topics, topic);
  if (count == NULL && g_hash_table_size (self->topics) >= TOPICS_MAX)
    {
      self->other++;
      return;
    }
  if (count == NULL)
    {
      count = g_new0 (guint64, 1);
      g_hash_table_insert (self->topics, g_strdup (topic), count);
    }
  (*count)++;
}

void
headway_storm_monitor_add_dropped (HeadwayStormMonitor *self, guint64 count, HeadwayInstant now)
{
  if (count == 0)
    return;
  count_events (self, count, now);
  self->dropped += count;
}
