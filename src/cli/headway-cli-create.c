/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-bus-info.h"
#include "cli/headway-cli-connection.h"
#include "cli/headway-cli-http.h"

#include <glib/gi18n.h>
#include <string.h>

/* One option of CreateBus; the daemon knows the ranges. */
typedef struct
{
  const char *key;         /* on D-Bus and on the command line */
  const char *json_name;   /* over HTTP */
  const char *description; /* marked for translation */
  gboolean is_uint64;
} BusOption;

static const BusOption bus_options[] = {
  { "ring-size", "ringSize", N_ ("Events that are kept for replay"), FALSE },
  { "ring-max-bytes", "ringMaxBytes", N_ ("Bytes that are kept for replay"), TRUE },
  { "max-subscribers", "maxSubscribers", N_ ("Subscriptions at a time"), FALSE },
  { "max-queued-bytes", "maxQueuedBytes", N_ ("Bytes that may wait for one reader"), TRUE },
  { "channel-capacity", "channelCapacity", N_ ("Events that a broadcast reader may lag behind"), FALSE },
  { "replay-budget-bytes", "replayBudgetBytes", N_ ("Bytes of one replay, 0 for no limit"), TRUE },
};
#define N_BUS_OPTIONS G_N_ELEMENTS (bus_options)

/* Turns the texts of the command line into an a{sv} and a JSON object. */
static gboolean
collect_options (char **texts,
                 GVariant **options,
                 GString *json,
                 GError **error)
{
  g_auto (GVariantDict) dict = G_VARIANT_DICT_INIT (NULL);

  g_string_append_c (json, '{');
  for (gsize i = 0; i < N_BUS_OPTIONS; i++)
    {
      const BusOption *option = &bus_options[i];
      guint64 value;

      if (texts[i] == NULL)
        continue;
      if (!headway_cli_parse_uint64 (option->key, texts[i], 0, option->is_uint64 ? G_MAXINT64 : G_MAXUINT32, &value, error))
        return FALSE;
      g_variant_dict_insert_value (&dict, option->key, option->is_uint64 ? g_variant_new_uint64 (value) : g_variant_new_uint32 ((guint32) value));
      g_string_append_printf (json, "%s\"%s\":%" G_GUINT64_FORMAT, json->len > 1 ? "," : "", option->json_name, value);
    }
  g_string_append_c (json, '}');
  *options = g_variant_ref_sink (g_variant_dict_end (&dict));
  return TRUE;
}

static gboolean
create_http (HeadwayCli *cli,
             const char *name,
             const char *json,
             GError **error)
{
  g_autoptr (HeadwayCliHttp) http = headway_cli_http_new (cli->http_url, cli->token_file, error);
  g_autofree char *path = headway_cli_http_get_bus_path (name, "");
  g_autoptr (GBytes) body = g_bytes_new (json, strlen (json));
  g_autoptr (GBytes) answer = NULL;

  if (http == NULL)
    return FALSE;
  answer = headway_cli_http_call (http, "PUT", path, body, error);
  return answer != NULL;
}

static gboolean
create_dbus (HeadwayCli *cli,
             const char *name,
             GVariant *options,
             GError **error)
{
  g_autoptr (GDBusConnection) connection = headway_cli_connection_open (cli, error);
  g_autoptr (GVariant) reply = NULL;

  if (connection == NULL)
    return FALSE;
  reply = headway_cli_connection_call_manager (connection, "CreateBus", g_variant_new ("(s@a{sv})", name, options), "(o)", error);
  return reply != NULL;
}

static int
create (HeadwayCli *cli,
        const char *name,
        char **texts,
        gboolean json)
{
  g_autoptr (GVariant) options = NULL;
  g_autoptr (GString) body = g_string_new (NULL);
  g_auto (HeadwayCliBusInfo) info = { 0 };
  g_autoptr (GError) error = NULL;

  if (!collect_options (texts, &options, body, &error))
    return headway_cli_fail (error);
  if (cli->http_url != NULL ? !create_http (cli, name, body->str, &error) : !create_dbus (cli, name, options, &error))
    return headway_cli_fail (error);
  if (!json)
    return HEADWAY_CLI_EXIT_OK;
  if (!headway_cli_bus_info_fetch (&info, cli, name, &error))
    return headway_cli_fail (error);
  return headway_cli_bus_info_print (&info, TRUE);
}

/**
 * headway_cli_create:
 * @cli: the global options
 * @argv: arguments
 *
 * `headway create NAME`: creates a bus.
 *
 * Returns: the exit status
 */
int
headway_cli_create (HeadwayCli *cli,
                    char **argv)
{
  const HeadwayCliSyntax syntax = {
    "create", "NAME", _ ("Create a bus. Options that are left out have the values of the daemon's settings."), NULL, 1, 1
  };
  char *texts[N_BUS_OPTIONS] = { NULL };
  GOptionEntry entries[N_BUS_OPTIONS + 2] = { 0 };
  gboolean json = FALSE;
  g_auto (GStrv) words = NULL;
  int status = HEADWAY_CLI_EXIT_USAGE;

  for (gsize i = 0; i < N_BUS_OPTIONS; i++)
    {
      entries[i] = (GOptionEntry){
        bus_options[i].key, 0, 0, G_OPTION_ARG_STRING, &texts[i], bus_options[i].description, bus_options[i].is_uint64 ? N_ ("BYTES") : N_ ("NUMBER")
      };
    }
  entries[N_BUS_OPTIONS] = (GOptionEntry){ "json", 0, 0, G_OPTION_ARG_NONE, &json, N_ ("Print the new bus as a JSON object"), NULL };
  if (headway_cli_parse (cli, &syntax, entries, argv, &words))
    status = create (cli, words[0], texts, json);
  for (gsize i = 0; i < N_BUS_OPTIONS; i++)
    g_free (texts[i]);
  return status;
}
