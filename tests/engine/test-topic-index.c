/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-topic-index.h"

#include "engine/headway-limits.h"
#include "engine/headway-topic.h"

#include <string.h>

static guint
count_matches (HeadwayTopicIndex *index, const char *topic)
{
  g_autoptr (GPtrArray) matches = g_ptr_array_new ();

  headway_topic_index_match (index, topic, matches);

  return matches->len;
}

static void
test_match_finds_each_kind (void)
{
  static const char *const matching[] = { "a.b.c", "a.*", "*.*", "a.*.c", "*.b.c", "*.*.*", "a.b.*", "*.*.c" };
  static const char *const others[] = { "a.b", "*", "a.b.c.*", "a.b.c.d", "b.*", "a.*.d", "*.b", "*.*.*.*" };
  g_autoptr (HeadwayTopicIndex) index = headway_topic_index_new ();
  g_autoptr (GPtrArray) matches = g_ptr_array_new ();

  for (gsize i = 0; i < G_N_ELEMENTS (matching); i++)
    headway_topic_index_add (index, matching[i], (gpointer) matching[i]);
  for (gsize i = 0; i < G_N_ELEMENTS (others); i++)
    headway_topic_index_add (index, others[i], (gpointer) others[i]);
  headway_topic_index_match (index, "a.b.c", matches);

  g_assert_cmpuint (matches->len, ==, G_N_ELEMENTS (matching));
  for (gsize i = 0; i < G_N_ELEMENTS (matching); i++)
    g_assert_true (g_ptr_array_find (matches, matching[i], NULL));
}

static void
test_match_appends (void)
{
  g_autoptr (HeadwayTopicIndex) index = headway_topic_index_new ();
  g_autoptr (GPtrArray) matches = g_ptr_array_new ();
  int first, second;

  g_ptr_array_add (matches, &first);
  headway_topic_index_add (index, "a", &second);
  headway_topic_index_match (index, "a", matches);

  g_assert_cmpuint (matches->len, ==, 2);
  g_assert_true (g_ptr_array_index (matches, 0) == &first);
  g_assert_true (g_ptr_array_index (matches, 1) == &second);
}

static void
test_match_of_nothing (void)
{
  g_autoptr (HeadwayTopicIndex) index = headway_topic_index_new ();

  g_assert_cmpuint (count_matches (index, "a.b"), ==, 0);
  g_assert_cmpuint (headway_topic_index_size (index), ==, 0);
  g_assert_cmpuint (headway_topic_index_nodes (index), ==, 0);
}

static void
test_match_case_23_depth (void)
{
  g_autoptr (HeadwayTopicIndex) index = headway_topic_index_new ();
  g_autofree char *deepest = g_strdup ("s.s.s.s.s.s.s.s.s.s.s.s.s.s.s.s.s.s.s.s");
  g_autofree char *too_deep = g_strconcat (deepest, ".s", NULL);
  int value;

  headway_topic_index_add (index, "s.*", &value);
  headway_topic_index_add (index, deepest, &value);
  headway_topic_index_add (index, too_deep, &value);

  g_assert_cmpuint (count_matches (index, deepest), ==, 2);
  g_assert_cmpuint (count_matches (index, too_deep), ==, 0);
}

/* At each level a literal and a star child: the widest frontier there is. */
static void
test_match_widest_frontier (void)
{
  g_autoptr (HeadwayTopicIndex) index = headway_topic_index_new ();
  g_autoptr (GString) topic = g_string_new ("s");
  int value;

  for (guint i = 1; i < 12; i++)
    g_string_append (topic, ".s");
  for (guint stars = 0; stars < 1 << 12; stars++)
    {
      g_autoptr (GString) pattern = g_string_new (topic->str);

      for (guint i = 0; i < 12; i++)
        {
          if (stars & (1 << i))
            pattern->str[2 * i] = '*';
        }
      headway_topic_index_add (index, pattern->str, &value);
    }

  /* A last star wants more than the prefix, so "….s.*" matches the twelve segments too. */
  g_assert_cmpuint (count_matches (index, topic->str), ==, 1 << 12);
}

