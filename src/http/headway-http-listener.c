/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-listener.h"

#include <errno.h>
#include <glib-unix.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Small enough that the queues of slow readers mean something (decisions.md 19). */
#define SEND_BUFFER_BYTES (64 * 1024)

#define BACKLOG         1024
#define ACCEPTS_A_TURN  16
#define STARVED_MS      200
#define KEEP_ALIVE_S    60
#define KEEP_ALIVE_STEP 10

struct _HeadwayHttpListener
{
  GObject parent_instance;

  int fd; /* owned */
  HeadwayHttpPlace place;
  char *uri;  /* owned */
  char *path; /* owned, nullable: ours to remove */
  guint source_id;
  HeadwayHttpAccepted accepted;
  gpointer user_data; /* borrowed, outlives self */
};

G_DEFINE_FINAL_TYPE (HeadwayHttpListener, headway_http_listener, G_TYPE_OBJECT)

typedef union
{
  struct sockaddr any;
  struct sockaddr_un local;
  struct sockaddr_in inet;
  struct sockaddr_in6 inet6;
  struct sockaddr_storage storage;
} Address;

static void
headway_http_listener_finalize (GObject *object)
{
  HeadwayHttpListener *self = HEADWAY_HTTP_LISTENER (object);

  headway_http_listener_stop (self);
  g_free (self->uri);
  G_OBJECT_CLASS (headway_http_listener_parent_class)->finalize (object);
}

static void
headway_http_listener_class_init (HeadwayHttpListenerClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = headway_http_listener_finalize;
}

static void
headway_http_listener_init (HeadwayHttpListener *self)
{
  self->fd = -1;
}

static HeadwayHttpListener *
fail (GError **error, int code, const char *what)
{
  g_set_error (error, G_IO_ERROR, (int) g_io_error_from_errno (code), "cannot listen on %s: %s", what, g_strerror (code));
  return NULL;
}

static void
set_option (int fd, int level, int option, int value)
{
  setsockopt (fd, level, option, &value, sizeof value);
}

