/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-error.h"

#include "cli/headway-cli-json.h"
#include "cli/headway-cli.h"

#include <glib/gi18n.h>
#include <string.h>

#define ERROR_PREFIX "org.headway.Headway1.Error."
#define RETRY_PREFIX "retry-after-ms="

GQuark
headway_cli_error_quark (void)
{
  return g_quark_from_static_string ("headway-cli-error");
}

/* The class of a daemon's error, by its short name. */
static HeadwayCliError
classify (const char *name)
{
  static const struct
  {
    const char *name;
    HeadwayCliError code;
  } classes[] = {
    { "InvalidData", HEADWAY_CLI_ERROR_DATA },
    { "InvalidTopic", HEADWAY_CLI_ERROR_EVENT },
    { "InvalidType", HEADWAY_CLI_ERROR_EVENT },
    { "InvalidPrincipal", HEADWAY_CLI_ERROR_EVENT },
    { "InvalidOption", HEADWAY_CLI_ERROR_EVENT },
    { "InvalidRequest", HEADWAY_CLI_ERROR_EVENT },
    { "NotAuthorized", HEADWAY_CLI_ERROR_EVENT },
    { "Denied", HEADWAY_CLI_ERROR_EVENT },
    { "TooLarge", HEADWAY_CLI_ERROR_EVENT },
    { "QuotaExceeded", HEADWAY_CLI_ERROR_EVENT },
    { "RateLimited", HEADWAY_CLI_ERROR_RATE_LIMITED },
    { "NoSuchBus", HEADWAY_CLI_ERROR_NO_SUCH_BUS },
    { "Closed", HEADWAY_CLI_ERROR_CLOSED },
    { "Unavailable", HEADWAY_CLI_ERROR_UNREACHABLE },
    { "SubscriberLimit", HEADWAY_CLI_ERROR_UNREACHABLE },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (classes); i++)
    {
      if (g_str_equal (classes[i].name, name))
        return classes[i].code;
    }
  return HEADWAY_CLI_ERROR_FAILED;
}

static gboolean
is_unreachable (const GError *error)
{
  const GDBusError away[] = {
    G_DBUS_ERROR_SERVICE_UNKNOWN,
    G_DBUS_ERROR_NAME_HAS_NO_OWNER,
    G_DBUS_ERROR_NO_REPLY,
    G_DBUS_ERROR_DISCONNECTED,
    G_DBUS_ERROR_TIMEOUT,
    G_DBUS_ERROR_TIMED_OUT,
  };

  for (gsize i = 0; i < G_N_ELEMENTS (away); i++)
    {
      if (g_error_matches (error, G_DBUS_ERROR, away[i]))
        return TRUE;
    }
  return g_error_matches (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT) ||
         g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CLOSED);
}

static gboolean
is_unknown_object (const GError *error)
{
  return g_error_matches (error, G_DBUS_ERROR, G_DBUS_ERROR_UNKNOWN_OBJECT) ||
         g_error_matches (error, G_DBUS_ERROR, G_DBUS_ERROR_UNKNOWN_METHOD) ||
         g_error_matches (error, G_DBUS_ERROR, G_DBUS_ERROR_UNKNOWN_INTERFACE);
}

/**
 * headway_cli_error_from_dbus:
 * @error: what a D-Bus call failed with
 * @bus_name: (nullable): the bus whose object was called: an object that is not there then
 *   means that there is no such bus
 *
 * Turns it into an error of ours: the short name of the daemon's error and its message.
 *
 * Returns: (transfer full): an error of HEADWAY_CLI_ERROR
 */
GError *
headway_cli_error_from_dbus (const GError *error,
                             const char *bus_name)
{
  g_autoptr (GError) stripped = g_error_copy (error);
  g_autofree char *remote = g_dbus_error_get_remote_error (error);
  const char *name;

  g_dbus_error_strip_remote_error (stripped);
  if (remote != NULL && g_str_has_prefix (remote, ERROR_PREFIX))
    {
      name = remote + strlen (ERROR_PREFIX);
      return g_error_new (HEADWAY_CLI_ERROR, classify (name), "%s: %s", name, stripped->message);
    }
  if (bus_name != NULL && is_unknown_object (error))
    return g_error_new (HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_NO_SUCH_BUS, _ ("NoSuchBus: there is no bus \"%s\""), bus_name);
  if (g_error_matches (error, G_DBUS_ERROR, G_DBUS_ERROR_SERVICE_UNKNOWN) || g_error_matches (error, G_DBUS_ERROR, G_DBUS_ERROR_NAME_HAS_NO_OWNER))
    return g_error_new_literal (HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_UNREACHABLE, _ ("headwayd is not running on this message bus"));
  name = remote != NULL ? strrchr (remote, '.') : NULL;
  return g_error_new (HEADWAY_CLI_ERROR, is_unreachable (error) ? HEADWAY_CLI_ERROR_UNREACHABLE : HEADWAY_CLI_ERROR_FAILED,
                      "%s%s%s", name != NULL ? name + 1 : "", name != NULL ? ": " : "", stripped->message);
}