static void
test_match_case_28_one_shorter (void)
{
  g_autoptr (HeadwayTopicIndex) index = headway_topic_index_new ();
  int value;

  headway_topic_index_add (index, "a.b.c", &value);
  g_assert_cmpuint (count_matches (index, "a.b"), ==, 0);
  g_assert_cmpuint (count_matches (index, "a.b.c"), ==, 1);
  g_assert_cmpuint (count_matches (index, "a.b.c.d"), ==, 0);
}

static void
test_match_segments_share_no_prefix (void)
{
  g_autoptr (HeadwayTopicIndex) index = headway_topic_index_new ();
  int value;

  headway_topic_index_add (index, "ab.c", &value);
  g_assert_cmpuint (count_matches (index, "a.c"), ==, 0);
  g_assert_cmpuint (count_matches (index, "abc.c"), ==, 0);
  g_assert_cmpuint (count_matches (index, "c.ab"), ==, 0);
  g_assert_cmpuint (count_matches (index, "ab.c"), ==, 1);
}

static void
test_match_value_comes_once_for_each_pattern (void)
{
  g_autoptr (HeadwayTopicIndex) index = headway_topic_index_new ();
  int value;

  headway_topic_index_add (index, "a.*", &value);
  headway_topic_index_add (index, "*.x", &value);
  headway_topic_index_add (index, "*.x", &value);
  g_assert_cmpuint (count_matches (index, "a.x"), ==, 3);
}

static void
test_remove_takes_one_of_equal_pairs (void)
{
  g_autoptr (HeadwayTopicIndex) index = headway_topic_index_new ();
  int value;

  headway_topic_index_add (index, "a", &value);
  headway_topic_index_add (index, "a", &value);
  g_assert_cmpuint (headway_topic_index_size (index), ==, 2);

  g_assert_true (headway_topic_index_remove (index, "a", &value));
  g_assert_cmpuint (count_matches (index, "a"), ==, 1);
  g_assert_true (headway_topic_index_remove (index, "a", &value));
  g_assert_false (headway_topic_index_remove (index, "a", &value));
  g_assert_cmpuint (headway_topic_index_size (index), ==, 0);
}

static void
test_remove_refuses_what_is_not_there (void)
{
  g_autoptr (HeadwayTopicIndex) index = headway_topic_index_new ();
  int value, other;

  headway_topic_index_add (index, "a.b", &value);
  g_assert_false (headway_topic_index_remove (index, "a.b", &other));
  g_assert_false (headway_topic_index_remove (index, "a.*", &value));
  g_assert_false (headway_topic_index_remove (index, "a", &value));
  g_assert_false (headway_topic_index_remove (index, "*.b", &value));
  g_assert_false (headway_topic_index_remove (index, "x.y.z", &value));
  g_assert_cmpuint (headway_topic_index_size (index), ==, 1);
  g_assert_cmpuint (headway_topic_index_nodes (index), ==, 2);
}

static void
test_remove_frees_empty_nodes_at_once (void)
{
  g_autoptr (HeadwayTopicIndex) index = headway_topic_index_new ();
  int value;

  headway_topic_index_add (index, "a.b.c.d", &value);
  headway_topic_index_add (index, "a.b.*", &value);
  headway_topic_index_add (index, "a.*.x", &value);
  g_assert_cmpuint (headway_topic_index_nodes (index), ==, 6);

  headway_topic_index_remove (index, "a.b.c.d", &value);
  g_assert_cmpuint (headway_topic_index_nodes (index), ==, 4);
  headway_topic_index_remove (index, "a.*.x", &value);
  g_assert_cmpuint (headway_topic_index_nodes (index), ==, 2);
  headway_topic_index_remove (index, "a.b.*", &value);
  g_assert_cmpuint (headway_topic_index_nodes (index), ==, 0);
}

static void
test_free_with_all_kinds_of_nodes (void)
{
  g_autoptr (HeadwayTopicIndex) index = headway_topic_index_new ();
  int value;

  headway_topic_index_add (index, "*.*.a.*.*.b", &value);
  headway_topic_index_add (index, "a.*.*.*.*", &value);
  headway_topic_index_add (index, "*", &value);
  g_assert_cmpuint (headway_topic_index_size (index), ==, 3);
}

