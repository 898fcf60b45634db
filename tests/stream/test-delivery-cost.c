/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-bus.h"
#include "stream/headway-stream-hub.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* What one delivery costs in allocations and in system calls, over the real bus and hub with a socket
 * pair per reader (performance.md, What follows). The allocator and what writes to sockets are counted
 * here, in front of the C library's: an event may allocate, so many readers must allocate as much as
 * few. G_SLICE=always-malloc shows GLib's slices. */

#define ROUNDS     40
#define FEW        5
#define MANY       200
#define BUFFER_MAX (64 * 1024)

static guint64 n_allocations;
static guint64 n_writes;
static gboolean is_reader[1024]; /* by descriptor of the writer's end */

extern void *__libc_malloc (size_t size);
extern void *__libc_calloc (size_t count, size_t size);
extern void *__libc_realloc (void *block, size_t size);

void *
malloc (size_t size)
{
  n_allocations++;
  return __libc_malloc (size);
}

void *
calloc (size_t count, size_t size)
{
  n_allocations++;
  return __libc_calloc (count, size);
}

void *
realloc (void *block, size_t size)
{
  n_allocations++;
  return __libc_realloc (block, size);
}

static void
count_write (int fd)
{
  if (fd >= 0 && fd < (int) G_N_ELEMENTS (is_reader) && is_reader[fd])
    n_writes++;
}

ssize_t
send (int fd, const void *bytes, size_t length, int flags)
{
  count_write (fd);
  return syscall (SYS_sendto, fd, bytes, length, flags, NULL, 0);
}

ssize_t
sendmsg (int fd, const struct msghdr *message, int flags)
{
  count_write (fd);
  return syscall (SYS_sendmsg, fd, message, flags);
}

ssize_t
write (int fd, const void *bytes, size_t length)
{
  count_write (fd);
  return syscall (SYS_write, fd, bytes, length);
}

ssize_t
writev (int fd, const struct iovec *pieces, int n)
{
  count_write (fd);
  return syscall (SYS_writev, fd, pieces, n);
}

/* --- A bus, a hub, readers ------------------------------------------------------------------ */

typedef struct
{
  HeadwayPrincipalTable *principals; /* owned */
  HeadwayBus *bus;                   /* owned */
  HeadwayStreamHub *hub;             /* owned */
  int peers[MANY];                   /* the readers' ends, owned */
  guint n;
  guint64 bytes; /* what they have read */
} Audience;

static HeadwayInstant
instant (void)
{
  return (HeadwayInstant){ g_get_monotonic_time (), g_get_real_time () };
}

static void
audience_init (Audience *self, guint n, HeadwayMode mode)
{
  g_autoptr (GString) head = g_string_new ("HTTP/1.1 200 OK\r\n\r\n");
  HeadwaySubscribeOptions options;
  HeadwayLimits limits;

  memset (self, 0, sizeof *self);
  self->n = n;
  headway_limits_init (&limits);
  limits.bus.max_subscribers = MANY;
  limits.bus.ring_size = 100;
  headway_subscribe_options_init (&options);
  options.mode = mode;
  self->principals = headway_principal_table_new ();
  self->bus = headway_bus_new ("cost", "epoch", 0, &limits.bus, self->principals);
  self->hub = headway_stream_hub_new ();
  for (guint i = 0; i < n; i++)
    {
      int fds[2];

      g_assert_cmpint (socketpair (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), ==, 0);
      g_assert_cmpint (fds[0], <, G_N_ELEMENTS (is_reader));
      is_reader[fds[0]] = TRUE;
      self->peers[i] = fds[1];
      headway_stream_hub_adopt (self->hub, fds[0], headway_bus_subscribe (self->bus, &options, instant (), NULL), head, TRUE,
                                NULL, NULL);
    }
}

static void
audience_clear (Audience *self)
{
  g_object_unref (self->hub);
  g_object_unref (self->bus);
  headway_principal_table_unref (self->principals);
  for (guint i = 0; i < self->n; i++)
    close (self->peers[i]);
  memset (is_reader, 0, sizeof is_reader);
}

static void
audience_publish (Audience *self, guint count)
{
  HeadwayPublication publication = {
    .topic = "a.b",
    .principal = headway_principal_table_get_system (self->principals),
    .data = "\"0123456789abcdef0123456789abcdef\"",
    .data_length = 34,
  };

  for (guint i = 0; i < count; i++)
    {
      HeadwayBatch *batch = headway_batch_new (1, NULL, NULL);

      headway_batch_add (batch, headway_event_new (&publication, 1000, instant (), NULL));
      headway_bus_publish (self->bus, batch, instant ());
    }
}

/* Until all that is ready has had its turn. */
static void
run_loop (void)
{
  while (g_main_context_iteration (NULL, FALSE))
    continue;
}

static void
audience_read (Audience *self, guint first)
{
  static char buffer[BUFFER_MAX];
  gssize n;

  for (guint i = first; i < self->n; i++)
    while ((n = recv (self->peers[i], buffer, sizeof buffer, MSG_DONTWAIT)) > 0)
      self->bytes += (guint64) n;
}

