/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "wire/headway-sse-frame.h"

#include "engine/headway-error.h"

#include <string.h>

static HeadwayEvent *
new_event (HeadwayPrincipalTable *principals, const char *type, const char *data)
{
  HeadwayPublication publication = {
    .type = type,
    .principal = headway_principal_table_get_system (principals),
    .data = data,
    .data_length = strlen (data),
    .meta = "{\"serverTimestamp\":1}",
    .meta_length = strlen ("{\"serverTimestamp\":1}"),
  };

  return headway_event_new (&publication, 1024 * 1024, (HeadwayInstant){ 1, 1 }, NULL);
}

static void
assert_frame (const HeadwaySseFrame *frame, const char *body)
{
  g_autofree char *chunk = g_strdup_printf ("%" G_GSIZE_MODIFIER "x\r\n%s\r\n", strlen (body), body);

  g_assert_cmpmem (frame->bytes, frame->length, chunk, strlen (chunk));
  g_assert_cmpmem (frame->bytes + frame->body_offset, frame->body_length, body, strlen (body));
}

static void
test_golden_sample (void)
{
  g_autoptr (HeadwayPrincipalTable) principals = headway_principal_table_new ();
  g_autoptr (HeadwayEvent) event = new_event (principals, "foo", "1");
  g_autoptr (HeadwaySseFrame) frame = NULL;
  g_autoptr (HeadwaySseFrame) resumed = NULL;

  headway_event_set_id (event, 1);
  frame = headway_sse_frame_new (event, 1);
  assert_frame (frame, "id: 1\nevent: foo\ndata: {\"id\":1,\"v\":1,\"type\":\"foo\",\"data\":1,\"_meta\":{\"serverTimestamp\":1}}\n\n");
  g_assert_false (frame->is_last);
  resumed = headway_sse_frame_new (event, HEADWAY_ID_MAX);
  g_assert_nonnull (g_strstr_len (resumed->bytes, (gssize) resumed->length, "\r\nid: 9007199254740991\nevent: foo\n"));
}

/* What each format consists of; @body is that of SSE. */
static void
assert_pieces (const HeadwaySseFrame *frame, const char *body)
{
  g_autofree char *chunk = g_strdup_printf ("%" G_GSIZE_MODIFIER "x\r\n%s\r\n", strlen (body), body);
  g_autofree char *line = g_strndup (strstr (body, "{"), strlen (strstr (body, "{")) - 1);
  const char *texts[] = { chunk, body, line };

  for (int format = 0; format < HEADWAY_N_STREAM_FORMATS; format++)
    {
      struct iovec pieces[HEADWAY_SSE_FRAME_PIECES];
      guint n = headway_sse_frame_get_pieces (frame, (HeadwayStreamFormat) format, pieces);
      g_autoptr (GString) whole = g_string_new (NULL);

      for (guint i = 0; i < n; i++)
        g_string_append_len (whole, pieces[i].iov_base, (gssize) pieces[i].iov_len);
      g_assert_cmpstr (whole->str, ==, texts[format]);
      g_assert_cmpuint (whole->len, ==, headway_sse_frame_get_length (frame, (HeadwayStreamFormat) format));
    }
}

/* decisions.md 32 */
static void
test_a_head_of_its_own (void)
{
  static const char rest[] = ",\"v\":1,\"type\":\"foo\",\"data\":1,\"_meta\":{\"serverTimestamp\":1}}\n\n";
  g_autoptr (HeadwayPrincipalTable) principals = headway_principal_table_new ();
  g_autoptr (HeadwayEvent) event = new_event (principals, "foo", "1");
  g_autoptr (HeadwaySseFrame) shared = NULL;
  g_autoptr (HeadwaySseFrame) first = NULL;
  g_autoptr (HeadwaySseFrame) last = NULL;
  g_autofree char *with_id = g_strconcat ("id: 7\nevent: foo\ndata: {\"id\":7,\"seq\":12", rest, NULL);
  g_autofree char *without_id = g_strconcat ("event: foo\ndata: {\"seq\":12", rest, NULL);

  headway_event_set_id (event, 12);
  shared = headway_sse_frame_new (event, 12);
  first = headway_sse_frame_new_headed (shared, event, 0);
  last = headway_sse_frame_new_headed (shared, event, 7);
  assert_pieces (first, without_id);
  assert_pieces (last, with_id);
  g_assert_cmpuint (shared->ref, ==, 3);
  assert_pieces (shared, "id: 12\nevent: foo\ndata: {\"id\":12,\"v\":1,\"type\":\"foo\",\"data\":1,\"_meta\":{\"serverTimestamp\":1}}\n\n");
}

static void
test_synthetic_events_have_no_id_line (void)
{
  g_autoptr (HeadwayPrincipalTable) principals = headway_principal_table_new ();
  HeadwayPrincipal *system = headway_principal_table_get_system (principals);
  g_autoptr (HeadwayEvent) event = headway_event_new_synthetic ("replay_complete", "{\"replayedCount\":0}", 19, system,
                                                                (HeadwayInstant){ 1, 5000 });
  g_autoptr (HeadwaySseFrame) frame = headway_sse_frame_new (event, 0);

  assert_pieces (frame, "event: replay_complete\ndata: {\"v\":1,\"type\":\"replay_complete\",\"data\":{\"replayedCount\":0},"
                        "\"_meta\":{\"serverTimestamp\":5}}\n\n");
  assert_frame (frame, "event: replay_complete\ndata: {\"v\":1,\"type\":\"replay_complete\",\"data\":{\"replayedCount\":0},"
                       "\"_meta\":{\"serverTimestamp\":5}}\n\n");
  g_assert_false (frame->is_last);
}

