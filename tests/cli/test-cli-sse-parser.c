/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-error.h"
#include "cli/headway-cli-sse-parser.h"

#include <string.h>

/* Each frame as `id|event|data` and LF. */
static void
on_frame (const HeadwayCliSseFrame *frame,
          gpointer user_data)
{
  GString *seen = user_data;

  g_assert_cmpuint (frame->data[frame->length], ==, 0);
  g_string_append_printf (seen, "%s|%s|", frame->id != NULL ? frame->id : "-", frame->event);
  g_string_append_len (seen, frame->data, (gssize) frame->length);
  g_string_append_c (seen, '\n');
}

static char *
parse_in_two (const char *text,
              gsize length,
              gsize cut)
{
  GString *seen = g_string_new (NULL);
  g_autoptr (HeadwayCliSseParser) parser = headway_cli_sse_parser_new (on_frame, seen);
  g_autoptr (GError) error = NULL;

  headway_cli_sse_parser_feed (parser, text, cut, &error);
  g_assert_no_error (error);
  headway_cli_sse_parser_feed (parser, text + cut, length - cut, &error);
  g_assert_no_error (error);
  return g_string_free (seen, FALSE);
}

static void
assert_frames_at_every_cut (const char *text,
                            const char *expected)
{
  gsize length = strlen (text);

  for (gsize cut = 0; cut <= length; cut++)
    {
      g_autofree char *seen = parse_in_two (text, length, cut);

      g_assert_cmpstr (seen, ==, expected);
    }
}

static void
test_split_at_every_byte (void)
{
  assert_frames_at_every_cut ("retry: 3000\n\nid: 1\nevent: foo\ndata: {\"a\":\"\360\237\232\214\"}\n\nevent: gap\ndata: 2\n\n",
                              "1|foo|{\"a\":\"\360\237\232\214\"}\n-|gap|2\n");
}

static void
test_line_ends (void)
{
  assert_frames_at_every_cut ("id: 1\r\ndata: a\r\n\r\ndata: b\r\rdata: c\n\ndata: d\r\n\n", "1|message|a\n-|message|b\n-|message|c\n-|message|d\n");
}

static void
test_several_data_lines (void)
{
  assert_frames_at_every_cut ("data: a\ndata:b\ndata\ndata:  c\n\n", "-|message|a\nb\n\n c\n");
}

static void
test_comments_and_unknown_fields (void)
{
  assert_frames_at_every_cut (": heartbeat\n\n:\nfoo: bar\ndata: 1\n: x\n\n: heartbeat\n\n", "-|message|1\n");
}

static void
test_no_data_is_no_frame (void)
{
  assert_frames_at_every_cut ("event: foo\nid: 3\n\ndata: 1\n\n", "-|message|1\n");
}

static void
test_byte_order_mark (void)
{
  assert_frames_at_every_cut ("\357\273\277data: 1\n\n\357\273\277data: 2\n\n", "-|message|1\n");
}

static void
test_unfinished_frame_is_dropped (void)
{
  assert_frames_at_every_cut ("data: 1\n\ndata: 2\n", "-|message|1\n");
}

static void
test_nul_in_id_is_ignored (void)
{
  const char text[] = "id: 1\0002\ndata: 1\n\n";
  g_autofree char *seen = parse_in_two (text, sizeof text - 1, 4);

  g_assert_cmpstr (seen, ==, "-|message|1\n");
}

static void
test_retry_and_comments_are_counted (void)
{
  const char text[] = "retry: 3000\n\n: heartbeat\n\nretry: x\nretry: -1\n: heartbeat\n\n";
  g_autoptr (GString) seen = g_string_new (NULL);
  g_autoptr (HeadwayCliSseParser) parser = headway_cli_sse_parser_new (on_frame, seen);

  headway_cli_sse_parser_feed (parser, text, sizeof text - 1, NULL);
  g_assert_cmpuint (headway_cli_sse_parser_get_retry_ms (parser), ==, 3000);
  g_assert_cmpuint (headway_cli_sse_parser_get_n_comments (parser), ==, 2);
}

static gboolean
feed_frame (gsize size,
            gsize piece,
            GError **error)
{
  g_autoptr (GString) seen = g_string_new (NULL);
  g_autoptr (HeadwayCliSseParser) parser = headway_cli_sse_parser_new (on_frame, seen);
  g_autofree char *text = g_malloc (size);

  memset (text, 'x', size);
  memcpy (text, "data: ", 6);
  for (gsize done = 0; done < size; done += piece)
    {
      if (!headway_cli_sse_parser_feed (parser, text + done, MIN (piece, size - done), error))
        return FALSE;
    }
  headway_cli_sse_parser_feed (parser, "\n\n", 2, error);
  g_assert_cmpuint (seen->len, ==, size - 6 + strlen ("-|message|\n"));
  return TRUE;
}

static void
test_frame_limit (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (feed_frame (HEADWAY_CLI_SSE_FRAME_MAX, 65536, &error));
  g_assert_no_error (error);
  g_assert_true (feed_frame (HEADWAY_CLI_SSE_FRAME_MAX, HEADWAY_CLI_SSE_FRAME_MAX, &error));
  g_assert_no_error (error);
  g_assert_false (feed_frame (HEADWAY_CLI_SSE_FRAME_MAX + 1, 65536, &error));
  g_assert_error (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_FAILED);
}

int
main (int argc,
      char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/cli/sse-parser/split-at-every-byte", test_split_at_every_byte);
  g_test_add_func ("/cli/sse-parser/line-ends", test_line_ends);
  g_test_add_func ("/cli/sse-parser/several-data-lines", test_several_data_lines);
  g_test_add_func ("/cli/sse-parser/comments-and-unknown-fields", test_comments_and_unknown_fields);
  g_test_add_func ("/cli/sse-parser/no-data-is-no-frame", test_no_data_is_no_frame);
  g_test_add_func ("/cli/sse-parser/byte-order-mark", test_byte_order_mark);
  g_test_add_func ("/cli/sse-parser/unfinished-frame-is-dropped", test_unfinished_frame_is_dropped);
  g_test_add_func ("/cli/sse-parser/nul-in-id-is-ignored", test_nul_in_id_is_ignored);
  g_test_add_func ("/cli/sse-parser/retry-and-comments-are-counted", test_retry_and_comments_are_counted);
  g_test_add_func ("/cli/sse-parser/frame-limit", test_frame_limit);
  return g_test_run ();
}
