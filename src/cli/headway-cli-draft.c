/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-draft.h"

#include "cli/headway-cli-error.h"
#include "cli/headway-cli-json.h"
#include "cli/headway-cli-text.h"

#include <glib/gi18n.h>
#include <string.h>

#define DATA_PREFIX "{\"data\":"
G_STATIC_ASSERT (sizeof DATA_PREFIX - 1 == HEADWAY_CLI_DRAFT_DATA_OFFSET);

/**
 * headway_cli_draft_clear:
 * @draft: a draft
 *
 * Frees what @draft holds.
 */
void
headway_cli_draft_clear (HeadwayCliDraft *draft)
{
  g_clear_pointer (&draft->topic, g_free);
  g_clear_pointer (&draft->type, g_free);
  g_clear_pointer (&draft->principal, g_free);
  g_clear_pointer (&draft->client, g_free);
  g_clear_pointer (&draft->meta, g_free);
  g_clear_pointer (&draft->data, g_free);
}

/**
 * headway_cli_draft_free:
 * @draft: a draft of one of the constructors
 *
 * Frees it.
 */
void
headway_cli_draft_free (HeadwayCliDraft *draft)
{
  headway_cli_draft_clear (draft);
  g_free (draft);
}

static gboolean
check_utf8 (const char *text,
            gsize length,
            GError **error)
{
  const char *end;

  if (g_utf8_validate_len (text, length, &end))
    return TRUE;
  g_set_error (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_DATA, _ ("no valid UTF-8 at byte %s"), HEADWAY_CLI_NUMBER ((guint64) (end - text)));
  return FALSE;
}

/* Takes a member whose value is a string; `null` says the same as an empty one. */
static gboolean
take_text (char **text,
           const char *name,
           HeadwayCliSlice value,
           GError **error)
{
  g_free (*text);
  if (value.length == 4 && memcmp (value.text, "null", 4) == 0)
    *text = g_strdup ("");
  else
    *text = headway_cli_json_dup_string (value);
  if (*text != NULL)
    return TRUE;
  g_set_error (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_DATA, _ ("the member \"%s\" is no string"), name);
  return FALSE;
}

static gboolean
take_flag (gboolean *flag,
           const char *name,
           HeadwayCliSlice value,
           GError **error)
{
  *flag = value.length == 4 && memcmp (value.text, "true", 4) == 0;
  if (*flag || (value.length == 5 && memcmp (value.text, "false", 5) == 0))
    return TRUE;
  g_set_error (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_DATA, _ ("the member \"%s\" is neither true nor false"), name);
  return FALSE;
}

static gboolean
take_member (HeadwayCliDraft *draft,
             const char *name,
             HeadwayCliSlice value,
             GError **error)
{
  const struct
  {
    const char *name;
    char **text;
  } texts[] = {
    { "topic", &draft->topic },
    { "type", &draft->type },
    { "principal", &draft->principal },
    { "originatorClientId", &draft->client },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++)
    {
      if (g_str_equal (texts[i].name, name))
        return take_text (texts[i].text, name, value, error);
    }
  if (g_str_equal (name, "final"))
    return take_flag (&draft->is_final, name, value, error);
  if (g_str_equal (name, "data"))
    {
      g_free (draft->data);
      draft->data = g_strndup (value.text, value.length);
    }
  else if (g_str_equal (name, "_meta"))
    {
      g_free (draft->meta);
      draft->meta = g_strndup (value.text, value.length);
    }
  else if (!g_str_equal (name, "id") && !g_str_equal (name, "v"))
    {
      g_set_error (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_DATA, _ ("there is no member \"%s\" in an event"), name);
      return FALSE;
    }
  return TRUE;
}

/**
 * headway_cli_draft_new_from_json:
 * @text: (array length=length): one object as `POST /session/{bus}/events` takes it
 * @length: bytes of @text
 * @error: return location
 *
 * Reads a line of NDJSON. The members `id` and `v` are passed over, so that what
 * `headway sub --json` prints can be published again.
 *
 * Returns: (transfer full): a draft, or NULL with HEADWAY_CLI_ERROR_DATA
 */
HeadwayCliDraft *
headway_cli_draft_new_from_json (const char *text,
                                 gsize length,
                                 GError **error)
{
  g_autoptr (HeadwayCliDraft) draft = g_new0 (HeadwayCliDraft, 1);
  HeadwayCliJsonIter iter;
  HeadwayCliSlice key;
  HeadwayCliSlice value;

  if (!check_utf8 (text, length, error))
    return NULL;
  if (!headway_cli_json_iter_init (&iter, (HeadwayCliSlice){ text, length }) || iter.close != '}')
    {
      g_set_error_literal (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_DATA, _ ("no JSON object"));
      return NULL;
    }
  while (headway_cli_json_iter_next (&iter, &key, &value))
    {
      g_autofree char *name = headway_cli_json_dup_string (key);

      if (!take_member (draft, name != NULL ? name : "", value, error))
        return NULL;
    }
  if (!headway_cli_json_iter_is_complete (&iter))
    {
      g_set_error (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_DATA, _ ("no JSON at byte %s"), HEADWAY_CLI_NUMBER ((guint64) (iter.cursor - text)));
      return NULL;
    }
  if (draft->data == NULL)
    {
      g_set_error_literal (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_DATA, _ ("the member \"data\" is missing"));
      return NULL;
    }
  return g_steal_pointer (&draft);
}

/**
 * headway_cli_draft_check_data:
 * @text: (array length=length): what should be JSON
 * @length: bytes of @text
 * @error: return location
 *
 * Checks that @text is UTF-8 and one value, so that it cannot become something else inside a larger
 * text; the daemon checks the rest.
 *
 * Returns: FALSE with HEADWAY_CLI_ERROR_DATA if it is not
 */
