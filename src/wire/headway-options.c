/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "wire/headway-options.h"

#include "engine/headway-error.h"

#include <string.h>

/* How much of an offending word a message shows, in characters. */
#define SHOWN_MAX 64

#define BUS_OPTIONS_MAX 16

static const GVariantType *
type_of (HeadwayOptionType type)
{
  switch (type)
    {
    case HEADWAY_OPTION_BOOLEAN:
      return G_VARIANT_TYPE_BOOLEAN;
    case HEADWAY_OPTION_UINT32:
      return G_VARIANT_TYPE_UINT32;
    case HEADWAY_OPTION_UINT64:
      return G_VARIANT_TYPE_UINT64;
    case HEADWAY_OPTION_STRING:
      return G_VARIANT_TYPE_STRING;
    case HEADWAY_OPTION_STRV:
      return G_VARIANT_TYPE_STRING_ARRAY;
    default:
      g_assert_not_reached ();
    }
}

/* @text as a message can carry it: printable and short, whatever came in. */
static char *
quote (const char *text)
{
  gsize length = strlen (text);
  gsize shown = length;
  g_autofree char *cut = NULL;
  g_autofree char *escaped = NULL;

  if (length > SHOWN_MAX)
    {
      shown = SHOWN_MAX;
      while (shown > 0 && ((guchar) text[shown] & 0xc0) == 0x80)
        shown--;
    }
  cut = g_strndup (text, shown);
  escaped = g_utf8_make_valid (cut, -1);
  for (char *at = escaped; *at != '\0'; at++)
    if (g_ascii_iscntrl (*at))
      *at = '?';
  return g_strdup_printf ("\"%s%s\"", escaped, shown < length ? "…" : "");
}

static gboolean
refuse_key (const HeadwayOptionSpec *specs, const char *key, GError **error)
{
  g_autoptr (GString) known = g_string_new (NULL);
  g_autofree char *quoted = quote (key);

  for (guint i = 0; specs[i].key != NULL; i++)
    g_string_append_printf (known, "%s%s", i > 0 ? ", " : "", specs[i].key);
  g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION,
               "unknown option %s, known are: %s", quoted, known->len > 0 ? known->str : "none");
  return FALSE;
}

static const char *
unit_of (HeadwayOptionType type)
{
  if (type == HEADWAY_OPTION_STRING)
    return " bytes";
  return type == HEADWAY_OPTION_STRV ? " entries" : "";
}

static gboolean
check_range (const HeadwayOptionSpec *spec, const char *what, guint64 value, GError **error)
{
  if (value >= spec->minimum && value <= spec->maximum)
    return TRUE;
  headway_set_error_with_limit (error, HEADWAY_ERROR_INVALID_OPTION, (gint64) MIN (spec->maximum, G_MAXINT64),
                                "option \"%s\" %s %" G_GUINT64_FORMAT "%s, it takes %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT "%s",
                                spec->key, what, value, unit_of (spec->type), spec->minimum, spec->maximum,
                                unit_of (spec->type));
  return FALSE;
}

/* @characters is a list of single characters and of ranges such as `a-z`, divided by blanks. */
static gboolean
is_among (char character, const char *characters)
{
  for (const char *at = characters; *at != '\0'; at++)
    {
      if (*at == ' ')
        continue;
      if (at[1] == '-' && at[2] != '\0' && at[2] != ' ')
        {
          if (character >= at[0] && character <= at[2])
            return TRUE;
          at += 2;
        }
      else if (character == *at)
        return TRUE;
    }
  return FALSE;
}

static gboolean
check_characters (const HeadwayOptionSpec *spec, const char *text, GError **error)
{
  g_autofree char *quoted = NULL;

  for (const char *at = text; *at != '\0'; at++)
    if (!is_among (*at, spec->characters))
      {
        quoted = quote (text);
        g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION,
                     "option \"%s\" is %s, it takes only %s", spec->key, quoted, spec->characters);
        return FALSE;
      }
  return TRUE;
}

static gboolean
check_words (const HeadwayOptionSpec *spec, const char *text, GError **error)
{
  g_autofree char *quoted = NULL;
  g_autofree char *words = NULL;

  if (g_strv_contains (spec->words, text))
    return TRUE;
  quoted = quote (text);
  words = g_strjoinv (", ", (char **) spec->words);
  g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION,
               "option \"%s\" is %s, it takes one of: %s", spec->key, quoted, words);
  return FALSE;
}

