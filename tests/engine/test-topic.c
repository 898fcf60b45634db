/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-topic.h"

#include "engine/headway-error.h"
#include "engine/headway-limits.h"

#include <string.h>

/* Numbers are those of the cases in routing.md 4B. */

typedef gboolean (*Check) (const char *text, gsize length, GError **error);

typedef struct
{
  const char *pattern;
  const char *topic;
} Pair;

typedef struct
{
  const char *name;
  Check check;
  HeadwayError code;
  gsize maximum;
  const char *marks; /* allowed beside letters and digits */
} Word;

static const Word words[] = {
  { "bus-name", headway_bus_name_check, HEADWAY_ERROR_INVALID_NAME, 255, "._~-" },
  { "type", headway_type_check, HEADWAY_ERROR_INVALID_TYPE, 128, "._:/-" },
  { "principal", headway_principal_check, HEADWAY_ERROR_INVALID_PRINCIPAL, 128, "._:@/-" },
  { "client", headway_client_check, HEADWAY_ERROR_INVALID_OPTION, 128, "._:-" },
};

static void
assert_accepted (Check check, const char *text)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (check (text, strlen (text), &error));
  g_assert_no_error (error);
}

static void
assert_refused (Check check, HeadwayError code, const char *text, gsize length)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (check (text, length, &error));
  g_assert_error (error, HEADWAY_ERROR, (int) code);
  g_assert_true (g_utf8_validate (error->message, -1, NULL));
  g_assert_cmpuint (strlen (error->message), <, 500);
  g_assert_true (g_ascii_islower (error->message[0]));
  g_assert_false (g_str_has_suffix (error->message, "."));
}

static char *
make_segments (guint n)
{
  g_autoptr (GString) text = g_string_new ("s0");

  for (guint i = 1; i < n; i++)
    g_string_append_printf (text, ".s%u", i);

  return g_string_free (g_steal_pointer (&text), FALSE);
}

static void
test_match_case_21_true (void)
{
  static const Pair pairs[] = {
    { "a.b.c", "a.b.c" },
    { "a.*", "a.b" },
    { "a.*", "a.b.c" },
    { "a.*.c", "a.b.c" },
    { "*.b", "a.b" },
    { "*", "a" },
    { "*.*", "a.b" },
    { "*.*", "a.b.c" },
    { "a.*.*", "a.b.c" },
    { "a.*.*", "a.b.c.d" },
    { "astrid.v1.admin.*", "astrid.v1.admin.auth.pair.issue" },
    { "a*", "a*" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (pairs); i++)
    {
      g_test_message ("%s against %s", pairs[i].pattern, pairs[i].topic);
      g_assert_true (headway_topic_matches (pairs[i].pattern, pairs[i].topic));
    }
}

static void
test_match_case_22_false (void)
{
  static const Pair pairs[] = {
    { "a.*", "a" },
    { "*", "a.b" },
    { "*.*", "a" },
    { "a.*.*", "a.b" },
    { "a.*.c", "a.b.x.c" },
    { "a.*.c", "a.b.d" },
    { "*.b", "b" },
    { "a*", "ab" },
    { "a.b*", "a.bc" },
    { "**", "a" },
    { "a.**", "a.b" },
    { "A.b", "a.b" },
    { "a.b", "a.*" },
    { "tool.*.result", "tool.a.b.result" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (pairs); i++)
    {
      g_test_message ("%s against %s", pairs[i].pattern, pairs[i].topic);
      g_assert_false (headway_topic_matches (pairs[i].pattern, pairs[i].topic));
    }
}

static void
test_match_subtree_needs_one_more_segment (void)
{
  g_assert_false (headway_topic_matches ("a.b.*", "a.b"));
  g_assert_true (headway_topic_matches ("a.b.*", "a.b.c"));
  g_assert_true (headway_topic_matches ("a.b.*", "a.b.c.d.e"));
}

static void
test_match_case_23_depth (void)
{
  g_autofree char *deepest = make_segments (20);
  g_autofree char *too_deep = make_segments (21);

  g_assert_true (headway_topic_matches ("s0.*", deepest));
  g_assert_true (headway_topic_matches (deepest, deepest));
  g_assert_false (headway_topic_matches ("s0.*", too_deep));
  g_assert_false (headway_topic_matches (too_deep, too_deep));
}

static void
test_match_pattern_depth_is_not_limited (void)
{
  g_autofree char *topic = make_segments (20);
  g_autofree char *pattern = g_strconcat (topic, ".*", NULL);

  g_assert_false (headway_topic_matches (pattern, topic));
}

static void
test_match_case_24_raw_empty_segments (void)
{
  g_assert_true (headway_topic_matches ("a.*", "a."));
  g_assert_true (headway_topic_matches ("a.*", "a.."));
  g_assert_true (headway_topic_matches (".*", ".a"));
  g_assert_false (headway_topic_matches (".*", "a"));
  g_assert_true (headway_topic_matches ("*", ""));
  g_assert_true (headway_topic_matches ("", ""));
  g_assert_true (headway_topic_matches ("a.*.b", "a..b"));
  g_assert_true (headway_topic_matches ("*.*", "."));
}

static void
test_check_case_25_empty_segments (void)
{
  static const char *const texts[] = { "", ".", "..", "a..b", ".a", "a.", "a...b" };

  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++)
    {
      assert_refused (headway_topic_check, HEADWAY_ERROR_INVALID_TOPIC, texts[i], strlen (texts[i]));
      assert_refused (headway_pattern_check, HEADWAY_ERROR_INVALID_PATTERN, texts[i], strlen (texts[i]));
    }
}

static void
test_check_case_26_topics_have_no_star_segment (void)
{
  static const char *const texts[] = { "a.*", "*", "*.a", "a.*.b" };

  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++)
    {
      assert_refused (headway_topic_check, HEADWAY_ERROR_INVALID_TOPIC, texts[i], strlen (texts[i]));
      assert_accepted (headway_pattern_check, texts[i]);
    }
  assert_accepted (headway_topic_check, "a*.**.b*c");
}

