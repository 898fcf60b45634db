/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-event.h"

#include "engine/headway-envelope.h"
#include "engine/headway-error.h"
#include "engine/headway-topic.h"

#include <string.h>

#define TYPE_DEFAULT "message"

enum
{
  FLAG_FINAL = 1 << 0,
  FLAG_SYNTHETIC = 1 << 1,
  FLAG_PASSES_FILTERS = 1 << 2,
  FLAG_HAS_META = 1 << 3,
  FLAG_NO_TOPIC = 1 << 4,
  FLAG_TYPE_DEFAULT = 1 << 5, /* TYPE_DEFAULT, which is not kept */
  FLAG_OWN_TOPIC = 1 << 6,    /* the topic is not the type, and kept */
  FLAG_HAS_CLIENT = 1 << 7,
};

/* A body up to this size is written on the stack first, so that its event takes exactly what it needs:
 * a block that is cut afterwards leaves a hole behind every event of the ring. */
#define BODY_ON_STACK 2048

/* Bits that hold any size or cost: HEADWAY_EVENT_CEILING bounds data, and the snapshot of a bus. */
#define SIZE_BITS 24

/* The ring holds very many, so every byte counts, and `/event/memory-beside-envelope` holds them to their
 * number. One allocation: the struct, then the body, which is the envelope without its head `{"id":…`, then
 * type, topic and client as strings, as far as the flags do not tell them. The head is written when the
 * envelope leaves: room for it would be taken before its length is known, for the longest id. What follows from
 * the rest is not kept, and bit fields are as wide as the limits ask; those that the hot paths read most (id,
 * size, cost) are at the edge of a word, where they take no shift or one. Only the engine's thread counts
 * references, so they need not be atomic. */
struct _HeadwayEvent
{
  guint ref_count;
  guint8 flags;
  guint8 data_offset;  /* in the body, behind the type */
  guint16 meta_length; /* of `_meta`, the last member of the body */
  guint64 id;
  gint64 timestamp_us : 56;    /* enough for a thousand years, and read the least */
  guint64 head_length : 8;     /* of `{"id":…`; 0: no id yet, or none at all */
  HeadwayPrincipal *principal; /* owned */
  guint64 size : SIZE_BITS;    /* of the envelope; the head counts once there is an id */
  guint64 cost : SIZE_BITS;
  guint64 tail_length : 16; /* of the body behind the data */
  char bytes[];
};

#if GLIB_SIZEOF_VOID_P == 8
G_STATIC_ASSERT (sizeof (HeadwayEvent) == 40);
#endif
/* `,"v":1,"type":"` and `","data":` stand before the data. */
G_STATIC_ASSERT (HEADWAY_TYPE_MAX + 24 <= G_MAXUINT8);
/* Topic (twice as long where all of it is escaped), principal, client and meta, their names and a timestamp. */
#define TAIL_MAX (2 * HEADWAY_TOPIC_MAX + HEADWAY_PRINCIPAL_MAX + HEADWAY_CLIENT_MAX + HEADWAY_META_MAX + 192)
G_STATIC_ASSERT (TAIL_MAX <= G_MAXUINT16);
G_STATIC_ASSERT (HEADWAY_ENVELOPE_HEAD_MAX + G_MAXUINT8 + HEADWAY_EVENT_CEILING + TAIL_MAX < 1 << SIZE_BITS);

static gsize
event_body_length (const HeadwayEvent *self)
{
  return (gsize) self->size - self->head_length;
}

static gsize
event_data_length (const HeadwayEvent *self)
{
  return event_body_length (self) - self->data_offset - self->tail_length;
}

static const char *
event_strings (const HeadwayEvent *self)
{
  return self->bytes + event_body_length (self);
}

/* The names of an event, as they are kept. */
typedef struct
{
  const char *texts[3]; /* type, topic, client */
  gsize sizes[3];       /* with NUL; 0: not kept */
  guint8 flags;
} Names;

