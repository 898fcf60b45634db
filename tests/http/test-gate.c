/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-gate.h"

static void
test_loopback_listeners_have_three_names (void)
{
  const HeadwayHttpPlace place = { .is_loopback = TRUE, .port = 8787 };
  static const char *const good[] = { "127.0.0.1:8787", "localhost:8787", "LOCALHOST:8787", "[::1]:8787" };
  static const char *const bad[] = { "", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:80", "127.0.0.2:8787", "evil.example:8787", "[::1]",
                                     "[::1", "[]:8787", "::1:8787", "localhost:08787x", "localhost:8787:8787", "localhost.:8787" };

  for (guint i = 0; i < G_N_ELEMENTS (good); i++)
    g_assert_true (headway_http_gate_is_host (good[i], &place));
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    g_assert_false (headway_http_gate_is_host (bad[i], &place));
}

static void
test_port_80_needs_no_mention (void)
{
  const HeadwayHttpPlace place = { .is_loopback = TRUE, .port = 80 };

  g_assert_true (headway_http_gate_is_host ("localhost", &place));
  g_assert_true (headway_http_gate_is_host ("localhost:80", &place));
  g_assert_true (headway_http_gate_is_host ("[::1]", &place));
}

static void
test_other_listeners_have_addresses_but_no_foreign_names (void)
{
  const HeadwayHttpPlace place = { .port = 8787 };
  g_autofree char *own = g_strdup_printf ("%s:8787", g_get_host_name ());

  g_assert_true (headway_http_gate_is_host ("192.0.2.1:8787", &place));
  g_assert_true (headway_http_gate_is_host ("[2001:db8::1]:8787", &place));
  g_assert_true (headway_http_gate_is_host ("localhost:8787", &place));
  g_assert_true (headway_http_gate_is_host (own, &place));
  g_assert_false (headway_http_gate_is_host ("evil.example:8787", &place));
  g_assert_false (headway_http_gate_is_host ("192.0.2.1.evil.example:8787", &place));
}

static void
test_bearer (void)
{
  g_assert_cmpstr (headway_http_gate_get_bearer ("Bearer abc"), ==, "abc");
  g_assert_cmpstr (headway_http_gate_get_bearer ("bEARER   abc"), ==, "abc");
  g_assert_cmpstr (headway_http_gate_get_bearer ("Bearer "), ==, "");
  g_assert_null (headway_http_gate_get_bearer (NULL));
  g_assert_null (headway_http_gate_get_bearer (""));
  g_assert_null (headway_http_gate_get_bearer ("Bearer"));
  g_assert_null (headway_http_gate_get_bearer ("Bearerabc"));
  g_assert_null (headway_http_gate_get_bearer ("Bearer\tabc"));
  g_assert_null (headway_http_gate_get_bearer ("Basic abc"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/http/gate/loopback-listeners-have-three-names", test_loopback_listeners_have_three_names);
  g_test_add_func ("/http/gate/port-80-needs-no-mention", test_port_80_needs_no_mention);
  g_test_add_func ("/http/gate/other-listeners-have-addresses-but-no-foreign-names",
                   test_other_listeners_have_addresses_but_no_foreign_names);
  g_test_add_func ("/http/gate/bearer", test_bearer);
  return g_test_run ();
}
