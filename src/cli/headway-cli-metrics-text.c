/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-metrics-text.h"

#include <math.h>
#include <string.h>

static gboolean
is_name (const char *name,
         gboolean colons)
{
  if (!g_ascii_isalpha (*name) && *name != '_' && !(colons && *name == ':'))
    return FALSE;
  for (const char *p = name; *p != '\0'; p++)
    {
      if (!g_ascii_isalnum (*p) && *p != '_' && !(colons && *p == ':'))
        return FALSE;
    }
  return TRUE;
}

static gboolean
is_counter (const char *name)
{
  return g_str_has_suffix (name, "_total");
}

/* The help of `/metrics` does not come over D-Bus: the name in words says nearly as much. */
static void
append_head (GString *text,
             const char *name)
{
  const char *start = g_str_has_prefix (name, "headway_") ? name + strlen ("headway_") : name;
  gsize length = strlen (start);
  gsize place;

  if (is_counter (name))
    length -= MIN (length, strlen ("_total"));
  if (length == 0)
    start = name, length = strlen (name);
  g_string_append_printf (text, "# HELP %s ", name);
  place = text->len;
  g_string_append_len (text, start, (gssize) length);
  text->str[place] = g_ascii_toupper (text->str[place]);
  for (gsize i = place; i < text->len; i++)
    {
      if (text->str[i] == '_')
        text->str[i] = ' ';
    }
  g_string_append_printf (text, ".\n# TYPE %s %s\n", name, is_counter (name) ? "counter" : "gauge");
}

static void
append_label_value (GString *text,
                    const char *value)
{
  for (const char *p = value; *p != '\0'; p++)
    {
      if (*p == '\n')
        g_string_append (text, "\\n");
      else if (*p == '\\' || *p == '"')
        g_string_append_printf (text, "\\%c", *p);
      else if ((guchar) *p >= 0x20 && *p != 0x7f)
        g_string_append_c (text, *p);
    }
}

static void
append_labels (GString *text,
               GVariant *labels)
{
  GVariantIter iter;
  const char *name;
  const char *value;
  char opening = '{';

  g_variant_iter_init (&iter, labels);
  while (g_variant_iter_next (&iter, "{&s&s}", &name, &value))
    {
      if (!is_name (name, FALSE) || *value == '\0')
        continue;
      g_string_append_printf (text, "%c%s=\"", opening, name);
      append_label_value (text, value);
      g_string_append_c (text, '"');
      opening = ',';
    }
  if (opening == ',')
    g_string_append_c (text, '}');
}

/* Whole numbers as such; others with as few digits as bring them back. */
static void
append_value (GString *text,
              double value)
{
  char number[G_ASCII_DTOSTR_BUF_SIZE];

  if (value == floor (value) && fabs (value) < 9007199254740992.0)
    g_string_append_printf (text, " %" G_GINT64_FORMAT "\n", (gint64) value);
  else
    g_string_append_printf (text, " %s\n", g_ascii_dtostr (number, sizeof number, value));
}

/**
 * headway_cli_metrics_append_text:
 * @text: text to append to
 * @metrics: what ListMetrics answers, of HEADWAY_CLI_METRICS_TYPE
 *
 * Appends @metrics as Prometheus text 0.0.4. A name that is none there is left out, as is a
 * value that is no finite number.
 */
void
headway_cli_metrics_append_text (GString *text,
                                 GVariant *metrics)
{
  g_autofree char *family = NULL;
  GVariantIter iter;
  const char *name;
  GVariant *labels;
  double value;

  g_variant_iter_init (&iter, metrics);
  while (g_variant_iter_loop (&iter, "(&s@a{ss}d)", &name, &labels, &value))
    {
      if (!is_name (name, TRUE) || !isfinite (value))
        continue;
      if (g_strcmp0 (family, name) != 0)
        {
          append_head (text, name);
          g_free (family);
          family = g_strdup (name);
        }
      g_string_append (text, name);
      append_labels (text, labels);
      append_value (text, value);
    }
}
