/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * headway_http_farewell:
 * @fd: (transfer full): a non-blocking stream socket
 * @answer: (transfer full): the whole answer, header block and body
 * @released: called with @released_data once the socket is closed
 *
 * Answers a request whose body nobody will read, and closes. Closing at once would turn the unread
 * input into a reset, which may take the answer with it: so input is read and dropped for a while.
 */
void headway_http_farewell (int fd, GString *answer, GDestroyNotify released, gpointer released_data);

G_END_DECLS
