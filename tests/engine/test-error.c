/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-error.h"

static void
test_names_every_code_has_its_own (void)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);

  for (int code = 0; code < HEADWAY_N_ERRORS; code++)
    {
      const char *name = headway_error_get_name ((HeadwayError) code);

      g_assert_nonnull (name);
      g_assert_cmpstr (name, !=, "");
      g_assert_true (g_hash_table_add (seen, (gpointer) name));
    }
}

static void
test_names_follow_the_enumeration (void)
{
  g_assert_cmpstr (headway_error_get_name (HEADWAY_ERROR_INVALID_NAME), ==, "InvalidName");
  g_assert_cmpstr (headway_error_get_name (HEADWAY_ERROR_INVALID_PRINCIPAL), ==, "InvalidPrincipal");
  g_assert_cmpstr (headway_error_get_name (HEADWAY_ERROR_NO_SUCH_BUS), ==, "NoSuchBus");
  g_assert_cmpstr (headway_error_get_name (HEADWAY_ERROR_BUSY), ==, "Busy");
}

static void
test_quark_is_found_by_name (void)
{
  g_assert_cmpuint (HEADWAY_ERROR, !=, 0);
  g_assert_cmpuint (HEADWAY_ERROR, ==, g_quark_from_static_string ("headway-error-quark"));
  g_assert_cmpuint (HEADWAY_ERROR, ==, headway_error_quark ());
}

static void
test_details_start_as_absent (void)
{
  g_autoptr (GError) error = g_error_new (HEADWAY_ERROR, HEADWAY_ERROR_CLOSED, "closed");
  HeadwayErrorDetails *details = headway_error_get_details (error);

  g_assert_nonnull (details);
  g_assert_cmpint (details->position, ==, -1);
  g_assert_cmpint (details->limit, ==, -1);
  g_assert_cmpint (details->index, ==, -1);
  g_assert_cmpint (details->retry_after_ms, ==, -1);
  g_assert_cmpint (details->reason_length, ==, -1);
}

static void
test_details_are_writable_and_copied (void)
{
  g_autoptr (GError) error = g_error_new (HEADWAY_ERROR, HEADWAY_ERROR_RATE_LIMITED, "slow down");
  g_autoptr (GError) copy = NULL;

  headway_error_get_details (error)->index = 7;
  headway_error_get_details (error)->retry_after_ms = G_MAXINT64;
  copy = g_error_copy (error);
  headway_error_get_details (error)->index = 8;

  g_assert_error (copy, HEADWAY_ERROR, HEADWAY_ERROR_RATE_LIMITED);
  g_assert_cmpstr (copy->message, ==, "slow down");
  g_assert_cmpint (headway_error_get_details (copy)->index, ==, 7);
  g_assert_cmpint (headway_error_get_details (copy)->retry_after_ms, ==, G_MAXINT64);
  g_assert_cmpint (headway_error_get_details (copy)->position, ==, -1);
}

static void
test_details_survive_propagation (void)
{
  g_autoptr (GError) error = NULL;
  GError *inner = g_error_new (HEADWAY_ERROR, HEADWAY_ERROR_INVALID_DATA, "bad");

  headway_error_get_details (inner)->position = 3;
  g_propagate_prefixed_error (&error, inner, "data: ");

  g_assert_cmpstr (error->message, ==, "data: bad");
  g_assert_cmpint (headway_error_get_details (error)->position, ==, 3);
}

static void
test_details_are_only_of_our_domain (void)
{
  g_autoptr (GError) error = g_error_new (G_FILE_ERROR, G_FILE_ERROR_NOENT, "gone");

  g_assert_null (headway_error_get_details (error));
  g_assert_null (headway_error_get_details (NULL));
}

static void
test_with_limit_sets_message_and_limit (void)
{
  g_autoptr (GError) error = NULL;

  headway_set_error_with_limit (&error, HEADWAY_ERROR_TOO_LARGE, 1024, "event of %d bytes", 1025);

  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_TOO_LARGE);
  g_assert_cmpstr (error->message, ==, "event of 1025 bytes");
  g_assert_cmpint (headway_error_get_details (error)->limit, ==, 1024);
  g_assert_cmpint (headway_error_get_details (error)->position, ==, -1);
}

static void
test_with_limit_accepts_a_caller_without_interest (void)
{
  headway_set_error_with_limit (NULL, HEADWAY_ERROR_TOO_LARGE, 1, "nobody reads this");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);

  g_test_add_func ("/error/quark/is-found-by-name", test_quark_is_found_by_name);
  g_test_add_func ("/error/names/every-code-has-its-own", test_names_every_code_has_its_own);
  g_test_add_func ("/error/names/follow-the-enumeration", test_names_follow_the_enumeration);
  g_test_add_func ("/error/details/start-as-absent", test_details_start_as_absent);
  g_test_add_func ("/error/details/are-writable-and-copied", test_details_are_writable_and_copied);
  g_test_add_func ("/error/details/survive-propagation", test_details_survive_propagation);
  g_test_add_func ("/error/details/are-only-of-our-domain", test_details_are_only_of_our_domain);
  g_test_add_func ("/error/with-limit/sets-message-and-limit", test_with_limit_sets_message_and_limit);
  g_test_add_func ("/error/with-limit/accepts-a-caller-without-interest",
                   test_with_limit_accepts_a_caller_without_interest);

  return g_test_run ();
}