static gboolean
parse_string (const HeadwayOptionSpec *spec, GVariant *value, gpointer field, GError **error)
{
  gsize length;
  const char *text = g_variant_get_string (value, &length);

  if (spec->words != NULL)
    {
      if (!check_words (spec, text, error))
        return FALSE;
    }
  else if (!check_range (spec, "has", length, error))
    return FALSE;
  if (spec->characters != NULL && !check_characters (spec, text, error))
    return FALSE;
  *(const char **) field = text;
  return TRUE;
}

static gboolean
parse_value (const HeadwayOptionSpec *spec, GVariant *value, gpointer field, GError **error)
{
  switch (spec->type)
    {
    case HEADWAY_OPTION_BOOLEAN:
      *(gboolean *) field = g_variant_get_boolean (value);
      return TRUE;
    case HEADWAY_OPTION_UINT32:
      if (!check_range (spec, "is", g_variant_get_uint32 (value), error))
        return FALSE;
      *(guint *) field = g_variant_get_uint32 (value);
      return TRUE;
    case HEADWAY_OPTION_UINT64:
      if (!check_range (spec, "is", g_variant_get_uint64 (value), error))
        return FALSE;
      *(guint64 *) field = g_variant_get_uint64 (value);
      return TRUE;
    case HEADWAY_OPTION_STRING:
      return parse_string (spec, value, field, error);
    case HEADWAY_OPTION_STRV:
      if (!check_range (spec, "has", g_variant_n_children (value), error))
        return FALSE;
      g_free (*(const char ***) field);
      *(const char ***) field = g_variant_get_strv (value, NULL);
      return TRUE;
    default:
      g_assert_not_reached ();
    }
}

static gboolean
parse_one (const HeadwayOptionSpec *spec, GVariant *value, gpointer values, GError **error)
{
  if (!g_variant_is_of_type (value, type_of (spec->type)))
    {
      g_autofree char *found = quote (g_variant_get_type_string (value));

      g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION,
                   "option \"%s\" has the type %s, it takes \"%.*s\"", spec->key, found,
                   (int) g_variant_type_get_string_length (type_of (spec->type)),
                   g_variant_type_peek_string (type_of (spec->type)));
      return FALSE;
    }
  return parse_value (spec, value, G_STRUCT_MEMBER_P (values, spec->offset), error);
}

gboolean
headway_options_parse (GVariant *options,
                       const HeadwayOptionSpec *specs,
                       gpointer values,
                       guint64 *given,
                       GError **error)
{
  guint64 seen = 0;
  GVariantIter iter;
  const char *key;
  GVariant *next;

  g_return_val_if_fail (g_variant_is_of_type (options, G_VARIANT_TYPE_VARDICT), FALSE);

  g_variant_iter_init (&iter, options);
  while (g_variant_iter_next (&iter, "{&sv}", &key, &next))
    {
      g_autoptr (GVariant) value = next;
      guint i = 0;

      while (specs[i].key != NULL && strcmp (specs[i].key, key) != 0)
        i++;
      if (specs[i].key == NULL)
        return refuse_key (specs, key, error);
      /* The wire allows a key to come twice; which of them counts would be anybody's guess. */
      if ((seen & (G_GUINT64_CONSTANT (1) << i)) != 0)
        {
          g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION, "option \"%s\" is given twice", key);
          return FALSE;
        }
      seen |= G_GUINT64_CONSTANT (1) << i;
      if (!parse_one (&specs[i], value, values, error))
        return FALSE;
    }
  if (given != NULL)
    *given = seen;
  return TRUE;
}

gboolean
headway_options_parse_bus (GVariant *options, HeadwayBusOptions *values, GError **error)
{
  const HeadwayBusOptionSpec *bus_specs = headway_bus_option_specs ();
  HeadwayOptionSpec specs[BUS_OPTIONS_MAX] = { 0 };

  for (guint i = 0; bus_specs[i].key != NULL; i++)
    {
      g_assert (i + 1 < BUS_OPTIONS_MAX);
      specs[i] = (HeadwayOptionSpec){
        .key = bus_specs[i].key,
        .type = bus_specs[i].is_uint64 ? HEADWAY_OPTION_UINT64 : HEADWAY_OPTION_UINT32,
        .offset = bus_specs[i].offset,
        .minimum = bus_specs[i].minimum,
        .maximum = bus_specs[i].maximum,
      };
    }
  return headway_options_parse (options, specs, values, NULL, error);
}
