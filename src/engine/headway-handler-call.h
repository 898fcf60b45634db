/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-event.h"

G_BEGIN_DECLS

/**
 * HeadwayHandlerCall:
 *
 * One call of a handler under way. Whoever got it from HeadwayHandlerTransport gives it back through exactly
 * one of the four functions below, each of which is (transfer full) for @self. Late is no matter: a call whose deadline is
 * over, or whose handler is gone, is given back all the same, and what it says is ignored.
 */

/* The event, changed by earlier steps where they did so; its id is 0 in the phase `pre`. (transfer none) */
HeadwayEvent *headway_handler_call_get_event (HeadwayHandlerCall *self);
/* The `gap` event with what was lost before (decisions.md 28). (transfer none) (nullable) */
HeadwayEvent *headway_handler_call_get_lost (HeadwayHandlerCall *self);
/* Monotonic microseconds at which the dispatcher abandons it. */
gint64 headway_handler_call_get_deadline_us (HeadwayHandlerCall *self);
/* TRUE once nobody wants the answer. */
gboolean headway_handler_call_is_abandoned (HeadwayHandlerCall *self);

/**
 * headway_handler_call_finish:
 * @verdict: "continue", "final", "deny" (or "abort", which means it); anything else is an error of the step
 * @data: with "continue" the new data, JSON text, for later steps (empty: unchanged); with "deny" the reason; @length bytes of UTF-8
 *
 * The application has answered (routing.md 1.10). Data that is no JSON, or over the limit of an event, is an error of the step.
 */
void headway_handler_call_finish (HeadwayHandlerCall *self,
                                  const char *verdict,
                                  const char *data,
                                  gsize length,
                                  HeadwayInstant now);
/* The application does not do this: the step counts for nothing, whatever `on-error` says. */
void headway_handler_call_skip (HeadwayHandlerCall *self, HeadwayInstant now);
/* The call failed: an error of the step. @reason: (nullable): for the debug log. */
void headway_handler_call_fail (HeadwayHandlerCall *self, const char *reason, HeadwayInstant now);
/* The call could not be made at present (LimitsExceeded): it is made again after a moment, within its deadline. */
void headway_handler_call_retry (HeadwayHandlerCall *self, HeadwayInstant now);

G_END_DECLS
