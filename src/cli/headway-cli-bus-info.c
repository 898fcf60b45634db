/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-bus-info.h"

#include "cli/headway-cli-connection.h"
#include "cli/headway-cli-error.h"
#include "cli/headway-cli-http.h"
#include "cli/headway-cli-text.h"

#include <glib/gi18n.h>
#include <string.h>

/**
 * headway_cli_bus_info_clear:
 * @info: a record
 *
 * Frees what @info holds.
 */
void
headway_cli_bus_info_clear (HeadwayCliBusInfo *info)
{
  g_clear_pointer (&info->name, g_free);
  g_clear_pointer (&info->epoch, g_free);
}

static guint64
get_number (GVariant *properties,
            const char *name)
{
  g_autoptr (GVariant) value = g_variant_lookup_value (properties, name, NULL);

  if (value != NULL && g_variant_is_of_type (value, G_VARIANT_TYPE_UINT32))
    return g_variant_get_uint32 (value);
  if (value != NULL && g_variant_is_of_type (value, G_VARIANT_TYPE_UINT64))
    return g_variant_get_uint64 (value);
  return 0;
}

/**
 * headway_cli_bus_info_init_from_properties:
 * @info: an unset record
 * @properties: properties of the Bus interface, a{sv}
 *
 * Fills @info; what is missing is 0 or NULL.
 */
void
headway_cli_bus_info_init_from_properties (HeadwayCliBusInfo *info,
                                           GVariant *properties)
{
  *info = (HeadwayCliBusInfo){
    .last_event_id = get_number (properties, "LastEventId"),
    .first_event_id = get_number (properties, "FirstEventId"),
    .ring_size = get_number (properties, "RingSize"),
    .ring_bytes = get_number (properties, "RingBytes"),
    .subscribers = get_number (properties, "SubscriberCount"),
  };
  g_variant_lookup (properties, "Name", "s", &info->name);
  g_variant_lookup (properties, "Epoch", "s", &info->epoch);
}

static void
take_member (HeadwayCliBusInfo *info,
             const char *name,
             HeadwayCliSlice value)
{
  const struct
  {
    const char *name;
    guint64 *number;
  } numbers[] = {
    { "lastEventId", &info->last_event_id },
    { "firstEventId", &info->first_event_id },
    { "ringSize", &info->ring_size },
    { "ringBytes", &info->ring_bytes },
    { "subscribers", &info->subscribers },
  };

  if (g_str_equal (name, "name") && info->name == NULL)
    info->name = headway_cli_json_dup_string (value);
  else if (g_str_equal (name, "epoch") && info->epoch == NULL)
    info->epoch = headway_cli_json_dup_string (value);
  for (gsize i = 0; i < G_N_ELEMENTS (numbers); i++)
    {
      if (g_str_equal (numbers[i].name, name))
        headway_cli_json_get_uint64 (value, numbers[i].number);
    }
}

/**
 * headway_cli_bus_info_init_from_json:
 * @info: an unset record
 * @json: the object that `GET /session/{bus}` answers
 *
 * Fills @info; what is missing is 0 or NULL.
 *
 * Returns: FALSE if @json is no object
 */
gboolean
headway_cli_bus_info_init_from_json (HeadwayCliBusInfo *info,
                                     HeadwayCliSlice json)
{
  HeadwayCliJsonIter iter;
  HeadwayCliSlice key;
  HeadwayCliSlice value;

  *info = (HeadwayCliBusInfo){ 0 };
  if (!headway_cli_json_iter_init (&iter, json) || iter.close != '}')
    return FALSE;
  while (headway_cli_json_iter_next (&iter, &key, &value))
    {
      g_autofree char *name = headway_cli_json_dup_string (key);

      if (name != NULL)
        take_member (info, name, value);
    }
  return TRUE;
}

static void
append_nullable (GString *json,
                 const char *text)
{
  if (text == NULL)
    g_string_append (json, "null");
  else
    headway_cli_json_append_string (json, text, strlen (text));
}

/**
 * headway_cli_bus_info_append_json:
 * @info: a record
 * @json: text to append to
 *
 * Appends what `GET /session/{bus}` answers (http-api.md).
 */
