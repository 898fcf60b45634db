/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/**
 * headway_http_wait_new:
 * @stream: whose pollable source this is: of type GPollableInputStream or GPollableOutputStream
 * @fd: what to wait for; -1: for headway_http_wait_end()
 * @cancellable: (nullable): ends the wait too
 *
 * What create_source() of our streams gives to libsoup. A GPollableSource around a GUnixFDSource or a timeout would do
 * the same, but every request makes one: it is two sources and two closures in place of one each, and a timeout that
 * fires arms itself again, which writes to GLib's eventfd, to wake a loop that is awake (performance.md, 1).
 * Returns: (transfer full): a source whose callback is a GPollableSourceFunc.
 */
GSource *headway_http_wait_new (gpointer stream, int fd, GIOCondition condition, GCancellable *cancellable);

/* There is something to do from now on: @wait is ready in the next turn of the loop, and in each after it. In the
 * loop's own thread. */
void headway_http_wait_end (GSource *wait);

G_END_DECLS
