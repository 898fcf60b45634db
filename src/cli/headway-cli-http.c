/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-http.h"

#include "cli/headway-cli-error.h"

#include <gio/gunixsocketaddress.h>
#include <glib/gi18n.h>
#include <string.h>

struct _HeadwayCliHttp
{
  GObject parent_instance;

  SoupSession *session; /* owned */
  char *base;           /* owned, without a slash at its end */
  char *token_file;     /* owned, nullable */
};

G_DEFINE_FINAL_TYPE (HeadwayCliHttp, headway_cli_http, G_TYPE_OBJECT)

static void
headway_cli_http_finalize (GObject *object)
{
  HeadwayCliHttp *self = HEADWAY_CLI_HTTP (object);

  g_clear_object (&self->session);
  g_clear_pointer (&self->base, g_free);
  g_clear_pointer (&self->token_file, g_free);

  G_OBJECT_CLASS (headway_cli_http_parent_class)->finalize (object);
}

static void
headway_cli_http_class_init (HeadwayCliHttpClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = headway_cli_http_finalize;
}

static void
headway_cli_http_init (HeadwayCliHttp *self)
{
}

/* The path of the socket in `unix:/PATH`, `unix:///PATH` and `http+unix://%2FPATH`; NULL for
 * a URL of another kind. */
static char *
dup_socket_path (const char *url)
{
  g_autofree char *path = NULL;

  if (g_str_has_prefix (url, "http+unix://"))
    {
      path = g_uri_unescape_string (url + strlen ("http+unix://"), NULL);
      if (path != NULL && g_str_has_suffix (path, "/") && path[1] != '\0')
        path[strlen (path) - 1] = '\0';
    }
  else if (g_str_has_prefix (url, "unix://"))
    path = g_strdup (url + strlen ("unix://"));
  else if (g_str_has_prefix (url, "unix:"))
    path = g_strdup (url + strlen ("unix:"));
  return g_steal_pointer (&path);
}

static gboolean
set_base (HeadwayCliHttp *self,
          const char *url,
          GError **error)
{
  g_autoptr (GUri) uri = g_uri_parse (url, SOUP_HTTP_URI_FLAGS, NULL);

  if (uri == NULL || g_uri_get_host (uri) == NULL || *g_uri_get_host (uri) == '\0' || g_uri_get_query (uri) != NULL ||
      (!g_str_equal (g_uri_get_scheme (uri), "http") && !g_str_equal (g_uri_get_scheme (uri), "https")))
    {
      g_set_error (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_USAGE, _ ("--http=%s is none of http://HOST:PORT, https://HOST:PORT, unix:/PATH"), url);
      return FALSE;
    }
  self->base = g_strdup (url);
  while (g_str_has_suffix (self->base, "/"))
    self->base[strlen (self->base) - 1] = '\0';
  return TRUE;
}

/**
 * headway_cli_http_new:
 * @url: what --http was given
 * @token_file: (nullable): file with the token; without one $HEADWAY_TOKEN counts
 * @error: return location
 *
 * Prepares a client; nothing is sent.
 *
 * Returns: (transfer full): a client, or NULL with HEADWAY_CLI_ERROR_USAGE
 */
HeadwayCliHttp *
headway_cli_http_new (const char *url,
                      const char *token_file,
                      GError **error)
{
  g_autoptr (HeadwayCliHttp) self = g_object_new (HEADWAY_TYPE_CLI_HTTP, NULL);
  g_autofree char *path = dup_socket_path (url);
  g_autoptr (GSocketAddress) address = NULL;

  if (path != NULL && path[0] != '/')
    {
      g_set_error (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_USAGE, _ ("--http=%s names no absolute path"), url);
      return NULL;
    }
  if (path != NULL)
    address = g_unix_socket_address_new (path);
  if (!set_base (self, path != NULL ? "http://localhost" : url, error))
    return NULL;
  self->session = soup_session_new_with_options ("remote-connectable", address, "timeout", 0, "idle-timeout", 0,
                                                 "user-agent", "headway/" PACKAGE_VERSION, NULL);
  if (address != NULL)
    soup_session_set_proxy_resolver (self->session, NULL);
  self->token_file = g_strdup (token_file);
  return g_steal_pointer (&self);
}

/**
 * headway_cli_http_get_session:
 * @self: a client
 *
 * Returns: (transfer none): its session
 */
SoupSession *
headway_cli_http_get_session (HeadwayCliHttp *self)
{
  return self->session;
}

