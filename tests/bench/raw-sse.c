/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "load-meter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* raw-sse each|batch: the physical limit, a server that does nothing but parse two requests and copy.
 * `each` sends every event to every reader at once; `batch` parses all requests that have come, then
 * writes to each reader once. It has no limits, checks nothing, and prints its port. */

#define RING_SIZE   4096
#define BATCH_MAX   64
#define INPUT_BYTES (256 * 1024)
#define EVENTS_MAX  256

typedef struct
{
  char *bytes;
  gsize length;
} Frame;

typedef struct
{
  int fd;
  guint index; /* among the readers */
  gboolean is_reader;
  gboolean is_blocked;
  guint64 next; /* event to send */
  gsize offset; /* bytes of it that are sent */
  char *input;  /* until it is a reader */
  gsize length;
} Connection;

static Frame ring[RING_SIZE];
static guint64 head;
static GPtrArray *readers;
static int epoll_fd;

static void
watch (Connection *c, guint32 events)
{
  struct epoll_event event = { .events = events, .data.ptr = c };

  epoll_ctl (epoll_fd, EPOLL_CTL_MOD, c->fd, &event);
}

static void
append (const char *payload, gsize length)
{
  Frame *frame = &ring[head % RING_SIZE];

  g_free (frame->bytes);
  frame->bytes = g_malloc (length + 48);
  frame->length = (gsize) sprintf (frame->bytes, "id: %" G_GUINT64_FORMAT "\ndata: ", head);
  memcpy (frame->bytes + frame->length, payload, length);
  memcpy (frame->bytes + frame->length + length, "\n\n", 2);
  frame->length += length + 2;
  head++;
}

