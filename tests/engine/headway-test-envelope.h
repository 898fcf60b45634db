/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-event.h"

/* The envelope of @event, ended by NUL; @length (out) (nullable): without it. Returns: (transfer full) */
static inline char *
test_dup_envelope (const HeadwayEvent *event, gsize *length)
{
  gsize size = headway_event_get_size (event);
  char *text = g_malloc (size + 1);
  char *end = headway_event_write_envelope (event, text);

  g_assert_cmpuint ((gsize) (end - text), ==, size);
  *end = '\0';
  if (length != NULL)
    *length = size;
  return text;
}
