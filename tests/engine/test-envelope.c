/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-envelope.h"

#include "engine/headway-envelope.h"

#include <string.h>

/* Golden bytes of docs/http-api.md, Envelope, and sse-contract.md 1.4. */

typedef struct
{
  const char *topic;
  const char *type;
  const char *principal; /* NULL: system */
  const char *client;
  const char *data;
  const char *meta;
  guint64 id;
  const char *expected;
} Golden;

#define STAMP "\"serverTimestamp\":1700000000000"

static const Golden goldens[] = {
  { NULL, "foo", NULL, NULL, "1", "{\"serverTimestamp\":1}", 1,
    "{\"id\":1,\"v\":1,\"type\":\"foo\",\"data\":1,\"_meta\":{\"serverTimestamp\":1}}" },
  { "foo", "foo", NULL, NULL, "null", NULL, HEADWAY_ID_MAX,
    "{\"id\":9007199254740991,\"v\":1,\"type\":\"foo\",\"data\":null,\"_meta\":{" STAMP "}}" },
  { "a.b", "foo", "uid:1000", "client-1", "[1, 2]", "{\"k\":\"v\"}", 42,
    "{\"id\":42,\"v\":1,\"type\":\"foo\",\"data\":[1, 2],\"topic\":\"a.b\",\"principal\":\"uid:1000\","
    "\"originatorClientId\":\"client-1\",\"_meta\":{\"k\":\"v\"," STAMP "}}" },
  { "a.b", NULL, NULL, NULL, "{}", NULL, 7,
    "{\"id\":7,\"v\":1,\"type\":\"message\",\"data\":{},\"topic\":\"a.b\",\"_meta\":{" STAMP "}}" },
  /* The topic's quotes and backslashes are escaped, everything else is raw. */
  { "a\"b.c\\d.\xc3\xa9", "t", NULL, NULL, "\"\xe2\x80\xa8\x7f\\u0000\\ud800\"", NULL, 9,
    "{\"id\":9,\"v\":1,\"type\":\"t\",\"data\":\"\xe2\x80\xa8\x7f\\u0000\\ud800\",\"topic\":\"a\\\"b.c\\\\d.\xc3\xa9\","
    "\"_meta\":{" STAMP "}}" },
  /* CR and LF between tokens become blanks; numbers and duplicate names stay as they are. */
  { NULL, "t", NULL, NULL, " \r\n{\"a\":\r\n1E400,\n\"a\":12345678901234567890 }\n", "\n{ }\n", 10,
    "{\"id\":10,\"v\":1,\"type\":\"t\",\"data\":{\"a\":  1E400, \"a\":12345678901234567890 },\"_meta\":{ " STAMP "}}" },
  { NULL, "t", NULL, NULL, "1", "{\"a\":{\"serverTimestamp\":\"no\"},\n\"b\":2 }", 11,
    "{\"id\":11,\"v\":1,\"type\":\"t\",\"data\":1,\"_meta\":{\"a\":{\"serverTimestamp\":\"no\"}, \"b\":2 ," STAMP "}}" },
  { NULL, "t", NULL, NULL, "1", "{\"x\":1,\"serverTimestamp\" : [1],\"y\":2}", 12,
    "{\"id\":12,\"v\":1,\"type\":\"t\",\"data\":1,\"_meta\":{\"x\":1,\"serverTimestamp\" : 1700000000000,\"y\":2}}" },
  { NULL, "t", NULL, NULL, "1", "{\"server\\u0054imestamp\":5}", 13,
    "{\"id\":13,\"v\":1,\"type\":\"t\",\"data\":1,\"_meta\":{\"server\\u0054imestamp\":5}}" },
  { NULL, "t", NULL, NULL, "1", "{\"serverTimestamp\":5,\"serverTimestamp\":null}", 14,
    "{\"id\":14,\"v\":1,\"type\":\"t\",\"data\":1,\"_meta\":{\"serverTimestamp\":5,\"serverTimestamp\":1700000000000}}" },
};

static HeadwayEvent *
build (HeadwayPrincipalTable *table, const Golden *golden)
{
  g_autoptr (HeadwayPrincipal) named = NULL;
  g_autoptr (GError) error = NULL;
  HeadwayEvent *event;
  HeadwayPublication publication = {
    .topic = golden->topic,
    .type = golden->type,
    .client = golden->client,
    .data = golden->data,
    .data_length = strlen (golden->data),
    .meta = golden->meta,
    .meta_length = golden->meta != NULL ? strlen (golden->meta) : 0,
  };

  named = golden->principal != NULL ? headway_principal_table_intern (table, golden->principal, NULL) : NULL;
  publication.principal = named != NULL ? named : headway_principal_table_get_system (table);
  event = headway_event_new (&publication, G_MAXUINT64, (HeadwayInstant){ 1, 1700000000000999 }, &error);
  g_assert_no_error (error);
  headway_event_set_id (event, golden->id);
  return event;
}