/* @window events are published in one go, and go out; so many times. */
static void
audience_run (Audience *self, guint rounds, guint window)
{
  for (guint i = 0; i < rounds; i++)
    {
      audience_publish (self, window);
      run_loop ();
      audience_read (self, 0);
    }
}

/* --- Allocations ---------------------------------------------------------------------------- */

static guint64
allocations (guint n, HeadwayMode mode, guint window)
{
  Audience audience;
  guint64 before, counted;

  audience_init (&audience, n, mode);
  audience_run (&audience, ROUNDS, window);
  audience.bytes = 0;
  before = n_allocations;
  audience_run (&audience, ROUNDS, window);
  counted = n_allocations - before;
  /* Nobody has missed anything, or it would have cost nothing. */
  g_assert_cmpuint (audience.bytes, >, (guint64) ROUNDS * window * n * 34);
  audience_clear (&audience);
  return counted;
}

static void
test_no_allocation (gconstpointer data)
{
  static const guint windows[] = { 1, 16, HEADWAY_DISPATCH_EVENTS };
  HeadwayMode mode = (HeadwayMode) GPOINTER_TO_INT (data);

  for (guint i = 0; i < G_N_ELEMENTS (windows); i++)
    {
      guint64 few = allocations (FEW, mode, windows[i]);
      guint64 many = allocations (MANY, mode, windows[i]);

      g_test_message ("window %u: %" G_GUINT64_FORMAT " allocations for %d readers, %" G_GUINT64_FORMAT " for %d", windows[i],
                      few, FEW, many, MANY);
      g_assert_cmpuint (few, >, 0);
      g_assert_cmpuint (many, ==, few);
    }
}

/* --- Writes --------------------------------------------------------------------------------- */

static guint64
writes (HeadwayMode mode, guint window)
{
  Audience audience;
  guint64 before, counted;

  audience_init (&audience, MANY, mode);
  audience_run (&audience, 1, window);
  before = n_writes;
  audience_run (&audience, ROUNDS, window);
  counted = n_writes - before;
  audience_clear (&audience);
  return counted;
}

static void
test_one_write (gconstpointer data)
{
  HeadwayMode mode = (HeadwayMode) GPOINTER_TO_INT (data);

  g_assert_cmpuint (writes (mode, 1), ==, ROUNDS * MANY);
  g_assert_cmpuint (writes (mode, 16), ==, ROUNDS * MANY);
  g_assert_cmpuint (writes (mode, HEADWAY_DISPATCH_EVENTS), ==, ROUNDS * MANY);
  /* A batch that is full goes out at once (decisions.md 20), and the rest in the turn. */
  g_assert_cmpuint (writes (mode, HEADWAY_DISPATCH_EVENTS + 1), ==, 2 * ROUNDS * MANY);
}

/* A reader whose socket is full is left alone until there is room again. */
static void
test_stalled_reader_costs_nothing (void)
{
  Audience audience;
  guint64 before, counted;

  audience_init (&audience, FEW, HEADWAY_MODE_BROADCAST);
  for (guint i = 0; i < 10000 && headway_stream_hub_get_stats (audience.hub)->blocked == 0; i++)
    {
      audience_publish (&audience, 1);
      run_loop ();
      audience_read (&audience, 1);
    }
  g_assert_cmpuint (headway_stream_hub_get_stats (audience.hub)->blocked, ==, 1);

  before = n_writes;
  for (guint i = 0; i < ROUNDS; i++)
    {
      audience_publish (&audience, 1);
      run_loop ();
      audience_read (&audience, 1);
    }
  counted = n_writes - before;
  g_assert_cmpuint (counted, ==, ROUNDS * (FEW - 1));
  audience_clear (&audience);
}

static void
ignore (const char *domain, GLogLevelFlags level, const char *message, gpointer user_data)
{
}

int
main (int argc, char **argv)
{
  static const struct
  {
    const char *name;
    HeadwayMode mode;
  } modes[] = {
    { "stream", HEADWAY_MODE_STREAM },
    { "routed", HEADWAY_MODE_ROUTED },
    { "broadcast", HEADWAY_MODE_BROADCAST },
  };

  g_test_init (&argc, &argv, NULL);
  /* Each stream says that it is closed. */
  g_log_set_handler (G_LOG_DOMAIN, G_LOG_LEVEL_DEBUG, ignore, NULL);
  g_assert_cmpstr (g_getenv ("G_SLICE"), ==, "always-malloc");
  for (guint i = 0; i < G_N_ELEMENTS (modes); i++)
    {
      g_autofree char *allocation = g_strdup_printf ("/delivery-cost/%s/no-allocation-per-delivery", modes[i].name);
      g_autofree char *write = g_strdup_printf ("/delivery-cost/%s/one-write-per-reader-and-turn", modes[i].name);

      g_test_add_data_func (allocation, GINT_TO_POINTER (modes[i].mode), test_no_allocation);
      g_test_add_data_func (write, GINT_TO_POINTER (modes[i].mode), test_one_write);
    }
  g_test_add_func ("/delivery-cost/stalled-reader-costs-nothing", test_stalled_reader_costs_nothing);
  return g_test_run ();
}