static void
test_check_case_27_length (void)
{
  g_autofree char *longest = g_strnfill (256, 'a');
  g_autofree char *too_long = g_strnfill (257, 'a');

  assert_accepted (headway_topic_check, longest);
  assert_accepted (headway_pattern_check, longest);
  assert_refused (headway_topic_check, HEADWAY_ERROR_INVALID_TOPIC, too_long, 257);
  assert_refused (headway_pattern_check, HEADWAY_ERROR_INVALID_PATTERN, too_long, 257);
}

static void
test_check_case_27_segments (void)
{
  g_autofree char *deepest = make_segments (20);
  g_autofree char *too_deep = make_segments (21);

  assert_accepted (headway_topic_check, deepest);
  assert_accepted (headway_pattern_check, deepest);
  assert_refused (headway_topic_check, HEADWAY_ERROR_INVALID_TOPIC, too_deep, strlen (too_deep));
  assert_refused (headway_pattern_check, HEADWAY_ERROR_INVALID_PATTERN, too_deep, strlen (too_deep));
}

static void
test_match_case_28_one_shorter (void)
{
  g_assert_false (headway_topic_matches ("a.b.c", "a.b"));
  g_assert_false (headway_topic_matches ("a.b", "a.b.c"));
}

/* An access list is a list of patterns, and a request for a pattern is judged as if it were a
 * topic. */
static gboolean
is_allowed (const char *const *list, const char *request)
{
  for (; *list != NULL; list++)
    {
      if (headway_topic_matches (*list, request))
        return TRUE;
    }

  return FALSE;
}

