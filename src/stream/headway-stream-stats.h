/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Why a stream ended (sse-contract.md 4); the last one is ours. */
typedef enum
{
  HEADWAY_STREAM_CLOSE_WRITER_IDLE_TIMEOUT,
  HEADWAY_STREAM_CLOSE_SOCKET_ERROR,
  HEADWAY_STREAM_CLOSE_ITERATOR_ERROR,
  HEADWAY_STREAM_CLOSE_EVENT_BUS_EVICTED,
  HEADWAY_STREAM_CLOSE_SESSION_TERMINAL,
  HEADWAY_STREAM_CLOSE_SOURCE_COMPLETE,
  HEADWAY_STREAM_CLOSE_CLIENT_DISCONNECT,
  HEADWAY_STREAM_CLOSE_DRAIN_TIMEOUT,
  HEADWAY_STREAM_N_CLOSE_REASONS
} HeadwayStreamCloseReason;

/* Counts since the start; what the metrics show. */
typedef struct
{
  guint64 opened;
  guint64 closed[HEADWAY_STREAM_N_CLOSE_REASONS];
  guint64 frames_built; /* shared frames that were serialized */
  guint64 writes;       /* send() and sendmsg() calls */
  guint64 blocked;      /* how often a socket was full */
  guint64 bytes;        /* bytes the kernel took */
} HeadwayStreamStats;

/* The word for logs and metrics, such as "client_disconnect"; never NULL. */
const char *headway_stream_close_reason_get_name (HeadwayStreamCloseReason reason);

G_END_DECLS
