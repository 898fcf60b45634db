/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "fuzz.h"

#include "engine/headway-topic-index.h"
#include "engine/headway-topic.h"

#include <string.h>

/* The first line is the topic, each other line a pattern. */

const char *const fuzz_seeds[] = {
  "a.b.c\na.b.c\na.*\na.*.c\n*.*\n*",
  "astrid.v1.admin.auth\nastrid.v1.*\n*.v1.admin.*\nastrid.*.admin.auth",
  "ä.€.😀\nä.*\n*.€.😀",
  "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t\na.*\n*.*.*.*",
  "\n*\n.*\n",
  "headway.x\nheadway.*\n**\na*",
  NULL,
};

/* By the words of the contract, with two vectors of segments. */
static gboolean
reference_matches (const char *pattern, const char *topic)
{
  g_auto (GStrv) wanted = g_strsplit (*pattern != '\0' ? pattern : ".", ".", -1);
  g_auto (GStrv) given = g_strsplit (*topic != '\0' ? topic : ".", ".", -1);
  guint n_wanted = *pattern != '\0' ? g_strv_length (wanted) : 1;
  guint n_given = *topic != '\0' ? g_strv_length (given) : 1;
  gboolean is_subtree = n_wanted > 1 && strcmp (wanted[n_wanted - 1], "*") == 0;

  if (n_given > 20)
    return FALSE;
  if (is_subtree ? n_given < n_wanted : n_given != n_wanted)
    return FALSE;

  for (guint i = 0; i < n_wanted - (is_subtree ? 1 : 0); i++)
    {
      if (strcmp (wanted[i], "*") != 0 && strcmp (wanted[i], given[i]) != 0)
        return FALSE;
    }

  return TRUE;
}

static void
try_checks (const char *text, gsize length)
{
  static gboolean (*const checks[]) (const char *, gsize, GError **) = {
    headway_bus_name_check,
    headway_topic_check,
    headway_pattern_check,
    headway_type_check,
    headway_principal_check,
    headway_client_check,
  };

  for (gsize i = 0; i < G_N_ELEMENTS (checks); i++)
    {
      g_autoptr (GError) error = NULL;

      if (checks[i](text, length, &error))
        {
          g_assert_no_error (error);
          g_assert_true (g_utf8_validate_len (text, length, NULL));
          continue;
        }
      g_assert_nonnull (error);
      g_assert_true (g_utf8_validate (error->message, -1, NULL));
    }
  headway_type_is_reserved (text, length);
  if (headway_topic_check (text, length, NULL))
    g_assert_true (headway_pattern_check (text, length, NULL));
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_autoptr (HeadwayTopicIndex) index = headway_topic_index_new ();
  g_autoptr (GPtrArray) matches = g_ptr_array_new ();
  g_autofree char *text = size > 0 ? g_strndup ((const char *) data, size) : g_strdup ("");
  g_auto (GStrv) lines = g_strsplit (text, "\n", 0);
  guint expected = 0;

  try_checks ((const char *) data, size);
  for (guint i = 0; lines[i] != NULL; i++)
    try_checks (lines[i], strlen (lines[i]));
  if (lines[0] == NULL)
    return 0;

  for (guint i = 1; lines[i] != NULL; i++)
    {
      gboolean does_match = headway_topic_matches (lines[i], lines[0]);

      g_assert_cmpint (does_match, ==, reference_matches (lines[i], lines[0]));
      expected += does_match ? 1 : 0;
      headway_topic_index_add (index, lines[i], lines[i]);
    }
  headway_topic_index_match (index, lines[0], matches);
  g_assert_cmpuint (matches->len, ==, expected);

  for (guint i = 1; lines[i] != NULL; i++)
    g_assert_true (headway_topic_index_remove (index, lines[i], lines[i]));
  g_assert_cmpuint (headway_topic_index_size (index), ==, 0);
  g_assert_cmpuint (headway_topic_index_nodes (index), ==, 0);

  return 0;
}