static void
test_match_case_30_access_lists (void)
{
  static const char *const below_a[] = { "a.*", NULL };
  static const char *const a_b[] = { "a.b", NULL };
  static const char *const one_segment[] = { "*", NULL };
  static const char *const nothing[] = { NULL };

  g_assert_true (is_allowed (below_a, "a.b"));
  g_assert_true (is_allowed (below_a, "a.*"));
  g_assert_true (is_allowed (below_a, "a.b.*"));
  g_assert_false (is_allowed (below_a, "a"));
  g_assert_false (is_allowed (below_a, "*"));
  g_assert_false (is_allowed (below_a, "b.*"));
  g_assert_false (is_allowed (a_b, "a.*"));
  g_assert_false (is_allowed (one_segment, "a.b"));
  g_assert_true (is_allowed (one_segment, "x"));
  g_assert_false (is_allowed (nothing, "a"));
  g_assert_false (is_allowed (nothing, "*"));
}

static char *
random_path (GRand *random, gboolean is_pattern)
{
  static const char *const segments[] = { "a", "b", "c" };
  g_autoptr (GString) path = g_string_new (NULL);
  gint32 n = g_rand_int_range (random, 1, 5);

  for (gint32 i = 0; i < n; i++)
    {
      if (i > 0)
        g_string_append_c (path, '.');
      if (is_pattern && g_rand_int_range (random, 0, 3) == 0)
        g_string_append_c (path, '*');
      else
        g_string_append (path, segments[g_rand_int_range (random, 0, 3)]);
    }

  return g_string_free (g_steal_pointer (&path), FALSE);
}

static void
test_match_case_31_access_is_sound (void)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (31);
  guint accepted = 0;

  for (guint i = 0; i < 300000; i++)
    {
      g_autofree char *entry = random_path (random, TRUE);
      g_autofree char *request = random_path (random, TRUE);
      g_autofree char *topic = random_path (random, FALSE);

      if (!headway_topic_matches (entry, request) || !headway_topic_matches (request, topic))
        continue;
      accepted++;
      if (!headway_topic_matches (entry, topic))
        g_test_fail_printf ("%s allows %s, whose %s it does not match", entry, request, topic);
    }
  g_assert_cmpuint (accepted, >, 1000);
}

static void
test_match_case_32_properties (void)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (32);

  for (guint i = 0; i < 20000; i++)
    {
      g_autofree char *path = random_path (random, FALSE);
      g_autofree char *below = g_strconcat (path, ".*", NULL);
      g_autofree char *one_more = g_strconcat (path, ".x", NULL);
      g_autofree char *two_more = g_strconcat (path, ".x.y", NULL);
      g_auto (GStrv) segments = g_strsplit (path, ".", -1);
      guint n = g_strv_length (segments);

      g_assert_true (headway_topic_matches (path, path));
      g_assert_false (headway_topic_matches (below, path));
      g_assert_true (headway_topic_matches (below, one_more));
      g_assert_true (headway_topic_matches (below, two_more));
      if (n >= 3)
        {
          guint inner = (guint) g_rand_int_range (random, 1, (gint32) n - 1);
          g_autofree char *starred = NULL;

          g_free (segments[inner]);
          segments[inner] = g_strdup ("*");
          starred = g_strjoinv (".", segments);
          g_assert_true (headway_topic_matches (starred, path));
          g_assert_false (headway_topic_matches (starred, one_more));
        }
    }
}

static void
test_match_case_34_bytes (void)
{
  g_assert_true (headway_topic_matches ("ä.b", "ä.b"));
  g_assert_false (headway_topic_matches ("\xc3\xa4.b", "a\xcc\x88.b"));
  g_assert_false (headway_topic_matches ("Ä.b", "ä.b"));
  assert_accepted (headway_topic_check, "ä.b");
}

static void
test_check_controls_are_refused (void)
{
  static const char *const around[] = { "a\x20z", "a\x7ez", "a\xc2\xa0z" };

  for (gunichar character = 0; character <= 0x9f; character++)
    {
      char text[16] = "a.";
      gsize length = 2 + (gsize) g_unichar_to_utf8 (character, text + 2);

      if (character >= 0x20 && character < 0x7f)
        continue;
      assert_refused (headway_topic_check, HEADWAY_ERROR_INVALID_TOPIC, text, length);
      assert_refused (headway_pattern_check, HEADWAY_ERROR_INVALID_PATTERN, text, length);
    }
  for (gsize i = 0; i < G_N_ELEMENTS (around); i++)
    assert_accepted (headway_topic_check, around[i]);
}