gboolean
headway_cli_draft_check_data (const char *text,
                              gsize length,
                              GError **error)
{
  gsize position;

  if (!check_utf8 (text, length, error))
    return FALSE;
  if (headway_cli_json_is_one_value ((HeadwayCliSlice){ text, length }, &position))
    return TRUE;
  g_set_error (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_DATA, _ ("no JSON at byte %s"), HEADWAY_CLI_NUMBER (position));
  return FALSE;
}

/**
 * headway_cli_draft_new_for_data:
 * @text: (array length=length): what should be JSON
 * @length: bytes of @text
 * @error: return location
 *
 * Makes a draft of data alone, as far as headway_cli_draft_check_data() likes it.
 *
 * Returns: (transfer full): a draft, or NULL with HEADWAY_CLI_ERROR_DATA
 */
HeadwayCliDraft *
headway_cli_draft_new_for_data (const char *text,
                                gsize length,
                                GError **error)
{
  HeadwayCliDraft *draft;

  if (!headway_cli_draft_check_data (text, length, error))
    return NULL;
  draft = g_new0 (HeadwayCliDraft, 1);
  draft->data = g_strndup (text, length);
  return draft;
}

/**
 * headway_cli_draft_new_for_string:
 * @text: (array length=length): any bytes
 * @length: bytes of @text
 * @n_repaired: (inout): grows by each piece of @text that is no UTF-8
 *
 * Makes a draft whose data is @text as a JSON string.
 *
 * Returns: (transfer full): a draft
 */
HeadwayCliDraft *
headway_cli_draft_new_for_string (const char *text,
                                  gsize length,
                                  guint *n_repaired)
{
  HeadwayCliDraft *draft = g_new0 (HeadwayCliDraft, 1);
  GString *data = g_string_sized_new (length + 2);

  *n_repaired += headway_cli_json_append_string (data, text, length);
  draft->data = g_string_free (data, FALSE);
  return draft;
}

/**
 * headway_cli_draft_get_size:
 * @draft: a draft
 *
 * Returns: about how many bytes it takes in a message
 */
gsize
headway_cli_draft_get_size (const HeadwayCliDraft *draft)
{
  return strlen (draft->data) + (draft->meta != NULL ? strlen (draft->meta) : 0) + 128;
}

/**
 * headway_cli_draft_check_topic:
 * @draft: a draft
 * @defaults: what the command line says
 * @error: return location
 *
 * Returns: FALSE with HEADWAY_CLI_ERROR_DATA if nobody gives a topic or a type
 */
gboolean
headway_cli_draft_check_topic (const HeadwayCliDraft *draft,
                               const HeadwayCliDraft *defaults,
                               GError **error)
{
  if (draft->topic != NULL || draft->type != NULL || defaults->topic != NULL || defaults->type != NULL)
    return TRUE;
  g_set_error_literal (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_DATA, _ ("neither a topic nor a type is given"));
  return FALSE;
}

static const char *
choose (const char *own,
        const char *other)
{
  return own != NULL ? own : other;
}

/**
 * headway_cli_draft_to_variant:
 * @draft: a draft
 * @defaults: what the command line says
 *
 * Returns: (transfer floating): (ssa{sv}) as PublishMany takes it; the topic is the type
 *   where only that is given
 */
GVariant *
headway_cli_draft_to_variant (const HeadwayCliDraft *draft,
                              const HeadwayCliDraft *defaults)
{
  g_auto (GVariantDict) options = G_VARIANT_DICT_INIT (NULL);
  const char *type = choose (draft->type, defaults->type);
  const char *topic = choose (choose (draft->topic, defaults->topic), type);
  const char *principal = choose (draft->principal, defaults->principal);
  const char *client = choose (draft->client, defaults->client);

  if (type != NULL)
    g_variant_dict_insert (&options, "type", "s", type);
  if (principal != NULL)
    g_variant_dict_insert (&options, "principal", "s", principal);
  if (client != NULL)
    g_variant_dict_insert (&options, "client", "s", client);
  if (draft->meta != NULL)
    g_variant_dict_insert (&options, "meta", "s", draft->meta);
  if (draft->is_final || defaults->is_final)
    g_variant_dict_insert (&options, "final", "b", TRUE);
  return g_variant_new ("(ss@a{sv})", topic, draft->data, g_variant_dict_end (&options));
}

static void
append_text (GString *json,
             const char *name,
             const char *text)
{
  if (text == NULL)
    return;
  g_string_append_printf (json, ",\"%s\":", name);
  headway_cli_json_append_string (json, text, strlen (text));
}

/**
 * headway_cli_draft_append_json:
 * @draft: a draft
 * @defaults: what the command line says
 * @json: text to append to
 *
 * Appends the object that `POST /session/{bus}/events` takes. Its data comes first, behind
 * HEADWAY_CLI_DRAFT_DATA_OFFSET bytes.
 */
void
headway_cli_draft_append_json (const HeadwayCliDraft *draft,
                               const HeadwayCliDraft *defaults,
                               GString *json)
{
  g_string_append (json, DATA_PREFIX);
  g_string_append (json, draft->data);
  append_text (json, "topic", choose (draft->topic, defaults->topic));
  append_text (json, "type", choose (draft->type, defaults->type));
  append_text (json, "principal", choose (draft->principal, defaults->principal));
  append_text (json, "originatorClientId", choose (draft->client, defaults->client));
  if (draft->is_final || defaults->is_final)
    g_string_append (json, ",\"final\":true");
  if (draft->meta != NULL)
    g_string_append_printf (json, ",\"_meta\":%s", draft->meta);
  g_string_append_c (json, '}');
}
