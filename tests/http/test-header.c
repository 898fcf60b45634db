/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "http/headway-http-header.h"

#include <string.h>

static void
test_block_ends_at_an_empty_line (void)
{
  static const struct
  {
    const char *text;
    gsize length;
  } cases[] = {
    { "", 0 },
    { "GET / HTTP/1.1", 0 },
    { "GET / HTTP/1.1\r\n", 0 },
    { "GET / HTTP/1.1\r\n\r", 0 },
    { "GET / HTTP/1.1\r\n\r\n", 18 },
    { "GET / HTTP/1.1\r\n\r\nrest\r\n\r\n", 18 },
    { "a\n\n", 3 },
    { "a\n\r\n", 4 },
    { "a\r\nb\n\nc", 6 },
    { "a\r\r\n\r\n", 6 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_assert_cmpuint (headway_http_find_block (cases[i].text, strlen (cases[i].text)), ==, cases[i].length);
      /* No byte less is a whole block. */
      for (gsize n = 0; n < cases[i].length; n++)
        g_assert_cmpuint (headway_http_find_block (cases[i].text, n), ==, 0);
    }
}

static void
test_bodies_of_uncertain_length_are_refused (void)
{
  static const struct
  {
    const char *headers;
    guint status;
  } cases[] = {
    { "", 0 },
    { "Content-Length: 0\r\n", 0 },
    { "content-length:5\r\n", 0 },
    { "Content-Length: \t 5 \r\n", 0 },
    { "Transfer-Encoding: chunked\r\n", 0 },
    { "TRANSFER-ENCODING: Chunked\r\n", 0 },
    { "X-Content-Length: x\r\nContent-Lengthy: x\r\n", 0 },
    { "Content-Length: x\r\n", 400 },
    { "Content-Length:\r\n", 400 },
    { "Content-Length: -1\r\n", 400 },
    { "Content-Length: +1\r\n", 400 },
    { "Content-Length: 1,1\r\n", 400 },
    { "Content-Length: 9999999999999999999\r\n", 400 },
    { "Content-Length: 1\r\nContent-Length: 1\r\n", 400 },
    { "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", 400 },
    { "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400 },
    { "Transfer-Encoding: identity\r\nContent-Length: 1\r\n", 400 },
    { "Transfer-Encoding: gzip, chunked\r\n", 501 },
    { "Transfer-Encoding:\r\n", 501 },
    { "A: b\r\n c\r\n", 400 },
    { "Content-Length : 1\r\n", 400 },
    { "Transfer-Encoding\t: chunked\r\n", 400 },
    { "A : b\r\n", 400 },
    { "A: b : c\r\n", 0 },
    { ": b\r\n", 0 },
    { "A: b\nContent-Length: x\n", 400 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *block = g_strdup_printf ("POST / HTTP/1.1\r\n%s\r\n", cases[i].headers);
      g_assert_cmpuint (headway_http_check_block (block, strlen (block)), ==, cases[i].status);
    }
  g_assert_cmpuint (headway_http_check_block ("GET / HTTP/1.1\r\nA: \0b\r\n\r\n", 25), ==, 400);
}

static void
assert_mended (const char *from, const char *to)
{
  g_autoptr (GByteArray) block = g_byte_array_new ();
  gsize grown;

  g_byte_array_append (block, (const guint8 *) from, (guint) strlen (from));
  grown = headway_http_mend_target (block);
  g_assert_cmpmem (block->data, block->len, to, strlen (to));
  g_assert_cmpuint (grown, ==, strlen (to) - strlen (from));
}

static void
test_targets_are_mended (void)
{
  assert_mended ("GET /a HTTP/1.1\r\nX: %zz\r\n\r\n", "GET /a HTTP/1.1\r\nX: %zz\r\n\r\n");
  assert_mended ("GET /%zz HTTP/1.1\r\n\r\n", "GET /%FFzz HTTP/1.1\r\n\r\n");
  assert_mended ("GET /%41%4 HTTP/1.1\r\n\r\n", "GET /%41%FF4 HTTP/1.1\r\n\r\n");
  assert_mended ("GET /% HTTP/1.1\r\n\r\n", "GET /%FF HTTP/1.1\r\n\r\n");
  assert_mended ("GET\t /%%41 HTTP/1.1\r\n\r\n", "GET\t /%FF%41 HTTP/1.1\r\n\r\n");
  assert_mended ("GET /\xe2\x82\xac?\xff HTTP/1.1\n\n", "GET /%E2%82%AC?%FF HTTP/1.1\n\n");
  assert_mended ("G\xff /a HTTP/1.1\n\n", "G\xff /a HTTP/1.1\n\n");
  assert_mended ("nonsense\r\n\r\n", "nonsense\r\n\r\n");
  assert_mended ("a %", "a %FF");
  assert_mended ("", "");
}

static void
test_phrases (void)
{
  g_assert_cmpstr (headway_http_get_phrase (200), ==, "OK");
  g_assert_cmpstr (headway_http_get_phrase (429), ==, "Too Many Requests");
  g_assert_cmpstr (headway_http_get_phrase (431), ==, "Request Header Fields Too Large");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/http/header/block-ends-at-an-empty-line", test_block_ends_at_an_empty_line);
  g_test_add_func ("/http/header/bodies-of-uncertain-length-are-refused", test_bodies_of_uncertain_length_are_refused);
  g_test_add_func ("/http/header/targets-are-mended", test_targets_are_mended);
  g_test_add_func ("/http/header/phrases", test_phrases);
  return g_test_run ();
}
