/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "wire/headway-options.h"

#include "engine/headway-error.h"

#include <string.h>

typedef struct
{
  gboolean flag;
  guint number;
  guint64 large;
  const char *text;
  const char *word;
  const char **list;
} Values;

static const char *const words[] = { "one", "two", NULL };

static const HeadwayOptionSpec specs[] = {
  { "flag", HEADWAY_OPTION_BOOLEAN, G_STRUCT_OFFSET (Values, flag) },
  { "number", HEADWAY_OPTION_UINT32, G_STRUCT_OFFSET (Values, number), 1, 10 },
  { "large", HEADWAY_OPTION_UINT64, G_STRUCT_OFFSET (Values, large), 5, HEADWAY_ID_MAX },
  { "text", HEADWAY_OPTION_STRING, G_STRUCT_OFFSET (Values, text), 1, 4, "A-C x - _" },
  { "word", HEADWAY_OPTION_STRING, G_STRUCT_OFFSET (Values, word), 0, 0, NULL, words },
  { "list", HEADWAY_OPTION_STRV, G_STRUCT_OFFSET (Values, list), 0, 2 },
  { NULL },
};

static GVariant *
parse_text (const char *text)
{
  return g_variant_ref_sink (g_variant_new_parsed (text));
}

static void
assert_refused (GVariant *options, const char *const *says)
{
  Values values = { .number = 3 };
  g_autoptr (GError) error = NULL;

  g_assert_false (headway_options_parse (options, specs, &values, NULL, &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION);
  for (guint i = 0; says[i] != NULL; i++)
    {
      g_test_message ("\"%s\" in \"%s\"", says[i], error->message);
      g_assert_nonnull (strstr (error->message, says[i]));
    }
  g_assert_true (g_utf8_validate (error->message, -1, NULL));
  g_assert_cmpuint (strlen (error->message), <, 400);
  g_free (values.list);
}

static void
test_all (void)
{
  g_autoptr (GVariant) options = parse_text ("@a{sv} {'flag': <true>, 'list': <['a', 'b']>, 'large': <@t 9007199254740991>,"
                                             " 'number': <@u 10>, 'text': <'Ax-_'>, 'word': <'two'>}");
  Values values = { 0 };
  guint64 given = 0;
  g_autoptr (GError) error = NULL;

  g_assert_true (headway_options_parse (options, specs, &values, &given, &error));
  g_assert_no_error (error);
  g_assert_true (values.flag);
  g_assert_cmpuint (values.number, ==, 10);
  g_assert_cmpuint (values.large, ==, HEADWAY_ID_MAX);
  g_assert_cmpstr (values.text, ==, "Ax-_");
  g_assert_cmpstr (values.word, ==, "two");
  g_assert_cmpstr (values.list[0], ==, "a");
  g_assert_cmpstr (values.list[1], ==, "b");
  g_assert_null (values.list[2]);
  g_assert_cmpuint (given, ==, 63);
  g_free (values.list);
}

static void
test_none (void)
{
  g_autoptr (GVariant) options = parse_text ("@a{sv} {}");
  Values values = { .number = 7, .word = "stays" };
  guint64 given = 99;

  g_assert_true (headway_options_parse (options, specs, &values, &given, NULL));
  g_assert_cmpuint (given, ==, 0);
  g_assert_cmpuint (values.number, ==, 7);
  g_assert_cmpstr (values.word, ==, "stays");
}

static void
test_refusals (void)
{
  static const struct
  {
    const char *options;
    const char *says[4];
  } cases[] = {
    { "@a{sv} {'Flag': <true>}", { "\"Flag\"", "flag, number, large, text, word, list", NULL } },
    { "@a{sv} {'': <true>}", { "\"\"", NULL } },
    { "@a{sv} {'flag': <'yes'>}", { "\"flag\"", "\"s\"", "\"b\"", NULL } },
    { "@a{sv} {'flag': <<true>>}", { "\"flag\"", "\"v\"", "\"b\"", NULL } },
    { "@a{sv} {'number': <@t 3>}", { "\"number\"", "\"t\"", "\"u\"", NULL } },
    { "@a{sv} {'number': <3>}", { "\"number\"", "\"i\"", "\"u\"", NULL } },
    { "@a{sv} {'number': <@u 0>}", { "\"number\"", " 0", "1 to 10", NULL } },
    { "@a{sv} {'number': <@u 11>}", { "\"number\"", " 11", "1 to 10", NULL } },
    { "@a{sv} {'large': <@t 4>}", { "\"large\"", " 4", "5 to 9007199254740991", NULL } },
    { "@a{sv} {'large': <@t 9007199254740992>}", { "\"large\"", "9007199254740992", "9007199254740991", NULL } },
    { "@a{sv} {'large': <@u 5>}", { "\"large\"", "\"u\"", "\"t\"", NULL } },
    { "@a{sv} {'text': <''>}", { "\"text\"", " 0 bytes", "1 to 4 bytes", NULL } },
    { "@a{sv} {'text': <'AAAAA'>}", { "\"text\"", " 5 bytes", "1 to 4 bytes", NULL } },
    { "@a{sv} {'text': <'Az'>}", { "\"text\"", "\"Az\"", "A-C x - _", NULL } },
    { "@a{sv} {'text': <'A B'>}", { "\"text\"", "\"A B\"", NULL } },
    { "@a{sv} {'text': <'ä'>}", { "\"text\"", "\"ä\"", NULL } },
    { "@a{sv} {'text': <'\\n'>}", { "\"text\"", "\"?\"", NULL } },
    { "@a{sv} {'word': <'three'>}", { "\"word\"", "\"three\"", "one, two", NULL } },
    { "@a{sv} {'word': <''>}", { "\"word\"", "\"\"", NULL } },
    { "@a{sv} {'list': <['a', 'b', 'c']>}", { "\"list\"", " 3 entries", "0 to 2 entries", NULL } },
    { "@a{sv} {'list': <'a'>}", { "\"list\"", "\"s\"", "\"as\"", NULL } },
    { "@a{sv} {'list': <['a']>, 'number': <@u 0>}", { "\"number\"", NULL } },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GVariant) options = parse_text (cases[i].options);

      assert_refused (options, cases[i].says);
    }
}

