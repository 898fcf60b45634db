/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-bus.h"

/* headway_subscription_take_one(): what does not fit stays, in every mode, live and in a replay. */

static HeadwaySubscription *
subscribe (TestBus *t, HeadwayMode mode, gboolean is_replay)
{
  HeadwaySubscribeOptions options;

  headway_subscribe_options_init (&options);
  options.mode = mode;
  options.cursor.is_set = is_replay;
  return test_subscribe (t, &options);
}

static gsize
size_of (TestBus *t, guint64 id)
{
  return headway_event_get_size (headway_ring_lookup (headway_bus_get_ring (t->bus), id));
}

/* Returns: its id, 0: a synthetic event; G_MAXUINT64: nothing was taken, for it is too large; one less:
 * for nothing waits. */
static guint64
take_one (TestBus *t, HeadwaySubscription *reader, gsize max_bytes)
{
  HeadwayDelivery delivery;
  gboolean is_too_large = TRUE;
  guint64 id;

  if (!headway_subscription_take_one (reader, t->now, max_bytes, &delivery, &is_too_large))
    return is_too_large ? G_MAXUINT64 : G_MAXUINT64 - 1;
  g_assert_false (is_too_large);
  id = headway_event_get_id (delivery.event);
  headway_event_unref (delivery.event);
  return id;
}

static void
check_events (HeadwayMode mode, gboolean is_replay)
{
  g_auto (TestBus) t = TEST_BUS ();
  g_autoptr (HeadwaySubscription) reader = is_replay ? NULL : subscribe (&t, mode, FALSE);

  test_pub_chars (&t, 1000);
  test_pub_chars (&t, 10);
  if (is_replay)
    reader = subscribe (&t, mode, TRUE);
  for (guint i = 0; i < 3; i++)
    g_assert_cmpuint (take_one (&t, reader, size_of (&t, 1) - 1), ==, G_MAXUINT64);
  g_assert_cmpuint (take_one (&t, reader, size_of (&t, 1)), ==, 1);
  g_assert_cmpuint (take_one (&t, reader, 0), ==, G_MAXUINT64);
  /* The bound is of that one call. */
  assert_take (&t, reader, 1, "#2");
  if (is_replay)
    {
      g_assert_cmpuint (take_one (&t, reader, HEADWAY_NOTICE_SIZE_MAX - 1), ==, G_MAXUINT64);
      g_assert_cmpuint (take_one (&t, reader, HEADWAY_NOTICE_SIZE_MAX), ==, 0);
    }
  g_assert_cmpuint (take_one (&t, reader, G_MAXSIZE), ==, G_MAXUINT64 - 1);
  assert_books (reader);
}

static void
test_live_events (void)
{
  check_events (HEADWAY_MODE_STREAM, FALSE);
  check_events (HEADWAY_MODE_ROUTED, FALSE);
  check_events (HEADWAY_MODE_BROADCAST, FALSE);
}

static void
test_replayed_events (void)
{
  check_events (HEADWAY_MODE_STREAM, TRUE);
  check_events (HEADWAY_MODE_ROUTED, TRUE);
  check_events (HEADWAY_MODE_BROADCAST, TRUE);
}

static void
test_lag_has_a_size (void)
{
  g_auto (TestBus) t = TEST_BUS (.channel_capacity = 1);
  g_autoptr (HeadwaySubscription) reader = subscribe (&t, HEADWAY_MODE_BROADCAST, FALSE);

  test_pub (&t, 2);
  g_assert_cmpuint (take_one (&t, reader, HEADWAY_NOTICE_SIZE_MAX - 1), ==, G_MAXUINT64);
  g_assert_cmpuint (headway_subscription_get_dropped (reader), ==, 0);
  g_assert_cmpuint (take_one (&t, reader, HEADWAY_NOTICE_SIZE_MAX), ==, 0);
  g_assert_cmpuint (take_one (&t, reader, size_of (&t, 2)), ==, 2);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/take-one/live/what-is-too-large-stays", test_live_events);
  g_test_add_func ("/take-one/replay/what-is-too-large-stays", test_replayed_events);
  g_test_add_func ("/take-one/broadcast/a-lag-has-the-size-of-a-notice", test_lag_has_a_size);
  return g_test_run ();
}
