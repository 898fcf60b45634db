/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "daemon/headway-settings.h"

#define G_SETTINGS_ENABLE_BACKEND
#include <gio/gsettingsbackend.h>
#include <string.h>

#define SCHEMA_ID  "org.headway.Headway1"
#define ROOT_PATH  "/org/headway/Headway1/"
#define GROUP_NAME "headway"

struct _HeadwaySettings
{
  GObject parent_instance;

  GSettings *settings;     /* owned, nullable: without it the built-in defaults hold */
  GSettingsSchema *schema; /* owned, nullable, likewise */
  char *file;              /* owned, nullable */
  guint64 warned_budget;   /* the route-budget-bytes that was last found too small */
};

G_DEFINE_FINAL_TYPE (HeadwaySettings, headway_settings, G_TYPE_OBJECT)

enum
{
  SIGNAL_CHANGED,
  N_SIGNALS
};

static guint signals[N_SIGNALS];

/* Keys that the engine knows nothing of, and their defaults where the schema is not installed. */
static const struct
{
  const char *key;
  guint64 fallback;
} plain_keys[] = {
  { "http-max-connections", 1024 },
  { "heartbeat-ms", 15000 },
  { "writer-idle-timeout-ms", 60000 },
  { "drain-window-ms", 5000 },
};

static void
headway_settings_finalize (GObject *object)
{
  HeadwaySettings *self = HEADWAY_SETTINGS (object);

  g_clear_object (&self->settings);
  g_clear_pointer (&self->schema, g_settings_schema_unref);
  g_free (self->file);
  G_OBJECT_CLASS (headway_settings_parent_class)->finalize (object);
}

static void
headway_settings_class_init (HeadwaySettingsClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = headway_settings_finalize;
  signals[SIGNAL_CHANGED] = g_signal_new ("changed", G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST,
                                          0, NULL, NULL, NULL, G_TYPE_NONE, 0);
}

static void
headway_settings_init (HeadwaySettings *self)
{
}

/* --- The key file --------------------------------------------------------------------------- */

/* In words: the type, and the range where there is one. Returns: (transfer full). */
static char *
describe_allowed (GSettingsSchemaKey *key)
{
  g_autoptr (GVariant) range = g_settings_schema_key_get_range (key);
  const GVariantType *type = g_settings_schema_key_get_value_type (key);
  g_autoptr (GVariant) limits = NULL;
  g_autoptr (GVariant) minimum = NULL;
  g_autoptr (GVariant) maximum = NULL;
  g_autofree char *from = NULL;
  g_autofree char *to = NULL;
  const char *kind;

  g_variant_get (range, "(&sv)", &kind, &limits);
  if (strcmp (kind, "range") != 0)
    return g_strdup_printf ("a value of type %.*s", (int) g_variant_type_get_string_length (type), g_variant_type_peek_string (type));
  minimum = g_variant_get_child_value (limits, 0);
  maximum = g_variant_get_child_value (limits, 1);
  from = g_variant_print (minimum, FALSE);
  to = g_variant_print (maximum, FALSE);
  return g_strdup_printf ("%s to %s", from, to);
}

/* GSettings answers a value out of range with the default, in silence: so it is checked here. */
static gboolean
check_value (HeadwaySettings *self, GKeyFile *file, const char *name, GError **error)
{
  g_autoptr (GSettingsSchemaKey) key = NULL;
  g_autoptr (GVariant) value = NULL;
  g_autofree char *text = g_key_file_get_value (file, GROUP_NAME, name, NULL);
  g_autofree char *allowed = NULL;

  if (!g_settings_schema_has_key (self->schema, name))
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "%s: there is no setting \"%s\"", self->file, name);
      return FALSE;
    }
  key = g_settings_schema_get_key (self->schema, name);
  value = g_variant_parse (g_settings_schema_key_get_value_type (key), text, NULL, NULL, NULL);
  if (value != NULL && g_settings_schema_key_range_check (key, value))
    return TRUE;

  allowed = describe_allowed (key);
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "%s: %s=%s is not allowed, %s is", self->file, name, text, allowed);
  return FALSE;
}

static gboolean
check_file (HeadwaySettings *self, GError **error)
{
  g_autoptr (GKeyFile) file = g_key_file_new ();
  g_auto (GStrv) keys = NULL;

  if (!g_key_file_load_from_file (file, self->file, G_KEY_FILE_NONE, error))
    {
      g_prefix_error (error, "%s: ", self->file);
      return FALSE;
    }
  keys = g_key_file_get_keys (file, GROUP_NAME, NULL, NULL);
  for (guint i = 0; keys != NULL && keys[i] != NULL; i++)
    if (!check_value (self, file, keys[i], error))
      return FALSE;
  return TRUE;
}

static void
on_changed (GSettings *settings, const char *key, HeadwaySettings *self)
{
  g_autoptr (GError) error = NULL;

  if (self->file != NULL && g_file_test (self->file, G_FILE_TEST_EXISTS) && !check_file (self, &error))
    {
      g_warning ("the settings stay as they were: %s", error->message);
      return;
    }
  g_message ("setting %s changed", key);
  g_signal_emit (self, signals[SIGNAL_CHANGED], 0);
}

static void
open_settings (HeadwaySettings *self, GSettingsBackend *backend)
{
  self->settings = g_settings_new_full (self->schema, backend, NULL);
  g_signal_connect_object (self->settings, "changed", G_CALLBACK (on_changed), self, 0);
}

