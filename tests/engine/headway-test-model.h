/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-route-options.h"

/* A route as naive lists, written from the words of the contract (routing.md 1.7, 3.1, 3.3, 3.4;
 * decisions.md 27 to 32) and not from the source: it scans, copies and sorts, and it turns the ring
 * by hand. Principals are numbers. */

typedef struct
{
  guint64 count;
  guint64 bytes;
  guint64 first;
  guint64 last;
  guint64 opened; /* the publish that cost the first event */
  int reason;
  int principal; /* -1: several */
} ModelGap;

typedef struct
{
  guint64 id;
  gsize cost;
  gboolean is_spared;
  int principal;
  ModelGap gap; /* before it; count 0: none */
} ModelEvent;

typedef struct
{
  int principal;  /* -1: the overflow queue */
  GArray *events; /* ModelEvent */
  ModelGap tail;
  guint64 deficit;
  gboolean is_in_turn;
} ModelQueue;

typedef struct
{
  HeadwayRouteOptions options;
  GPtrArray *ring; /* ModelQueue, the front first */
  ModelGap gap;
  guint64 starved;
  guint64 lost;
} Model;

/* What a reader gets: an event, or a gap if its count is not 0. */
typedef struct
{
  guint64 id;
  gsize cost;
  guint64 resume_id;
  ModelGap gap;
} ModelItem;

void model_init (Model *self, const HeadwayRouteOptions *options);
void model_clear (Model *self);

typedef struct
{
  gboolean is_admitted;
  guint evicted;
} ModelOffer;

ModelOffer model_offer (Model *self, guint64 id, int principal, gsize cost, gboolean is_final);
/* @budget: G_MAXUINT64: takes. Appends to @items (ModelItem). */
void model_take (Model *self, guint64 budget, guint max_items, guint64 last_id, GArray *items);
guint64 model_bytes (const Model *self);
guint model_count (const Model *self);
guint64 model_low_water (const Model *self, guint64 last_id);
ModelQueue *model_queue_of (const Model *self, int principal);
