/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-envelope.h"

#include <string.h>

static void
init (HeadwayCliEnvelope *envelope,
      const char *json)
{
  headway_cli_envelope_init (envelope, (HeadwayCliSlice){ json, strlen (json) });
}

static void
test_event (void)
{
  g_auto (HeadwayCliEnvelope) envelope = { 0 };
  const char *json = "{\"id\":7,\"v\":1,\"type\":\"kind\",\"data\":{\"id\":3, \"type\":\"x\"},\"topic\":\"a.\\\"b\","
                     "\"principal\":\"agent:p\",\"originatorClientId\":\"c\",\"_meta\":{\"k\":1,\"serverTimestamp\":1500}}";

  init (&envelope, json);
  g_assert_cmpuint (envelope.event.id, ==, 7);
  g_assert_cmpuint (envelope.event.resume_id, ==, 7);
  g_assert_cmpstr (envelope.event.type, ==, "kind");
  g_assert_cmpstr (envelope.event.topic, ==, "a.\"b");
  g_assert_cmpstr (envelope.event.principal, ==, "agent:p");
  g_assert_cmpstr (envelope.event.data, ==, "{\"id\":3, \"type\":\"x\"}");
  g_assert_cmpint (envelope.event.timestamp_us, ==, 1500000);
  g_assert_true (envelope.event.envelope.text == json);
}

static void
test_routed_event_has_two_ids (void)
{
  g_auto (HeadwayCliEnvelope) envelope = { 0 };
  g_auto (HeadwayCliEnvelope) first = { 0 };

  init (&envelope, "{\"id\":4,\"seq\":9,\"v\":1,\"type\":\"t\",\"data\":1}");
  g_assert_cmpuint (envelope.event.id, ==, 9);
  g_assert_cmpuint (envelope.event.resume_id, ==, 4);
  init (&first, "{\"seq\":1,\"v\":1,\"type\":\"t\",\"data\":1}");
  g_assert_cmpuint (first.event.id, ==, 1);
  g_assert_cmpuint (first.event.resume_id, ==, 0);
}

static void
test_synthetic_event_has_no_id (void)
{
  g_auto (HeadwayCliEnvelope) envelope = { 0 };

  init (&envelope, "{\"v\":1,\"type\":\"gap\",\"data\":{\"count\":2}}");
  g_assert_cmpuint (envelope.event.id, ==, 0);
  g_assert_true (headway_cli_event_is_type (&envelope.event, "gap"));
  g_assert_cmpuint (headway_cli_event_get_data_uint64 (&envelope.event, "count"), ==, 2);
}

static void
test_what_is_broken_is_empty (void)
{
  const char *const texts[] = { "", "[]", "{", "{\"id\":-1,\"type\":5}", "{\"id\":1.5,\"type\":\"\\x\"}", "[\"type\",\"id\"]" };

  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++)
    {
      g_auto (HeadwayCliEnvelope) envelope = { 0 };

      init (&envelope, texts[i]);
      g_assert_cmpuint (envelope.event.id, ==, 0);
      g_assert_cmpstr (envelope.event.type, ==, "");
      g_assert_cmpstr (envelope.event.data, ==, "");
    }
}

int
main (int argc,
      char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/cli-envelope/event", test_event);
  g_test_add_func ("/cli-envelope/routed-event-has-two-ids", test_routed_event_has_two_ids);
  g_test_add_func ("/cli-envelope/synthetic-event-has-no-id", test_synthetic_event_has_no_id);
  g_test_add_func ("/cli-envelope/what-is-broken-is-empty", test_what_is_broken_is_empty);
  return g_test_run ();
}
