/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-bus.h"
#include "engine/headway-envelope.h"
#include "engine/headway-route.h"

#include <stdlib.h>
#include <string.h>

/* hot-paths NAME ROUNDS: walks one hot path so often, for hot-paths.py to count its instructions under
 * callgrind, which collects only inside hot_path_measured(). What grows or is made once has been by
 * then. */

#define BURST        64
#define N_PRINCIPALS 100
#define RING_SIZE    512

static const char payload[] = "{\"level\":\"info\",\"message\":\"configure liblocale-gettext-perl:amd64 1.07-5\"}";
static const HeadwayInstant now = { 1, 1700000000000000 };

typedef struct
{
  HeadwayPrincipalTable *principals; /* owned */
  HeadwayBus *bus;                   /* owned */
  GPtrArray *subscriptions;          /* owned HeadwaySubscription */
  HeadwaySink sink;
  HeadwayRoute route;
  HeadwayEvent *burst[BURST]; /* owned */
  HeadwayDelivery deliveries[BURST];
  guint64 last_id;
  guint64 checksum;
} HotPaths;

static gboolean
sink_put (HeadwaySink *sink, HeadwayEvent *event, guint64 resume_id)
{
  return TRUE;
}

static void
sink_wake (HeadwaySink *sink)
{
}

static HeadwayPublication
publication_of (HeadwayPrincipal *principal)
{
  return (HeadwayPublication){
    .topic = "dpkg.status.configure",
    .type = "message",
    .principal = principal,
    .data = payload,
    .data_length = sizeof payload - 1,
  };
}

static void
subscribe (HotPaths *self, guint n, HeadwayMode mode)
{
  static const HeadwaySinkClass klass = { sink_put, sink_wake };
  HeadwaySubscribeOptions options;

  self->sink.klass = &klass;
  headway_subscribe_options_init (&options);
  options.mode = mode;
  for (guint i = 0; i < n; i++)
    {
      HeadwaySubscription *subscription = headway_bus_subscribe (self->bus, &options, now, NULL);

      if (mode == HEADWAY_MODE_STREAM)
        headway_subscription_attach (subscription, &self->sink, NULL);
      g_ptr_array_add (self->subscriptions, subscription);
    }
}

/* --- The paths ------------------------------------------------------------------------------ */

static void
publish (HotPaths *self, guint rounds)
{
  HeadwayPublication publication = publication_of (headway_principal_table_get_system (self->principals));

  for (guint i = 0; i < rounds; i++)
    {
      HeadwayBatch *batch = headway_batch_new (1, NULL, NULL);

      headway_batch_add (batch, headway_event_new (&publication, HEADWAY_EVENT_CEILING, now, NULL));
      headway_bus_publish (self->bus, batch, now);
    }
  self->checksum += headway_bus_get_last_id (self->bus);
}

/* A round is one event in and one out; ids need not grow for that. */
static void
push_and_pop (HotPaths *self, guint rounds)
{
  for (guint i = 0; i < rounds; i += BURST)
    {
      HeadwayTake take = {
        .subscription = g_ptr_array_index (self->subscriptions, 0),
        .deliveries = self->deliveries,
        .max_events = BURST,
        .max_bytes = G_MAXSIZE,
        .max_cost = G_MAXUINT64,
      };

      for (guint k = 0; k < BURST; k++)
        headway_route_offer (&self->route, self->burst[k]);
      headway_route_take (&self->route, &take, self->last_id);
      for (guint k = 0; k < take.n; k++)
        headway_event_unref (self->deliveries[k].event);
      self->checksum += take.n;
    }
}

static void
write_envelopes (HotPaths *self, guint rounds)
{
  HeadwayPublication publication = publication_of (headway_principal_table_get_system (self->principals));
  HeadwayEnvelopeLayout layout;
  char text[1024];

  g_assert (HEADWAY_ENVELOPE_HEAD_MAX + headway_envelope_size_max (&publication) <= sizeof text);
  for (guint i = 0; i < rounds; i++)
    {
      headway_envelope_write (text + HEADWAY_ENVELOPE_HEAD_MAX, &publication, FALSE, now.real_us, &layout);
      self->checksum += headway_envelope_write_head (text + HEADWAY_ENVELOPE_HEAD_MAX, 1000000 + i) + layout.length;
    }
}

