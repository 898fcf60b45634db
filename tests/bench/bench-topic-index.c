/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-topic-index.h"
#include "engine/headway-topic.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What one look-up costs, by the index and by a scan of all patterns, as subscriptions grow.
 * Topics are `site.N.room.N.KIND`; one pattern in ten has a star inside, one in ten a subtree. */

#define N_TOPICS 1024

static const char *const kinds[] = { "temperature", "humidity", "power", "door", "alarm" };

static char *
make_topic (GRand *random, guint n_patterns)
{
  gint32 span = MAX ((gint32) n_patterns / 100, 1);

  return g_strdup_printf ("site.%d.room.%d.%s",
                          g_rand_int_range (random, 0, span),
                          g_rand_int_range (random, 0, 20),
                          kinds[g_rand_int_range (random, 0, G_N_ELEMENTS (kinds))]);
}

static char *
make_pattern (GRand *random, guint n_patterns)
{
  g_autofree char *topic = make_topic (random, n_patterns);
  g_auto (GStrv) segments = g_strsplit (topic, ".", -1);

  switch (g_rand_int_range (random, 0, 10))
    {
    case 0:
      return g_strdup_printf ("site.%s.room.*.%s", segments[1], segments[4]);
    case 1:
      return g_strdup_printf ("site.%s.room.%s.*", segments[1], segments[3]);
    default:
      return g_steal_pointer (&topic);
    }
}

/* Time of this process alone: others run beside it. */
static gint64
cpu_ns (void)
{
  struct timespec now;

  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * G_GINT64_CONSTANT (1000000000) + now.tv_nsec;
}

static double
time_index (HeadwayTopicIndex *index, GPtrArray *topics, guint rounds, guint64 *found)
{
  g_autoptr (GPtrArray) matches = g_ptr_array_new ();
  gint64 start = cpu_ns ();

  for (guint i = 0; i < rounds; i++)
    {
      g_ptr_array_set_size (matches, 0);
      headway_topic_index_match (index, g_ptr_array_index (topics, i % topics->len), matches);
      *found += matches->len;
    }

  return (double) (cpu_ns () - start) / rounds;
}

static double
time_scan (GPtrArray *patterns, GPtrArray *topics, guint rounds, guint64 *found)
{
  gint64 start = cpu_ns ();

  for (guint i = 0; i < rounds; i++)
    {
      for (guint j = 0; j < patterns->len; j++)
        *found += headway_topic_matches (g_ptr_array_index (patterns, j), g_ptr_array_index (topics, i % topics->len)) ? 1 : 0;
    }

  return (double) (cpu_ns () - start) / rounds;
}

static void
run (guint n_patterns)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (n_patterns);
  g_autoptr (HeadwayTopicIndex) index = headway_topic_index_new ();
  g_autoptr (GPtrArray) patterns = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GPtrArray) topics = g_ptr_array_new_with_free_func (g_free);
  guint index_rounds = 4000 * N_TOPICS;
  guint scan_rounds = MAX (20000000 / n_patterns / N_TOPICS, 1) * N_TOPICS;
  guint64 found_by_index = 0;
  guint64 found_by_scan = 0;
  double index_ns, scan_ns;

  for (guint i = 0; i < n_patterns; i++)
    {
      char *pattern = make_pattern (random, n_patterns);

      g_ptr_array_add (patterns, pattern);
      headway_topic_index_add (index, pattern, pattern);
    }
  for (guint i = 0; i < N_TOPICS; i++)
    g_ptr_array_add (topics, make_topic (random, n_patterns));

  index_ns = time_index (index, topics, index_rounds, &found_by_index);
  scan_ns = time_scan (patterns, topics, scan_rounds, &found_by_scan);
  if (found_by_index / (index_rounds / N_TOPICS) != found_by_scan / (scan_rounds / N_TOPICS))
    g_error ("the index and the scan differ at %u patterns", n_patterns);

  g_print ("%6u subscriptions: index %7.1f ns, scan %10.1f ns, 1/%.0f, %.2f matches a topic, %u nodes\n",
           n_patterns,
           index_ns,
           scan_ns,
           scan_ns / index_ns,
           (double) found_by_index / index_rounds,
           headway_topic_index_nodes (index));
}

int
main (void)
{
  static const guint sizes[] = { 10, 1000, 10000 };

  for (gsize i = 0; i < G_N_ELEMENTS (sizes); i++)
    run (sizes[i]);

  return EXIT_SUCCESS;
}
