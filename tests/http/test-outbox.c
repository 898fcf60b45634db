/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-outbox.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct
{
  HeadwayHttpOutbox outbox;
  int fd;
  int peer;
} Fixture;

static void
set_up (Fixture *self, gconstpointer data)
{
  int pair[2];

  g_assert_no_errno (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
  self->fd = pair[0];
  self->peer = pair[1];
}

static void
tear_down (Fixture *self, gconstpointer data)
{
  headway_http_outbox_clear (&self->outbox);
  close (self->fd);
  close (self->peer);
}

static gssize
put (Fixture *self, gsize n)
{
  g_autofree char *bytes = g_malloc (n);

  memset (bytes, 'a', n);
  return headway_http_outbox_put (&self->outbox, self->fd, bytes, n);
}

/* How much has come to the peer. */
static gsize
receive (Fixture *self)
{
  static char bytes[64 * 1024];
  gssize n = recv (self->peer, bytes, sizeof bytes, MSG_DONTWAIT);

  return n < 0 ? 0 : (gsize) n;
}

static void
fill_socket (Fixture *self)
{
  char bytes[4096] = { 0 };

  while (send (self->fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
    ;
  g_assert_cmpint (errno, ==, EAGAIN);
}

static void
test_small_answers_wait (Fixture *self, gconstpointer data)
{
  g_assert_cmpint (put (self, HEADWAY_HTTP_OUTBOX_FLUSH_BYTES - 1), ==, HEADWAY_HTTP_OUTBOX_FLUSH_BYTES - 1);
  g_assert_cmpuint (receive (self), ==, 0);
  g_assert_true (headway_http_outbox_flush (&self->outbox, self->fd));
  g_assert_cmpuint (receive (self), ==, HEADWAY_HTTP_OUTBOX_FLUSH_BYTES - 1);
}

static void
test_a_piece_leaves_at_once (Fixture *self, gconstpointer data)
{
  g_assert_cmpint (put (self, HEADWAY_HTTP_OUTBOX_FLUSH_BYTES - 1), ==, HEADWAY_HTTP_OUTBOX_FLUSH_BYTES - 1);
  g_assert_cmpint (put (self, 1), ==, 1);
  g_assert_cmpuint (receive (self), ==, HEADWAY_HTTP_OUTBOX_FLUSH_BYTES);
  g_assert_null (self->outbox.bytes);
}

static void
test_full_socket_is_told_when_the_box_is_full (Fixture *self, gconstpointer data)
{
  fill_socket (self);
  g_assert_cmpint (put (self, HEADWAY_HTTP_OUTBOX_BYTES), ==, HEADWAY_HTTP_OUTBOX_BYTES);
  g_assert_cmpint (put (self, 1), ==, -1);
  g_assert_cmpint (errno, ==, EAGAIN);
  g_assert_cmpuint (self->outbox.bytes->len, ==, HEADWAY_HTTP_OUTBOX_BYTES);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add ("/outbox/small-answers-wait", Fixture, NULL, set_up, test_small_answers_wait, tear_down);
  g_test_add ("/outbox/a-piece-leaves-at-once", Fixture, NULL, set_up, test_a_piece_leaves_at_once, tear_down);
  g_test_add ("/outbox/full-socket-is-told-when-the-box-is-full", Fixture, NULL, set_up, test_full_socket_is_told_when_the_box_is_full, tear_down);
  return g_test_run ();
}