static void
names_init (Names *self, const HeadwayPublication *publication)
{
  *self = (Names){ { publication->type, publication->topic, publication->client }, { 0 }, 0 };
  self->sizes[0] = strlen (publication->type) + 1;
  if (self->sizes[0] == sizeof TYPE_DEFAULT && memcmp (publication->type, TYPE_DEFAULT, sizeof TYPE_DEFAULT) == 0)
    {
      self->flags |= FLAG_TYPE_DEFAULT;
      self->sizes[0] = 0;
    }
  if (publication->topic != NULL && strcmp (publication->topic, publication->type) != 0)
    {
      self->flags |= FLAG_OWN_TOPIC;
      self->sizes[1] = strlen (publication->topic) + 1;
    }
  if (publication->client != NULL)
    {
      self->flags |= FLAG_HAS_CLIENT;
      self->sizes[2] = strlen (publication->client) + 1;
    }
}

static void
put_names (char *to, const Names *names)
{
  for (guint i = 0; i < G_N_ELEMENTS (names->texts); i++)
    if (names->sizes[i] > 0)
      to = (char *) memcpy (to, names->texts[i], names->sizes[i]) + names->sizes[i];
}

static HeadwayEvent *
event_build (const HeadwayPublication *publication, guint8 flags, HeadwayInstant now)
{
  gboolean is_synthetic = (flags & FLAG_SYNTHETIC) != 0;
  gsize body_max = headway_envelope_size_max (publication);
  gsize fixed_size = sizeof (HeadwayEvent);
  char on_stack[BODY_ON_STACK];
  HeadwayEnvelopeLayout layout;
  HeadwayEvent *self;
  Names names;

  names_init (&names, publication);
  fixed_size += names.sizes[0] + names.sizes[1] + names.sizes[2];
  if (body_max <= sizeof on_stack)
    {
      headway_envelope_write (on_stack, publication, is_synthetic, now.real_us, &layout);
      self = g_malloc (fixed_size + layout.length);
      memcpy (self->bytes, on_stack, layout.length);
    }
  else
    {
      self = g_malloc (fixed_size + body_max);
      headway_envelope_write (self->bytes, publication, is_synthetic, now.real_us, &layout);
      self = g_realloc (self, fixed_size + layout.length);
    }
  g_assert (layout.length < 1 << SIZE_BITS);
  self->ref_count = 1;
  self->flags = flags | names.flags;
  self->head_length = 0;
  self->id = 0;
  self->timestamp_us = now.real_us;
  self->principal = headway_principal_ref (publication->principal);
  self->data_offset = layout.data_offset;
  self->tail_length = layout.length - layout.data_offset - layout.data_length;
  self->meta_length = layout.meta_length;
  self->size = layout.length;
  self->cost = publication->data_length + publication->meta_length +
               (publication->topic != NULL ? strlen (publication->topic) : 0);
  put_names (self->bytes + layout.length, &names);
  return self;
}

/* A publisher gives a topic, a type or both (http-api.md): fills in the other one. */
static gboolean
check_names (HeadwayPublication *publication, GError **error)
{
  if (publication->topic == NULL && publication->type == NULL)
    {
      g_set_error_literal (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_TOPIC,
                           "an event needs a topic or a type");
      return FALSE;
    }
  if (publication->type == NULL)
    publication->type = TYPE_DEFAULT;
  if (!headway_type_check (publication->type, strlen (publication->type), error))
    return FALSE;
  if (headway_type_is_reserved (publication->type, strlen (publication->type)))
    {
      g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_TYPE,
                   "type \"%s\" is reserved for headwayd", publication->type);
      return FALSE;
    }
  if (publication->topic == NULL)
    publication->topic = publication->type;
  return headway_topic_check (publication->topic, strlen (publication->topic), error) &&
         (publication->client == NULL ||
          headway_client_check (publication->client, strlen (publication->client), error));
}

static gboolean
check_sizes (const HeadwayPublication *publication, guint64 cost_max, GError **error)
{
  guint64 cost;

  if (publication->meta != NULL && publication->meta_length > HEADWAY_META_MAX)
    {
      headway_set_error_with_limit (error, HEADWAY_ERROR_INVALID_OPTION, HEADWAY_META_MAX,
                                    "meta has %" G_GSIZE_FORMAT " bytes, at most %d are allowed",
                                    publication->meta_length, HEADWAY_META_MAX);
      return FALSE;
    }
  cost_max = MIN (cost_max, HEADWAY_EVENT_CEILING);
  cost = (guint64) publication->data_length + strlen (publication->topic) +
         (publication->meta != NULL ? publication->meta_length : 0);
  if (cost > cost_max)
    {
      headway_set_error_with_limit (error, HEADWAY_ERROR_TOO_LARGE, cost_max,
                                    "the event costs %" G_GUINT64_FORMAT " bytes (data, topic and meta), at most "
                                    "%" G_GUINT64_FORMAT " are allowed",
                                    cost, cost_max);
      return FALSE;
    }
  return TRUE;
}

