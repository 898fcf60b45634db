/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "wire/headway-json-body.h"

#include "engine/headway-error.h"

#include <string.h>

static gboolean
parse (const char *text, HeadwayPublishBody *body, GError **error)
{
  HeadwayJson json;

  g_assert_true (headway_json_validate (text, strlen (text), HEADWAY_JSON_DEPTH_MAX, &json, NULL));
  return headway_publish_body_parse (body, &json, error);
}

static void
test_all_members (void)
{
  const char *text = "{ \"data\" : [1, 2] , \"topic\":\"a.\\u0062\",\"type\":\"t\",\"principal\":\"p\","
                     "\"originatorClientId\":\"c\",\"final\":true,\"_meta\":{\"x\":1}}";
  g_auto (HeadwayPublishBody) body = { 0 };
  HeadwayPublication publication = { 0 };
  g_autoptr (GError) error = NULL;

  g_assert_true (parse (text, &body, &error));
  g_assert_no_error (error);
  headway_publish_body_fill (&body, &publication);
  g_assert_cmpstr (publication.topic, ==, "a.b");
  g_assert_cmpstr (publication.type, ==, "t");
  g_assert_cmpstr (publication.client, ==, "c");
  g_assert_cmpmem (publication.data, publication.data_length, "[1, 2]", 6);
  g_assert_cmpmem (publication.meta, publication.meta_length, "{\"x\":1}", 7);
  g_assert_true (publication.is_final);
  g_assert_true (publication.is_valid_json);
  g_assert_true (body.is_principal_named);
  g_assert_cmpstr (body.principal, ==, "p");
}

static void
test_few_members (void)
{
  g_auto (HeadwayPublishBody) body = { 0 };
  HeadwayPublication publication = { 0 };

  g_assert_true (parse ("{\"data\":null,\"type\":\"t\"}", &body, NULL));
  headway_publish_body_fill (&body, &publication);
  g_assert_null (publication.topic);
  g_assert_null (publication.client);
  g_assert_null (publication.meta);
  g_assert_false (publication.is_final);
  g_assert_false (body.is_principal_named);
}

static void
test_null_names_the_system_principal (void)
{
  g_auto (HeadwayPublishBody) body = { 0 };

  g_assert_true (parse ("{\"data\":1,\"type\":\"t\",\"principal\":null}", &body, NULL));
  g_assert_true (body.is_principal_named);
  g_assert_null (body.principal);
}

static void
test_names_may_be_escaped (void)
{
  g_auto (HeadwayPublishBody) body = { 0 };

  g_assert_true (parse ("{\"d\\u0061ta\":7,\"\\u0074ype\":\"t\"}", &body, NULL));
  g_assert_cmpmem (body.data.text, body.data.length, "7", 1);
}

static void
test_refusals_name_the_member (void)
{
  static const struct
  {
    const char *text;
    const char *said;
  } cases[] = {
    { "1", "not a JSON object" },
    { "[]", "not a JSON object" },
    { "{}", "\"data\" is missing" },
    { "{\"type\":\"t\"}", "\"data\" is missing" },
    { "{\"data\":1}", "\"topic\" or \"type\" is missing" },
    { "{\"data\":1,\"type\":\"t\",\"dta\":1}", "\"dta\"" },
    { "{\"data\":1,\"type\":\"t\",\"data\":1}", "\"data\" is given twice" },
    { "{\"data\":1,\"type\":\"t\",\"d\\u0061ta\":1}", "\"data\" is given twice" },
    { "{\"data\":1,\"type\":7}", "\"type\" is not a string" },
    { "{\"data\":1,\"topic\":null}", "\"topic\" is not a string" },
    { "{\"data\":1,\"type\":\"t\",\"final\":\"true\"}", "\"final\"" },
    { "{\"data\":1,\"type\":\"t\",\"_meta\":7}", "\"_meta\"" },
    { "{\"data\":1,\"type\":\"t\",\"originatorClientId\":{}}", "\"originatorClientId\"" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      HeadwayPublishBody body = { 0 };
      g_autoptr (GError) error = NULL;

      g_assert_false (parse (cases[i].text, &body, &error));
      g_assert_error (error, HEADWAY_JSON_BODY_ERROR, HEADWAY_JSON_BODY_ERROR_INVALID_REQUEST);
      g_assert_nonnull (strstr (error->message, cases[i].said));
    }
}

static void
test_no_string_holds_nul (void)
{
  HeadwayPublishBody body = { 0 };
  g_autoptr (GError) error = NULL;

  g_assert_false (parse ("{\"data\":1,\"topic\":\"a\",\"type\":\"t\\u0000\"}", &body, &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_DATA);
}

static void
test_bus_options (void)
{
  const char *text = "{\"ringSize\":5,\"maxQueuedBytes\":9007199254740991}";
  g_autoptr (GArray) named = g_array_new (FALSE, FALSE, sizeof (HeadwayNamedOption));
  HeadwayLimits limits;
  HeadwayBusOptions options;
  g_autoptr (GError) error = NULL;

  headway_limits_init (&limits);
  options = limits.bus;
  g_assert_true (headway_json_body_parse_bus_options (text, strlen (text), &options, named, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (options.ring_size, ==, 5);
  g_assert_cmpuint (options.max_queued_bytes, ==, HEADWAY_ID_MAX);
  g_assert_cmpuint (options.max_subscribers, ==, limits.bus.max_subscribers);
  g_assert_cmpuint (named->len, ==, 2);
  g_assert_true (headway_json_body_parse_bus_options (" \r\n", 3, &options, named, NULL));
  g_assert_true (headway_json_body_parse_bus_options (NULL, 0, &options, NULL, NULL));
  g_assert_cmpuint (named->len, ==, 2);
}

static void
test_bus_options_that_are_refused (void)
{
  static const char *const bad[] = { "{\"ringsize\":5}", "{\"ring-size\":5}", "{\"ringSize\":0}", "{\"ringSize\":1000001}",
                                     "{\"ringSize\":\"5\"}", "{\"ringSize\":5.0}", "{\"ringSize\":-5}", "{\"ringSize\":1e2}",
                                     "{\"ringSize\":null}", "{\"ringSize\":5,\"ringSize\":5}",
                                     "{\"maxSubscribers\":99999999999999999999999}" };
  HeadwayLimits limits;

  headway_limits_init (&limits);
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      HeadwayBusOptions options = limits.bus;
      g_autoptr (GError) error = NULL;

      g_assert_false (headway_json_body_parse_bus_options (bad[i], strlen (bad[i]), &options, NULL, &error));
      g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/wire/json-body/all-members", test_all_members);
  g_test_add_func ("/wire/json-body/few-members", test_few_members);
  g_test_add_func ("/wire/json-body/null-names-the-system-principal", test_null_names_the_system_principal);
  g_test_add_func ("/wire/json-body/names-may-be-escaped", test_names_may_be_escaped);
  g_test_add_func ("/wire/json-body/refusals-name-the-member", test_refusals_name_the_member);
  g_test_add_func ("/wire/json-body/no-string-holds-nul", test_no_string_holds_nul);
  g_test_add_func ("/wire/json-body/bus-options", test_bus_options);
  g_test_add_func ("/wire/json-body/bus-options-that-are-refused", test_bus_options_that_are_refused);
  return g_test_run ();
}
