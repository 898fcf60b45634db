/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "wire/headway-json-body.h"

#include "engine/headway-error.h"

#include <string.h>

/* How much of an unknown member's name a message shows. */
#define SHOWN_MAX 64

GQuark
headway_json_body_error_quark (void)
{
  return g_quark_from_static_string ("headway-json-body-error-quark");
}

static gboolean refuse (GError **error, const char *format, ...) G_GNUC_PRINTF (2, 3);

static gboolean
refuse (GError **error, const char *format, ...)
{
  va_list args;

  if (error == NULL)
    return FALSE;

  va_start (args, format);
  *error = g_error_new_valist (HEADWAY_JSON_BODY_ERROR, HEADWAY_JSON_BODY_ERROR_INVALID_REQUEST, format, args);
  va_end (args);
  return FALSE;
}

static void
clear_string (HeadwayPublishBody *self, char **string)
{
  if (*string < self->room || *string >= self->room + sizeof self->room)
    g_free (*string);
  *string = NULL;
}

void
headway_publish_body_init (HeadwayPublishBody *self)
{
  /* The room is as it is. */
  memset (self, 0, G_STRUCT_OFFSET (HeadwayPublishBody, room));
}

void
headway_publish_body_clear (HeadwayPublishBody *self)
{
  clear_string (self, &self->topic);
  clear_string (self, &self->type);
  clear_string (self, &self->principal);
  clear_string (self, &self->client);
}

/* The members of a publish object; a bit of each says that it was seen. */
typedef enum
{
  MEMBER_DATA,
  MEMBER_TOPIC,
  MEMBER_TYPE,
  MEMBER_PRINCIPAL,
  MEMBER_CLIENT,
  MEMBER_FINAL,
  MEMBER_META,
  N_MEMBERS,
} Member;

static const char *const member_names[N_MEMBERS] = {
  [MEMBER_DATA] = "data",
  [MEMBER_TOPIC] = "topic",
  [MEMBER_TYPE] = "type",
  [MEMBER_PRINCIPAL] = "principal",
  [MEMBER_CLIENT] = "originatorClientId",
  [MEMBER_FINAL] = "final",
  [MEMBER_META] = "_meta",
};

static const gsize member_lengths[N_MEMBERS] = {
  [MEMBER_DATA] = sizeof "data" - 1,
  [MEMBER_TOPIC] = sizeof "topic" - 1,
  [MEMBER_TYPE] = sizeof "type" - 1,
  [MEMBER_PRINCIPAL] = sizeof "principal" - 1,
  [MEMBER_CLIENT] = sizeof "originatorClientId" - 1,
  [MEMBER_FINAL] = sizeof "final" - 1,
  [MEMBER_META] = sizeof "_meta" - 1,
};

static Member
find_member (const HeadwayJson *name)
{
  /* As everybody writes them, then with escapes. */
  for (guint i = 0; i < N_MEMBERS; i++)
    {
      if (name->length == member_lengths[i] + 2 && memcmp (name->text + 1, member_names[i], member_lengths[i]) == 0)
        return (Member) i;
    }
  for (guint i = 0; i < N_MEMBERS; i++)
    {
      if (headway_json_string_equals (name, member_names[i]))
        return (Member) i;
    }
  return N_MEMBERS;
}

/* The name as the message shows it: with its quotes, cut where it is long. */
static gboolean
refuse_unknown (const HeadwayJson *name, GError **error)
{
  gboolean is_cut = name->length > SHOWN_MAX;
  g_autofree char *shown = g_utf8_make_valid (name->text, is_cut ? SHOWN_MAX : (gssize) name->length);

  return refuse (error, "unknown member %s%s", shown, is_cut ? "…\"" : "");
}

static gboolean
take_string (HeadwayPublishBody *self, const HeadwayJson *value, Member member, char **to, GError **error)
{
  gboolean has_room = value->length <= sizeof self->room - self->used;

  if (value->type != HEADWAY_JSON_STRING)
    return refuse (error, "\"%s\" is not a string", member_names[member]);

  *to = has_room ? self->room + self->used : g_malloc (value->length);
  self->used += has_room ? (guint) value->length : 0;
  if (headway_json_decode_string (value, *to, error))
    return TRUE;

  g_prefix_error (error, "\"%s\": ", member_names[member]);
  return FALSE;
}

static gboolean
take_principal (HeadwayPublishBody *self, const HeadwayJson *value, GError **error)
{
  self->is_principal_named = TRUE;
  if (value->type == HEADWAY_JSON_NULL)
    return TRUE;
  return take_string (self, value, MEMBER_PRINCIPAL, &self->principal, error);
}