static char *
random_path (GRand *random, gboolean is_pattern)
{
  static const char *const segments[] = { "a", "b", "temperature", "room-12", "ä" };
  g_autoptr (GString) path = g_string_new (NULL);
  gint32 n = g_rand_int_range (random, 1, g_rand_int_range (random, 0, 50) == 0 ? 24 : 5);

  for (gint32 i = 0; i < n; i++)
    {
      if (i > 0)
        g_string_append_c (path, '.');
      if (is_pattern && g_rand_int_range (random, 0, 3) == 0)
        g_string_append_c (path, '*');
      else
        g_string_append (path, segments[g_rand_int_range (random, 0, G_N_ELEMENTS (segments))]);
    }

  return g_string_free (g_steal_pointer (&path), FALSE);
}

static int
compare_pointers (gconstpointer a, gconstpointer b)
{
  guintptr left = (guintptr) * (gpointer *) a;
  guintptr right = (guintptr) * (gpointer *) b;

  return left < right ? -1 : left > right;
}

static void
assert_equals_naive (HeadwayTopicIndex *index, GPtrArray *patterns, const char *topic)
{
  g_autoptr (GPtrArray) found = g_ptr_array_new ();
  g_autoptr (GPtrArray) expected = g_ptr_array_new ();

  for (guint i = 0; i < patterns->len; i++)
    {
      if (headway_topic_matches (g_ptr_array_index (patterns, i), topic))
        g_ptr_array_add (expected, g_ptr_array_index (patterns, i));
    }
  headway_topic_index_match (index, topic, found);
  g_ptr_array_sort (found, compare_pointers);
  g_ptr_array_sort (expected, compare_pointers);

  g_assert_cmpuint (found->len, ==, expected->len);
  if (found->len > 0)
    g_assert_cmpmem (found->pdata, found->len * sizeof (gpointer), expected->pdata, expected->len * sizeof (gpointer));
}

/* 10 000 steps, each a change or two and a match against about 200 patterns: two million pairs. */
static void
test_match_case_33_equals_naive_with_churn (void)
{
  g_autoptr (HeadwayTopicIndex) index = headway_topic_index_new ();
  g_autoptr (GPtrArray) patterns = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GRand) random = g_rand_new_with_seed (33);

  for (guint step = 0; step < 10000; step++)
    {
      g_autofree char *topic = random_path (random, FALSE);

      /* The pattern's own string is its value: unique, and easy to find again. */
      if (patterns->len < 400 && g_rand_int_range (random, 0, 100) < (step / 1000 % 2 == 0 ? 60 : 40))
        {
          char *pattern = random_path (random, TRUE);

          g_ptr_array_add (patterns, pattern);
          headway_topic_index_add (index, pattern, pattern);
        }
      else if (patterns->len > 0)
        {
          guint victim = (guint) g_rand_int_range (random, 0, (gint32) patterns->len);
          char *pattern = g_ptr_array_index (patterns, victim);

          g_assert_true (headway_topic_index_remove (index, pattern, pattern));
          g_ptr_array_remove_index_fast (patterns, victim);
        }
      g_assert_cmpuint (headway_topic_index_size (index), ==, patterns->len);
      assert_equals_naive (index, patterns, topic);
    }

  while (patterns->len > 0)
    {
      char *pattern = g_ptr_array_index (patterns, patterns->len - 1);

      g_assert_true (headway_topic_index_remove (index, pattern, pattern));
      g_ptr_array_remove_index (patterns, patterns->len - 1);
    }
  g_assert_cmpuint (headway_topic_index_nodes (index), ==, 0);
}

static void
test_match_case_33_equals_naive_at_10000 (void)
{
  g_autoptr (HeadwayTopicIndex) index = headway_topic_index_new ();
  g_autoptr (GPtrArray) patterns = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GRand) random = g_rand_new_with_seed (34);

  for (guint i = 0; i < 10000; i++)
    {
      char *pattern = random_path (random, TRUE);

      g_ptr_array_add (patterns, pattern);
      headway_topic_index_add (index, pattern, pattern);
    }
  for (guint i = 0; i < 500; i++)
    {
      g_autofree char *topic = random_path (random, FALSE);

      assert_equals_naive (index, patterns, topic);
    }
}

