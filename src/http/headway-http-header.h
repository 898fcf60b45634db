/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Bytes of the header block at the start of @text, with the empty line behind it; 0 while it is not
 * whole. Its end is where libsoup sees it: LF LF or LF CR LF. */
gsize headway_http_find_block (const char *text, gsize length);

/**
 * headway_http_check_block:
 * @block: a whole header block
 *
 * Refuses what libsoup must not see, whatever the request is: U+0000, a body whose length is not
 * certain (two lengths, a length and a transfer encoding), and what libsoup 3.2.3 leaks memory on, a
 * length that is no number and an encoding that is not chunked.
 *
 * Returns: 0, or the status to answer with.
 */
guint headway_http_check_block (const char *block, gsize length);

/**
 * headway_http_mend_target:
 * @block: starts with a whole request line; changed in place
 *
 * Makes every request target one that GUri parses, which is strict where the contract is not: a `%`
 * that starts no escape becomes `%FF`, which no later check takes for text, and bytes beyond ASCII
 * are escaped.
 *
 * Returns: how many bytes longer @block is now.
 */
gsize headway_http_mend_target (GByteArray *block);

/* The reason phrase of a status, of those that libsoup does not know as well. */
const char *headway_http_get_phrase (guint status);

G_END_DECLS
