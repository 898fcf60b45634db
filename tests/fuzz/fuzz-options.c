/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "fuzz.h"

#include "wire/headway-options.h"

#include <string.h>

/* Dictionaries of options, as text that GVariant parses and as raw bytes that nobody has checked. */

typedef struct
{
  gboolean flag;
  guint count;
  guint64 bytes;
  const char *word;
  const char **list;
} Values;

static const char *const words[] = { "stream", "routed", NULL };

static const HeadwayOptionSpec specs[] = {
  { .key = "flag", .type = HEADWAY_OPTION_BOOLEAN, .offset = G_STRUCT_OFFSET (Values, flag) },
  { .key = "count", .type = HEADWAY_OPTION_UINT32, .offset = G_STRUCT_OFFSET (Values, count), .minimum = 1, .maximum = 9 },
  { .key = "bytes", .type = HEADWAY_OPTION_UINT64, .offset = G_STRUCT_OFFSET (Values, bytes), .maximum = 99 },
  { .key = "word", .type = HEADWAY_OPTION_STRING, .offset = G_STRUCT_OFFSET (Values, word), .maximum = 16, .words = words },
  { .key = "list", .type = HEADWAY_OPTION_STRV, .offset = G_STRUCT_OFFSET (Values, list), .maximum = 3 },
  { NULL },
};

const char *const fuzz_seeds[] = {
  "{'flag': <true>, 'count': <uint32 3>}",
  "{'bytes': <uint64 99>, 'word': <'stream'>, 'list': <['a', 'b']>}",
  "{'count': <uint32 10>}",
  "{'list': <@as []>, 'unknown': <1>}",
  "{'word': <'other'>, 'word': <'stream'>}",
  "@a{sv} {}",
  NULL,
};

static void
parse (GVariant *options)
{
  Values values = { .count = 1 };
  HeadwayBusOptions bus = { 0 };
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) bus_error = NULL;
  guint64 given = 0;

  if (headway_options_parse (options, specs, &values, &given, &error))
    {
      g_assert_no_error (error);
      g_assert_cmpuint (values.count, >=, 1);
      g_assert_cmpuint (values.count, <=, 9);
      g_assert_cmpuint (values.bytes, <=, 99);
      g_assert_true (values.word == NULL || g_strv_contains (words, values.word));
      g_assert_cmpuint (values.list != NULL ? g_strv_length ((char **) values.list) : 0, <=, 3);
    }
  else
    {
      g_assert_nonnull (error);
    }
  g_free (values.list);
  headway_options_parse_bus (options, &bus, &bus_error);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_autofree char *text = g_strndup (size > 0 ? (const char *) data : "", size);
  g_autoptr (GBytes) bytes = g_bytes_new (data, size);
  g_autoptr (GVariant) raw = g_variant_ref_sink (g_variant_new_from_bytes (G_VARIANT_TYPE_VARDICT, bytes, FALSE));
  g_autoptr (GVariant) parsed = NULL;

  if (g_utf8_validate (text, -1, NULL))
    parsed = g_variant_parse (G_VARIANT_TYPE_VARDICT, text, NULL, NULL, NULL);
  parse (raw);
  if (parsed != NULL)
    parse (parsed);
  return 0;
}