/* The raw matcher takes empty segments and a star in the topic; the index must not differ. */
static void
test_match_equals_naive_on_raw_texts (void)
{
  g_autoptr (HeadwayTopicIndex) index = headway_topic_index_new ();
  g_autoptr (GPtrArray) patterns = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GRand) random = g_rand_new_with_seed (24);
  static const char alphabet[] = { 'a', '*', '.', '.' };

  for (guint i = 0; i < 3000; i++)
    {
      char text[8] = "";
      gint32 length = g_rand_int_range (random, 0, 7);

      for (gint32 j = 0; j < length; j++)
        text[j] = alphabet[g_rand_int_range (random, 0, G_N_ELEMENTS (alphabet))];
      assert_equals_naive (index, patterns, text);
      if (i % 10 == 0)
        {
          char *pattern = g_strdup (text);

          g_ptr_array_add (patterns, pattern);
          headway_topic_index_add (index, pattern, pattern);
        }
    }
}

static void
test_growth_many_literals_come_and_go (void)
{
  g_autoptr (HeadwayTopicIndex) index = headway_topic_index_new ();
  int value;

  for (guint i = 0; i < 50000; i++)
    {
      char pattern[32];

      g_snprintf (pattern, sizeof pattern, "device.%u.state", i);
      headway_topic_index_add (index, pattern, &value);
    }
  g_assert_cmpuint (headway_topic_index_nodes (index), ==, 100001);
  g_assert_cmpuint (count_matches (index, "device.49999.state"), ==, 1);

  for (guint i = 0; i < 50000; i++)
    {
      char pattern[32];

      g_snprintf (pattern, sizeof pattern, "device.%u.state", i * 7919 % 50000);
      g_assert_cmpuint (count_matches (index, pattern), ==, 1);
      g_assert_true (headway_topic_index_remove (index, pattern, &value));
      g_assert_cmpuint (count_matches (index, pattern), ==, 0);
    }
  g_assert_cmpuint (headway_topic_index_nodes (index), ==, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);

  g_test_add_func ("/topic-index/match/finds-each-kind", test_match_finds_each_kind);
  g_test_add_func ("/topic-index/match/appends", test_match_appends);
  g_test_add_func ("/topic-index/match/of-nothing", test_match_of_nothing);
  g_test_add_func ("/topic-index/match/case-23-depth", test_match_case_23_depth);
  g_test_add_func ("/topic-index/match/widest-frontier", test_match_widest_frontier);
  g_test_add_func ("/topic-index/match/case-28-one-shorter", test_match_case_28_one_shorter);
  g_test_add_func ("/topic-index/match/segments-share-no-prefix", test_match_segments_share_no_prefix);
  g_test_add_func ("/topic-index/match/value-comes-once-for-each-pattern",
                   test_match_value_comes_once_for_each_pattern);
  g_test_add_func ("/topic-index/match/case-33-equals-naive-with-churn",
                   test_match_case_33_equals_naive_with_churn);
  g_test_add_func ("/topic-index/match/case-33-equals-naive-at-10000",
                   test_match_case_33_equals_naive_at_10000);
  g_test_add_func ("/topic-index/match/equals-naive-on-raw-texts", test_match_equals_naive_on_raw_texts);
  g_test_add_func ("/topic-index/remove/takes-one-of-equal-pairs", test_remove_takes_one_of_equal_pairs);
  g_test_add_func ("/topic-index/remove/refuses-what-is-not-there", test_remove_refuses_what_is_not_there);
  g_test_add_func ("/topic-index/remove/frees-empty-nodes-at-once", test_remove_frees_empty_nodes_at_once);
  g_test_add_func ("/topic-index/free/with-all-kinds-of-nodes", test_free_with_all_kinds_of_nodes);
  g_test_add_func ("/topic-index/growth/many-literals-come-and-go", test_growth_many_literals_come_and_go);

  return g_test_run ();
}