static void
make_burst (HotPaths *self, const HeadwayLimits *limits)
{
  HeadwayRouteOptions options;

  headway_route_options_init (&options, limits);
  options.budget_bytes = HEADWAY_EVENT_CEILING;
  headway_route_init (&self->route, &options);
  for (guint i = 0; i < BURST; i++)
    {
      g_autofree char *name = g_strdup_printf ("org.example.Agent%u", i * 37 % N_PRINCIPALS);
      g_autoptr (HeadwayPrincipal) principal = headway_principal_table_intern (self->principals, name, NULL);
      HeadwayPublication publication = publication_of (principal);

      self->burst[i] = headway_event_new (&publication, HEADWAY_EVENT_CEILING, now, NULL);
      headway_event_set_id (self->burst[i], ++self->last_id);
    }
}

static const struct
{
  const char *name;
  guint n_subscriptions;
  HeadwayMode mode;
  void (*walk) (HotPaths *self, guint rounds);
} paths[] = {
  { "publish-to-0", 0, HEADWAY_MODE_STREAM, publish },
  { "publish-to-1", 1, HEADWAY_MODE_STREAM, publish },
  { "publish-to-100", 100, HEADWAY_MODE_STREAM, publish },
  { "routed-push-and-pop", 1, HEADWAY_MODE_ROUTED, push_and_pop },
  { "envelope", 0, HEADWAY_MODE_STREAM, write_envelopes },
};

void hot_path_measured (HotPaths *self, guint path, guint rounds);

void __attribute__ ((noipa))
hot_path_measured (HotPaths *self, guint path, guint rounds)
{
  paths[path].walk (self, rounds);
}

static void
hot_paths_run (guint path, guint rounds)
{
  HotPaths self = { 0 };
  HeadwayLimits limits;

  headway_limits_init (&limits);
  limits.bus.ring_size = RING_SIZE;
  limits.bus.max_subscribers = 100;
  self.principals = headway_principal_table_new ();
  self.bus = headway_bus_new ("hot", "epoch", 0, &limits.bus, self.principals);
  self.subscriptions = g_ptr_array_new_with_free_func (g_object_unref);
  make_burst (&self, &limits);
  subscribe (&self, paths[path].n_subscriptions, paths[path].mode);

  paths[path].walk (&self, 2 * RING_SIZE);
  hot_path_measured (&self, path, rounds);
  g_print ("%s %u %" G_GUINT64_FORMAT "\n", paths[path].name, rounds, self.checksum);

  for (guint i = 0; i < self.subscriptions->len && paths[path].mode == HEADWAY_MODE_STREAM; i++)
    headway_subscription_detach (g_ptr_array_index (self.subscriptions, i), &self.sink);
  g_ptr_array_unref (self.subscriptions);
  headway_route_clear (&self.route);
  for (guint i = 0; i < BURST; i++)
    headway_event_unref (self.burst[i]);
  g_object_unref (self.bus);
  headway_principal_table_unref (self.principals);
}

int
main (int argc, char **argv)
{
  guint64 rounds = argc == 3 ? g_ascii_strtoull (argv[2], NULL, 10) : 0;

  for (guint i = 0; i < G_N_ELEMENTS (paths); i++)
    {
      if (argc == 3 && rounds > 0 && rounds <= G_MAXINT && rounds % BURST == 0 && strcmp (argv[1], paths[i].name) == 0)
        {
          hot_paths_run (i, (guint) rounds);
          return EXIT_SUCCESS;
        }
    }

  g_printerr ("usage: hot-paths NAME ROUNDS, where ROUNDS is a multiple of %d\n", BURST);
  return 2;
}
