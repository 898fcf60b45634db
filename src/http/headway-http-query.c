/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-query.h"

#include <string.h>

typedef struct
{
  char *key;   /* owned */
  char *value; /* owned, nullable */
} Parameter;

struct _HeadwayHttpQuery
{
  GArray *parameters; /* Parameter */
};

static void
parameter_clear (gpointer data)
{
  Parameter *parameter = data;

  g_free (parameter->key);
  g_free (parameter->value);
}

/* U+0000 is a code point too, but g_utf8_validate_len() of GLib 2.74 stops there. */
static gboolean
is_utf8 (const GString *text)
{
  gsize at = 0;

  while (at < text->len)
    {
      const char *end;

      if (g_utf8_validate_len (text->str + at, text->len - at, &end))
        return TRUE;
      if (*end != '\0')
        return FALSE;
      at = (gsize) (end - text->str) + 1;
    }
  return TRUE;
}

GString *
headway_http_unescape (const char *text, gsize length, gboolean is_form)
{
  g_autoptr (GString) decoded = g_string_sized_new (length);

  for (gsize i = 0; i < length; i++)
    {
      if (text[i] == '%')
        {
          if (length - i < 3 || !g_ascii_isxdigit (text[i + 1]) || !g_ascii_isxdigit (text[i + 2]))
            return NULL;
          g_string_append_c (decoded, (char) (g_ascii_xdigit_value (text[i + 1]) << 4 | g_ascii_xdigit_value (text[i + 2])));
          i += 2;
        }
      else
        {
          g_string_append_c (decoded, is_form && text[i] == '+' ? ' ' : text[i]);
        }
    }
  return is_utf8 (decoded) ? g_steal_pointer (&decoded) : NULL;
}

/* NULL for what is no text. */
static char *
decode (const char *text, gsize length)
{
  g_autoptr (GString) decoded = headway_http_unescape (text, length, TRUE);

  if (decoded == NULL || strlen (decoded->str) != decoded->len)
    return NULL;
  return g_string_free (g_steal_pointer (&decoded), FALSE);
}

static void
add_parameter (HeadwayHttpQuery *self, const char *text, gsize length)
{
  const char *equals = memchr (text, '=', length);
  gsize key_length = equals != NULL ? (gsize) (equals - text) : length;
  Parameter parameter = { decode (text, key_length), NULL };

  /* A key that is no text is a key that nobody knows. */
  if (parameter.key == NULL)
    return;

  if (equals != NULL)
    parameter.value = decode (equals + 1, length - key_length - 1);
  g_array_append_val (self->parameters, parameter);
}

HeadwayHttpQuery *
headway_http_query_new (const char *query)
{
  HeadwayHttpQuery *self = g_new0 (HeadwayHttpQuery, 1);

  self->parameters = g_array_new (FALSE, FALSE, sizeof (Parameter));
  g_array_set_clear_func (self->parameters, parameter_clear);
  while (query != NULL && *query != '\0')
    {
      gsize length = strcspn (query, "&");

      if (length > 0)
        add_parameter (self, query, length);
      query += length + (query[length] == '&' ? 1 : 0);
    }
  return self;
}

void
headway_http_query_free (HeadwayHttpQuery *self)
{
  g_array_unref (self->parameters);
  g_free (self);
}

guint
headway_http_query_count (const HeadwayHttpQuery *self, const char *key)
{
  guint n = 0;

  for (guint i = 0; i < self->parameters->len; i++)
    {
      if (strcmp (g_array_index (self->parameters, Parameter, i).key, key) == 0)
        n++;
    }
  return n;
}

const char *
headway_http_query_get (const HeadwayHttpQuery *self, const char *key, guint nth)
{
  for (guint i = 0; i < self->parameters->len; i++)
    {
      const Parameter *parameter = &g_array_index (self->parameters, Parameter, i);

      if (strcmp (parameter->key, key) == 0 && nth-- == 0)
        return parameter->value;
    }
  return NULL;
}
