/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-draft.h"
#include "cli/headway-cli-error.h"
#include "cli/headway-cli-printer.h"
#include "cli/headway-cli-text.h"

#include <string.h>

static HeadwayCliEvent
sample (void)
{
  return (HeadwayCliEvent){
    .id = 1,
    .resume_id = 1,
    .topic = "foo",
    .type = "foo",
    .principal = "",
    .timestamp_us = 1999,
    .data = "1",
  };
}

static void
assert_json (const HeadwayCliEvent *event,
             const char *expected)
{
  g_autoptr (GString) out = g_string_new (NULL);

  headway_cli_printer_append_json (out, event);
  g_assert_cmpstr (out->str, ==, expected);
}

static void
test_golden_envelope (void)
{
  HeadwayCliEvent event = sample ();

  assert_json (&event, "{\"id\":1,\"v\":1,\"type\":\"foo\",\"data\":1,\"_meta\":{\"serverTimestamp\":1}}\n");
}

static void
test_full_envelope (void)
{
  HeadwayCliEvent event = sample ();

  event.id = event.resume_id = G_GUINT64_CONSTANT (9007199254740991);
  event.topic = "a.\"b\\";
  event.type = "message";
  event.principal = "agent:x";
  event.client = "c-1";
  event.data = "{ \"n\":123456789012345678901234567890,\"e\":1E400,\"s\":\"\\ud800\"}";
  event.meta = "{\"k\":1.50,\"serverTimestamp\":-1}";
  assert_json (&event, "{\"id\":9007199254740991,\"v\":1,\"type\":\"message\","
                       "\"data\":{ \"n\":123456789012345678901234567890,\"e\":1E400,\"s\":\"\\ud800\"},"
                       "\"topic\":\"a.\\\"b\\\\\",\"principal\":\"agent:x\",\"originatorClientId\":\"c-1\","
                       "\"_meta\":{\"k\":1.50,\"serverTimestamp\":-1}}\n");
}

static void
test_synthetic_has_no_id (void)
{
  HeadwayCliEvent event = sample ();

  event.id = 0;
  event.topic = "";
  event.type = "replay_complete";
  event.data = "{\"replayedCount\":0}";
  assert_json (&event, "{\"v\":1,\"type\":\"replay_complete\",\"data\":{\"replayedCount\":0},\"_meta\":{\"serverTimestamp\":1}}\n");
}

static void
test_routed_envelope_says_where_to_go_on (void)
{
  HeadwayCliEvent event = sample ();

  event.id = 7;
  event.has_seq = TRUE;
  event.resume_id = 7;
  assert_json (&event, "{\"id\":7,\"seq\":7,\"v\":1,\"type\":\"foo\",\"data\":1,\"_meta\":{\"serverTimestamp\":1}}\n");
  event.resume_id = 3;
  assert_json (&event, "{\"id\":3,\"seq\":7,\"v\":1,\"type\":\"foo\",\"data\":1,\"_meta\":{\"serverTimestamp\":1}}\n");
  event.resume_id = 0;
  assert_json (&event, "{\"seq\":7,\"v\":1,\"type\":\"foo\",\"data\":1,\"_meta\":{\"serverTimestamp\":1}}\n");
}

static void
test_daemons_envelope_is_one_line (void)
{
  HeadwayCliEvent event = sample ();

  event.envelope = (HeadwayCliSlice){ "{\"id\":1,\r\n\"x\":1E400}rest", 20 };
  assert_json (&event, "{\"id\":1,  \"x\":1E400}\n");
}

static void
assert_ends (const HeadwayCliEvent *event,
             gboolean colour,
             const char *expected)
{
  g_autoptr (GString) out = g_string_new (NULL);
  const char *rest;

  headway_cli_printer_append_readable (out, event, colour);
  rest = strstr (out->str, ".001  ");
  g_assert_nonnull (rest);
  g_assert_cmpstr (rest + 6, ==, expected);
}

static void
test_readable_line (void)
{
  HeadwayCliEvent event = sample ();

  assert_ends (&event, FALSE, "foo  system  1\n");
  event.topic = "a.b";
  event.principal = "uid:1000";
  assert_ends (&event, FALSE, "a.b  [foo]  uid:1000  1\n");
  event.type = "message";
  assert_ends (&event, FALSE, "a.b  uid:1000  1\n");
  event.type = "foo";
  assert_ends (&event, TRUE, "\033[0m\033[1;36ma.b\033[0m  [\033[33mfoo\033[0m]  \033[32muid:1000\033[0m  1\n");
}

static void
test_events_cannot_control_the_terminal (void)
{
  HeadwayCliEvent event = sample ();

  event.topic = "\033]0;x\a";
  event.type = "message";
  event.principal = "\302\2331m";
  event.data = "\"\r\n\177\342\200\256\342\200\250\303\244\"";
  assert_ends (&event, FALSE, "\\u001b]0;x\\u0007  \\u009b1m  \"\\u000d\\u000a\\u007f\\u202e\\u2028\303\244\"\n");
}

