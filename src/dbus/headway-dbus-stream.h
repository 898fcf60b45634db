/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "dbus/headway-dbus-context.h"
#include "engine/headway-subscription.h"

G_BEGIN_DECLS

typedef struct _HeadwayDBusStream HeadwayDBusStream;

/* Our end is closed, and @self is about to be freed. */
typedef void (*HeadwayDBusStreamDone) (HeadwayDBusStream *self, gpointer user_data);

/**
 * headway_dbus_stream_check:
 * @word: the format that the caller of OpenStream() asks for
 * @options: an `a{sv}`; no option is known
 *
 * Returns: FALSE with HEADWAY_ERROR_INVALID_OPTION, which names the value and what is allowed, or with
 *   HEADWAY_ERROR_NOT_SUPPORTED: no descriptor can be passed over this connection to the message bus.
 */
gboolean headway_dbus_stream_check (HeadwayDBusContext *context,
                                    const char *word,
                                    GVariant *options,
                                    HeadwayStreamFormat *format,
                                    GError **error);

/**
 * HeadwayDBusStream:
 *
 * The events of one subscription on their way into a socket pair (dbus-api.md, OpenStream; decisions.md 26). It
 * lives in the hub, and belongs to it: until the reader closes its end, or the subscription ends and what waits is
 * written, or the drain window is over and no frame is begun. Until then its owner is charged, so that nobody
 * collects such as linger.
 *
 * @subscription: referenced; without a reader
 * @owner: charged for it once headway_dbus_stream_end() is called; until then for @subscription
 * @done: called once, unless headway_dbus_stream_end() comes first
 * @fd: (out): the reader's end, the caller's to hand over and close
 *
 * Returns: (nullable): NULL with HEADWAY_ERROR_UNAVAILABLE.
 */
HeadwayDBusStream *headway_dbus_stream_new (HeadwayDBusContext *context,
                                            HeadwaySubscription *subscription,
                                            HeadwayDBusPeer *owner,
                                            HeadwayStreamFormat format,
                                            HeadwayDBusStreamDone done,
                                            gpointer user_data,
                                            int *fd,
                                            GError **error);

/* Its D-Bus object goes: closes the subscription; what waits is still written, within the drain window. */
void headway_dbus_stream_end (HeadwayDBusStream *self);

/* Answers @invocation, (transfer full), with the descriptor @fd, (transfer full). */
void headway_dbus_stream_answer (GDBusMethodInvocation *invocation, int fd);

G_END_DECLS
