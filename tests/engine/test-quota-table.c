/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-quota-table.h"

#define KEY(n) GUINT_TO_POINTER (n)

static HeadwayQuota *
add (HeadwayQuotaTable *table, guint scope, guint who, guint64 tat_ns)
{
  HeadwayQuota *quota = headway_quota_table_add (table, KEY (scope), KEY (who), NULL);

  quota->bytes.tat_ns = tat_ns;
  return quota;
}

static void
test_both_parts_make_the_key (void)
{
  g_autoptr (HeadwayQuotaTable) table = headway_quota_table_new (10);
  HeadwayQuota *quota = add (table, 1, 2, 5);

  g_assert_true (headway_quota_table_lookup (table, KEY (1), KEY (2)) == quota);
  g_assert_null (headway_quota_table_lookup (table, KEY (2), KEY (1)));
  g_assert_null (headway_quota_table_lookup (table, KEY (1), KEY (3)));
  g_assert_null (headway_quota_table_lookup (table, NULL, NULL));
  g_assert_true (add (table, 0, 0, 5) == headway_quota_table_lookup (table, NULL, NULL));
}

static void
test_reclaim_takes_what_says_nothing (void)
{
  g_autoptr (HeadwayQuotaTable) table = headway_quota_table_new (10);

  add (table, 1, 1, 100);
  add (table, 1, 2, 101);
  add (table, 1, 3, 100);
  headway_quota_table_reclaim (table, 10, 99);
  g_assert_cmpuint (headway_quota_table_size (table), ==, 3);
  headway_quota_table_reclaim (table, 10, 100);
  g_assert_cmpuint (headway_quota_table_size (table), ==, 1);
  g_assert_nonnull (headway_quota_table_lookup (table, KEY (1), KEY (2)));
}

static void
test_reclaim_heeds_both_times (void)
{
  g_autoptr (HeadwayQuotaTable) table = headway_quota_table_new (10);

  add (table, 1, 1, 0)->events.tat_ns = 100;
  headway_quota_table_reclaim (table, 1, 99);
  g_assert_cmpuint (headway_quota_table_size (table), ==, 1);
  headway_quota_table_reclaim (table, 1, 100);
  g_assert_cmpuint (headway_quota_table_size (table), ==, 0);
}

static void
test_reclaim_looks_at_so_many_of_the_oldest (void)
{
  g_autoptr (HeadwayQuotaTable) table = headway_quota_table_new (10);

  for (guint i = 1; i <= 5; i++)
    add (table, 1, i, 10);
  headway_quota_table_touch (table, headway_quota_table_lookup (table, KEY (1), KEY (1)));
  headway_quota_table_reclaim (table, 2, 10);
  g_assert_cmpuint (headway_quota_table_size (table), ==, 3);
  g_assert_nonnull (headway_quota_table_lookup (table, KEY (1), KEY (1)));
  g_assert_null (headway_quota_table_lookup (table, KEY (1), KEY (2)));
  g_assert_null (headway_quota_table_lookup (table, KEY (1), KEY (3)));
  headway_quota_table_reclaim (table, 0, 10);
  g_assert_cmpuint (headway_quota_table_size (table), ==, 3);
}

static void
test_reclaim_of_others_spares_the_one_charged_last (void)
{
  g_autoptr (HeadwayQuotaTable) table = headway_quota_table_new (10);

  headway_quota_table_reclaim_others (table, 2, 10);
  for (guint i = 1; i <= 3; i++)
    add (table, 1, i, 10);
  headway_quota_table_touch (table, headway_quota_table_lookup (table, KEY (1), KEY (2)));
  headway_quota_table_reclaim_others (table, 10, 10);
  g_assert_cmpuint (headway_quota_table_size (table), ==, 1);
  g_assert_nonnull (headway_quota_table_lookup (table, KEY (1), KEY (2)));
}

