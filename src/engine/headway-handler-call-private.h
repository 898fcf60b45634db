/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-handler-call.h"
#include "engine/headway-work.h"

G_BEGIN_DECLS

struct _HeadwayHandlerCall
{
  HeadwayDispatcher *dispatcher; /* owned: it may come back late */
  HeadwayHandler *handler;       /* owned */
  HeadwayStep *step;             /* borrowed; NULL: nobody wants the answer */
  HeadwayEvent *event;           /* owned */
  HeadwayGap *gap;               /* owned, nullable: what `lost` says */
  HeadwayEvent *lost;            /* owned, nullable */
  gint64 deadline_us;
  gboolean is_abandoning; /* it stands in HeadwayDispatcher.abandoned */
};

/* @gap: (transfer full) (nullable). Returns: (transfer full). */
HeadwayHandlerCall *headway_handler_call_new (HeadwayDispatcher *dispatcher, HeadwayStep *step, HeadwayGap *gap, HeadwayInstant now);

G_END_DECLS