static void
test_neutralise_takes_any_bytes (void)
{
  g_autofree char *text = headway_cli_text_neutralise ("a\0b\377\342\202", 6);
  g_autofree char *emoji = headway_cli_text_neutralise ("\360\237\221\251\342\200\215\360\237\232\200", -1);

  g_assert_cmpstr (text, ==, "a\\u0000b\\xff\\xe2\\x82");
  g_assert_cmpstr (emoji, ==, "\360\237\221\251\342\200\215\360\237\232\200");
}

static void
assert_notice (const char *type,
               const char *data,
               const char *expected)
{
  HeadwayCliEvent event = sample ();
  g_autofree char *text = NULL;

  event.id = 0;
  event.type = type;
  event.data = data;
  text = headway_cli_printer_describe_notice (&event);
  g_assert_cmpstr (text, ==, expected);
}

static void
test_notices (void)
{
  assert_notice ("state_resync_required", "{\"reason\":\"ring_evicted\",\"lastDeliveredId\":5,\"earliestAvailableId\":9}", "events may be missing between 5 and 9 (ring_evicted)");
  assert_notice ("replay_complete", "{\"replayedCount\":3}", "3 older events replayed, live from here");
  assert_notice ("client_evicted", "{\"reason\":\"queue_overflow\"}", "this reader was too slow (queue_overflow)");
  assert_notice ("gap", "{\"reason\":\"budget\",\"count\":2,\"firstId\":3,\"lastId\":7}", "2 events lost between 3 and 7 (budget: too many bytes waited)");
  assert_notice ("gap", "{\"reason\":\"oversize\",\"principal\":\"agent:a\",\"count\":1,\"firstId\":3,\"lastId\":3}", "1 event of agent:a lost between 3 and 3 (oversize: larger than this reader takes)");
  assert_notice ("gap", "{\"reason\":\"lagged\",\"count\":9,\"firstId\":3,\"lastId\":11,\"filtered\":true}", "at most 9 events lost between 3 and 11 (lagged: this reader was too slow)");
  assert_notice ("gap", "{\"reason\":\"new\",\"count\":2,\"firstId\":3,\"lastId\":7,\"filtered\":false}", "2 events lost between 3 and 7 (new)");
  assert_notice ("gap", "not json", "0 events lost between 0 and 0 (?)");
  assert_notice ("new_kind", "{}", "new_kind: {}");
}

static void
test_draft_of_ndjson (void)
{
  const char text[] = "{\"id\":7,\"v\":1,\"type\":\"t\",\"data\":1E400,\"principal\":null,\"final\":true,\"_meta\":{\"a\":1}}";
  HeadwayCliDraft defaults = { .topic = (char *) "d" };
  g_autoptr (GError) error = NULL;
  g_autoptr (HeadwayCliDraft) draft = headway_cli_draft_new_from_json (text, sizeof text - 1, &error);
  g_autoptr (GString) json = g_string_new (NULL);
  g_autoptr (GVariant) variant = NULL;
  const char *topic = NULL;

  g_assert_no_error (error);
  headway_cli_draft_append_json (draft, &defaults, json);
  g_assert_cmpstr (json->str, ==, "{\"data\":1E400,\"topic\":\"d\",\"type\":\"t\",\"principal\":\"\",\"final\":true,\"_meta\":{\"a\":1}}");
  variant = g_variant_ref_sink (headway_cli_draft_to_variant (draft, &defaults));
  g_assert_cmpstr (g_variant_get_type_string (variant), ==, "(ssa{sv})");
  g_variant_get_child (variant, 0, "&s", &topic);
  g_assert_cmpstr (topic, ==, "d");
}

static void
test_draft_refusals (void)
{
  const char *const texts[] = {
    "1", "{}", "{\"data\":1", "{\"data\":1}x", "{\"data\":1,\"tpoic\":\"a\"}", "{\"data\":1,\"topic\":2}", "{\"data\":1,\"final\":1}", "{\"data\":\"\377\"}"
  };

  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_null (headway_cli_draft_new_from_json (texts[i], strlen (texts[i]), &error));
      g_assert_error (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_DATA);
    }
}

int
main (int argc,
      char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/cli/printer/golden-envelope", test_golden_envelope);
  g_test_add_func ("/cli/printer/full-envelope", test_full_envelope);
  g_test_add_func ("/cli/printer/synthetic-has-no-id", test_synthetic_has_no_id);
  g_test_add_func ("/cli/printer/routed-envelope-says-where-to-go-on", test_routed_envelope_says_where_to_go_on);
  g_test_add_func ("/cli/printer/daemons-envelope-is-one-line", test_daemons_envelope_is_one_line);
  g_test_add_func ("/cli/printer/readable-line", test_readable_line);
  g_test_add_func ("/cli/printer/events-cannot-control-the-terminal", test_events_cannot_control_the_terminal);
  g_test_add_func ("/cli/printer/neutralise-takes-any-bytes", test_neutralise_takes_any_bytes);
  g_test_add_func ("/cli/printer/notices", test_notices);
  g_test_add_func ("/cli/draft/ndjson", test_draft_of_ndjson);
  g_test_add_func ("/cli/draft/refusals", test_draft_refusals);
  return g_test_run ();
}