static void
test_full_table_has_one_quota_in_common (void)
{
  g_autoptr (HeadwayQuotaTable) table = headway_quota_table_new (2);
  HeadwayQuota *common = headway_quota_table_get_common (table);

  g_assert_cmpuint (headway_quota_table_room (table), ==, 2);
  g_assert_true (add (table, 1, 1, 10) != common);
  g_assert_true (add (table, 1, 2, 10) != common);
  g_assert_cmpuint (headway_quota_table_room (table), ==, 0);
  g_assert_true (add (table, 1, 3, 10) == common);
  g_assert_true (add (table, 1, 4, 10) == common);
  g_assert_null (headway_quota_table_lookup (table, KEY (1), KEY (3)));
  g_assert_cmpuint (headway_quota_table_size (table), ==, 2);
  headway_quota_table_touch (table, common);

  headway_quota_table_reclaim (table, 1, 10);
  g_assert_true (add (table, 1, 3, 10) != common);
}

static void
test_forget_takes_one_scope (void)
{
  g_autoptr (HeadwayQuotaTable) table = headway_quota_table_new (10);

  for (guint i = 0; i < 6; i++)
    add (table, i % 2, i, G_MAXUINT64);
  headway_quota_table_forget (table, KEY (1));
  g_assert_cmpuint (headway_quota_table_size (table), ==, 3);
  g_assert_null (headway_quota_table_lookup (table, KEY (1), KEY (1)));
  g_assert_nonnull (headway_quota_table_lookup (table, KEY (0), KEY (2)));
}

static void
test_forget_again_and_anew (void)
{
  g_autoptr (HeadwayQuotaTable) table = headway_quota_table_new (10);

  headway_quota_table_forget (table, KEY (1));
  add (table, 1, 1, 10);
  add (table, 1, 2, 20);
  headway_quota_table_reclaim (table, 2, 10);
  headway_quota_table_forget (table, KEY (1));
  headway_quota_table_forget (table, KEY (1));
  g_assert_cmpuint (headway_quota_table_size (table), ==, 0);
  add (table, 1, 1, 10);
  g_assert_cmpuint (headway_quota_table_size (table), ==, 1);
  headway_quota_table_forget (table, NULL);
  g_assert_cmpuint (headway_quota_table_size (table), ==, 1);
}

static void
test_key_keeps_its_principal (void)
{
  g_autoptr (HeadwayPrincipalTable) principals = headway_principal_table_new ();
  g_autoptr (HeadwayQuotaTable) table = headway_quota_table_new (1);
  HeadwayPrincipal *alice = headway_principal_table_intern (principals, "alice", NULL);

  headway_quota_table_add (table, KEY (1), alice, alice)->bytes.tat_ns = 10;
  headway_principal_unref (alice);
  g_assert_cmpuint (headway_principal_table_size (principals), ==, 1);
  headway_quota_table_reclaim (table, 1, 10);
  g_assert_cmpuint (headway_principal_table_size (principals), ==, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);

  g_test_add_func ("/quota-table/both-parts-make-the-key", test_both_parts_make_the_key);
  g_test_add_func ("/quota-table/reclaim/takes-what-says-nothing", test_reclaim_takes_what_says_nothing);
  g_test_add_func ("/quota-table/reclaim/heeds-both-times", test_reclaim_heeds_both_times);
  g_test_add_func ("/quota-table/reclaim/looks-at-so-many-of-the-oldest", test_reclaim_looks_at_so_many_of_the_oldest);
  g_test_add_func ("/quota-table/reclaim/of-others-spares-the-one-charged-last", test_reclaim_of_others_spares_the_one_charged_last);
  g_test_add_func ("/quota-table/full/has-one-quota-in-common", test_full_table_has_one_quota_in_common);
  g_test_add_func ("/quota-table/forget/takes-one-scope", test_forget_takes_one_scope);
  g_test_add_func ("/quota-table/forget/again-and-anew", test_forget_again_and_anew);
  g_test_add_func ("/quota-table/key-keeps-its-principal", test_key_keeps_its_principal);

  return g_test_run ();
}
