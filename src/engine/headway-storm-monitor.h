/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-types.h"

G_BEGIN_DECLS

/* routing.md 1.0: a window of 5 s, a warning from 100 events a second, the 5 busiest topics. */
#define HEADWAY_STORM_WINDOW_US (5 * G_USEC_PER_SEC)
#define HEADWAY_STORM_RATE      100
#define HEADWAY_STORM_TOPICS    5

/* Where events are counted that were lost, and those of topics beyond the ones it tells apart. */
#define HEADWAY_STORM_DROPPED "(dropped)"
#define HEADWAY_STORM_OTHER   "(other)"

typedef struct
{
  const char *topic;
  guint64 count;
} HeadwayStormTopic;

/**
 * HeadwayStormReport:
 * @events: in the window, lost ones included
 * @topics: the busiest first, by name where they are equal
 */
typedef struct
{
  guint64 events;
  gint64 window_us;
  HeadwayStormTopic topics[HEADWAY_STORM_TOPICS];
  guint n_topics;
} HeadwayStormReport;

typedef void (*HeadwayStormFunc) (const HeadwayStormReport *report, gpointer user_data);

/**
 * HeadwayStormMonitor:
 *
 * Says who floods, when events come faster than a person would expect (case 158). Windows follow one
 * another from the first event on; a window with at least the rate of events is told once, when it has
 * ended. Beside the hot path: an observer of a bus, or of all.
 */
typedef struct _HeadwayStormMonitor HeadwayStormMonitor;

/* @rate: events a second, from 1. @func: called when a window has ended; it must not come back here. */
HeadwayStormMonitor *headway_storm_monitor_new (guint rate, HeadwayStormFunc func, gpointer user_data);
void headway_storm_monitor_free (HeadwayStormMonitor *self);

void headway_storm_monitor_add (HeadwayStormMonitor *self, const char *topic, HeadwayInstant now);
/* The observer itself has missed @count events. */
void headway_storm_monitor_add_dropped (HeadwayStormMonitor *self, guint64 count, HeadwayInstant now);
/* Ends a window that is over; the next event would do it too. */
void headway_storm_monitor_tick (HeadwayStormMonitor *self, HeadwayInstant now);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayStormMonitor, headway_storm_monitor_free)

G_END_DECLS