static void
test_check_invalid_utf8_is_refused (void)
{
  static const char *const texts[] = {
    "\xff", "a\x80", "\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a.\xc3.b"
  };

  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++)
    {
      assert_refused (headway_topic_check, HEADWAY_ERROR_INVALID_TOPIC, texts[i], strlen (texts[i]));
      assert_refused (headway_pattern_check, HEADWAY_ERROR_INVALID_PATTERN, texts[i], strlen (texts[i]));
    }
}

static void
test_check_topics_of_headway_are_reserved (void)
{
  assert_refused (headway_topic_check, HEADWAY_ERROR_INVALID_TOPIC, "headway.x", 9);
  assert_accepted (headway_topic_check, "headway");
  assert_accepted (headway_topic_check, "headways.x");
  assert_accepted (headway_topic_check, "Headway.x");
  assert_accepted (headway_topic_check, "a.headway.x");
  assert_accepted (headway_pattern_check, "headway.*");
}

static void
test_check_reads_no_further_than_the_length (void)
{
  g_assert_true (headway_topic_check ("a.b..", 3, NULL));
  g_assert_true (headway_type_check ("ok no", 2, NULL));
}

static void
test_message_names_value_and_limit (void)
{
  g_autofree char *too_long = g_strnfill (300, 'q');
  g_autofree char *shown = g_strnfill (64, 'q');
  g_autofree char *expected = g_strdup_printf ("topic \"%s…\" has 300 bytes, the limit is 256", shown);
  g_autoptr (GError) error = NULL;

  g_assert_false (headway_topic_check (too_long, 300, &error));
  g_assert_cmpstr (error->message, ==, expected);
}

static void
test_message_escapes_what_is_no_text (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (headway_topic_check ("\"\\ä\n\xff\0\xc2\x85", 9, &error));
  g_assert_cmpstr (error->message, ==, "topic \"\\\"\\\\ä\\x0a\\xff\\x00\\xc2\\x85\" has a control character");
}

static void
test_message_cuts_between_characters (void)
{
  g_autoptr (GString) text = g_string_new (NULL);
  g_autoptr (GError) error = NULL;

  for (guint i = 0; i < 200; i++)
    g_string_append (text, "€");
  g_assert_false (headway_topic_check (text->str, text->len, &error));
  g_assert_true (g_utf8_validate (error->message, -1, NULL));
  g_assert_nonnull (strstr (error->message, "€…\" has 600 bytes"));
}

static void
test_word_length (gconstpointer data)
{
  const Word *word = data;
  g_autofree char *text = g_strnfill (word->maximum + 1, 'a');

  g_assert_true (word->check ("a", 1, NULL));
  g_assert_true (word->check (text, word->maximum, NULL));
  assert_refused (word->check, word->code, text, word->maximum + 1);
  assert_refused (word->check, word->code, "", 0);
  assert_refused (word->check, word->code, NULL, 0);
}

static void
test_word_characters (gconstpointer data)
{
  const Word *word = data;

  for (guint byte = 0; byte < 256; byte++)
    {
      char text[] = { 'a', (char) byte, 'b' };
      gboolean good = byte < 128 && byte != 0 &&
                      (g_ascii_isalnum ((char) byte) || strchr (word->marks, (int) byte) != NULL);

      if (good)
        g_assert_true (word->check (text, sizeof text, NULL));
      else
        assert_refused (word->check, word->code, text, sizeof text);
    }
}

static void
test_name_dots_are_no_names (void)
{
  assert_refused (headway_bus_name_check, HEADWAY_ERROR_INVALID_NAME, ".", 1);
  assert_refused (headway_bus_name_check, HEADWAY_ERROR_INVALID_NAME, "..", 2);
  assert_accepted (headway_bus_name_check, "...");
  assert_accepted (headway_bus_name_check, ".a");
  assert_accepted (headway_bus_name_check, "a.");
}

