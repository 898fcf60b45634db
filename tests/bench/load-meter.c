/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "load-meter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

gint64
load_now_ns (void)
{
  struct timespec now;

  clock_gettime (CLOCK_MONOTONIC, &now);
  return now.tv_sec * G_GINT64_CONSTANT (1000000000) + now.tv_nsec;
}

void
load_fail (int status, const char *format, ...)
{
  va_list arguments;

  va_start (arguments, format);
  vfprintf (stderr, format, arguments);
  va_end (arguments);
  fputc ('\n', stderr);
  exit (status);
}

void
load_raise_descriptors (void)
{
  struct rlimit limit;

  if (getrlimit (RLIMIT_NOFILE, &limit) < 0)
    return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit (RLIMIT_NOFILE, &limit);
}

void
load_meter_init (LoadMeter *self, const char *pids)
{
  g_auto (GStrv) words = g_strsplit (pids != NULL ? pids : "", ",", LOAD_METER_PIDS);

  memset (self, 0, sizeof *self);
  for (guint i = 0; words[i] != NULL && words[i][0] != '\0'; i++)
    self->pids[self->n_pids++] = atoi (words[i]);
}

/* User and system time of a process, in seconds. */
static double
process_cpu_s (int pid)
{
  g_autofree char *path = g_strdup_printf ("/proc/%d/stat", pid);
  g_autofree char *text = NULL;
  unsigned long user, system;
  const char *after;

  if (!g_file_get_contents (path, &text, NULL, NULL))
    return 0;
  after = strrchr (text, ')');
  if (after == NULL ||
      sscanf (after + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
    return 0;
  return (double) (user + system) / (double) sysconf (_SC_CLK_TCK);
}

/* What all processors together have worked, in seconds. */
static double
machine_busy_s (void)
{
  g_autofree char *text = NULL;
  unsigned long user, nice, system, irq, softirq;

  if (!g_file_get_contents ("/proc/stat", &text, NULL, NULL) ||
      sscanf (text, "cpu %lu %lu %lu %*u %*u %lu %lu", &user, &nice, &system, &irq, &softirq) != 5)
    return 0;
  return (double) (user + nice + system + irq + softirq) / (double) sysconf (_SC_CLK_TCK);
}

static double
own_cpu_s (void)
{
  struct timespec time;

  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &time);
  return (double) time.tv_sec + (double) time.tv_nsec / 1e9;
}

static double
servers_cpu_s (const LoadMeter *self)
{
  double sum = 0;

  for (guint i = 0; i < self->n_pids; i++)
    sum += process_cpu_s (self->pids[i]);
  return sum;
}

void
load_meter_begin (LoadMeter *self)
{
  self->is_measuring = TRUE;
  self->server_cpu_s = servers_cpu_s (self);
  self->own_cpu_s = own_cpu_s ();
  self->busy_s = machine_busy_s ();
  self->begin_ns = load_now_ns ();
}

void
load_meter_end (LoadMeter *self)
{
  self->end_ns = load_now_ns ();
  self->is_measuring = FALSE;
  self->server_cpu_s = servers_cpu_s (self) - self->server_cpu_s;
  self->own_cpu_s = own_cpu_s () - self->own_cpu_s;
  self->busy_s = machine_busy_s () - self->busy_s;
}

double
load_meter_seconds (const LoadMeter *self)
{
  return (double) (self->end_ns - self->begin_ns) / 1e9;
}

gint64
load_meter_resident (const LoadMeter *self)
{
  gint64 sum = 0;

  for (guint i = 0; i < self->n_pids; i++)
    {
      g_autofree char *path = g_strdup_printf ("/proc/%d/status", self->pids[i]);
      g_autofree char *text = NULL;
      const char *line;
      long kib;

      if (g_file_get_contents (path, &text, NULL, NULL) && (line = strstr (text, "VmRSS:")) != NULL &&
          sscanf (line, "VmRSS: %ld", &kib) == 1)
        sum += kib * G_GINT64_CONSTANT (1024);
    }
  return sum;
}

void
load_meter_add_latency (LoadMeter *self, gint64 nanoseconds)
{
  guint64 value = (guint64) MAX (nanoseconds, 0);
  guint shift = value < 64 ? 0 : 63 - (guint) __builtin_clzll (value) - 5;

  self->histogram[shift * 64 + ((value >> shift) & 63)]++;
  self->n_latencies++;
}

static double
quantile_us (const LoadMeter *self, double q)
{
  guint64 wanted = (guint64) ((double) self->n_latencies * q);
  guint64 seen = 0;

  for (guint i = 0; i < G_N_ELEMENTS (self->histogram); i++)
    {
      seen += self->histogram[i];
      if (seen > wanted)
        return (double) ((guint64) (i % 64) << (i / 64)) / 1000.0;
    }
  return 0;
}

void
load_meter_append_json (const LoadMeter *self, GString *text, guint64 operations)
{
  double seconds = load_meter_seconds (self);
  double millions = (double) MAX (operations, 1) / 1e6;

  g_string_append_printf (text, "\"seconds\":%.3f,\"p50_us\":%.1f,\"p99_us\":%.1f,", seconds, quantile_us (self, 0.5),
                          quantile_us (self, 0.99));
  g_string_append_printf (text, "\"server_cpu_per_million_s\":%.4f,\"total_cpu_per_million_s\":%.4f,",
                          self->server_cpu_s / millions, (self->server_cpu_s + self->own_cpu_s) / millions);
  g_string_append_printf (text, "\"server_share\":%.2f,\"generator_share\":%.2f,\"foreign_share\":%.2f,",
                          self->server_cpu_s / seconds, self->own_cpu_s / seconds,
                          (self->busy_s - self->server_cpu_s - self->own_cpu_s) / seconds);
}
