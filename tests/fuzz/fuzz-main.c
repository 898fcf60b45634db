/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "fuzz.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

/* Stands in for libFuzzer, so that a target runs as an ordinary test with any compiler:
 *   fuzz-x FILE…    each file once (a corpus, or what made libFuzzer stop)
 *   fuzz-x          HEADWAY_FUZZ_RUNS mutations of the seeds, from HEADWAY_FUZZ_SEED on
 * Without this file the targets link with `clang -fsanitize=fuzzer,address,undefined`. */

#define RUNS_DEFAULT 50000
#define MUTATED_MAX  4096

static guint
get_number (const char *name, guint fallback)
{
  const char *text = g_getenv (name);
  guint64 value;

  if (text == NULL || !g_ascii_string_to_unsigned (text, 10, 0, G_MAXUINT32, &value, NULL))
    return fallback;

  return (guint) value;
}

/* A copy of exact size, so that a sanitizer sees each byte read too many. */
static void
run (const char *text, gsize length)
{
  g_autofree guint8 *copy = g_memdup2 (text, length);

  LLVMFuzzerTestOneInput (copy, length);
}

static gsize
mutate_once (GRand *random, char *text, gsize length, const char *other)
{
  static const char marks[] = "{}[]\",:\\.*\n \x00\x1f\x7f\x80\xc3\xe2\xed\xf0\xff";
  gsize at = (gsize) g_rand_int_range (random, 0, (gint32) length + 1);
  gsize piece;

  switch (g_rand_int_range (random, 0, 6))
    {
    case 0:
      if (at < length)
        text[at] ^= (char) (1 << g_rand_int_range (random, 0, 8));
      return length;
    case 1:
      if (at < length)
        text[at] = marks[g_rand_int_range (random, 0, sizeof marks - 1)];
      return length;
    case 2:
      memmove (text + at + 1, text + at, length - at);
      text[at] = marks[g_rand_int_range (random, 0, sizeof marks - 1)];
      return length + 1;
    case 3:
      piece = (gsize) g_rand_int_range (random, 0, 8);
      piece = MIN (piece, length - at);
      memmove (text + at, text + at + piece, length - at - piece);
      return length - piece;
    case 4:
      piece = (gsize) g_rand_int_range (random, 0, 40);
      piece = MIN (piece, length - at);
      memmove (text + at + piece, text + at, length - at);
      return length + piece;
    default:
      piece = strlen (other);
      memcpy (text + at, other, piece);
      return MAX (length, at + piece);
    }
}

static void
run_mutations (guint runs, guint seed)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (seed);
  g_autofree char *text = g_malloc (2 * MUTATED_MAX);
  gint32 n_seeds = 0;

  while (fuzz_seeds[n_seeds] != NULL)
    {
      run (fuzz_seeds[n_seeds], strlen (fuzz_seeds[n_seeds]));
      n_seeds++;
    }

  for (guint i = 0; i < runs; i++)
    {
      const char *start = fuzz_seeds[g_rand_int_range (random, 0, n_seeds)];
      gsize length = strlen (start);

      g_assert_cmpuint (length, <, MUTATED_MAX / 2);
      memcpy (text, start, length);
      for (gint32 n = g_rand_int_range (random, 1, 8); n > 0 && length < MUTATED_MAX; n--)
        length = mutate_once (random, text, length, fuzz_seeds[g_rand_int_range (random, 0, n_seeds)]);
      run (text, length);
    }
}

int
main (int argc, char **argv)
{
  if (argc == 1)
    {
      guint runs = get_number ("HEADWAY_FUZZ_RUNS", RUNS_DEFAULT);
      guint seed = get_number ("HEADWAY_FUZZ_SEED", 1);

      g_print ("%u mutations from seed %u\n", runs, seed);
      run_mutations (runs, seed);
      return EXIT_SUCCESS;
    }

  for (int i = 1; i < argc; i++)
    {
      g_autoptr (GError) error = NULL;
      g_autofree char *text = NULL;
      gsize length;

      if (!g_file_get_contents (argv[i], &text, &length, &error))
        {
          g_printerr ("%s\n", error->message);
          return EXIT_FAILURE;
        }
      g_print ("%s\n", argv[i]);
      run (text, length);
    }

  return EXIT_SUCCESS;
}