static gboolean
take_member (HeadwayPublishBody *self, Member member, const HeadwayJson *value, GError **error)
{
  switch (member)
    {
    case MEMBER_DATA:
      self->data = *value;
      return TRUE;
    case MEMBER_TOPIC:
      return take_string (self, value, member, &self->topic, error);
    case MEMBER_TYPE:
      return take_string (self, value, member, &self->type, error);
    case MEMBER_PRINCIPAL:
      return take_principal (self, value, error);
    case MEMBER_CLIENT:
      return take_string (self, value, member, &self->client, error);
    case MEMBER_FINAL:
      return headway_json_get_boolean (value, &self->is_final) ||
             refuse (error, "\"final\" is neither true nor false");
    case MEMBER_META:
      self->meta = *value;
      return value->type == HEADWAY_JSON_OBJECT || refuse (error, "\"_meta\" is not an object");
    case N_MEMBERS:
    default:
      g_assert_not_reached ();
    }
}

gboolean
headway_publish_body_parse (HeadwayPublishBody *self, const HeadwayJson *json, GError **error)
{
  HeadwayJsonIter iter;
  HeadwayJson name;
  HeadwayJson value;
  guint seen = 0;

  if (json->type != HEADWAY_JSON_OBJECT)
    return refuse (error, "an event is not a JSON object");

  headway_json_iter_init (&iter, json);
  while (headway_json_iter_next (&iter, &name, &value))
    {
      Member member = find_member (&name);

      if (member == N_MEMBERS)
        return refuse_unknown (&name, error);
      if ((seen & (1u << member)) != 0)
        return refuse (error, "\"%s\" is given twice", member_names[member]);
      seen |= 1u << member;
      if (!take_member (self, member, &value, error))
        return FALSE;
    }
  if ((seen & (1u << MEMBER_DATA)) == 0)
    return refuse (error, "\"data\" is missing");
  if ((seen & (1u << MEMBER_TOPIC | 1u << MEMBER_TYPE)) == 0)
    return refuse (error, "\"topic\" or \"type\" is missing");
  return TRUE;
}

void
headway_publish_body_fill (const HeadwayPublishBody *self, HeadwayPublication *publication)
{
  publication->topic = self->topic;
  publication->type = self->type;
  publication->client = self->client;
  publication->data = self->data.text;
  publication->data_length = self->data.length;
  publication->meta = self->meta.text;
  publication->meta_length = self->meta.length;
  publication->is_final = self->is_final;
  publication->is_valid_json = TRUE;
}

static const HeadwayBusOptionSpec *
find_option (const HeadwayJson *name)
{
  for (const HeadwayBusOptionSpec *spec = headway_bus_option_specs (); spec->key != NULL; spec++)
    {
      if (headway_json_string_equals (name, spec->json_name))
        return spec;
    }
  return NULL;
}

static gboolean
refuse_option (const HeadwayJson *name, const char *why, GError **error)
{
  gboolean is_cut = name->length > SHOWN_MAX;
  g_autofree char *shown = g_utf8_make_valid (name->text, is_cut ? SHOWN_MAX : (gssize) name->length);

  g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION, "option %s%s %s", shown, is_cut ? "…\"" : "", why);
  return FALSE;
}

static gboolean
is_named (GArray *named, const HeadwayBusOptionSpec *spec)
{
  for (guint i = 0; i < named->len; i++)
    {
      if (g_array_index (named, HeadwayNamedOption, i).spec == spec)
        return TRUE;
    }
  return FALSE;
}

static gboolean
is_empty (const char *text, gsize length)
{
  for (gsize i = 0; i < length; i++)
    {
      if (!g_ascii_isspace (text[i]))
        return FALSE;
    }
  return TRUE;
}

gboolean
headway_json_body_parse_bus_options (const char *text,
                                     gsize length,
                                     HeadwayBusOptions *options,
                                     GArray *named,
                                     GError **error)
{
  g_autoptr (GArray) found = g_array_new (FALSE, FALSE, sizeof (HeadwayNamedOption));
  HeadwayJsonIter iter;
  HeadwayJson json;
  HeadwayJson name;
  HeadwayJson value;

  if (is_empty (text, length))
    return TRUE;
  if (!headway_json_validate (text, length, HEADWAY_JSON_DEPTH_MAX, &json, error))
    return FALSE;
  if (json.type != HEADWAY_JSON_OBJECT)
    return refuse (error, "the options are not a JSON object");

  headway_json_iter_init (&iter, &json);
  while (headway_json_iter_next (&iter, &name, &value))
    {
      HeadwayNamedOption option = { find_option (&name), 0 };

      if (option.spec == NULL)
        return refuse_option (&name, "is not known", error);
      if (is_named (found, option.spec))
        return refuse_option (&name, "is given twice", error);
      if (!headway_json_get_uint (&value, G_MAXUINT64, &option.value))
        return refuse_option (&name, "is not a whole number", error);
      if (!headway_bus_options_set (options, option.spec, option.value, error))
        return FALSE;
      g_array_append_val (found, option);
    }
  if (named != NULL)
    g_array_append_vals (named, found->data, found->len);
  return TRUE;
}