void
headway_cli_bus_info_append_json (const HeadwayCliBusInfo *info,
                                  GString *json)
{
  g_string_append (json, "{\"name\":");
  append_nullable (json, info->name);
  g_string_append (json, ",\"epoch\":");
  append_nullable (json, info->epoch);
  g_string_append_printf (json, ",\"lastEventId\":%" G_GUINT64_FORMAT ",\"firstEventId\":%" G_GUINT64_FORMAT, info->last_event_id, info->first_event_id);
  g_string_append_printf (json, ",\"ringSize\":%" G_GUINT64_FORMAT ",\"ringBytes\":%" G_GUINT64_FORMAT, info->ring_size, info->ring_bytes);
  g_string_append_printf (json, ",\"subscribers\":%" G_GUINT64_FORMAT "}", info->subscribers);
}

static gboolean
fetch_http (HeadwayCliBusInfo *info,
            HeadwayCli *cli,
            const char *name,
            GError **error)
{
  g_autoptr (HeadwayCliHttp) http = headway_cli_http_new (cli->http_url, cli->token_file, error);
  g_autofree char *path = headway_cli_http_get_bus_path (name, "");
  g_autoptr (GBytes) answer = NULL;
  HeadwayCliSlice json;

  if (http == NULL)
    return FALSE;
  answer = headway_cli_http_call (http, "GET", path, NULL, error);
  if (answer == NULL)
    return FALSE;
  json.text = g_bytes_get_data (answer, &json.length);
  if (headway_cli_bus_info_init_from_json (info, json))
    return TRUE;
  g_set_error_literal (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_FAILED, _ ("the answer is no object: is this a headwayd?"));
  return FALSE;
}

static gboolean
fetch_dbus (HeadwayCliBusInfo *info,
            HeadwayCli *cli,
            const char *name,
            GError **error)
{
  g_autoptr (GDBusConnection) connection = headway_cli_connection_open (cli, error);
  g_autoptr (GVariant) reply = NULL;
  g_autoptr (GVariant) properties = NULL;

  if (connection == NULL)
    return FALSE;
  reply = headway_cli_connection_call_bus (connection, name, HEADWAY_CLI_PROPERTIES_INTERFACE, "GetAll",
                                           g_variant_new ("(s)", HEADWAY_CLI_BUS_INTERFACE), "(a{sv})", error);
  if (reply == NULL)
    return FALSE;
  properties = g_variant_get_child_value (reply, 0);
  headway_cli_bus_info_init_from_properties (info, properties);
  return TRUE;
}

/**
 * headway_cli_bus_info_fetch:
 * @info: an unset record
 * @cli: the global options
 * @name: name of a bus, which is not created
 * @error: return location
 *
 * Asks the daemon about a bus.
 *
 * Returns: FALSE with an error of HEADWAY_CLI_ERROR
 */
gboolean
headway_cli_bus_info_fetch (HeadwayCliBusInfo *info,
                            HeadwayCli *cli,
                            const char *name,
                            GError **error)
{
  if (cli->http_url != NULL)
    return fetch_http (info, cli, name, error);
  return fetch_dbus (info, cli, name, error);
}

/**
 * headway_cli_bus_info_print:
 * @info: a record
 * @json: whether as JSON
 *
 * Prints it on standard output.
 *
 * Returns: the exit status
 */
int
headway_cli_bus_info_print (const HeadwayCliBusInfo *info,
                            gboolean json)
{
  g_autoptr (GString) text = g_string_new (NULL);
  g_autofree char *name = headway_cli_text_neutralise (info->name != NULL ? info->name : "", -1);
  g_autofree char *epoch = headway_cli_text_neutralise (info->epoch != NULL ? info->epoch : "", -1);
  g_autofree char *bytes = g_format_size_full (info->ring_bytes, G_FORMAT_SIZE_IEC_UNITS);

  if (json)
    headway_cli_bus_info_append_json (info, text);
  else
    {
      g_string_append_printf (text, _ ("name         %s\n"), name);
      g_string_append_printf (text, _ ("epoch        %s\n"), epoch);
      g_string_append_printf (text, _ ("last event   %s\n"), HEADWAY_CLI_NUMBER (info->last_event_id));
      g_string_append_printf (text, _ ("first kept   %s\n"), HEADWAY_CLI_NUMBER (info->first_event_id));
      g_string_append_printf (text, _ ("ring size    %s events\n"), HEADWAY_CLI_NUMBER (info->ring_size));
      g_string_append_printf (text, _ ("ring holds   %s\n"), bytes);
      g_string_append_printf (text, _ ("subscribers  %s"), HEADWAY_CLI_NUMBER (info->subscribers));
    }
  return headway_cli_print_line (text->str);
}
