/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-peer.h"

#include "engine/headway-error.h"

#include <string.h>

typedef struct
{
  HeadwayDBusCharge charge;
  guint n_left;
} Thing;

static void
on_left (HeadwayDBusCharge *charge)
{
  Thing *thing = (Thing *) charge;

  g_assert_null (charge->peer);
  thing->n_left++;
}

static void
check_limit (HeadwayDBusChargeKind kind, guint limit)
{
  g_autoptr (HeadwayDBusPeer) peer = headway_dbus_peer_new (":1.1");
  g_autofree HeadwayDBusCharge *charges = g_new0 (HeadwayDBusCharge, limit + 1);
  g_autoptr (GError) error = NULL;
  g_autofree char *text = g_strdup_printf ("%u", limit);

  for (guint i = 0; i < limit; i++)
    g_assert_true (headway_dbus_charge_take (&charges[i], peer, kind, 0, NULL, NULL));
  g_assert_false (headway_dbus_charge_take (&charges[limit], peer, kind, 0, NULL, &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_QUOTA_EXCEEDED);
  g_assert_nonnull (strstr (error->message, text));
  g_assert_cmpint (headway_error_get_details (error)->limit, ==, limit);
  headway_dbus_charge_release (&charges[limit]);
  headway_dbus_charge_release (&charges[7]);
  headway_dbus_charge_release (&charges[7]);
  g_assert_true (headway_dbus_charge_take (&charges[limit], peer, kind, 0, NULL, NULL));
  for (guint i = 0; i <= limit; i++)
    headway_dbus_charge_release (&charges[i]);
  g_assert_cmpuint (peer->counts[kind], ==, 0);
}

static void
test_limits (void)
{
  check_limit (HEADWAY_DBUS_CHARGE_SUBSCRIPTION, 256);
  check_limit (HEADWAY_DBUS_CHARGE_CALL, 64);
  check_limit (HEADWAY_DBUS_CHARGE_PUBLISH, 1024);
}

static void
test_bytes (void)
{
  g_autoptr (HeadwayDBusPeer) peer = headway_dbus_peer_new (":1.1");
  HeadwayDBusCharge charges[3] = { 0 };
  g_autoptr (GError) error = NULL;

  g_assert_true (headway_dbus_charge_take (&charges[0], peer, HEADWAY_DBUS_CHARGE_PUBLISH, 1, NULL, NULL));
  g_assert_false (headway_dbus_charge_take (&charges[1], peer, HEADWAY_DBUS_CHARGE_PUBLISH, G_MAXUINT64, NULL, NULL));
  g_assert_false (headway_dbus_charge_take (&charges[1], peer, HEADWAY_DBUS_CHARGE_PUBLISH,
                                            HEADWAY_DBUS_PUBLISH_BYTES_MAX, NULL, &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_QUOTA_EXCEEDED);
  g_assert_true (headway_dbus_charge_take (&charges[1], peer, HEADWAY_DBUS_CHARGE_PUBLISH,
                                           HEADWAY_DBUS_PUBLISH_BYTES_MAX - 1, NULL, NULL));
  g_assert_false (headway_dbus_charge_take (&charges[2], peer, HEADWAY_DBUS_CHARGE_PUBLISH, 1, NULL, NULL));
  headway_dbus_charge_release (&charges[0]);
  headway_dbus_charge_release (&charges[1]);
  g_assert_cmpuint (peer->publish_bytes, ==, 0);
  /* The first one is let in whatever it has. */
  g_assert_true (headway_dbus_charge_take (&charges[0], peer, HEADWAY_DBUS_CHARGE_PUBLISH, G_MAXUINT32 * 2ull, NULL, NULL));
  g_assert_false (headway_dbus_charge_take (&charges[1], peer, HEADWAY_DBUS_CHARGE_PUBLISH, 1, NULL, NULL));
  headway_dbus_charge_release (&charges[0]);
}

static void
test_leave (void)
{
  g_autoptr (HeadwayDBusPeer) peer = headway_dbus_peer_new (":1.1");
  Thing things[3] = { 0 };
  HeadwayDBusCharge silent = { 0 };
  HeadwayDBusCharge late = { 0 };
  g_autoptr (GError) error = NULL;

  for (guint i = 0; i < 3; i++)
    g_assert_true (headway_dbus_charge_take (&things[i].charge, peer, HEADWAY_DBUS_CHARGE_SUBSCRIPTION, 0, on_left, NULL));
  g_assert_true (headway_dbus_charge_take (&silent, peer, HEADWAY_DBUS_CHARGE_CALL, 0, NULL, NULL));
  headway_dbus_charge_release (&things[1].charge);
  headway_dbus_peer_leave (peer);
  g_assert_cmpuint (things[0].n_left, ==, 1);
  g_assert_cmpuint (things[1].n_left, ==, 0);
  g_assert_cmpuint (things[2].n_left, ==, 1);
  g_assert_null (silent.peer);
  g_assert_false (headway_dbus_charge_take (&late, peer, HEADWAY_DBUS_CHARGE_CALL, 0, NULL, &error));
  g_assert_error (error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/dbus/peer/both-sides-of-each-limit", test_limits);
  g_test_add_func ("/dbus/peer/bytes-of-publishes", test_bytes);
  g_test_add_func ("/dbus/peer/leaving-releases-everything", test_leave);
  return g_test_run ();
}
