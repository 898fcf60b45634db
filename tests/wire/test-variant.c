/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "wire/headway-variant.h"

#include "engine/headway-error.h"

#include <string.h>

static const HeadwayInstant now = { .monotonic_us = 1, .real_us = 1700000000123456 };

static void
assert_text (GVariant *value, const char *text)
{
  g_autofree char *printed = g_variant_print (value, TRUE);

  g_assert_true (g_variant_is_of_type (value, G_VARIANT_TYPE (HEADWAY_VARIANT_EVENT)));
  g_assert_true (g_variant_is_normal_form (value));
  g_assert_cmpstr (printed, ==, text);
}

static void
test_event (void)
{
  g_autoptr (HeadwayPrincipalTable) table = headway_principal_table_new ();
  g_autoptr (HeadwayPrincipal) principal = headway_principal_table_intern (table, "agent:x", NULL);
  HeadwayPublication publication = {
    .topic = "a.b",
    .type = "t",
    .principal = principal,
    .client = "c",
    .data = " [1,\n2] ",
    .data_length = 8,
    .meta = "{\"serverTimestamp\":5,\"k\":1}",
    .meta_length = 27,
  };
  g_autoptr (HeadwayEvent) event = headway_event_new (&publication, 1000, now, NULL);
  g_autoptr (GVariant) plain = NULL;
  g_autoptr (GVariant) resumable = NULL;

  headway_event_set_id (event, HEADWAY_ID_MAX);
  plain = g_variant_ref_sink (headway_variant_new_event (event, 0));
  assert_text (plain, "(uint64 9007199254740991, 'a.b', 't', 'agent:x', int64 1700000000123456, '[1, 2]', "
                      "{'client': <'c'>, 'meta': <'{\"serverTimestamp\":5,\"k\":1}'>})");
  resumable = g_variant_ref_sink (headway_variant_new_event (event, 7));
  assert_text (resumable, "(uint64 9007199254740991, 'a.b', 't', 'agent:x', int64 1700000000123456, '[1, 2]', "
                          "{'client': <'c'>, 'meta': <'{\"serverTimestamp\":5,\"k\":1}'>, 'resume-id': <uint64 7>})");
}

static void
test_synthetic (void)
{
  g_autoptr (HeadwayPrincipalTable) table = headway_principal_table_new ();
  g_autoptr (HeadwayEvent) event = headway_event_new_synthetic ("replay_complete", "{\"replayedCount\":0}", 19,
                                                                headway_principal_table_get_system (table), now);
  g_autoptr (GVariant) value = g_variant_ref_sink (headway_variant_new_event (event, 0));

  assert_text (value, "(uint64 0, '', 'replay_complete', '', int64 1700000000123456, '{\"replayedCount\":0}', @a{sv} {})");
}

static void
test_publication (void)
{
  g_autoptr (GVariant) options = g_variant_ref_sink (g_variant_new_parsed (
    "@a{sv} {'type': <'t'>, 'principal': <''>, 'client': <'c'>, 'meta': <'{}'>, 'final': <true>}"));
  g_autoptr (GVariant) none = g_variant_ref_sink (g_variant_new_parsed ("@a{sv} {}"));
  HeadwayVariantPublication read;

  g_assert_true (headway_variant_read_publication (&read, "a", "12", options, NULL));
  g_assert_cmpstr (read.publication.topic, ==, "a");
  g_assert_cmpstr (read.publication.type, ==, "t");
  g_assert_cmpstr (read.publication.client, ==, "c");
  g_assert_cmpuint (read.publication.data_length, ==, 2);
  g_assert_cmpuint (read.publication.meta_length, ==, 2);
  g_assert_true (read.publication.is_final);
  g_assert_false (read.publication.is_valid_json);
  g_assert_true (read.names_principal);
  g_assert_cmpstr (read.principal, ==, "");

  g_assert_true (headway_variant_read_publication (&read, "a", "", none, NULL));
  g_assert_null (read.publication.type);
  g_assert_null (read.publication.client);
  g_assert_null (read.publication.meta);
  g_assert_false (read.publication.is_final);
  g_assert_false (read.names_principal);
}

static void
test_bad_options (void)
{
  static const char *const bad[] = {
    "@a{sv} {'type': <@u 1>}",
    "@a{sv} {'principal': <true>}",
    "@a{sv} {'client': <''>}",
    "@a{sv} {'client': <'a b'>}",
    "@a{sv} {'meta': <''>}",
    "@a{sv} {'final': <'true'>}",
    "@a{sv} {'seed': <true>}",
  };
  HeadwayVariantPublication read;

  for (gsize i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr (GVariant) options = g_variant_ref_sink (g_variant_new_parsed (bad[i]));
      g_autoptr (GError) error = NULL;

      g_assert_false (headway_variant_read_publication (&read, "a", "1", options, &error));
      g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION);
    }
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/wire/variant/event", test_event);
  g_test_add_func ("/wire/variant/synthetic-event", test_synthetic);
  g_test_add_func ("/wire/variant/publication", test_publication);
  g_test_add_func ("/wire/variant/publication-options", test_bad_options);
  return g_test_run ();
}
