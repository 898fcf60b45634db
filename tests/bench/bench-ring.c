/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-bus.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* bench-ring [REPETITIONS]: what a publish costs with a full ring of 1 000 to 1 000 000 events, and
 * with 0, 1 and 100 subscribers that keep up. Repetitions of all cases are interleaved, so that a
 * busy machine disturbs all alike, and medians are compared. Exits 1 if the largest ring costs 1.3
 * times the smallest or more (performance.md). */

#define N_PUBLISHES 10000
#define REPETITIONS 41
#define RATIO_MAX   1.3
#define N_RINGS     4
#define N_AUDIENCES 3

static const guint ring_sizes[N_RINGS] = { 1000, 10000, 100000, 1000000 };
static const guint audiences[N_AUDIENCES] = { 0, 1, 100 };
static const HeadwayInstant now = { .monotonic_us = 1, .real_us = 1700000000000000 };

typedef struct
{
  HeadwayPrincipalTable *principals;
  HeadwayBus *bus;
  HeadwaySubscription *subscriptions[100];
  HeadwaySink sink; /* shared by all */
  double *ns;       /* of each repetition, per publish */
} Case;

static gboolean
sink_put (HeadwaySink *sink, HeadwayEvent *event, guint64 resume_id)
{
  return TRUE;
}

static void
sink_wake (HeadwaySink *sink)
{
}

static void
publish (Case *c, guint64 n)
{
  static const char data[] = "{\"level\":\"info\",\"message\":\"configure liblocale-gettext-perl:amd64 1.07-5\"}";
  HeadwayPublication publication = {
    .topic = "dpkg.status.configure",
    .type = "message",
    .principal = headway_principal_table_get_system (c->principals),
    .data = data,
    .data_length = sizeof data - 1,
  };

  for (guint64 i = 0; i < n; i++)
    {
      HeadwayBatch *batch = headway_batch_new (1, NULL, NULL);
      HeadwayEvent *event = headway_event_new (&publication, 1024 * 1024, now, NULL);

      headway_batch_add (batch, event);
      headway_bus_publish (c->bus, batch, now);
    }
}

static void
case_init (Case *c, guint ring_size, guint n_subscribers, guint repetitions)
{
  static const HeadwaySinkClass klass = { sink_put, sink_wake };
  HeadwaySubscribeOptions options;
  HeadwayLimits limits;

  headway_limits_init (&limits);
  limits.bus.ring_size = ring_size;
  limits.bus.ring_max_bytes = G_MAXINT64;
  limits.bus.max_subscribers = 100;
  c->principals = headway_principal_table_new ();
  c->bus = headway_bus_new ("bench", "epoch", 0, &limits.bus, c->principals);
  c->sink.klass = &klass;
  c->ns = g_new0 (double, repetitions);
  headway_subscribe_options_init (&options);
  for (guint i = 0; i < n_subscribers; i++)
    {
      c->subscriptions[i] = headway_bus_subscribe (c->bus, &options, now, NULL);
      headway_subscription_attach (c->subscriptions[i], &c->sink, NULL);
    }
  publish (c, ring_size + 1000);
}

static void
case_clear (Case *c)
{
  for (guint i = 0; i < G_N_ELEMENTS (c->subscriptions); i++)
    g_clear_object (&c->subscriptions[i]);
  g_object_unref (c->bus);
  headway_principal_table_unref (c->principals);
  g_free (c->ns);
}

/* Time of this process alone: others on the machine count for less. */
static double
cpu_time_ns (void)
{
  struct timespec time;

  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &time);
  return 1e9 * (double) time.tv_sec + (double) time.tv_nsec;
}

static void
case_run (Case *c, guint repetition)
{
  double begin_ns;

  /* The case before had the caches. */
  publish (c, N_PUBLISHES / 10);
  begin_ns = cpu_time_ns ();
  publish (c, N_PUBLISHES);
  c->ns[repetition] = (cpu_time_ns () - begin_ns) / N_PUBLISHES;
}

static int
compare (gconstpointer a, gconstpointer b)
{
  double first = *(const double *) a;
  double second = *(const double *) b;

  return (first > second) - (first < second);
}

static double
median (Case *c, guint repetitions)
{
  qsort (c->ns, repetitions, sizeof *c->ns, compare);
  return c->ns[repetitions / 2];
}

static void
run_all (Case *cases, guint n_cases, guint repetitions)
{
  for (guint repetition = 0; repetition < repetitions; repetition++)
    for (guint i = 0; i < n_cases; i++)
      case_run (&cases[(i + repetition) % n_cases], repetition);
}

static double
bench_rings (guint repetitions)
{
  Case cases[N_RINGS] = { 0 };
  double first = 0;
  double last = 0;

  for (guint i = 0; i < N_RINGS; i++)
    case_init (&cases[i], ring_sizes[i], 0, repetitions);
  run_all (cases, N_RINGS, repetitions);
  for (guint i = 0; i < N_RINGS; i++)
    {
      last = median (&cases[i], repetitions);
      first = i == 0 ? last : first;
      printf ("full ring of %7u events: %7.1f ns a publish\n", ring_sizes[i], last);
      case_clear (&cases[i]);
    }
  printf ("ratio of the largest to the smallest ring: %.2f (goal: under %.1f)\n", last / first, RATIO_MAX);
  return last / first;
}

static void
bench_audiences (guint repetitions)
{
  Case cases[N_AUDIENCES] = { 0 };

  for (guint i = 0; i < N_AUDIENCES; i++)
    case_init (&cases[i], 8000, audiences[i], repetitions);
  run_all (cases, N_AUDIENCES, repetitions);
  for (guint i = 0; i < N_AUDIENCES; i++)
    {
      printf ("%7u subscribers that keep up: %7.1f ns a publish\n", audiences[i], median (&cases[i], repetitions));
      case_clear (&cases[i]);
    }
}

int
main (int argc, char **argv)
{
  guint repetitions = argc > 1 ? (guint) g_ascii_strtoull (argv[1], NULL, 10) : REPETITIONS;
  double ratio;

  repetitions = MAX (repetitions, 1);
  ratio = bench_rings (repetitions);
  bench_audiences (repetitions);
  return ratio < RATIO_MAX ? 0 : 1;
}
