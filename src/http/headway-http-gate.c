/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-gate.h"

#include "access/headway-token.h"
#include "wire/headway-clock.h"

#include <string.h>
#include <unistd.h>

#define HTTP_PORT 80

#define ALLOW_HEADERS  "Authorization, Content-Type, X-Qwen-Client-Id, Last-Event-ID, X-Qwen-Event-Epoch"
#define EXPOSE_HEADERS "Retry-After, X-Qwen-Event-Epoch, X-Qwen-SSE-Stream-Id"
#define ALLOW_METHODS  "GET, HEAD, POST, PUT, DELETE, OPTIONS"
#define MAX_AGE        "86400"

/* Whoever guards the machine wants to know; what the request says of itself is not repeated. */
static void
report (HeadwayHttpRequest *request, HeadwaySecurityKind kind)
{
  headway_bus_table_add_security (headway_http_server_get_table (request->server), kind, NULL,
                                  headway_http_connection_get_uid (request->connection), NULL, headway_clock_now ());
}

/* --- Host ----------------------------------------------------------------------------------- */

/* Splits `host:port`; an IPv6 address keeps its brackets out. FALSE if it is none. */
static gboolean
split_host (const char *text, char **host, guint *port)
{
  const char *end = *text == '[' ? strchr (text, ']') : text + strcspn (text, ":");
  guint64 number = HTTP_PORT;

  if (end == NULL || end == text)
    return FALSE;

  *host = *text == '[' ? g_strndup (text + 1, (gsize) (end - text - 1)) : g_strndup (text, (gsize) (end - text));
  if (*text == '[')
    end++;
  if (*end == ':' && !g_ascii_string_to_unsigned (end + 1, 10, 0, G_MAXUINT16, &number, NULL))
    return FALSE;
  *port = (guint) number;
  return *end == ':' || *end == '\0';
}

static gboolean
is_loopback_name (const char *host)
{
  return g_ascii_strcasecmp (host, "localhost") == 0 || strcmp (host, "127.0.0.1") == 0 || strcmp (host, "::1") == 0;
}

/* A name can be made to point here by whoever owns it; an address cannot. */
static gboolean
is_own_name (const char *host)
{
  return g_hostname_is_ip_address (host) || g_ascii_strcasecmp (host, g_get_host_name ()) == 0;
}

static gboolean
is_at_place (const char *name, guint port, const HeadwayHttpPlace *place)
{
  return port == place->port && (is_loopback_name (name) || (!place->is_loopback && is_own_name (name)));
}

gboolean
headway_http_gate_is_host (const char *host, const HeadwayHttpPlace *place)
{
  g_autofree char *name = NULL;
  guint port;

  return split_host (host, &name, &port) && is_at_place (name, port, place);
}

/* A request line may name another host than the header does. */
static gboolean
is_target_host (HeadwayHttpRequest *request, const HeadwayHttpPlace *place)
{
  GUri *uri = soup_server_message_get_uri (request->message);

  if (uri == NULL)
    return TRUE;
  return is_at_place (g_uri_get_host (uri), g_uri_get_port (uri) > 0 ? (guint) g_uri_get_port (uri) : HTTP_PORT, place);
}

static gboolean
check_host (HeadwayHttpRequest *request)
{
  const HeadwayHttpPlace *place = headway_http_connection_get_place (request->connection);
  const char *host = headway_http_request_get_header (request, "Host");
  gboolean is_old = soup_server_message_get_http_version (request->message) == SOUP_HTTP_1_0;

  /* Browsers always send one; HTTP/1.0 has none. */
  if (host == NULL && is_old)
    return TRUE;
  if (host != NULL && headway_http_gate_is_host (host, place) && is_target_host (request, place))
    return TRUE;
  report (request, HEADWAY_SECURITY_HOST_REFUSED);
  headway_http_request_answer_text (request, 403, NULL, "Host does not name this server");
  return FALSE;
}

/* --- Origin --------------------------------------------------------------------------------- */

/* A page that this very server has sent. */
static gboolean
is_own_origin (HeadwayHttpRequest *request, const char *origin)
{
  return g_str_has_prefix (origin, "http://") &&
         headway_http_gate_is_host (origin + strlen ("http://"), headway_http_connection_get_place (request->connection));
}

static gboolean
is_allowed_origin (HeadwayHttpRequest *request, const char *origin)
{
  const HeadwayHttpSettings *settings = headway_http_server_get_settings (request->server);

  if (strcmp (origin, "null") == 0)
    return FALSE;
  if (settings->allowed_origins != NULL && g_strv_contains ((const char *const *) settings->allowed_origins, origin))
    return TRUE;
  return is_own_origin (request, origin);
}