/* Reads the token anew for each message: a restarted daemon has another one. */
static gboolean
add_token (HeadwayCliHttp *self,
           SoupMessage *message,
           GError **error)
{
  g_autofree char *token = NULL;
  g_autofree char *value = NULL;
  g_autoptr (GError) local_error = NULL;

  if (self->token_file == NULL)
    token = g_strdup (g_getenv ("HEADWAY_TOKEN"));
  else if (!g_file_get_contents (self->token_file, &token, NULL, &local_error))
    {
      g_set_error (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_FAILED, _ ("cannot read the token: %s"), local_error->message);
      return FALSE;
    }
  if (token == NULL || *g_strstrip (token) == '\0')
    return TRUE;
  if (strpbrk (token, "\r\n") != NULL)
    {
      g_set_error_literal (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_FAILED, _ ("the token has more than one line"));
      return FALSE;
    }
  value = g_strconcat ("Bearer ", token, NULL);
  soup_message_headers_replace (soup_message_get_request_headers (message), "Authorization", value);
  return TRUE;
}

/**
 * headway_cli_http_create_message:
 * @self: a client
 * @method: "GET", …
 * @path: path and query, escaped
 * @body: (nullable): JSON
 * @error: return location
 *
 * Returns: (transfer full): a request with its token, or NULL with an error of
 *   HEADWAY_CLI_ERROR
 */
SoupMessage *
headway_cli_http_create_message (HeadwayCliHttp *self,
                                 const char *method,
                                 const char *path,
                                 GBytes *body,
                                 GError **error)
{
  g_autofree char *url = g_strconcat (self->base, path, NULL);
  g_autoptr (SoupMessage) message = soup_message_new (method, url);

  if (message == NULL)
    {
      g_set_error (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_USAGE, _ ("%s is no address"), url);
      return NULL;
    }
  soup_message_add_flags (message, SOUP_MESSAGE_NO_REDIRECT);
  if (body != NULL)
    soup_message_set_request_body_from_bytes (message, "application/json", body);
  if (!add_token (self, message, error))
    return NULL;
  return g_steal_pointer (&message);
}

/**
 * headway_cli_http_convert_error:
 * @error: what the session failed with
 *
 * Returns: (transfer full): HEADWAY_CLI_ERROR_UNREACHABLE with its message
 */
GError *
headway_cli_http_convert_error (const GError *error)
{
  if (error->domain == HEADWAY_CLI_ERROR)
    return g_error_copy (error);
  return g_error_new (HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_UNREACHABLE, _ ("no answer over HTTP: %s"), error->message);
}

/**
 * headway_cli_http_check_answer:
 * @message: an answered message
 * @body: what came with it
 * @position: (out) (optional): see headway_cli_error_from_http()
 * @error: return location
 *
 * Returns: FALSE with an error of HEADWAY_CLI_ERROR unless the status is 2xx
 */
gboolean
headway_cli_http_check_answer (SoupMessage *message,
                               GBytes *body,
                               gint64 *position,
                               GError **error)
{
  guint status = soup_message_get_status (message);
  gsize length;
  const char *text = g_bytes_get_data (body, &length);

  if (SOUP_STATUS_IS_SUCCESSFUL (status))
    return TRUE;
  g_propagate_error (error, headway_cli_error_from_http (status, text, length, position));
  return FALSE;
}

/**
 * headway_cli_http_call:
 * @self: a client
 * @method: "GET", …
 * @path: path and query, escaped
 * @body: (nullable): JSON
 * @error: return location
 *
 * Sends a request and waits for the answer.
 *
 * Returns: (transfer full): its body, or NULL with an error of HEADWAY_CLI_ERROR
 */
GBytes *
headway_cli_http_call (HeadwayCliHttp *self,
                       const char *method,
                       const char *path,
                       GBytes *body,
                       GError **error)
{
  g_autoptr (SoupMessage) message = headway_cli_http_create_message (self, method, path, body, error);
  g_autoptr (GError) local_error = NULL;
  g_autoptr (GBytes) answer = NULL;

  if (message == NULL)
    return NULL;
  answer = soup_session_send_and_read (self->session, message, NULL, &local_error);
  if (answer == NULL)
    {
      g_propagate_error (error, headway_cli_http_convert_error (local_error));
      return NULL;
    }
  if (!headway_cli_http_check_answer (message, answer, NULL, error))
    return NULL;
  return g_steal_pointer (&answer);
}

/**
 * headway_cli_http_get_bus_path:
 * @bus_name: name of a bus
 * @suffix: "", or "/events"
 *
 * Returns: (transfer full): the path of its route
 */
char *
headway_cli_http_get_bus_path (const char *bus_name,
                               const char *suffix)
{
  g_autofree char *name = g_uri_escape_string (bus_name, NULL, FALSE);

  return g_strconcat ("/session/", name, suffix, NULL);
}