/* "invalid_topic" → "InvalidTopic", and the three words that differ. */
static char *
name_of_code (const char *code)
{
  GString *name;
  gboolean upper = TRUE;

  if (g_str_equal (code, "invalid_json"))
    return g_strdup ("InvalidData");
  if (g_str_equal (code, "session_not_found"))
    return g_strdup ("NoSuchBus");
  if (g_str_equal (code, "subscriber_limit_exceeded"))
    return g_strdup ("SubscriberLimit");
  name = g_string_new (NULL);
  for (const char *p = code; *p != '\0'; p++)
    {
      if (*p != '_')
        g_string_append_c (name, upper ? g_ascii_toupper (*p) : *p);
      upper = *p == '_';
    }
  return g_string_free (name, FALSE);
}

static char *
dup_member (HeadwayCliSlice object,
            const char *name)
{
  HeadwayCliSlice value;

  if (!headway_cli_json_get_member (object, name, &value))
    return NULL;
  return headway_cli_json_dup_string (value);
}

/**
 * headway_cli_error_from_http:
 * @status: status of the answer, not 2xx
 * @body: (array length=length): its body
 * @length: bytes of @body
 * @position: (out) (optional): byte offset of an error in the JSON that was sent, -1 if
 *   none was told
 *
 * Turns a refusal over HTTP into the same error as over D-Bus.
 *
 * Returns: (transfer full): an error of HEADWAY_CLI_ERROR
 */
GError *
headway_cli_error_from_http (guint status,
                             const char *body,
                             gsize length,
                             gint64 *position)
{
  HeadwayCliSlice object = { body, length };
  HeadwayCliSlice value;
  g_autofree char *code = dup_member (object, "code");
  g_autofree char *text = dup_member (object, "error");
  g_autofree char *name = code != NULL ? name_of_code (code) : g_strdup_printf ("HTTP %u", status);
  HeadwayCliError class = classify (name);
  guint64 number;

  if (position != NULL)
    {
      *position = -1;
      if (headway_cli_json_get_member (object, "position", &value) && headway_cli_json_get_uint64 (value, &number))
        *position = (gint64) number;
    }
  if (class == HEADWAY_CLI_ERROR_FAILED && status >= 502 && status <= 504)
    class = HEADWAY_CLI_ERROR_UNREACHABLE;
  if (headway_cli_json_get_member (object, "retryAfterMs", &value) && headway_cli_json_get_uint64 (value, &number))
    return g_error_new (HEADWAY_CLI_ERROR, class, "%s: %s " RETRY_PREFIX "%" G_GUINT64_FORMAT, name, text != NULL ? text : "", number);
  return g_error_new (HEADWAY_CLI_ERROR, class, "%s: %s", name, text != NULL ? text : _ ("the server gave no reason"));
}

/**
 * headway_cli_error_get_exit:
 * @error: any error
 *
 * Returns: the exit status that cli.md wants for it
 */
int
headway_cli_error_get_exit (const GError *error)
{
  if (error->domain == G_OPTION_ERROR)
    return HEADWAY_CLI_EXIT_USAGE;
  if (g_error_matches (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_USAGE))
    return HEADWAY_CLI_EXIT_USAGE;
  if (g_error_matches (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_DATA))
    return HEADWAY_CLI_EXIT_USAGE;
  return HEADWAY_CLI_EXIT_FAILED;
}

/**
 * headway_cli_error_get_retry_ms:
 * @error: an error of code RATE_LIMITED
 *
 * Returns: after how many milliseconds to try again, 1 … 10 000
 */
guint
headway_cli_error_get_retry_ms (const GError *error)
{
  const char *found = g_strrstr (error->message, RETRY_PREFIX);
  guint64 wait;

  if (found == NULL)
    return 100;
  wait = g_ascii_strtoull (found + strlen (RETRY_PREFIX), NULL, 10);
  return (guint) CLAMP (wait, 1, 10000);
}
