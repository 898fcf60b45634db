/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "fuzz.h"

#include "engine/headway-types.h"
#include "wire/headway-sse-frame.h"

#include <string.h>

/* Last-Event-ID, the epoch and maxQueued, by the words of sse-contract.md 1.1. */

const char *const fuzz_seeds[] = {
  "0",
  "01",
  " 1 ",
  "9007199254740991",
  "9007199254740992",
  "16",
  "2048",
  "2049",
  "+1",
  "1.5",
  "1e0",
  "abc_-XYZ",
  "",
  NULL,
};

static gboolean
is_digits (const char *text)
{
  return *text != '\0' && strspn (text, "0123456789") == strlen (text);
}

/* Without leading zeros, numbers are in the order of their lengths, then of their digits. */
static gboolean
is_at_most (const char *digits, const char *limit)
{
  while (*digits == '0')
    digits++;
  return strlen (digits) < strlen (limit) || (strlen (digits) == strlen (limit) && strcmp (digits, limit) <= 0);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_autofree char *text = g_strndup (size > 0 ? (const char *) data : "", size);
  g_autofree char *bare = g_strdup (text);
  g_autoptr (GError) error = NULL;
  guint64 id = 0;
  guint max_queued = 0;
  gboolean is_cursor;
  gboolean is_cap = headway_sse_parse_max_queued (text, &max_queued, &error);
  gsize epoch_length = strspn (text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-");

  /* The HTTP layer takes blanks off both ends before anybody sees the value. */
  g_strstrip (bare);
  is_cursor = headway_sse_parse_last_event_id (bare, &id);
  g_assert_cmpint (is_cursor, ==, is_digits (bare) && is_at_most (bare, "9007199254740991"));
  if (is_cursor)
    g_assert_cmpuint (id, ==, g_ascii_strtoull (bare, NULL, 10));

  g_assert_cmpint (is_cap, ==, is_digits (text) && is_at_most (text, "2048") && !is_at_most (text, "15"));
  g_assert_cmpint (is_cap, ==, error == NULL);
  if (is_cap)
    g_assert_cmpuint (max_queued, ==, g_ascii_strtoull (text, NULL, 10));

  g_assert_cmpint (headway_sse_is_epoch (text), ==, epoch_length == strlen (text) && epoch_length >= 1 && epoch_length <= 64);
  return 0;
}