static void
test_long_words_are_cut (void)
{
  /* 63 bytes and then characters of several bytes: the cut may not divide one. */
  for (guint lead = 60; lead < 68; lead++)
    {
      g_autoptr (GString) word = g_string_new (NULL);
      g_autoptr (GVariant) options = NULL;
      GVariantDict dict;

      for (guint i = 0; i < lead; i++)
        g_string_append_c (word, 'x');
      for (guint i = 0; i < 1000; i++)
        g_string_append (word, "\xf0\x9f\x98\x80");
      g_variant_dict_init (&dict, NULL);
      g_variant_dict_insert (&dict, "word", "s", word->str);
      options = g_variant_ref_sink (g_variant_dict_end (&dict));
      assert_refused (options, (const char *const[]){ "\"word\"", "xxx", "…", NULL });
    }
}

static void
test_twice (void)
{
  GVariantBuilder builder;
  g_autoptr (GVariant) options = NULL;

  g_variant_builder_init (&builder, G_VARIANT_TYPE_VARDICT);
  g_variant_builder_add (&builder, "{sv}", "list", g_variant_new_strv (NULL, 0));
  g_variant_builder_add (&builder, "{sv}", "flag", g_variant_new_boolean (TRUE));
  g_variant_builder_add (&builder, "{sv}", "list", g_variant_new_strv (NULL, 0));
  options = g_variant_ref_sink (g_variant_builder_end (&builder));
  assert_refused (options, (const char *const[]){ "\"list\"", "twice", NULL });
}

static void
test_bus_options (void)
{
  g_autoptr (GVariant) all = parse_text ("@a{sv} {'ring-size': <@u 1>, 'ring-max-bytes': <@t 2>, 'max-subscribers': <@u 3>,"
                                         " 'max-queued-bytes': <@t 4>, 'channel-capacity': <@u 5>,"
                                         " 'replay-budget-bytes': <@t 0>}");
  g_autoptr (GVariant) bad = parse_text ("@a{sv} {'ring-size': <@u 1000001>}");
  g_autoptr (GError) error = NULL;
  HeadwayLimits limits;
  HeadwayBusOptions options;

  headway_limits_init (&limits);
  options = limits.bus;
  g_assert_true (headway_options_parse_bus (all, &options, NULL));
  g_assert_cmpuint (options.ring_size, ==, 1);
  g_assert_cmpuint (options.ring_max_bytes, ==, 2);
  g_assert_cmpuint (options.max_subscribers, ==, 3);
  g_assert_cmpuint (options.max_queued_bytes, ==, 4);
  g_assert_cmpuint (options.channel_capacity, ==, 5);
  g_assert_cmpuint (options.replay_budget_bytes, ==, 0);
  g_assert_false (headway_options_parse_bus (bad, &options, &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION);
  g_assert_nonnull (strstr (error->message, "ring-size"));
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/wire/options/all-types", test_all);
  g_test_add_func ("/wire/options/none-leaves-the-defaults", test_none);
  g_test_add_func ("/wire/options/refusals-name-key-value-and-limit", test_refusals);
  g_test_add_func ("/wire/options/long-words-are-cut", test_long_words_are_cut);
  g_test_add_func ("/wire/options/no-key-comes-twice", test_twice);
  g_test_add_func ("/wire/options/of-create-bus", test_bus_options);
  return g_test_run ();
}
