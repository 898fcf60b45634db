/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "cli/headway-cli-reader.h"

G_BEGIN_DECLS

typedef struct _HeadwayCliSubscriber HeadwayCliSubscriber;

/**
 * HeadwayCliWay:
 * @open: starts to read the subscription; returns what the others take
 * @proceed: all that was taken is written: read on. Called once for each
 *   headway_cli_subscriber_flush(), maybe from within it
 * @close: stops and frees
 *
 * One way to read a subscription (cli.md, `--via`). It hands over events with
 * headway_cli_reader_take(), then headway_cli_subscriber_flush(). It ends with
 * headway_cli_subscriber_end() or _call_failed(), behind which it is gone; when the daemon leaves,
 * only once all that came before is taken.
 */
typedef struct
{
  gpointer (*open) (HeadwayCliSubscriber *subscriber);
  void (*proceed) (gpointer self);
  void (*close) (gpointer self);
} HeadwayCliWay;

HeadwayCliSubscriber *headway_cli_subscriber_new (HeadwayCli *cli,
                                                  const HeadwayCliSubOptions *options,
                                                  HeadwayCliReader *reader,
                                                  GError **error);
void headway_cli_subscriber_free (HeadwayCliSubscriber *self);

/* For the ways. */
HeadwayCliReader *headway_cli_subscriber_get_reader (HeadwayCliSubscriber *self);
GDBusConnection *headway_cli_subscriber_get_connection (HeadwayCliSubscriber *self);
const char *headway_cli_subscriber_get_daemon (HeadwayCliSubscriber *self);
const char *headway_cli_subscriber_get_path (HeadwayCliSubscriber *self);
void headway_cli_subscriber_take_variant (HeadwayCliSubscriber *self,
                                          GVariant *event);
void headway_cli_subscriber_call (HeadwayCliSubscriber *self,
                                  const char *method,
                                  GVariant *parameters,
                                  const char *reply_type,
                                  GAsyncReadyCallback callback,
                                  gpointer user_data);
gboolean headway_cli_subscriber_finish (GObject *source,
                                        GAsyncResult *result,
                                        GVariant **reply,
                                        GUnixFDList **descriptors,
                                        GError **error);
void headway_cli_subscriber_flush (HeadwayCliSubscriber *self);
void headway_cli_subscriber_end (HeadwayCliSubscriber *self,
                                 const GError *reason);
void headway_cli_subscriber_call_failed (HeadwayCliSubscriber *self,
                                         const GError *error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayCliSubscriber, headway_cli_subscriber_free)

G_END_DECLS
