/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "stream/headway-stream-frame-cache.h"

#include <string.h>

typedef struct
{
  HeadwayPrincipalTable *principals;
  HeadwayStreamFrameCache *cache;
} Fixture;

static void
set_up (Fixture *self, gconstpointer data)
{
  self->principals = headway_principal_table_new ();
  self->cache = headway_stream_frame_cache_new ();
}

static void
tear_down (Fixture *self, gconstpointer data)
{
  headway_stream_frame_cache_free (self->cache);
  headway_principal_table_unref (self->principals);
}

static HeadwayEvent *
new_event (Fixture *self, guint64 id, gsize size)
{
  g_autofree char *text = g_strnfill (size, 'x');
  g_autofree char *data = g_strdup_printf ("\"%s\"", text);
  HeadwayPublication publication = {
    .type = "t",
    .principal = headway_principal_table_get_system (self->principals),
    .data = data,
    .data_length = strlen (data),
  };
  HeadwayEvent *event = headway_event_new (&publication, 5 * 1024 * 1024, (HeadwayInstant){ 1, 1 }, NULL);

  headway_event_set_id (event, id);
  return event;
}

static void
test_an_event_has_one_frame (Fixture *self, gconstpointer data)
{
  g_autoptr (HeadwayEvent) event = new_event (self, 7, 10);
  g_autoptr (HeadwaySseFrame) first = headway_stream_frame_cache_get (self->cache, event, 7);
  g_autoptr (HeadwaySseFrame) second = headway_stream_frame_cache_get (self->cache, event, 7);
  g_autoptr (HeadwaySseFrame) other = headway_stream_frame_cache_get (self->cache, event, 6);

  g_assert_true (first == second);
  g_assert_true (first != other);
  g_assert_cmpuint (headway_stream_frame_cache_get_built (self->cache), ==, 1);
  g_assert_nonnull (g_strstr_len (other->bytes, (gssize) other->length, "id: 6\n"));
}

static void
test_a_head_is_shared_by_those_who_keep_up (Fixture *self, gconstpointer data)
{
  g_autoptr (HeadwayEvent) event = new_event (self, 7, 10);
  g_autoptr (HeadwaySseFrame) first = headway_stream_frame_cache_get_headed (self->cache, event, 7);
  g_autoptr (HeadwaySseFrame) second = headway_stream_frame_cache_get_headed (self->cache, event, 7);
  g_autoptr (HeadwaySseFrame) behind = headway_stream_frame_cache_get_headed (self->cache, event, 3);
  g_autoptr (HeadwaySseFrame) plain = headway_stream_frame_cache_get (self->cache, event, 7);

  g_assert_true (first == second);
  g_assert_true (first != behind);
  g_assert_true (first->rest == plain && behind->rest == plain);
  g_assert_cmpuint (headway_stream_frame_cache_get_built (self->cache), ==, 3);
}

static void
test_many_events_push_each_other_out (Fixture *self, gconstpointer data)
{
  for (guint64 id = 1; id <= 5000; id++)
    {
      g_autoptr (HeadwayEvent) event = new_event (self, id, 10);
      g_autofree char *line = g_strdup_printf ("id: %" G_GUINT64_FORMAT "\nevent: t\n", id);

      for (guint reader = 0; reader < 3; reader++)
        {
          g_autoptr (HeadwaySseFrame) frame = headway_stream_frame_cache_get (self->cache, event, id);
          g_assert_true (strncmp (frame->bytes + frame->body_offset, line, strlen (line)) == 0);
        }
    }
  g_assert_cmpuint (headway_stream_frame_cache_get_built (self->cache), ==, 5000);
}

static void
test_large_events_are_let_go (Fixture *self, gconstpointer data)
{
  for (guint64 id = 1; id <= 30; id++)
    {
      g_autoptr (HeadwayEvent) event = new_event (self, id, 1000000);
      g_autoptr (HeadwaySseFrame) frame = headway_stream_frame_cache_get (self->cache, event, id);
      g_autoptr (HeadwaySseFrame) again = headway_stream_frame_cache_get (self->cache, event, id);

      g_assert_true (frame == again);
      /* Ours, the cache's, and the one of `again`. */
      g_assert_cmpuint (frame->ref, ==, 3);
    }
  headway_stream_frame_cache_clear (self->cache);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name, function) g_test_add ("/stream/frame-cache/" name, Fixture, NULL, set_up, function, tear_down)
  ADD ("an-event-has-one-frame", test_an_event_has_one_frame);
  ADD ("a-head-is-shared-by-those-who-keep-up", test_a_head_is_shared_by_those_who_keep_up);
  ADD ("many-events-push-each-other-out", test_many_events_push_each_other_out);
  ADD ("large-events-are-let-go", test_large_events_are_let_go);
#undef ADD
  return g_test_run ();
}
