/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-bus-info.h"
#include "cli/headway-cli-connection.h"
#include "cli/headway-cli-error.h"
#include "cli/headway-cli-http.h"
#include "cli/headway-cli-text.h"

#include <glib/gi18n.h>
#include <string.h>

static GArray *
create_list (void)
{
  GArray *buses = g_array_new (FALSE, FALSE, sizeof (HeadwayCliBusInfo));

  g_array_set_clear_func (buses, (GDestroyNotify) headway_cli_bus_info_clear);
  return buses;
}

static GArray *
list_http (HeadwayCli *cli,
           GError **error)
{
  g_autoptr (HeadwayCliHttp) http = headway_cli_http_new (cli->http_url, cli->token_file, error);
  g_autoptr (GArray) buses = create_list ();
  g_autoptr (GBytes) answer = NULL;
  HeadwayCliJsonIter iter;
  HeadwayCliSlice slice;
  HeadwayCliSlice key;

  if (http == NULL)
    return NULL;
  answer = headway_cli_http_call (http, "GET", "/session", NULL, error);
  if (answer == NULL)
    return NULL;
  slice.text = g_bytes_get_data (answer, &slice.length);
  if (!headway_cli_json_iter_init (&iter, slice) || iter.close != ']')
    {
      g_set_error_literal (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_FAILED, _ ("the answer is no list: is this a headwayd?"));
      return NULL;
    }
  while (headway_cli_json_iter_next (&iter, &key, &slice))
    {
      HeadwayCliBusInfo info;

      if (headway_cli_bus_info_init_from_json (&info, slice))
        g_array_append_val (buses, info);
    }
  return g_steal_pointer (&buses);
}

static GArray *
list_dbus (HeadwayCli *cli,
           GError **error)
{
  g_autoptr (GDBusConnection) connection = headway_cli_connection_open (cli, error);
  g_autoptr (GArray) buses = create_list ();
  g_autoptr (GError) local_error = NULL;
  g_autoptr (GVariant) reply = NULL;
  g_autoptr (GVariantIter) objects = NULL;
  GVariant *interfaces;

  if (connection == NULL)
    return NULL;
  reply = g_dbus_connection_call_sync (connection, HEADWAY_CLI_DBUS_NAME, HEADWAY_CLI_DBUS_PATH, HEADWAY_CLI_OBJECTS_INTERFACE,
                                       "GetManagedObjects", NULL, G_VARIANT_TYPE ("(a{oa{sa{sv}}})"), G_DBUS_CALL_FLAGS_NONE,
                                       HEADWAY_CLI_CALL_TIMEOUT_MS, NULL, &local_error);
  if (reply == NULL)
    {
      g_propagate_error (error, headway_cli_error_from_dbus (local_error, NULL));
      return NULL;
    }
  g_variant_get (reply, "(a{oa{sa{sv}}})", &objects);
  while (g_variant_iter_loop (objects, "{&o@a{sa{sv}}}", NULL, &interfaces))
    {
      g_autoptr (GVariant) properties = g_variant_lookup_value (interfaces, HEADWAY_CLI_BUS_INTERFACE, G_VARIANT_TYPE_VARDICT);
      HeadwayCliBusInfo info;

      if (properties == NULL)
        continue;
      headway_cli_bus_info_init_from_properties (&info, properties);
      g_array_append_val (buses, info);
    }
  return g_steal_pointer (&buses);
}

static int
compare_names (gconstpointer a,
               gconstpointer b)
{
  return g_strcmp0 (((const HeadwayCliBusInfo *) a)->name, ((const HeadwayCliBusInfo *) b)->name);
}

static int
print_json (GArray *buses)
{
  g_autoptr (GString) json = g_string_new ("[");

  for (guint i = 0; i < buses->len; i++)
    {
      if (i > 0)
        g_string_append_c (json, ',');
      headway_cli_bus_info_append_json (&g_array_index (buses, HeadwayCliBusInfo, i), json);
    }
  g_string_append_c (json, ']');
  return headway_cli_print_line (json->str);
}

static int
print_table (GArray *buses)
{
  g_autoptr (GString) table = g_string_new (NULL);
  int width = 4;

  for (guint i = 0; i < buses->len; i++)
    {
      const char *name = g_array_index (buses, HeadwayCliBusInfo, i).name;

      if (name != NULL)
        width = MAX (width, (int) strlen (name));
    }
  g_string_append_printf (table, "%-*s  %12s  %12s  %12s  %11s", width, _ ("NAME"), _ ("FIRST"), _ ("LAST"), _ ("BYTES"), _ ("SUBSCRIBERS"));
  for (guint i = 0; i < buses->len; i++)
    {
      const HeadwayCliBusInfo *info = &g_array_index (buses, HeadwayCliBusInfo, i);
      g_autofree char *name = headway_cli_text_neutralise (info->name != NULL ? info->name : "", -1);

      g_string_append_printf (table, "\n%-*s  %12" G_GUINT64_FORMAT "  %12" G_GUINT64_FORMAT, width, name, info->first_event_id, info->last_event_id);
      g_string_append_printf (table, "  %12" G_GUINT64_FORMAT "  %11" G_GUINT64_FORMAT, info->ring_bytes, info->subscribers);
    }
  return headway_cli_print_line (table->str);
}

/**
 * headway_cli_buses:
 * @cli: the global options
 * @argv: arguments
 *
 * `headway buses`: lists the buses.
 *
 * Returns: the exit status
 */
int
headway_cli_buses (HeadwayCli *cli,
                   char **argv)
{
  const HeadwayCliSyntax syntax = { "buses", "", _ ("List the buses."), NULL, 0, 0 };
  gboolean json = FALSE;
  g_auto (GStrv) words = NULL;
  g_autoptr (GArray) buses = NULL;
  g_autoptr (GError) error = NULL;
  const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_NONE, &json, N_ ("Print a JSON array"), NULL },
    { NULL }
  };

  if (!headway_cli_parse (cli, &syntax, entries, argv, &words))
    return HEADWAY_CLI_EXIT_USAGE;
  buses = cli->http_url != NULL ? list_http (cli, &error) : list_dbus (cli, &error);
  if (buses == NULL)
    return headway_cli_fail (error);
  g_array_sort (buses, compare_names);
  return json ? print_json (buses) : print_table (buses);
}
