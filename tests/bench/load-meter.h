/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

#define LOAD_METER_PIDS 8

/**
 * LoadMeter:
 *
 * What a load generator measures between load_meter_begin() and load_meter_end(): time from publish
 * to delivery, processor time and memory of the servers, of the generator, and of everybody else,
 * whose share tells whether the run is worth anything.
 */
typedef struct
{
  int pids[LOAD_METER_PIDS];
  guint n_pids;
  gboolean is_measuring;
  gint64 begin_ns;
  gint64 end_ns;
  double server_cpu_s; /* a mark until the end, then what was used; so the other two */
  double own_cpu_s;
  double busy_s;
  guint64 histogram[64 * 64];
  guint64 n_latencies;
} LoadMeter;

/* @pids: (nullable): process ids of the servers, with commas between. */
void load_meter_init (LoadMeter *self, const char *pids);
void load_meter_begin (LoadMeter *self);
void load_meter_end (LoadMeter *self);
double load_meter_seconds (const LoadMeter *self);

/* Appends the members that all generators print: `"name":value,` each. @operations: what processor time
 * is shared out to. */
void load_meter_append_json (const LoadMeter *self, GString *text, guint64 operations);

/* Resident memory of the servers, in bytes. */
gint64 load_meter_resident (const LoadMeter *self);

gint64 load_now_ns (void);
/* @nanoseconds from publish to delivery; in buckets of at most 1.6 % width. */
void load_meter_add_latency (LoadMeter *self, gint64 nanoseconds);

/* Says why on standard error and leaves: 2 for a failed run, 3 for what the server does not support. */
void load_fail (int status, const char *format, ...) G_GNUC_PRINTF (2, 3) G_GNUC_NORETURN;
/* As many descriptors as the system lets us have. */
void load_raise_descriptors (void);

G_END_DECLS
