/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>
#include <string.h>

G_BEGIN_DECLS

/* Bytes that any number takes. */
#define HEADWAY_DIGITS_MAX 20

/* Writes @number in decimal so that its last digit stands before @end. Two digits a step: each event is
 * given two or three numbers. Returns where the first one stands. */
static inline char *
headway_digits_write_before (char *end, guint64 number)
{
  static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
                              "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
                              "8081828384858687888990919293949596979899";

  for (; number >= 100; number /= 100)
    {
      end -= 2;
      memcpy (end, pairs + 2 * (number % 100), 2);
    }
  if (number < 10)
    *--end = (char) ('0' + number);
  else
    {
      end -= 2;
      memcpy (end, pairs + 2 * number, 2);
    }
  return end;
}

G_END_DECLS
