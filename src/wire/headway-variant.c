/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "wire/headway-variant.h"

#include "wire/headway-options.h"

#include <string.h>

/* @text is not ended by NUL and was found to be UTF-8 when it was published: it is not checked
 * again. */
static GVariant *
new_string (const char *text, gsize length)
{
  char *copy = g_malloc (length + 1);
  g_autoptr (GBytes) bytes = NULL;

  memcpy (copy, text, length);
  copy[length] = '\0';
  bytes = g_bytes_new_take (copy, length + 1);
  return g_variant_new_from_bytes (G_VARIANT_TYPE_STRING, bytes, TRUE);
}

static GVariant *
new_extra (HeadwayEvent *event, guint64 resume_id)
{
  const char *client = headway_event_get_client (event);
  gsize meta_length;
  const char *meta = headway_event_get_meta (event, &meta_length);
  GVariantBuilder builder;

  g_variant_builder_init (&builder, G_VARIANT_TYPE_VARDICT);
  if (client != NULL)
    g_variant_builder_add (&builder, "{sv}", "client", g_variant_new_string (client));
  if (meta != NULL)
    g_variant_builder_add (&builder, "{sv}", "meta", new_string (meta, meta_length));
  if (resume_id > 0)
    g_variant_builder_add (&builder, "{sv}", "resume-id", g_variant_new_uint64 (resume_id));
  return g_variant_builder_end (&builder);
}

GVariant *
headway_variant_new_event (HeadwayEvent *event, guint64 resume_id)
{
  gsize data_length;
  const char *data = headway_event_get_data (event, &data_length);
  GVariant *parts[] = {
    g_variant_new_uint64 (headway_event_get_id (event)),
    g_variant_new_string (headway_event_get_topic (event)),
    g_variant_new_string (headway_event_get_type (event)),
    g_variant_new_string (headway_principal_get_name (headway_event_get_principal (event))),
    g_variant_new_int64 (headway_event_get_timestamp (event)),
    new_string (data, data_length),
    new_extra (event, resume_id),
  };

  return g_variant_new_tuple (parts, G_N_ELEMENTS (parts));
}

typedef struct
{
  const char *type;
  const char *principal;
  const char *client;
  const char *meta;
  gboolean is_final;
} PublishOptions;

/* The lengths and characters of these are the engine's to check: it knows each by its own error. */
static const HeadwayOptionSpec publish_specs[] = {
  { "type", HEADWAY_OPTION_STRING, G_STRUCT_OFFSET (PublishOptions, type), 0, G_MAXUINT32 },
  { "principal", HEADWAY_OPTION_STRING, G_STRUCT_OFFSET (PublishOptions, principal), 0, G_MAXUINT32 },
  { "client", HEADWAY_OPTION_STRING, G_STRUCT_OFFSET (PublishOptions, client), 1, HEADWAY_CLIENT_MAX, "A-Z a-z 0-9 . _ : -" },
  { "meta", HEADWAY_OPTION_STRING, G_STRUCT_OFFSET (PublishOptions, meta), 2, HEADWAY_META_MAX },
  { "final", HEADWAY_OPTION_BOOLEAN, G_STRUCT_OFFSET (PublishOptions, is_final) },
  { NULL },
};

gboolean
headway_variant_read_publication (HeadwayVariantPublication *self,
                                  const char *topic,
                                  const char *data,
                                  GVariant *options,
                                  GError **error)
{
  PublishOptions values = { 0 };

  if (!headway_options_parse (options, publish_specs, &values, NULL, error))
    return FALSE;

  *self = (HeadwayVariantPublication){
    .publication = {
      .topic = topic,
      .type = values.type,
      .client = values.client,
      .data = data,
      .data_length = strlen (data),
      .meta = values.meta,
      .meta_length = values.meta != NULL ? strlen (values.meta) : 0,
      .is_final = values.is_final,
    },
    .names_principal = values.principal != NULL,
    .principal = values.principal,
  };
  return TRUE;
}
