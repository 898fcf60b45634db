/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-bus-store.h"
#include "engine/headway-bus.h"
#include "engine/headway-metrics.h"

G_BEGIN_DECLS

/* What a bus tells the table it stands in. */
typedef struct
{
  void (*work) (HeadwayBus *bus, gpointer data);   /* headway_bus_run() wants to be called */
  void (*closed) (HeadwayBus *bus, gpointer data); /* it takes no events any more, and drains */
  guint (*next_number) (gpointer data);            /* of a subscription */
  /* A reader of user @uid was too slow; @principal: (nullable): whose event came in. */
  void (*lost) (HeadwayBus *bus, guint32 uid, HeadwayPrincipal *principal, HeadwayInstant now, gpointer data);
  gpointer data;           /* borrowed: the table, which outlives its buses' calls */
  HeadwayMetrics *metrics; /* borrowed, likewise */
} HeadwayBusHooks;

/* NULL: it left the table. */
void headway_bus_set_hooks (HeadwayBus *self, const HeadwayBusHooks *hooks);
/* From now on only granted ids may be used, and @store is asked for more. */
void headway_bus_set_store (HeadwayBus *self, HeadwayBusStore *store, guint64 granted_id);
/* @handlers: (nullable): the handlers of this bus; borrowed until it is told NULL. */
void headway_bus_set_handlers (HeadwayBus *self, HeadwayHandlerSet *handlers);
HeadwayHandlerSet *headway_bus_get_handlers (HeadwayBus *self);
/* Asks the store for the first block. */
void headway_bus_request_ids (HeadwayBus *self, HeadwayInstant now);
/* Microseconds of the monotonic clock since when a publish waits for ids; 0: none does. */
gint64 headway_bus_get_waiting_since_us (HeadwayBus *self);
/* TRUE once everything that its readers may still want has been read. */
gboolean headway_bus_is_drained (HeadwayBus *self);
/* Counts @amount in @series; a bus without a table counts nothing. */
void headway_bus_count (HeadwayBus *self, guint series, gint64 amount);
/* See HeadwayBusHooks. */
void headway_bus_report_loss (HeadwayBus *self, guint32 uid, HeadwayPrincipal *principal, HeadwayInstant now);
/* Why a bus that closes publishes nothing; @what: said of it where it does not only stop. (transfer full) */
GError *headway_bus_new_closed_error (HeadwayBus *self, const char *what);
/* A subscription that drained is gone. */
void headway_bus_forget_subscription (HeadwayBus *self, HeadwaySubscription *subscription);

G_END_DECLS