static void
test_the_end_of_a_bus_is_marked (void)
{
  g_autoptr (HeadwayPrincipalTable) principals = headway_principal_table_new ();
  HeadwayPrincipal *system = headway_principal_table_get_system (principals);
  g_autoptr (HeadwayEvent) event = headway_event_new_session_closed ("b", system, (HeadwayInstant){ 1, 1 });
  g_autoptr (HeadwaySseFrame) frame = NULL;

  headway_event_set_id (event, 3);
  frame = headway_sse_frame_new (event, 3);
  g_assert_true (frame->is_last);
}

static void
test_text_and_raw (void)
{
  g_autoptr (HeadwaySseFrame) beat = headway_sse_frame_new_text (": heartbeat\n\n", 13);
  g_autoptr (HeadwaySseFrame) raw = headway_sse_frame_new_raw ("0\r\n\r\n", 5);

  assert_frame (beat, ": heartbeat\n\n");
  g_assert_cmpmem (raw->bytes, raw->length, "0\r\n\r\n", 5);
  g_assert_cmpuint (raw->body_offset, ==, 0);
  g_assert_cmpuint (raw->body_length, ==, 5);
}

static void
test_cursors (void)
{
  static const struct
  {
    const char *text;
    gboolean is_good;
    guint64 id;
  } cases[] = {
    { "0", TRUE, 0 },
    { "00", TRUE, 0 },
    { "01", TRUE, 1 },
    { " 1", TRUE, 1 },
    { "1 \t", TRUE, 1 },
    { "9007199254740991", TRUE, HEADWAY_ID_MAX },
    { "00000000000000000009007199254740991", TRUE, HEADWAY_ID_MAX },
    { "9007199254740992", FALSE, 0 },
    { "18446744073709551616", FALSE, 0 },
    { "99999999999999999999999", FALSE, 0 },
    { "", FALSE, 0 },
    { " ", FALSE, 0 },
    { "-1", FALSE, 0 },
    { "+1", FALSE, 0 },
    { "1.5", FALSE, 0 },
    { "0x1", FALSE, 0 },
    { "1e0", FALSE, 0 },
    { "abc", FALSE, 0 },
    { "1,1", FALSE, 0 },
    { "1 1", FALSE, 0 },
    { "\xff", FALSE, 0 },
    { "\xd9\xa1", FALSE, 0 },
    { NULL, FALSE, 0 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      guint64 id = 77;
      gboolean is_good = headway_sse_parse_last_event_id (cases[i].text, &id);

      g_assert_cmpint (is_good, ==, cases[i].is_good);
      if (is_good)
        g_assert_cmpuint (id, ==, cases[i].id);
    }
}

static void
test_epochs (void)
{
  g_autofree char *longest = g_strnfill (64, 'a');
  g_autofree char *too_long = g_strnfill (65, 'a');

  g_assert_true (headway_sse_is_epoch ("a"));
  g_assert_true (headway_sse_is_epoch ("Az09_-"));
  g_assert_true (headway_sse_is_epoch (longest));
  g_assert_false (headway_sse_is_epoch (too_long));
  g_assert_false (headway_sse_is_epoch (NULL));
  g_assert_false (headway_sse_is_epoch (""));
  g_assert_false (headway_sse_is_epoch ("bad token!"));
  g_assert_false (headway_sse_is_epoch ("a b"));
  g_assert_false (headway_sse_is_epoch ("\xc3\xa9"));
}

static void
test_max_queued (void)
{
  static const char *const bad[] = { "", "15", "2049", "0", "99999999999999999999", "abc", "+16", " 16", "16 ", "16.0",
                                     "0x10", "-16", "1e2", "\xd9\xa1\xd9\xa6", NULL };
  guint value = 0;

  g_assert_true (headway_sse_parse_max_queued ("16", &value, NULL));
  g_assert_cmpuint (value, ==, 16);
  g_assert_true (headway_sse_parse_max_queued ("2048", &value, NULL));
  g_assert_cmpuint (value, ==, 2048);
  g_assert_true (headway_sse_parse_max_queued ("016", &value, NULL));
  g_assert_cmpuint (value, ==, 16);
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_false (headway_sse_parse_max_queued (bad[i], &value, &error));
      g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION);
    }
  g_assert_cmpuint (value, ==, 16);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/wire/sse-frame/golden-sample", test_golden_sample);
  g_test_add_func ("/wire/sse-frame/a-head-of-its-own", test_a_head_of_its_own);
  g_test_add_func ("/wire/sse-frame/synthetic-events-have-no-id-line", test_synthetic_events_have_no_id_line);
  g_test_add_func ("/wire/sse-frame/the-end-of-a-bus-is-marked", test_the_end_of_a_bus_is_marked);
  g_test_add_func ("/wire/sse-frame/text-and-raw", test_text_and_raw);
  g_test_add_func ("/wire/sse-frame/cursors", test_cursors);
  g_test_add_func ("/wire/sse-frame/epochs", test_epochs);
  g_test_add_func ("/wire/sse-frame/max-queued", test_max_queued);
  return g_test_run ();
}