/* Accepted TCP sockets inherit all of this. */
static void
set_tcp_options (int fd)
{
  set_option (fd, SOL_SOCKET, SO_SNDBUF, SEND_BUFFER_BYTES);
  set_option (fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option (fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option (fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEP_ALIVE_S);
  set_option (fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEP_ALIVE_STEP);
}

static gboolean
is_loopback (const Address *address)
{
  if (address->any.sa_family == AF_INET)
    return (ntohl (address->inet.sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
  return IN6_IS_ADDR_LOOPBACK (&address->inet6.sin6_addr);
}

/* Reads from the socket where it listens. */
static void
learn_place (HeadwayHttpListener *self)
{
  Address address = { 0 };
  socklen_t length = sizeof address;
  g_autoptr (GSocketAddress) socket_address = NULL;
  g_autofree char *host = NULL;

  if (getsockname (self->fd, &address.any, &length) < 0)
    return;
  self->place.is_unix = address.any.sa_family == AF_UNIX;
  if (self->place.is_unix)
    {
      gsize path_length = length - offsetof (struct sockaddr_un, sun_path);
      self->uri = g_strdup_printf ("unix:%.*s", (int) path_length, address.local.sun_path);
      return;
    }
  socket_address = g_socket_address_new_from_native (&address, length);
  host = g_inet_address_to_string (g_inet_socket_address_get_address (G_INET_SOCKET_ADDRESS (socket_address)));
  self->place.port = g_inet_socket_address_get_port (G_INET_SOCKET_ADDRESS (socket_address));
  self->place.is_loopback = is_loopback (&address);
  self->uri = g_strdup_printf (strchr (host, ':') != NULL ? "http://[%s]:%u" : "http://%s:%u", host, self->place.port);
}

/* --- Unix ----------------------------------------------------------------------------------- */

/* Whether somebody listens at @address. */
static gboolean
is_taken (const Address *address)
{
  int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  int result = connect (fd, &address->any, sizeof address->local);
  int code = errno;

  close (fd);
  return result == 0 || (code != ECONNREFUSED && code != ENOENT);
}

static gboolean
is_socket (const char *path)
{
  struct stat status;

  return lstat (path, &status) == 0 && S_ISSOCK (status.st_mode);
}

static int
bind_unix (int fd, const Address *address)
{
  const char *path = address->local.sun_path;

  if (bind (fd, &address->any, sizeof address->local) == 0)
    return 0;
  /* What a daemon that died has left behind; anything but a dead socket is not ours to remove. */
  if (errno != EADDRINUSE || !is_socket (path) || is_taken (address))
    {
      errno = EADDRINUSE == errno || is_socket (path) ? EADDRINUSE : errno;
      return -1;
    }
  if (unlink (path) < 0)
    return -1;
  return bind (fd, &address->any, sizeof address->local);
}

HeadwayHttpListener *
headway_http_listener_new_unix (const char *path, GError **error)
{
  g_autoptr (HeadwayHttpListener) self = NULL;
  Address address = { .local = { .sun_family = AF_UNIX } };

  if (strlen (path) >= sizeof address.local.sun_path)
    return fail (error, ENAMETOOLONG, path);

  self = g_object_new (HEADWAY_TYPE_HTTP_LISTENER, NULL);
  g_strlcpy (address.local.sun_path, path, sizeof address.local.sun_path);
  self->fd = socket (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  /* The file gets the mode that the socket has, so that nobody else ever sees it open. */
  if (self->fd < 0 || fchmod (self->fd, S_IRUSR | S_IWUSR) < 0 || bind_unix (self->fd, &address) < 0)
    return fail (error, errno, path);
  self->path = g_strdup (path);
  if (listen (self->fd, BACKLOG) < 0)
    return fail (error, errno, path);
  learn_place (self);
  return g_steal_pointer (&self);
}

/* --- TCP ------------------------------------------------------------------------------------ */

static GSocketAddress *
parse_address (const char *text, GError **error)
{
  const char *colon = strrchr (text, ':');
  g_autofree char *host = NULL;
  GSocketAddress *address = NULL;
  guint64 port = 0;

  if (colon != NULL && g_ascii_string_to_unsigned (colon + 1, 10, 0, G_MAXUINT16, &port, NULL))
    {
      gboolean is_bracketed = text[0] == '[' && colon > text + 1 && colon[-1] == ']';

      host = is_bracketed ? g_strndup (text + 1, (gsize) (colon - text - 2)) : g_strndup (text, (gsize) (colon - text));
      if (g_ascii_strcasecmp (host, "localhost") == 0)
        address = g_inet_socket_address_new_from_string ("127.0.0.1", (guint) port);
      else if (is_bracketed == (strchr (host, ':') != NULL))
        address = g_inet_socket_address_new_from_string (host, (guint) port);
    }
  if (address == NULL)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                 "\"%s\" is no address to listen on, such as 127.0.0.1:8787 or [::1]:0", text);
  return address;
}

HeadwayHttpListener *
headway_http_listener_new_tcp (const char *address, GError **error)
{
  g_autoptr (HeadwayHttpListener) self = NULL;
  g_autoptr (GSocketAddress) parsed = parse_address (address, error);
  Address native;
  gssize length;

  if (parsed == NULL)
    return NULL;

  self = g_object_new (HEADWAY_TYPE_HTTP_LISTENER, NULL);
  length = g_socket_address_get_native_size (parsed);
  g_socket_address_to_native (parsed, &native, sizeof native, NULL);
  self->fd = socket (native.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (self->fd < 0)
    return fail (error, errno, address);

  set_option (self->fd, SOL_SOCKET, SO_REUSEADDR, 1);
  /* An address means itself: "[::]:80" leaves "0.0.0.0:80" to others. */
  if (native.any.sa_family == AF_INET6)
    set_option (self->fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  set_tcp_options (self->fd);
  if (bind (self->fd, &native.any, (socklen_t) length) < 0 || listen (self->fd, BACKLOG) < 0)
    return fail (error, errno, address);
  learn_place (self);
  return g_steal_pointer (&self);
}

/* --- Passed sockets ------------------------------------------------------------------------- */

static int
get_int_option (int fd, int option)
{
  int value = -1;
  socklen_t length = sizeof value;

  return getsockopt (fd, SOL_SOCKET, option, &value, &length) == 0 ? value : -1;
}

HeadwayHttpListener *
headway_http_listener_new_fd (int fd, GError **error)
{
  g_autoptr (HeadwayHttpListener) self = g_object_new (HEADWAY_TYPE_HTTP_LISTENER, NULL);
  g_autofree char *what = g_strdup_printf ("descriptor %d", fd);
  int domain;

  self->fd = fd;
  domain = get_int_option (fd, SO_DOMAIN);
  if (get_int_option (fd, SO_ACCEPTCONN) != 1 || get_int_option (fd, SO_TYPE) != SOCK_STREAM)
    return fail (error, ENOTSOCK, what);
  if (domain != AF_UNIX && domain != AF_INET && domain != AF_INET6)
    return fail (error, EAFNOSUPPORT, what);

  g_unix_set_fd_nonblocking (fd, TRUE, NULL);
  if (domain != AF_UNIX)
    set_tcp_options (fd);
  learn_place (self);
  return g_steal_pointer (&self);
}

/* --- Accepting ------------------------------------------------------------------------------ */

static guint32
get_peer_uid (int fd)
{
  struct ucred credentials;
  socklen_t length = sizeof credentials;

  if (getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) < 0)
    return G_MAXUINT32;
  return (guint32) credentials.uid;
}

static gboolean listener_ready (int fd, GIOCondition condition, gpointer user_data);

static gboolean
listener_resume (gpointer user_data)
{
  HeadwayHttpListener *self = user_data;

  self->source_id = g_unix_fd_add (self->fd, G_IO_IN, listener_ready, self);
  return G_SOURCE_REMOVE;
}

static gboolean
listener_ready (int fd, GIOCondition condition, gpointer user_data)
{
  g_autoptr (HeadwayHttpListener) self = g_object_ref (HEADWAY_HTTP_LISTENER (user_data));

  for (guint i = 0; i < ACCEPTS_A_TURN && self->fd >= 0; i++)
    {
      int peer = accept4 (self->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

      if (peer < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
        {
          /* The socket stays readable: asking again at once would spin. */
          g_warning_once ("cannot accept connections on %s: %s", self->uri, g_strerror (errno));
          self->source_id = g_timeout_add (STARVED_MS, listener_resume, self);
          return G_SOURCE_REMOVE;
        }
      if (peer < 0)
        return G_SOURCE_CONTINUE;
      if (self->place.is_unix)
        set_option (peer, SOL_SOCKET, SO_SNDBUF, SEND_BUFFER_BYTES);
      self->accepted (self, peer, self->place.is_unix ? get_peer_uid (peer) : G_MAXUINT32, self->user_data);
    }
  return G_SOURCE_CONTINUE;
}

void
headway_http_listener_start (HeadwayHttpListener *self, HeadwayHttpAccepted accepted, gpointer user_data)
{
  self->accepted = accepted;
  self->user_data = user_data;
  self->source_id = g_unix_fd_add (self->fd, G_IO_IN, listener_ready, self);
}

void
headway_http_listener_stop (HeadwayHttpListener *self)
{
  g_clear_handle_id (&self->source_id, g_source_remove);
  if (self->fd < 0)
    return;

  close (g_steal_fd (&self->fd));
  if (self->path != NULL)
    unlink (self->path);
  g_clear_pointer (&self->path, g_free);
}

const char *
headway_http_listener_get_uri (HeadwayHttpListener *self)
{
  return self->uri;
}

const HeadwayHttpPlace *
headway_http_listener_get_place (HeadwayHttpListener *self)
{
  return &self->place;
}
