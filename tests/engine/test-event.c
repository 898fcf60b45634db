/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-event.h"

#include "engine/headway-error.h"

#include <string.h>

typedef struct
{
  HeadwayPrincipalTable *table;
  HeadwayPublication publication;
  HeadwayInstant now;
} Fixture;

static void
set_up (Fixture *f, gconstpointer data)
{
  f->table = headway_principal_table_new ();
  f->publication.principal = headway_principal_table_get_system (f->table);
  f->publication.data = "1";
  f->publication.data_length = 1;
  f->now = (HeadwayInstant){ .monotonic_us = 5, .real_us = 1700000000123456 };
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  headway_principal_table_unref (f->table);
}

static HeadwayEvent *
build (Fixture *f)
{
  g_autoptr (GError) error = NULL;
  HeadwayEvent *event = headway_event_new (&f->publication, G_MAXUINT64, f->now, &error);

  g_assert_no_error (error);
  return event;
}

static void
refuse (Fixture *f, guint64 cost_max, HeadwayError code)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (headway_event_new (&f->publication, cost_max, f->now, &error));
  g_assert_error (error, HEADWAY_ERROR, (int) code);
}

static void
set_data (Fixture *f, const char *data)
{
  f->publication.data = data;
  f->publication.data_length = strlen (data);
}

static void
set_meta (Fixture *f, const char *meta)
{
  f->publication.meta = meta;
  f->publication.meta_length = strlen (meta);
}

static void
test_accessors (Fixture *f, gconstpointer data)
{
  g_autoptr (HeadwayPrincipal) principal = headway_principal_table_intern (f->table, "uid:7", NULL);
  g_autoptr (HeadwayEvent) event = NULL;
  const char *text;
  gsize length;

  f->publication.topic = "a.b";
  f->publication.type = "t/1";
  f->publication.client = "me";
  f->publication.principal = principal;
  f->publication.is_final = TRUE;
  set_data (f, " [1, 2] ");
  set_meta (f, "{\"k\":2}");
  event = build (f);
  g_assert_cmpuint (headway_event_get_id (event), ==, 0);
  headway_event_set_id (event, HEADWAY_ID_MAX);
  g_assert_cmpuint (headway_event_get_id (event), ==, HEADWAY_ID_MAX);
  g_assert_cmpint (headway_event_get_timestamp (event), ==, f->now.real_us);
  g_assert_cmpstr (headway_event_get_topic (event), ==, "a.b");
  g_assert_cmpstr (headway_event_get_type (event), ==, "t/1");
  g_assert_cmpstr (headway_event_get_client (event), ==, "me");
  g_assert_true (headway_event_get_principal (event) == principal);
  g_assert_true (headway_event_is_final (event));
  g_assert_false (headway_event_is_synthetic (event));
  g_assert_false (headway_event_passes_filters (event));
  text = headway_event_get_data (event, &length);
  g_assert_cmpmem (text, length, "[1, 2]", 6);
  text = headway_event_get_meta (event, &length);
  g_assert_cmpmem (text, length, "{\"k\":2,\"serverTimestamp\":1700000000123}", 39);
  text = headway_event_get_envelope (event, &length);
  g_assert_cmpuint (length, ==, headway_event_get_size (event));
  g_assert_true (g_str_has_prefix (text, "{\"id\":9007199254740991,\"v\":1,"));
}

static void
test_plain (Fixture *f, gconstpointer data)
{
  g_autoptr (HeadwayEvent) event = NULL;
  gsize length = 99;

  f->publication.type = "foo";
  event = build (f);
  g_assert_null (headway_event_get_client (event));
  g_assert_null (headway_event_get_meta (event, &length));
  g_assert_cmpuint (length, ==, 0);
  g_assert_false (headway_event_is_final (event));
  g_assert_cmpstr (headway_event_get_topic (event), ==, "foo");
}

static void
test_names (Fixture *f, gconstpointer data)
{
  g_autoptr (HeadwayEvent) topic_only = NULL;

  refuse (f, G_MAXUINT64, HEADWAY_ERROR_INVALID_TOPIC);
  f->publication.topic = "a.b";
  topic_only = build (f);
  g_assert_cmpstr (headway_event_get_type (topic_only), ==, "message");

  f->publication.topic = "headway.a";
  refuse (f, G_MAXUINT64, HEADWAY_ERROR_INVALID_TOPIC);
  f->publication.topic = "a..b";
  refuse (f, G_MAXUINT64, HEADWAY_ERROR_INVALID_TOPIC);
  f->publication.topic = "";
  refuse (f, G_MAXUINT64, HEADWAY_ERROR_INVALID_TOPIC);
  f->publication.topic = NULL;
  f->publication.type = "a..b"; /* a type, but no topic */
  refuse (f, G_MAXUINT64, HEADWAY_ERROR_INVALID_TOPIC);
  f->publication.type = "headway.a"; /* decisions.md 14 */
  refuse (f, G_MAXUINT64, HEADWAY_ERROR_INVALID_TYPE);
  f->publication.type = "session_closed";
  refuse (f, G_MAXUINT64, HEADWAY_ERROR_INVALID_TYPE);
  f->publication.type = "session_died"; /* decisions.md 11 */
  headway_event_unref (build (f));
  f->publication.client = "a b";
  refuse (f, G_MAXUINT64, HEADWAY_ERROR_INVALID_OPTION);
  f->publication.client = "";
  refuse (f, G_MAXUINT64, HEADWAY_ERROR_INVALID_OPTION);
}

