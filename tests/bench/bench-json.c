/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-json.h"

#include <stdlib.h>
#include <string.h>

#ifdef HAVE_JSON_GLIB
#include <json-glib/json-glib.h>
#endif

/* How fast the validator reads, beside json-glib where it is there (-DHAVE_JSON_GLIB), though that
 * builds a tree besides. */

#define BYTES_READ (G_GUINT64_CONSTANT (1) << 30)

typedef gboolean (*Validate) (const char *text, gsize length);

static gboolean
validate_headway (const char *text, gsize length)
{
  HeadwayJson json;

  return headway_json_validate (text, length, 128, &json, NULL);
}

#ifdef HAVE_JSON_GLIB
static gboolean
validate_json_glib (const char *text, gsize length)
{
  g_autoptr (JsonParser) parser = json_parser_new_immutable ();

  return json_parser_load_from_data (parser, text, (gssize) length, NULL);
}
#endif

/* `{"text":"…"}` of exactly @length bytes. */
static char *
make_string (const char *filling, gsize length)
{
  g_autoptr (GString) text = g_string_new ("{\"text\":\"");

  while (text->len + strlen (filling) + 2 <= length)
    g_string_append (text, filling);
  while (text->len + 2 < length)
    g_string_append_c (text, '.');
  g_string_append (text, "\"}");

  return g_string_free (g_steal_pointer (&text), FALSE);
}

static char *
make_records (gsize length)
{
  static const char record[] = "{\"id\":12345,\"name\":\"sensor\",\"value\":-17.25,\"on\":true,\"tags\":[1,2,3]}";
  g_autoptr (GString) text = g_string_new ("[");

  g_string_append (text, record);
  while (text->len + sizeof record < length)
    g_string_append_printf (text, ",%s", record);
  g_string_append_c (text, ']');

  return g_string_free (g_steal_pointer (&text), FALSE);
}

static double
measure (Validate validate, const char *text, guint64 bytes)
{
  gsize length = strlen (text);
  guint64 rounds = MAX (bytes / length, 1);
  gint64 start = g_get_monotonic_time ();

  for (guint64 i = 0; i < rounds; i++)
    {
      if (!validate (text, length))
        g_error ("refused: %s", text);
    }

  return (double) (rounds * length) / (double) (g_get_monotonic_time () - start) / 1000.0;
}

static void
run (const char *name, const char *text)
{
  g_print ("%-24s %7" G_GSIZE_FORMAT " bytes: %6.2f GB/s", name, strlen (text), measure (validate_headway, text, BYTES_READ));
#ifdef HAVE_JSON_GLIB
  g_print (", json-glib %6.3f GB/s", measure (validate_json_glib, text, BYTES_READ / 64));
#endif
  g_print ("\n");
}

int
main (void)
{
  g_autofree char *prose = make_string ("The quick brown fox jumps over the lazy dog. ", 1024);
  g_autofree char *long_prose = make_string ("The quick brown fox jumps over the lazy dog. ", 1024 * 1024);
  g_autofree char *escaped = make_string ("first line\\nsecond \\\"line\\\"\\n", 1024);
  g_autofree char *cyrillic = make_string ("Съешь же ещё этих мягких французских булок. ", 1024);
  g_autofree char *records = make_records (1024);

  run ("prose", prose);
  run ("prose", long_prose);
  run ("escapes", escaped);
  run ("two-byte letters", cyrillic);
  run ("small records", records);
  run ("tiny", "{\"a\":1}");

  return EXIT_SUCCESS;
}