static void
test_type_reserved (void)
{
  static const char *const reserved[] = {
    "state_resync_required", "replay_complete", "slow_client_warning", "client_evicted",
    "stream_error", "session_snapshot", "gap", "session_closed", "headway.", "headway.x"
  };
  static const char *const others[] = {
    "", "message", "session_died", "gaps", "ga", "Gap", "headway", "headwa", "headway_x", "x.headway.y"
  };

  for (gsize i = 0; i < G_N_ELEMENTS (reserved); i++)
    g_assert_true (headway_type_is_reserved (reserved[i], strlen (reserved[i])));
  for (gsize i = 0; i < G_N_ELEMENTS (others); i++)
    g_assert_false (headway_type_is_reserved (others[i], strlen (others[i])));
  g_assert_true (headway_type_is_reserved ("gaps", 3));
}

static void
test_type_check_is_grammar_alone (void)
{
  assert_accepted (headway_type_check, "gap");
  assert_accepted (headway_type_check, "headway.x");
}

static void
add_words (void)
{
  for (gsize i = 0; i < G_N_ELEMENTS (words); i++)
    {
      g_autofree char *length = g_strdup_printf ("/topic/word/length/%s", words[i].name);
      g_autofree char *characters = g_strdup_printf ("/topic/word/characters/%s", words[i].name);

      g_test_add_data_func (length, &words[i], test_word_length);
      g_test_add_data_func (characters, &words[i], test_word_characters);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);

  g_test_add_func ("/topic/match/case-21-true", test_match_case_21_true);
  g_test_add_func ("/topic/match/case-22-false", test_match_case_22_false);
  g_test_add_func ("/topic/match/subtree-needs-one-more-segment", test_match_subtree_needs_one_more_segment);
  g_test_add_func ("/topic/match/case-23-depth", test_match_case_23_depth);
  g_test_add_func ("/topic/match/pattern-depth-is-not-limited", test_match_pattern_depth_is_not_limited);
  g_test_add_func ("/topic/match/case-24-raw-empty-segments", test_match_case_24_raw_empty_segments);
  g_test_add_func ("/topic/match/case-28-one-shorter", test_match_case_28_one_shorter);
  g_test_add_func ("/topic/match/case-30-access-lists", test_match_case_30_access_lists);
  g_test_add_func ("/topic/match/case-31-access-is-sound", test_match_case_31_access_is_sound);
  g_test_add_func ("/topic/match/case-32-properties", test_match_case_32_properties);
  g_test_add_func ("/topic/match/case-34-bytes", test_match_case_34_bytes);
  g_test_add_func ("/topic/check/case-25-empty-segments", test_check_case_25_empty_segments);
  g_test_add_func ("/topic/check/case-26-no-star-segment", test_check_case_26_topics_have_no_star_segment);
  g_test_add_func ("/topic/check/case-27-length", test_check_case_27_length);
  g_test_add_func ("/topic/check/case-27-segments", test_check_case_27_segments);
  g_test_add_func ("/topic/check/controls-are-refused", test_check_controls_are_refused);
  g_test_add_func ("/topic/check/invalid-utf8-is-refused", test_check_invalid_utf8_is_refused);
  g_test_add_func ("/topic/check/headway-is-reserved", test_check_topics_of_headway_are_reserved);
  g_test_add_func ("/topic/check/reads-no-further-than-the-length", test_check_reads_no_further_than_the_length);
  g_test_add_func ("/topic/message/names-value-and-limit", test_message_names_value_and_limit);
  g_test_add_func ("/topic/message/escapes-what-is-no-text", test_message_escapes_what_is_no_text);
  g_test_add_func ("/topic/message/cuts-between-characters", test_message_cuts_between_characters);
  add_words ();
  g_test_add_func ("/topic/name/dots-are-no-names", test_name_dots_are_no_names);
  g_test_add_func ("/topic/type/reserved", test_type_reserved);
  g_test_add_func ("/topic/type/check-is-grammar-alone", test_type_check_is_grammar_alone);

  return g_test_run ();
}