static void
test_meta (Fixture *f, gconstpointer data)
{
  g_autofree char *filler = g_strnfill (4096 - 8, 'x');
  g_autofree char *longest = g_strdup_printf ("{\"a\":\"%s\"}", filler);
  g_autofree char *too_long = g_strdup_printf ("{\"a\":\"%sy\"}", filler);

  f->publication.type = "foo";
  set_meta (f, "[]");
  refuse (f, G_MAXUINT64, HEADWAY_ERROR_INVALID_OPTION);
  set_meta (f, "{");
  refuse (f, G_MAXUINT64, HEADWAY_ERROR_INVALID_DATA);
  set_meta (f, longest);
  g_assert_cmpuint (f->publication.meta_length, ==, 4096);
  headway_event_unref (build (f));
  set_meta (f, too_long);
  refuse (f, G_MAXUINT64, HEADWAY_ERROR_INVALID_OPTION);
}

static void
test_cost (Fixture *f, gconstpointer data)
{
  g_autoptr (HeadwayEvent) event = NULL;

  f->publication.topic = "a.b";
  f->publication.type = "longer-than-that";
  set_data (f, "\"xxxx\"");
  set_meta (f, "{}");
  event = build (f);
  g_assert_cmpuint (headway_event_get_cost (event), ==, 6 + 3 + 2);
  refuse (f, 10, HEADWAY_ERROR_TOO_LARGE);
  headway_event_unref (headway_event_new (&f->publication, 11, f->now, NULL));
}

/* 5 MiB whatever the settings say (decisions.md 9). */
static void
test_ceiling (Fixture *f, gconstpointer data)
{
  gsize length = 5 * 1024 * 1024 - 3;
  g_autofree char *large = g_malloc (length + 1);
  g_autoptr (HeadwayEvent) event = NULL;

  memset (large, 'x', length + 1);
  large[0] = large[length - 1] = '"';
  f->publication.type = "foo";
  f->publication.data = large;
  f->publication.data_length = length;
  event = build (f);
  g_assert_cmpuint (headway_event_get_cost (event), ==, 5 * 1024 * 1024);
  large[length - 1] = 'x';
  large[length] = '"';
  f->publication.data_length++;
  refuse (f, G_MAXUINT64, HEADWAY_ERROR_TOO_LARGE);
}

static void
test_invalid_data (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  f->publication.type = "foo";
  set_data (f, "[1,x]");
  g_assert_null (headway_event_new (&f->publication, G_MAXUINT64, f->now, &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_DATA);
  g_assert_cmpint (headway_error_get_details (error)->position, ==, 3);
}

static void
test_valid_slices (Fixture *f, gconstpointer data)
{
  g_autoptr (HeadwayEvent) event = NULL;
  const char *text;
  gsize length;

  f->publication.type = "foo";
  f->publication.is_valid_json = TRUE;
  set_data (f, "[1]");
  event = build (f);
  text = headway_event_get_data (event, &length);
  g_assert_cmpmem (text, length, "[1]", 3);
}

static void
test_references (Fixture *f, gconstpointer data)
{
  HeadwayPrincipal *principal = headway_principal_table_intern (f->table, "uid:7", NULL);
  HeadwayEvent *event;

  f->publication.type = "foo";
  f->publication.principal = principal;
  event = headway_event_ref (build (f));
  headway_principal_unref (principal);
  headway_event_unref (event);
  g_assert_cmpuint (headway_principal_table_size (f->table), ==, 1);
  headway_event_unref (event);
  g_assert_cmpuint (headway_principal_table_size (f->table), ==, 0);
}

static void
add (const char *path, void (*test) (Fixture *, gconstpointer))
{
  g_test_add (path, Fixture, NULL, set_up, test, tear_down);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, G_TEST_OPTION_ISOLATE_DIRS, NULL);
  add ("/event/accessors", test_accessors);
  add ("/event/accessors-of-a-plain-one", test_plain);
  add ("/event/names", test_names);
  add ("/event/meta", test_meta);
  add ("/event/cost/data-topic-and-meta", test_cost);
  add ("/event/cost/ceiling", test_ceiling);
  add ("/event/data/error-position", test_invalid_data);
  add ("/event/data/slices-that-passed-already", test_valid_slices);
  add ("/event/references", test_references);
  return g_test_run ();
}
