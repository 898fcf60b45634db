/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-wait.h"

#include <sys/socket.h>
#include <unistd.h>

typedef struct
{
  GMainContext *context;
  GObject *stream;
  int fd;
  int peer;
  guint called;
} Fixture;

static void
set_up (Fixture *self, gconstpointer data)
{
  int pair[2];

  g_assert_no_errno (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
  self->fd = pair[0];
  self->peer = pair[1];
  self->context = g_main_context_new ();
  self->stream = g_object_new (G_TYPE_OBJECT, NULL);
}

static void
tear_down (Fixture *self, gconstpointer data)
{
  g_main_context_unref (self->context);
  /* Nobody else holds it: what waited for it has gone. */
  g_assert_finalize_object (self->stream);
  close (self->fd);
  close (self->peer);
}

static gboolean
on_ready (GObject *stream, gpointer user_data)
{
  Fixture *self = user_data;

  g_assert_true (stream == self->stream);
  self->called++;
  return G_SOURCE_CONTINUE;
}

static GSource *
attach (Fixture *self, int fd, GCancellable *cancellable)
{
  GSource *wait = headway_http_wait_new (self->stream, fd, G_IO_IN, cancellable);

  g_source_set_callback (wait, G_SOURCE_FUNC (on_ready), self, NULL);
  g_source_attach (wait, self->context);
  return wait;
}

static guint
count_calls (Fixture *self, guint turns)
{
  guint before = self->called;

  for (guint i = 0; i < turns; i++)
    g_main_context_iteration (self->context, FALSE);
  return self->called - before;
}

static void
let_go (GSource *wait)
{
  g_source_destroy (wait);
  g_source_unref (wait);
}

static void
test_is_dormant_until_it_ends (Fixture *self, gconstpointer data)
{
  GSource *wait = attach (self, -1, NULL);

  g_assert_cmpuint (count_calls (self, 3), ==, 0);
  headway_http_wait_end (wait);
  g_assert_cmpuint (count_calls (self, 3), ==, 3);
  let_go (wait);
}

static void
test_waits_for_its_descriptor (Fixture *self, gconstpointer data)
{
  GSource *wait = attach (self, self->fd, NULL);
  char byte;

  g_assert_cmpuint (count_calls (self, 2), ==, 0);
  g_assert_cmpint (write (self->peer, "x", 1), ==, 1);
  g_assert_cmpuint (count_calls (self, 2), ==, 2);
  g_assert_cmpint (read (self->fd, &byte, 1), ==, 1);
  g_assert_cmpuint (count_calls (self, 2), ==, 0);
  let_go (wait);
}

static void
test_hears_of_a_peer_that_leaves (Fixture *self, gconstpointer data)
{
  GSource *wait = attach (self, self->fd, NULL);

  shutdown (self->peer, SHUT_RDWR);
  g_assert_cmpuint (count_calls (self, 1), ==, 1);
  let_go (wait);
}

static void
test_ends_with_its_cancellable (Fixture *self, gconstpointer data)
{
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  GSource *wait = attach (self, -1, cancellable);

  g_assert_cmpuint (count_calls (self, 2), ==, 0);
  g_cancellable_cancel (cancellable);
  g_assert_cmpuint (count_calls (self, 1), ==, 1);
  let_go (wait);
}

static gboolean
on_parent (gpointer user_data)
{
  (*(guint *) user_data)++;
  return G_SOURCE_CONTINUE;
}

static gboolean
dispatch_parent (GSource *source, GSourceFunc callback, gpointer user_data)
{
  return callback (user_data);
}

/* As libsoup uses it: with a dummy callback, below a source of its own. */
static void
test_wakes_the_source_above (Fixture *self, gconstpointer data)
{
  GSourceFuncs funcs = { NULL, NULL, dispatch_parent, NULL, NULL, NULL };
  GSource *parent = g_source_new (&funcs, sizeof (GSource));
  GSource *wait = headway_http_wait_new (self->stream, -1, 0, NULL);
  guint woken = 0;

  g_source_set_dummy_callback (wait);
  g_source_add_child_source (parent, wait);
  g_source_set_callback (parent, on_parent, &woken, NULL);
  g_source_attach (parent, self->context);
  count_calls (self, 2);
  g_assert_cmpuint (woken, ==, 0);
  headway_http_wait_end (wait);
  count_calls (self, 2);
  g_assert_cmpuint (woken, ==, 2);
  g_source_unref (wait);
  let_go (parent);
}

static void
on_closure (GClosure *closure, GValue *result, guint n_arguments, const GValue *arguments, gpointer hint, gpointer data)
{
  Fixture *self = closure->data;

  g_assert_cmpuint (n_arguments, ==, 1);
  g_value_set_boolean (result, on_ready (g_value_get_object (&arguments[0]), self));
}

static void
test_takes_a_closure (Fixture *self, gconstpointer data)
{
  GSource *wait = headway_http_wait_new (self->stream, -1, 0, NULL);
  GClosure *closure = g_closure_new_simple (sizeof (GClosure), self);

  g_closure_set_marshal (closure, on_closure);
  g_source_set_closure (wait, closure);
  g_source_attach (wait, self->context);
  headway_http_wait_end (wait);
  g_assert_cmpuint (count_calls (self, 2), ==, 2);
  let_go (wait);
}

static void
add (const char *path, void (*test) (Fixture *, gconstpointer))
{
  g_test_add (path, Fixture, NULL, set_up, test, tear_down);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);

  add ("/http-wait/is-dormant-until-it-ends", test_is_dormant_until_it_ends);
  add ("/http-wait/waits-for-its-descriptor", test_waits_for_its_descriptor);
  add ("/http-wait/hears-of-a-peer-that-leaves", test_hears_of_a_peer_that_leaves);
  add ("/http-wait/ends-with-its-cancellable", test_ends_with_its_cancellable);
  add ("/http-wait/wakes-the-source-above", test_wakes_the_source_above);
  add ("/http-wait/takes-a-closure", test_takes_a_closure);

  return g_test_run ();
}
