/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "fuzz.h"

#include "http/headway-http-chunks.h"
#include "http/headway-http-header.h"

#include <string.h>

/* What comes in before libsoup: the header block, then a chunked body, whole and byte by byte. */

const char *const fuzz_seeds[] = {
  "GET /session/a/events HTTP/1.1\r\nHost: x\r\n\r\n",
  "POST /session/%zz/events?x=%z HTTP/1.1\r\nContent-Length: 3\r\n\r\n{}\n",
  "POST / HTTP/1.1\nTransfer-Encoding: chunked\n\n5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\nGET",
  "POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\nContent-Length: 1\r\n\r\n",
  "3\r\nabc\r\n1f\r\n0123456789012345678901234567890\r\n0\r\n\r\n",
  NULL,
};

/* The decoder's whole output for input that arrives in pieces of @piece bytes; NULL if it refuses. */
static GByteArray *
decode (const uint8_t *data, gsize size, gsize piece)
{
  g_autoptr (GByteArray) input = g_byte_array_new ();
  g_autoptr (GByteArray) output = g_byte_array_new ();
  HeadwayHttpChunks chunks = { 0 };

  for (gsize at = 0; at < size; at += piece)
    {
      gssize n;

      g_byte_array_append (input, data + at, (guint) MIN (piece, size - at));
      while ((n = headway_http_chunks_next (&chunks, input, 4096)) > 0)
        {
          g_assert_cmpint (n, <=, (gssize) input->len);
          g_byte_array_append (output, input->data, (guint) n);
          g_byte_array_remove_range (input, 0, (guint) n);
        }
      if (n < 0)
        return NULL;
    }
  return g_steal_pointer (&output);
}

static void
try_chunks (const uint8_t *data, gsize size)
{
  g_autoptr (GByteArray) whole = decode (data, size, size);
  g_autoptr (GByteArray) bytewise = decode (data, size, 1);

  g_assert_cmpint (whole == NULL, ==, bytewise == NULL);
  if (whole != NULL)
    g_assert_cmpmem (whole->data, whole->len, bytewise->data, bytewise->len);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_autoptr (GByteArray) block = g_byte_array_new ();
  gsize length = headway_http_find_block ((const char *) data, size);
  gsize grown;

  g_assert_cmpuint (length, <=, size);
  if (size > 0)
    try_chunks (data, size);
  if (length == 0)
    return 0;

  headway_http_check_block ((const char *) data, length);
  g_byte_array_append (block, data, (guint) length);
  grown = headway_http_mend_target (block);
  g_assert_cmpuint (block->len, ==, length + grown);
  g_assert_cmpuint (headway_http_find_block ((const char *) block->data, block->len), ==, block->len);
  return 0;
}