HeadwaySettings *
headway_settings_new (const char *config_file, const char *default_file, GError **error)
{
  g_autoptr (HeadwaySettings) self = g_object_new (HEADWAY_TYPE_SETTINGS, NULL);
  GSettingsSchemaSource *source = g_settings_schema_source_get_default ();
  g_autoptr (GSettingsBackend) backend = NULL;

  if (source != NULL)
    self->schema = g_settings_schema_source_lookup (source, SCHEMA_ID, TRUE);
  if (config_file == NULL && default_file != NULL && g_file_test (default_file, G_FILE_TEST_EXISTS))
    config_file = default_file;
  if (self->schema == NULL && config_file != NULL)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                   "%s cannot be read: the settings schema %s is not installed", config_file, SCHEMA_ID);
      return NULL;
    }
  if (self->schema == NULL)
    {
      g_printerr ("headwayd: the settings schema %s is not installed; the built-in defaults hold\n", SCHEMA_ID);
      return g_steal_pointer (&self);
    }
  if (config_file != NULL)
    {
      self->file = g_strdup (config_file);
      if (!check_file (self, error))
        return NULL;
      backend = g_keyfile_settings_backend_new (config_file, ROOT_PATH, GROUP_NAME);
      open_settings (self, backend);
      return g_steal_pointer (&self);
    }

  backend = g_settings_backend_get_default ();
  if (strcmp (G_OBJECT_TYPE_NAME (backend), "GMemorySettingsBackend") == 0)
    g_printerr ("headwayd: there is neither dconf nor a settings file (--config); the built-in defaults hold\n");
  open_settings (self, backend);
  return g_steal_pointer (&self);
}

/* --- Values --------------------------------------------------------------------------------- */

guint64
headway_settings_get_uint (HeadwaySettings *self, const char *key)
{
  g_autoptr (GVariant) value = NULL;

  if (self->settings == NULL)
    {
      for (guint i = 0; i < G_N_ELEMENTS (plain_keys); i++)
        if (strcmp (plain_keys[i].key, key) == 0)
          return plain_keys[i].fallback;
      g_return_val_if_reached (0);
    }
  value = g_settings_get_value (self->settings, key);
  return g_variant_is_of_type (value, G_VARIANT_TYPE_UINT32) ? g_variant_get_uint32 (value)
                                                             : g_variant_get_uint64 (value);
}

char **
headway_settings_get_strv (HeadwaySettings *self, const char *key)
{
  return self->settings != NULL ? g_settings_get_strv (self->settings, key) : g_new0 (char *, 1);
}

static void
get_bus_options (HeadwaySettings *self, HeadwayBusOptions *options)
{
  g_autoptr (GError) error = NULL;

  for (const HeadwayBusOptionSpec *spec = headway_bus_option_specs (); spec->key != NULL; spec++)
    if (!headway_bus_options_set (options, spec, headway_settings_get_uint (self, spec->key), &error))
      {
        g_warning ("setting %s: %s; the default holds", spec->key, error->message);
        g_clear_error (&error);
      }
}

/* decisions.md 9: one event must fit. The same value is told once. */
static void
raise_route_budget (HeadwaySettings *self, HeadwayLimits *limits)
{
  guint64 budget = limits->route_budget_bytes;

  if (budget >= limits->event_max_bytes)
    {
      self->warned_budget = 0;
      return;
    }
  if (budget != self->warned_budget)
    g_warning ("setting route-budget-bytes: %" G_GUINT64_FORMAT " is under event-max-bytes, %" G_GUINT64_FORMAT "; "
               "the latter holds",
               budget, limits->event_max_bytes);
  self->warned_budget = budget;
  limits->route_budget_bytes = limits->event_max_bytes;
}

void
headway_settings_get_limits (HeadwaySettings *self, HeadwayLimits *limits)
{
  headway_limits_init (limits);
  if (self->settings == NULL)
    return;
  get_bus_options (self, &limits->bus);
  limits->auto_create_buses = g_settings_get_boolean (self->settings, "auto-create-buses");
  limits->max_buses = headway_settings_get_uint (self, "max-buses");
  limits->bus_expire_seconds = headway_settings_get_uint (self, "bus-expire-seconds");
  limits->event_max_bytes = headway_settings_get_uint (self, "event-max-bytes");
  limits->route_budget_bytes = headway_settings_get_uint (self, "route-budget-bytes");
  raise_route_budget (self, limits);
  limits->route_quantum_bytes = headway_settings_get_uint (self, "route-quantum-bytes");
  limits->route_principal_messages = headway_settings_get_uint (self, "route-principal-messages");
  limits->route_messages = headway_settings_get_uint (self, "route-messages");
  limits->route_principals = headway_settings_get_uint (self, "route-principals");
  limits->principal_bytes_per_second = headway_settings_get_uint (self, "principal-bytes-per-second");
  limits->principal_events_per_second = headway_settings_get_uint (self, "principal-events-per-second");
  limits->uid_bytes_per_second = headway_settings_get_uint (self, "uid-bytes-per-second");
  limits->uid_events_per_second = headway_settings_get_uint (self, "uid-events-per-second");
  limits->handler_queue = headway_settings_get_uint (self, "handler-queue");
  limits->handler_principals = headway_settings_get_uint (self, "handler-principals");
  limits->handler_idle_grace_ms = headway_settings_get_uint (self, "handler-idle-grace-ms");
}
