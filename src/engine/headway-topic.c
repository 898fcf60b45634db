/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-topic.h"

#include "engine/headway-error.h"
#include "engine/headway-json-scan.h"
#include "engine/headway-limits.h"

#include <string.h>

#define RESERVED_PREFIX "headway."

/* How much of a refused value its error message shows. */
#define SHOWN_MAX 64

/* A word: a value of letters, digits and a few marks. */
typedef struct
{
  const char *what;
  const char *marks;
  gsize maximum;
  HeadwayError code;
} WordGrammar;

static const WordGrammar name_grammar = {
  "bus name", "._~-", HEADWAY_NAME_MAX, HEADWAY_ERROR_INVALID_NAME
};
static const WordGrammar type_grammar = {
  "type", "._:/-", HEADWAY_TYPE_MAX, HEADWAY_ERROR_INVALID_TYPE
};
static const WordGrammar principal_grammar = {
  "principal", "._:@/-", HEADWAY_PRINCIPAL_MAX, HEADWAY_ERROR_INVALID_PRINCIPAL
};
static const WordGrammar client_grammar = {
  "client", "._:-", HEADWAY_CLIENT_MAX, HEADWAY_ERROR_INVALID_OPTION
};

/* What is not a type of a publisher: Headway speaks these itself. */
static const char *const reserved_types[] = {
  "state_resync_required",
  "replay_complete",
  "slow_client_warning",
  "client_evicted",
  "stream_error",
  "session_snapshot",
  "gap",
  "session_closed",
};

static gboolean
is_control (gunichar character)
{
  return character < 0x20 || (character >= 0x7f && character <= 0x9f);
}

/* The value as a message can carry it: short, printable and valid UTF-8 whatever came in. */
static char *
quote (const char *text, gsize length)
{
  g_autoptr (GString) quoted = g_string_new ("\"");
  gsize i = 0;

  while (i < length && i < SHOWN_MAX)
    {
      gunichar character = g_utf8_get_char_validated (text + i, (gssize) (length - i));
      gsize size = character < 0x110000 ? (gsize) g_unichar_to_utf8 (character, NULL) : 1;

      if (character == '"' || character == '\\')
        g_string_append_printf (quoted, "\\%c", (char) character);
      else if (character < 0x110000 && character != 0 && !is_control (character))
        g_string_append_len (quoted, text + i, (gssize) size);
      else
        for (gsize j = 0; j < size; j++)
          g_string_append_printf (quoted, "\\x%02x", (guchar) text[i + j]);

      i += size;
    }

  g_string_append (quoted, i < length ? "…\"" : "\"");

  return g_string_free (g_steal_pointer (&quoted), FALSE);
}

static gboolean
refuse (GError **error,
        HeadwayError code,
        const char *what,
        const char *text,
        gsize length,
        const char *reason)
{
  g_autofree char *value = quote (text, length);

  g_set_error (error, HEADWAY_ERROR, (int) code, "%s %s %s", what, value, reason);

  return FALSE;
}

static gboolean
size_check (const char *what,
            HeadwayError code,
            gsize maximum,
            const char *text,
            gsize length,
            GError **error)
{
  g_autofree char *reason = NULL;

  if (length >= 1 && length <= maximum)
    return TRUE;

  if (length == 0)
    {
      g_set_error (error,
                   HEADWAY_ERROR,
                   (int) code,
                   "%s \"\" is empty, it takes 1 to %" G_GSIZE_FORMAT " bytes",
                   what,
                   maximum);
      return FALSE;
    }

  reason = g_strdup_printf ("has %" G_GSIZE_FORMAT " bytes, the limit is %" G_GSIZE_FORMAT,
                            length,
                            maximum);

  return refuse (error, code, what, text, length, reason);
}

static gboolean
word_check (const WordGrammar *grammar, const char *text, gsize length, GError **error)
{
  g_autofree char *reason = NULL;
  gsize good = 0;

  g_return_val_if_fail (text != NULL || length == 0, FALSE);

  if (!size_check (grammar->what, grammar->code, grammar->maximum, text, length, error))
    return FALSE;

  while (good < length &&
         (g_ascii_isalnum (text[good]) ||
          (text[good] != '\0' && strchr (grammar->marks, text[good]) != NULL)))
    good++;

  if (good == length)
    return TRUE;

  reason = g_strdup_printf ("has a byte outside [A-Za-z0-9%s] at %" G_GSIZE_FORMAT,
                            grammar->marks,
                            good);

  return refuse (error, grammar->code, grammar->what, text, length, reason);
}

gboolean
headway_bus_name_check (const char *text, gsize length, GError **error)
{
  if (!word_check (&name_grammar, text, length, error))
    return FALSE;

  /* Every HTTP client would take them out of a path. */
  if (text[0] == '.' && (length == 1 || (length == 2 && text[1] == '.')))
    return refuse (error,
                   name_grammar.code,
                   name_grammar.what,
                   text,
                   length,
                   "is a step of a path, not a name");

  return TRUE;
}

gboolean
headway_type_check (const char *text, gsize length, GError **error)
{
  return word_check (&type_grammar, text, length, error);
}