static gboolean
check_origin (HeadwayHttpRequest *request)
{
  const char *origin = headway_http_request_get_header (request, "Origin");

  if (origin == NULL)
    return TRUE;

  headway_http_request_set_header (request, "Vary", "Origin");
  if (!is_allowed_origin (request, origin))
    {
      report (request, HEADWAY_SECURITY_ORIGIN_REFUSED);
      headway_http_request_answer_text (request, 403, NULL, "this origin is not allowed");
      return FALSE;
    }
  headway_http_request_set_header (request, "Access-Control-Allow-Origin", origin);
  headway_http_request_set_header (request, "Access-Control-Expose-Headers", EXPOSE_HEADERS);
  return TRUE;
}

static gboolean
is_preflight (HeadwayHttpRequest *request)
{
  return request->method == SOUP_METHOD_OPTIONS && headway_http_request_get_header (request, "Origin") != NULL &&
         headway_http_request_get_header (request, "Access-Control-Request-Method") != NULL;
}

static void
answer_preflight (HeadwayHttpRequest *request)
{
  headway_http_request_set_header (request, "Access-Control-Allow-Methods", ALLOW_METHODS);
  headway_http_request_set_header (request, "Access-Control-Allow-Headers", ALLOW_HEADERS);
  headway_http_request_set_header (request, "Access-Control-Max-Age", MAX_AGE);
  headway_http_request_answer (request, 204, NULL);
}

/* --- Who ------------------------------------------------------------------------------------ */

const char *
headway_http_gate_get_bearer (const char *authorization)
{
  static const char scheme[] = "bearer";
  gsize length = strlen (scheme);

  if (authorization == NULL || g_ascii_strncasecmp (authorization, scheme, length) != 0 || authorization[length] != ' ')
    return NULL;
  return authorization + length + strspn (authorization + length, " ");
}

static gboolean
check_token (HeadwayHttpRequest *request)
{
  const HeadwayHttpSettings *settings = headway_http_server_get_settings (request->server);
  const char *bearer = headway_http_gate_get_bearer (headway_http_request_get_header (request, "Authorization"));

  if (!settings->needs_token || g_strcmp0 (request->segments[0], "health") == 0)
    return TRUE;
  if (bearer != NULL && settings->token != NULL && headway_token_equal (settings->token, bearer))
    return TRUE;

  report (request, HEADWAY_SECURITY_AUTHENTICATION_FAILED);
  headway_http_request_set_header (request, "WWW-Authenticate", "Bearer");
  headway_http_request_answer_text (request, 401, NULL, "a valid token is needed");
  return FALSE;
}

static HeadwayPrincipalTable *
get_principals (HeadwayHttpRequest *request)
{
  return headway_bus_table_get_principals (headway_http_server_get_table (request->server));
}

static gboolean
pass_tcp (HeadwayHttpRequest *request)
{
  if (!check_host (request) || !check_origin (request))
    return FALSE;
  if (is_preflight (request))
    {
      answer_preflight (request);
      return FALSE;
    }
  if (!check_token (request))
    return FALSE;

  headway_caller_init_token (&request->caller,
                             headway_http_server_get_settings (request->server)->needs_token,
                             get_principals (request));
  return TRUE;
}

static gboolean
pass_unix (HeadwayHttpRequest *request)
{
  guint32 uid = headway_http_connection_get_uid (request->connection);
  gboolean is_session = headway_http_server_get_settings (request->server)->is_session;

  if (uid == HEADWAY_UID_NOBODY || (is_session && uid != 0 && uid != (guint32) getuid ()))
    {
      report (request, HEADWAY_SECURITY_NOT_AUTHORIZED);
      headway_http_request_answer_text (request, 403, "not_authorized", "this socket belongs to another user");
      return FALSE;
    }
  headway_caller_init_user (&request->caller, uid, is_session, get_principals (request));
  return TRUE;
}

static gboolean
check_path (HeadwayHttpRequest *request)
{
  GUri *uri = soup_server_message_get_uri (request->message);
  const char *path = uri != NULL ? g_uri_get_path (uri) : "%";
  GString *decoded;

  if (strchr (path, '%') == NULL && g_str_is_ascii (path))
    return TRUE;

  decoded = headway_http_unescape (path, strlen (path), FALSE);
  if (decoded == NULL)
    {
      headway_http_request_answer_text (request, 400, "invalid_request", "the path has a bad escape or is not UTF-8");
      return FALSE;
    }
  g_string_free (decoded, TRUE);
  return TRUE;
}

gboolean
headway_http_gate_pass (HeadwayHttpRequest *request)
{
  gboolean is_unix = headway_http_connection_get_place (request->connection)->is_unix;

  if (is_unix ? !pass_unix (request) : !pass_tcp (request))
    return FALSE;
  return check_path (request);
}
