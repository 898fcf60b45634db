/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "fuzz.h"
#include "headway-test-envelope.h"

#include "engine/headway-event.h"
#include "engine/headway-json.h"
#include "engine/headway-limits.h"
#include "wire/headway-json-body.h"
#include "wire/headway-sse-frame.h"

#include <stdlib.h>
#include <string.h>

/* A line as a publisher sends it, on its way to the frame that readers get. */

const char *const fuzz_seeds[] = {
  "{\"topic\":\"a.b\",\"data\":{\"x\":[1,2.5e3,\"\\u00e4\"]}}",
  "{\"type\":\"foo\",\"data\":null,\"principal\":\"agent.7\",\"originatorClientId\":\"c:1\"}",
  "{\"topic\":\"a\\\"b\\\\c\",\"data\":\"\xe2\x80\xa8\",\"_meta\":{\"serverTimestamp\":1e400,\"k\":1}}",
  "{ \"topic\" : \"t\" ,\r\n \"data\" : [ ],\n\"final\":true , \"_meta\":{}}",
  "{\"topic\":\"t\",\"type\":\"u\",\"data\":1,\"_meta\":{\"serverTimestamp\":-1.5,\"serverTimestamp\":\"x\"}}",
  NULL,
};

/* One chunk, and in it exactly the three lines of sse-contract.md 1.4. */
static void
check_frame (HeadwayEvent *event)
{
  g_autoptr (HeadwaySseFrame) frame = headway_sse_frame_new (event, 7);
  g_autofree char *head = g_strdup_printf ("id: 7\nevent: %s\ndata: ", headway_event_get_type (event));
  const char *body = frame->bytes + frame->body_offset;
  gsize envelope_length;
  g_autofree char *envelope = test_dup_envelope (event, &envelope_length);
  char *end;

  g_assert_cmpuint (strtoul (frame->bytes, &end, 16), ==, frame->body_length);
  g_assert_true (end + 2 == body && memcmp (end, "\r\n", 2) == 0);
  g_assert_cmpuint (frame->length, ==, frame->body_offset + frame->body_length + 2);
  g_assert_true (memcmp (body + frame->body_length, "\r\n", 2) == 0);
  g_assert_cmpuint (frame->body_length, ==, strlen (head) + envelope_length + 2);
  g_assert_cmpmem (body, strlen (head), head, strlen (head));
  g_assert_cmpmem (body + strlen (head), envelope_length, envelope, envelope_length);
  g_assert_null (memchr (envelope, '\n', envelope_length));
  g_assert_null (memchr (envelope, '\r', envelope_length));
}

static void
check_envelope (HeadwayEvent *event)
{
  gsize length;
  g_autofree char *envelope = test_dup_envelope (event, &length);
  HeadwayJson json;
  GError *error = NULL;

  g_assert_true (headway_json_validate (envelope, length, HEADWAY_JSON_DEPTH_MAX + 2, &json, &error));
  g_assert_no_error (error);
  g_assert_cmpint (json.type, ==, HEADWAY_JSON_OBJECT);
  g_assert_true (g_str_has_prefix (envelope, "{\"id\":7,\"v\":1,\"type\":\""));
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_autoptr (HeadwayPrincipalTable) principals = headway_principal_table_new ();
  g_auto (HeadwayPublishBody) body = { 0 };
  HeadwayPublication publication = { .principal = headway_principal_table_get_system (principals) };
  HeadwayInstant now = { .monotonic_us = 1, .real_us = 1000 };
  g_autoptr (HeadwayEvent) event = NULL;
  g_autoptr (GError) error = NULL;
  HeadwayJson json;

  if (!headway_json_validate ((const char *) data, size, HEADWAY_JSON_DEPTH_MAX + 1, &json, &error) ||
      !headway_publish_body_parse (&body, &json, &error))
    {
      g_assert_nonnull (error);
      return 0;
    }
  headway_publish_body_fill (&body, &publication);
  event = headway_event_new (&publication, HEADWAY_EVENT_CEILING, now, &error);
  if (event == NULL)
    {
      g_assert_nonnull (error);
      return 0;
    }
  headway_event_set_id (event, 7);
  check_envelope (event);
  check_frame (event);
  return 0;
}
