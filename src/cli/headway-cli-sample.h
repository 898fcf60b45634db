/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "cli/headway-cli-bus-info.h"

G_BEGIN_DECLS

/* A rate that is not known yet. */
#define HEADWAY_CLI_RATE_UNKNOWN (-1.0)

typedef struct
{
  HeadwayCliBusInfo info;
  double events_per_second;
} HeadwayCliSampleBus;

typedef struct
{
  char *bus; /* owned, as are the texts below */
  guint32 number;
  char *owner;
  char *mode;
  char *sink;
  guint32 queued;
  guint64 queued_bytes;
  guint64 dropped;
  guint64 lag;
  double dropped_per_second;
  gboolean is_slow; /* something waits, and did so the last time */
} HeadwayCliSampleSubscription;

typedef struct
{
  char *name; /* owned; "": the system */
  guint n_subscriptions;
  guint64 queued;
  guint64 queued_bytes;
  guint64 untold; /* lost, and not yet told to the reader */
  double share;   /* of all bytes that wait, 0 to 1 */
  gboolean is_flooding;
} HeadwayCliSamplePrincipal;

/* One series of the metrics that count losses. */
typedef struct
{
  char *family; /* owned, as are the texts below */
  char *reason; /* "" if it has none */
  char *whom;   /* class of the reader, then of the principal; "" if it has none */
  double total;
  double per_second;
} HeadwayCliSampleLoss;

/**
 * HeadwayCliSample:
 *
 * What headwayd said at one moment, and how fast it changes since the moment before.
 */
typedef struct
{
  gint64 time_us;                 /* monotonic */
  GPtrArray *buses;               /* HeadwayCliSampleBus (owned), busiest first */
  GPtrArray *subscriptions;       /* HeadwayCliSampleSubscription (owned), worst first */
  GPtrArray *principals;          /* HeadwayCliSamplePrincipal (owned), heaviest first */
  GHashTable *principals_by_name; /* name (borrowed): HeadwayCliSamplePrincipal (borrowed) */
  GPtrArray *losses;              /* HeadwayCliSampleLoss (owned), fastest first */
  double published;
  double published_bytes;
  double published_per_second;
  double bytes_per_second;
  gboolean is_refused; /* some bus did not list its subscriptions to this user */
} HeadwayCliSample;

HeadwayCliSample *headway_cli_sample_new (gint64 time_us);
void headway_cli_sample_free (HeadwayCliSample *self);
void headway_cli_sample_add_buses (HeadwayCliSample *self,
                                   GVariant *objects);
void headway_cli_sample_add_subscriptions (HeadwayCliSample *self,
                                           const char *bus,
                                           GVariant *subscriptions);
void headway_cli_sample_add_metrics (HeadwayCliSample *self,
                                     GVariant *metrics);
void headway_cli_sample_finish (HeadwayCliSample *self,
                                const HeadwayCliSample *previous);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayCliSample, headway_cli_sample_free)

G_END_DECLS
