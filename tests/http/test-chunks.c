/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-chunks.h"

#include <string.h>

/* Feeds @text in pieces of @step bytes. What is handed on goes to @out, what is left over stays in the
 * returned array. FALSE: refused. */
static gboolean
run (const char *text, gsize length, gsize step, gsize count, GString *out, GByteArray *input, HeadwayHttpChunks *chunks)
{
  *chunks = (HeadwayHttpChunks){ 0 };
  for (gsize at = 0; at < length; at += step)
    {
      gssize n;

      g_byte_array_append (input, (const guint8 *) text + at, (guint) MIN (step, length - at));
      while ((n = headway_http_chunks_next (chunks, input, count)) > 0)
        {
          g_string_append_len (out, (const char *) input->data, n);
          g_byte_array_remove_range (input, 0, (guint) n);
        }
      if (n < 0)
        return FALSE;
    }
  return TRUE;
}

static void
test_bodies_pass_whatever_the_pieces (void)
{
  static const struct
  {
    const char *text;
    const char *handed_on;
    const char *left;
  } cases[] = {
    { "5\r\nhello\r\n0\r\n\r\nGET /", "5\r\nhello\r\n0\r\n\r\n", "GET /" },
    { "5\nhello\n0\n\nGET /", "5\nhello\n0\n\n", "GET /" },
    { "005 ; x=\"y\"\r\nhello\r\n0\r\n\r\n", "005 ; x=\"y\"\r\nhello\r\n0\r\n\r\n", "" },
    { "1\r\n\n\r\nA\r\n0123456789\r\n0\r\n\r\n", "1\r\n\n\r\nA\r\n0123456789\r\n0\r\n\r\n", "" },
    { "0\r\nA: b\r\nC: d\r\n\r\nrest", "0\r\n\r\n", "rest" },
    { "0\r\n\r\n5\r\n", "0\r\n\r\n", "5\r\n" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    for (gsize step = 1; step <= strlen (cases[i].text); step++)
      for (gsize count = 100; count <= 8192; count += 8092)
        {
          g_autoptr (GString) out = g_string_new (NULL);
          g_autoptr (GByteArray) input = g_byte_array_new ();
          HeadwayHttpChunks chunks;

          g_assert_true (run (cases[i].text, strlen (cases[i].text), step, count, out, input, &chunks));
          g_assert_cmpstr (out->str, ==, cases[i].handed_on);
          g_assert_cmpmem (input->data, input->len, cases[i].left, strlen (cases[i].left));
          g_assert_cmpint (chunks.state, ==, HEADWAY_HTTP_CHUNKS_DONE);
        }
}

static void
test_large_chunks_are_cut_to_what_is_wanted (void)
{
  g_autofree char *data = g_strnfill (100000, 'x');
  g_autofree char *text = g_strdup_printf ("186a0\r\n%s\r\n0\r\n\r\n", data);
  g_autoptr (GString) out = g_string_new (NULL);
  g_autoptr (GByteArray) input = g_byte_array_new ();
  HeadwayHttpChunks chunks = { 0 };
  gssize n;

  g_byte_array_append (input, (const guint8 *) text, (guint) strlen (text));
  while ((n = headway_http_chunks_next (&chunks, input, 4096)) > 0)
    {
      g_assert_cmpint (n, <=, 4096);
      g_string_append_len (out, (const char *) input->data, n);
      g_byte_array_remove_range (input, 0, (guint) n);
    }
  g_assert_cmpstr (out->str, ==, text);
}

static void
test_what_is_no_chunk_is_refused (void)
{
  static const char *const bad[] = { "\r\n", "x\r\n", "-1\r\n", "+5\r\nhello", "0x5\r\nhello", " 5\r\nhello", "5 x\r\n", "5\rx\n", "5\r\nhelloX",
                                     "5\r\nhello\rX", "1234567890123\r\n", ";\r\n" };

  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    for (gsize step = 1; step <= strlen (bad[i]); step++)
      {
        g_autoptr (GString) out = g_string_new (NULL);
        g_autoptr (GByteArray) input = g_byte_array_new ();
        HeadwayHttpChunks chunks;

        g_assert_false (run (bad[i], strlen (bad[i]), step, 8192, out, input, &chunks));
      }
}

static void
test_lines_have_an_end (void)
{
  g_autofree char *extension = g_strnfill (200, 'x');
  g_autofree char *line = g_strdup_printf ("5;%s", extension);
  g_autofree char *trailer = g_strnfill (20000, 'y');
  g_autofree char *trailers = g_strdup_printf ("0\r\n%s", trailer);
  g_autoptr (GString) out = g_string_new (NULL);
  g_autoptr (GByteArray) input = g_byte_array_new ();
  HeadwayHttpChunks chunks;

  g_assert_false (run (line, strlen (line), 10, 8192, out, input, &chunks));
  g_byte_array_set_size (input, 0);
  g_assert_false (run (trailers, strlen (trailers), 1000, 8192, out, input, &chunks));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/http/chunks/bodies-pass-whatever-the-pieces", test_bodies_pass_whatever_the_pieces);
  g_test_add_func ("/http/chunks/large-chunks-are-cut-to-what-is-wanted", test_large_chunks_are_cut_to_what_is_wanted);
  g_test_add_func ("/http/chunks/what-is-no-chunk-is-refused", test_what_is_no_chunk_is_refused);
  g_test_add_func ("/http/chunks/lines-have-an-end", test_lines_have_an_end);
  return g_test_run ();
}