static void
test_golden (gconstpointer data)
{
  const Golden *golden = data;
  g_autoptr (HeadwayPrincipalTable) table = headway_principal_table_new ();
  g_autoptr (HeadwayEvent) event = build (table, golden);
  g_autoptr (GError) error = NULL;
  HeadwayJson json;
  gsize length;
  g_autofree char *envelope = test_dup_envelope (event, &length);

  g_assert_cmpstr (envelope, ==, golden->expected);
  g_assert_true (headway_json_validate (envelope, length, HEADWAY_JSON_DEPTH_MAX + 1, &json, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (json.length, ==, length);
  g_assert_null (memchr (envelope, '\n', length));
  g_assert_null (memchr (envelope, '\r', length));
}

/* The slices that D-Bus readers get are those of the envelope. */
static void
test_slices (void)
{
  g_autoptr (HeadwayPrincipalTable) table = headway_principal_table_new ();

  for (guint i = 0; i < G_N_ELEMENTS (goldens); i++)
    {
      g_autoptr (HeadwayEvent) event = build (table, &goldens[i]);
      HeadwayJson json, name, value;
      HeadwayJsonIter iter;
      gsize length;
      g_autofree char *envelope = test_dup_envelope (event, &length);
      const char *text;

      g_assert_true (headway_json_validate (envelope, length, HEADWAY_JSON_DEPTH_MAX + 1, &json, NULL));
      headway_json_iter_init (&iter, &json);
      while (headway_json_iter_next (&iter, &name, &value))
        {
          if (headway_json_string_equals (&name, "data"))
            {
              text = headway_event_get_data (event, &length);
              g_assert_cmpmem (text, length, value.text, value.length);
            }
          if (headway_json_string_equals (&name, "_meta") && goldens[i].meta != NULL)
            {
              text = headway_event_get_meta (event, &length);
              g_assert_cmpmem (text, length, value.text, value.length);
            }
        }
    }
}

static void
test_id_widths (void)
{
  static const guint64 ids[] = { 1, 9, 10, 99, 100, 12345678, G_GUINT64_CONSTANT (999999999999), HEADWAY_ID_MAX };

  for (guint i = 0; i < G_N_ELEMENTS (ids); i++)
    {
      g_autofree char *expected = g_strdup_printf ("{\"id\":%" G_GUINT64_FORMAT, ids[i]);
      char buffer[HEADWAY_ENVELOPE_HEAD_MAX];
      char *end = buffer + sizeof buffer;
      gsize length = headway_envelope_write_head (end, ids[i]);

      g_assert_cmpmem (end - length, length, expected, strlen (expected));
      g_assert_cmpuint (headway_envelope_head_length (ids[i]), ==, length);
    }
}

static void
test_synthetic (void)
{
  g_autoptr (HeadwayPrincipalTable) table = headway_principal_table_new ();
  g_autoptr (HeadwayEvent) event = NULL;
  g_autofree char *envelope = NULL;

  event = headway_event_new_synthetic ("gap", "{\"a\":1}", 7, headway_principal_table_get_system (table),
                                       (HeadwayInstant){ 1, 1700000000000999 });
  envelope = test_dup_envelope (event, NULL);
  g_assert_cmpstr (envelope, ==, "{\"v\":1,\"type\":\"gap\",\"data\":{\"a\":1},\"_meta\":{" STAMP "}}");
  g_assert_cmpuint (headway_event_get_size (event), ==, strlen (envelope));
  g_assert_cmpuint (headway_event_get_id (event), ==, 0);
  g_assert_cmpstr (headway_event_get_topic (event), ==, "");
  g_assert_true (headway_event_is_synthetic (event));
}

/* The room that is reserved is enough for the worst topic, and time before 1970 is a number too. */
static void
test_room (void)
{
  g_autoptr (HeadwayPrincipalTable) table = headway_principal_table_new ();
  g_autofree char *topic = g_strnfill (256, '"');
  g_autofree char *name = g_strnfill (128, 'p');
  g_autofree char *type = g_strnfill (128, 't');
  g_autofree char *buffer = NULL;
  g_autoptr (HeadwayPrincipal) principal = headway_principal_table_intern (table, name, NULL);
  HeadwayEnvelopeLayout layout;
  HeadwayPublication publication = {
    .topic = topic,
    .type = type,
    .principal = principal,
    .client = name,
    .data = "1",
    .data_length = 1,
    .meta = "{\"a\":1}",
    .meta_length = 7,
  };

  buffer = g_malloc (headway_envelope_size_max (&publication));
  headway_envelope_write (buffer, &publication, FALSE, -G_MAXINT64, &layout);
  g_assert_cmpuint (layout.length, <=, headway_envelope_size_max (&publication));
  g_assert_cmpmem (buffer + layout.meta_offset, layout.meta_length,
                   "{\"a\":1,\"serverTimestamp\":-9223372036854775}", 43);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (goldens); i++)
    {
      g_autofree char *path = g_strdup_printf ("/envelope/golden/%u", i);
      g_test_add_data_func (path, &goldens[i], test_golden);
    }
  g_test_add_func ("/envelope/slices", test_slices);
  g_test_add_func ("/envelope/id-widths", test_id_widths);
  g_test_add_func ("/envelope/synthetic-has-no-id", test_synthetic);
  g_test_add_func ("/envelope/room-is-enough", test_room);
  return g_test_run ();
}
