/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "fuzz.h"

#include "engine/headway-error.h"
#include "engine/headway-json.h"
#include "json-reference.h"

#include <string.h>

#define MAX_DEPTH 128

const char *const fuzz_seeds[] = {
  "null",
  "[]",
  "{}",
  " [ true , false , null , -0.5e+3 , 18446744073709551615 , 1e400 ] ",
  "{\"a\":[1,2,{\"b\":\"\\ud83d\\ude00\\u0000\\n\\\"\"}],\"\\u0061\":{\"c\":{}}}",
  "\"plain text that is longer than eight bytes, äöü€😀 \\\\ \\/\"",
  "[[[[[[[[[[{\"x\":[[[]]]}]]]]]]]]]]",
  "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\r\n\"params\":{\"text\":\"…\"}}",
  NULL,
};

static void
try_scalar (const HeadwayJson *json)
{
  g_autofree char *decoded = headway_json_dup_string (json, NULL);
  g_autoptr (GString) encoded = NULL;
  HeadwayJson again;
  gboolean truth;
  guint64 number;

  headway_json_get_boolean (json, &truth);
  headway_json_get_uint (json, G_MAXUINT64, &number);
  headway_json_is_finite (json);
  if (decoded == NULL)
    {
      g_assert_false (headway_json_string_equals (json, ""));
      return;
    }

  g_assert_true (g_utf8_validate (decoded, -1, NULL));
  g_assert_true (headway_json_string_equals (json, decoded));
  encoded = g_string_new (NULL);
  headway_json_append_string (encoded, decoded, strlen (decoded));
  g_assert_true (headway_json_validate (encoded->str, encoded->len, 1, &again, NULL));
  g_assert_true (headway_json_string_equals (&again, decoded));
}

static void
try_value (const HeadwayJson *json, guint depth)
{
  HeadwayJsonIter iter;
  HeadwayJson name = { 0 };
  HeadwayJson value, again;

  g_assert_cmpuint (depth, <=, MAX_DEPTH);
  g_assert_true (headway_json_validate (json->text, json->length, MAX_DEPTH, &again, NULL));
  g_assert_true (again.text == json->text && again.length == json->length && again.type == json->type);
  try_scalar (json);

  headway_json_iter_init (&iter, json);
  while (headway_json_iter_next (&iter, &name, &value))
    {
      if (iter.is_object)
        {
          g_assert_cmpint (name.type, ==, HEADWAY_JSON_STRING);
          try_scalar (&name);
        }
      try_value (&value, depth + 1);
    }
}

static void
try_line (const char *text, gsize length)
{
  g_autofree char *line = g_malloc (length + 1);

  headway_json_copy_line (line, text, length);
  g_assert_null (memchr (line, '\n', length));
  g_assert_null (memchr (line, '\r', length));
  g_assert_true (headway_json_validate (line, length, MAX_DEPTH, NULL, NULL));
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  const char *text = (const char *) data;
  g_autoptr (GError) error = NULL;
  gint64 expected = json_reference_check (text, size, MAX_DEPTH);
  HeadwayJson json;

  if (!headway_json_validate (text, size, MAX_DEPTH, &json, &error))
    {
      g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_DATA);
      g_assert_cmpint (headway_error_get_details (error)->position, ==, expected);
      return 0;
    }

  g_assert_cmpint (expected, ==, JSON_REFERENCE_VALID);
  try_value (&json, 0);
  try_line (json.text, json.length);

  return 0;
}