static gssize
send_some (Connection *c)
{
  struct iovec pieces[BATCH_MAX];
  struct msghdr message = { .msg_iov = pieces };
  const Frame *first = &ring[c->next % RING_SIZE];

  if (head - c->next == 1)
    return send (c->fd, first->bytes + c->offset, first->length - c->offset, MSG_DONTWAIT | MSG_NOSIGNAL);

  for (guint64 i = c->next; i < head && message.msg_iovlen < BATCH_MAX; i++)
    {
      pieces[message.msg_iovlen].iov_base = ring[i % RING_SIZE].bytes;
      pieces[message.msg_iovlen++].iov_len = ring[i % RING_SIZE].length;
    }
  pieces[0].iov_base = (char *) pieces[0].iov_base + c->offset;
  pieces[0].iov_len -= c->offset;
  return sendmsg (c->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void
flush_one (Connection *c)
{
  while (c->next < head && !c->is_blocked)
    {
      gssize n = send_some (c);
      gsize left = n > 0 ? (gsize) n : 0;

      /* One who has gone is closed when epoll says so; until then he takes nothing. */
      if (n < 0)
        {
          c->is_blocked = TRUE;
          if (errno == EAGAIN)
            watch (c, EPOLLIN | EPOLLRDHUP | EPOLLOUT);
        }
      while (left > 0)
        {
          gsize rest = ring[c->next % RING_SIZE].length - c->offset;

          if (left < rest)
            {
              c->offset += left;
              break;
            }
          left -= rest;
          c->offset = 0;
          c->next++;
        }
    }
}

static void
flush (void)
{
  for (guint i = 0; i < readers->len; i++)
    flush_one (g_ptr_array_index (readers, i));
}

static void
close_connection (Connection *c)
{
  if (c->is_reader)
    {
      Connection *last = g_ptr_array_index (readers, readers->len - 1);

      last->index = c->index;
      g_ptr_array_remove_index_fast (readers, c->index);
    }
  close (c->fd);
  g_free (c->input);
  g_free (c);
}

static void
become_reader (Connection *c)
{
  static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n\r\n: hi\n\n";

  send (c->fd, answer, sizeof answer - 1, MSG_NOSIGNAL);
  c->is_reader = TRUE;
  c->index = readers->len;
  c->next = head;
  g_ptr_array_add (readers, c);
  g_clear_pointer (&c->input, g_free);
}

static void
answer_posts (Connection *c, guint n)
{
  static const char answer[] = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
  g_autoptr (GString) text = g_string_new (NULL);

  for (guint i = 0; i < n; i++)
    g_string_append_len (text, answer, sizeof answer - 1);
  send (c->fd, text->str, text->len, MSG_NOSIGNAL);
}

/* FALSE: it has gone. */
static gboolean
read_requests (Connection *c, gboolean is_batching)
{
  gssize n;
  char *at, *end, *body;
  guint n_posts = 0;

  if (c->input == NULL)
    c->input = g_malloc (INPUT_BYTES);
  n = recv (c->fd, c->input + c->length, INPUT_BYTES - 1 - c->length, 0);
  if (n <= 0)
    return n < 0 && errno == EAGAIN;

  c->length += (gsize) n;
  c->input[c->length] = '\0';
  at = c->input;
  end = c->input + c->length;
  while (at < end && (body = strstr (at, "\r\n\r\n")) != NULL)
    {
      char *field = strcasestr (at, "content-length:");
      gsize length = field != NULL ? strtoul (field + strlen ("content-length:"), NULL, 10) : 0;

      if (at[0] == 'G')
        {
          become_reader (c);
          return TRUE;
        }
      body += strlen ("\r\n\r\n");
      if (body + length > end)
        break;
      append (body, length);
      if (!is_batching)
        flush ();
      n_posts++;
      at = body + length;
    }
  c->length = (gsize) (end - at);
  memmove (c->input, at, c->length);
  if (is_batching)
    flush ();
  answer_posts (c, n_posts);
  return TRUE;
}

static void
accept_all (int listener)
{
  int one = 1;
  int fd;

  while ((fd = accept4 (listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
    {
      Connection *c = g_new0 (Connection, 1);
      struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP, .data.ptr = c };

      setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
      c->fd = fd;
      epoll_ctl (epoll_fd, EPOLL_CTL_ADD, fd, &event);
    }
}

static void
handle (Connection *c, guint32 events, gboolean is_batching)
{
  if (!c->is_reader)
    {
      if (!read_requests (c, is_batching))
        close_connection (c);
      return;
    }
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0)
    {
      close_connection (c);
      return;
    }
  if ((events & EPOLLOUT) != 0)
    {
      c->is_blocked = FALSE;
      flush_one (c);
      if (!c->is_blocked)
        watch (c, EPOLLIN | EPOLLRDHUP);
    }
}

static int
listen_somewhere (void)
{
  struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
  socklen_t length = sizeof address;
  int fd = socket (AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

  if (fd < 0 || bind (fd, (struct sockaddr *) &address, sizeof address) < 0 || listen (fd, 4096) < 0 ||
      getsockname (fd, (struct sockaddr *) &address, &length) < 0)
    load_fail (2, "raw-sse: cannot listen: %s", strerror (errno));
  printf ("%d\n", ntohs (address.sin_port));
  fflush (stdout);
  return fd;
}

int
main (int argc, char **argv)
{
  struct epoll_event event = { .events = EPOLLIN };
  struct epoll_event events[EVENTS_MAX];
  gboolean is_batching = argc == 2 && strcmp (argv[1], "batch") == 0;
  int listener;

  if (argc != 2 || (!is_batching && strcmp (argv[1], "each") != 0))
    load_fail (2, "usage: raw-sse each|batch");
  load_raise_descriptors ();
  readers = g_ptr_array_new ();
  epoll_fd = epoll_create1 (EPOLL_CLOEXEC);
  listener = listen_somewhere ();
  epoll_ctl (epoll_fd, EPOLL_CTL_ADD, listener, &event);
  for (;;)
    {
      int n = epoll_wait (epoll_fd, events, EVENTS_MAX, -1);

      for (int i = 0; i < n; i++)
        {
          if (events[i].data.ptr == NULL)
            accept_all (listener);
          else
            handle (events[i].data.ptr, events[i].events, is_batching);
        }
    }
}