static gboolean
check_json (HeadwayPublication *publication, GError **error)
{
  HeadwayJson data, meta;

  if (!publication->is_valid_json)
    {
      if (!headway_json_validate (publication->data, publication->data_length,
                                  HEADWAY_JSON_DEPTH_MAX, &data, error))
        {
          g_prefix_error_literal (error, "data: ");
          return FALSE;
        }
      publication->data = data.text;
      publication->data_length = data.length;
    }
  if (publication->meta == NULL)
    return TRUE;
  if (!headway_json_validate (publication->meta, publication->meta_length,
                              HEADWAY_JSON_DEPTH_MAX, &meta, error))
    {
      g_prefix_error_literal (error, "meta: ");
      return FALSE;
    }
  if (meta.type != HEADWAY_JSON_OBJECT)
    {
      g_set_error_literal (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_OPTION, "meta is no JSON object");
      return FALSE;
    }
  publication->meta = meta.text;
  publication->meta_length = meta.length;
  return TRUE;
}

HeadwayEvent *
headway_event_new (const HeadwayPublication *publication,
                   guint64 cost_max,
                   HeadwayInstant now,
                   GError **error)
{
  HeadwayPublication checked = *publication;
  guint8 flags = 0;

  g_return_val_if_fail (publication->principal != NULL, NULL);
  g_return_val_if_fail (publication->data != NULL, NULL);

  if (checked.meta == NULL)
    checked.meta_length = 0;
  if (!check_names (&checked, error) || !check_sizes (&checked, cost_max, error) || !check_json (&checked, error))
    return NULL;

  if (checked.is_final)
    flags |= FLAG_FINAL;
  if (checked.meta != NULL)
    flags |= FLAG_HAS_META;
  return event_build (&checked, flags, now);
}

HeadwayEvent *
headway_event_new_with_data (const HeadwayEvent *self, const char *data, gsize length, guint64 cost_max, GError **error)
{
  HeadwayInstant stamped = { .real_us = self->timestamp_us };
  guint64 rest = self->cost - event_data_length (self);
  HeadwayPublication publication;
  HeadwayEvent *event;
  HeadwayJson json;

  cost_max = MIN (cost_max, HEADWAY_EVENT_CEILING);
  if (length + rest > cost_max)
    {
      headway_set_error_with_limit (error, HEADWAY_ERROR_TOO_LARGE, (gint64) cost_max,
                                    "with the new data the event costs %" G_GUINT64_FORMAT " bytes, at most "
                                    "%" G_GUINT64_FORMAT " are allowed",
                                    length + rest, cost_max);
      return NULL;
    }
  if (!headway_json_validate (data, length, HEADWAY_JSON_DEPTH_MAX, &json, error))
    return NULL;

  publication = (HeadwayPublication){
    .topic = headway_event_get_topic (self),
    .type = headway_event_get_type (self),
    .principal = self->principal,
    .client = headway_event_get_client (self),
    .data = json.text,
    .data_length = json.length,
  };
  /* As it stands in the envelope: with a serverTimestamp, which stays what it is. */
  publication.meta = headway_event_get_meta (self, &publication.meta_length);
  event = event_build (&publication, self->flags, stamped);
  event->cost = rest + json.length;
  if (self->id > 0)
    headway_event_set_id (event, self->id);
  return event;
}

HeadwayEvent *
headway_event_new_synthetic (const char *type,
                             const char *data,
                             gsize length,
                             HeadwayPrincipal *system,
                             HeadwayInstant now)
{
  HeadwayPublication publication = {
    .type = type,
    .principal = system,
    .data = data,
    .data_length = length,
  };

  return event_build (&publication, FLAG_SYNTHETIC | FLAG_PASSES_FILTERS | FLAG_NO_TOPIC, now);
}