gboolean
headway_principal_check (const char *text, gsize length, GError **error)
{
  return word_check (&principal_grammar, text, length, error);
}

gboolean
headway_client_check (const char *text, gsize length, GError **error)
{
  return word_check (&client_grammar, text, length, error);
}

static gboolean
has_reserved_prefix (const char *text, gsize length)
{
  const gsize prefix = strlen (RESERVED_PREFIX);

  return length >= prefix && memcmp (text, RESERVED_PREFIX, prefix) == 0;
}

gboolean
headway_type_is_reserved (const char *type, gsize length)
{
  g_return_val_if_fail (type != NULL || length == 0, FALSE);

  if (has_reserved_prefix (type, length))
    return TRUE;

  for (gsize i = 0; i < G_N_ELEMENTS (reserved_types); i++)
    {
      if (strlen (reserved_types[i]) == length && memcmp (reserved_types[i], type, length) == 0)
        return TRUE;
    }

  return FALSE;
}

/* What is wrong with the characters, or NULL. Nearly every topic is ASCII, so only what is not
 * pays for decoding. */
static const char *
find_bad_character (const char *text, gsize length)
{
  const char *end = text + length;
  const char *special = text;

  /* Nearly every topic is ASCII without quotes and backslashes, which stop the search too. */
  while ((special = headway_json_find_special (special, end, HEADWAY_JSON_HIGHS)) < end && (*special == '"' || *special == '\\'))
    special++;
  if (special == end && memchr (text, 0x7f, length) == NULL)
    return NULL;

  for (const char *at = text; at < end; at++)
    {
      if ((guchar) *at < 0x20 || *at == 0x7f)
        return "has a control character";
    }

  if (!g_utf8_validate_len (text, length, NULL))
    return "is not valid UTF-8";

  for (const char *at = text; at < text + length; at = g_utf8_next_char (at))
    {
      if (is_control (g_utf8_get_char (at)))
        return "has a control character";
    }

  return NULL;
}

/* What is wrong with the segments, or NULL. */
static const char *
find_bad_segment (const char *text, gsize length, gboolean is_pattern)
{
  const char *end = text + length;
  guint segments = 0;

  for (const char *at = text;;)
    {
      const char *dot = memchr (at, '.', (gsize) (end - at));
      const char *stop = dot != NULL ? dot : end;

      if (stop == at)
        return "has an empty segment";
      if (!is_pattern && stop - at == 1 && *at == '*')
        return "has a segment \"*\", which only patterns may have";
      if (++segments > HEADWAY_TOPIC_SEGMENTS_MAX)
        return "has more than " G_STRINGIFY (HEADWAY_TOPIC_SEGMENTS_MAX) " segments";
      if (dot == NULL)
        return NULL;

      at = dot + 1;
    }
}

static gboolean
path_check (const char *what,
            HeadwayError code,
            gboolean is_pattern,
            const char *text,
            gsize length,
            GError **error)
{
  const char *reason;

  g_return_val_if_fail (text != NULL || length == 0, FALSE);

  if (!size_check (what, code, HEADWAY_TOPIC_MAX, text, length, error))
    return FALSE;

  reason = find_bad_character (text, length);
  if (reason == NULL)
    reason = find_bad_segment (text, length, is_pattern);
  if (reason == NULL && !is_pattern && has_reserved_prefix (text, length))
    reason = "starts with \"" RESERVED_PREFIX "\", which is reserved";
  if (reason != NULL)
    return refuse (error, code, what, text, length, reason);

  return TRUE;
}

gboolean
headway_topic_check (const char *text, gsize length, GError **error)
{
  return path_check ("topic", HEADWAY_ERROR_INVALID_TOPIC, FALSE, text, length, error);
}

gboolean
headway_pattern_check (const char *text, gsize length, GError **error)
{
  return path_check ("pattern", HEADWAY_ERROR_INVALID_PATTERN, TRUE, text, length, error);
}

static gboolean
is_within_depth (const char *topic)
{
  guint dots = 0;

  for (; *topic != '\0'; topic++)
    dots += *topic == '.';

  return dots < HEADWAY_TOPIC_SEGMENTS_MAX;
}

gboolean
headway_topic_matches (const char *pattern, const char *topic)
{
  const char *p = pattern;
  const char *t = topic;

  g_return_val_if_fail (pattern != NULL && topic != NULL, FALSE);

  /* The depth is looked at last: most pairs differ long before. */
  for (;;)
    {
      if (p[0] == '*' && (p[1] == '\0' || p[1] == '.'))
        {
          if (p[1] == '\0' && p > pattern)
            return is_within_depth (topic);
          p++;
          while (*t != '\0' && *t != '.')
            t++;
        }
      else
        {
          while (*p != '\0' && *p != '.' && *p == *t)
            {
              p++;
              t++;
            }
        }

      /* Equal here means that both segments end, and both with a dot or both with the text. */
      if (*p != *t)
        return FALSE;
      if (*p == '\0')
        return is_within_depth (topic);

      p++;
      t++;
    }
}