HeadwayEvent *
headway_event_new_session_closed (const char *bus_name, HeadwayPrincipal *system, HeadwayInstant now)
{
  /* A bus name has no character that JSON escapes. */
  g_autofree char *data = g_strdup_printf ("{\"sessionId\":\"%s\",\"reason\":\"closed\"}", bus_name);
  HeadwayPublication publication = {
    .topic = "session_closed",
    .type = "session_closed",
    .principal = system,
    .data = data,
    .data_length = strlen (data),
  };

  return event_build (&publication, FLAG_PASSES_FILTERS, now);
}

void
headway_event_set_id (HeadwayEvent *self, guint64 id)
{
  g_return_if_fail (self->id == 0 && (self->flags & FLAG_SYNTHETIC) == 0);
  g_return_if_fail (id > 0 && id <= HEADWAY_ID_MAX);

  self->id = id;
  self->head_length = headway_envelope_head_length (id);
  self->size += self->head_length;
}

HeadwayEvent *
headway_event_ref (HeadwayEvent *self)
{
  self->ref_count++;
  return self;
}

void
headway_event_unref (HeadwayEvent *self)
{
  if (--self->ref_count > 0)
    return;
  headway_principal_unref (self->principal);
  g_free (self);
}

guint64
headway_event_get_id (const HeadwayEvent *self)
{
  return self->id;
}

gint64
headway_event_get_timestamp (const HeadwayEvent *self)
{
  return self->timestamp_us;
}

/* The string behind the type, or the first one if the type is not kept. */
static const char *
event_behind_type (const HeadwayEvent *self)
{
  const char *strings = event_strings (self);

  return (self->flags & FLAG_TYPE_DEFAULT) != 0 ? strings : strings + strlen (strings) + 1;
}

const char *
headway_event_get_topic (const HeadwayEvent *self)
{
  if ((self->flags & FLAG_NO_TOPIC) != 0)
    return "";
  return (self->flags & FLAG_OWN_TOPIC) != 0 ? event_behind_type (self) : headway_event_get_type (self);
}

const char *
headway_event_get_type (const HeadwayEvent *self)
{
  return (self->flags & FLAG_TYPE_DEFAULT) != 0 ? TYPE_DEFAULT : event_strings (self);
}

const char *
headway_event_get_client (const HeadwayEvent *self)
{
  const char *behind_type;

  if ((self->flags & FLAG_HAS_CLIENT) == 0)
    return NULL;
  behind_type = event_behind_type (self);
  return (self->flags & FLAG_OWN_TOPIC) != 0 ? behind_type + strlen (behind_type) + 1 : behind_type;
}

HeadwayPrincipal *
headway_event_get_principal (const HeadwayEvent *self)
{
  return self->principal;
}

char *
headway_event_write_envelope (const HeadwayEvent *self, char *to)
{
  gsize body_length = event_body_length (self);

  to += self->head_length;
  if (self->head_length > 0)
    headway_envelope_write_head (to, self->id);
  memcpy (to, self->bytes, body_length);
  return to + body_length;
}

const char *
headway_event_get_data (const HeadwayEvent *self, gsize *length)
{
  *length = event_data_length (self);
  return self->bytes + self->data_offset;
}

const char *
headway_event_get_meta (const HeadwayEvent *self, gsize *length)
{
  if ((self->flags & FLAG_HAS_META) == 0)
    {
      *length = 0;
      return NULL;
    }
  *length = self->meta_length;
  return event_strings (self) - 1 - self->meta_length;
}

gsize
headway_event_get_size (const HeadwayEvent *self)
{
  return self->size;
}

gsize
headway_event_get_cost (const HeadwayEvent *self)
{
  return self->cost;
}

gboolean
headway_event_is_final (const HeadwayEvent *self)
{
  return (self->flags & FLAG_FINAL) != 0;
}

gboolean
headway_event_is_synthetic (const HeadwayEvent *self)
{
  return (self->flags & FLAG_SYNTHETIC) != 0;
}

gboolean
headway_event_passes_filters (const HeadwayEvent *self)
{
  return (self->flags & FLAG_PASSES_FILTERS) != 0;
}
