/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-opening.h"

#include "engine/headway-subscription-private.h"

static HeadwayOpeningPhase
phase_behind_replay (const HeadwayOpening *self)
{
  return self->snapshot != NULL ? HEADWAY_OPENING_SNAPSHOT : HEADWAY_OPENING_OVER;
}

void
headway_opening_init (HeadwayOpening *self,
                      HeadwaySubscription *subscription,
                      const HeadwaySubscribeOptions *options,
                      HeadwayInstant now)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (subscription);
  HeadwayBus *bus = priv->bus;

  *self = (HeadwayOpening){ .snapshot = options->wants_snapshot ? headway_bus_new_snapshot (bus, now) : NULL };
  self->phase = phase_behind_replay (self);
  if (!options->cursor.is_set)
    return;
  headway_replay_init (&self->replay, &options->cursor, headway_bus_get_ring (bus),
                       headway_bus_get_last_id (bus) + 1, headway_bus_get_epoch (bus),
                       headway_bus_get_options (bus)->replay_budget_bytes);
  self->replay.scope = priv->scope;
  self->phase = HEADWAY_OPENING_REPLAY;
}

void
headway_opening_clear (HeadwayOpening *self)
{
  g_clear_pointer (&self->snapshot, headway_event_unref);
  self->phase = HEADWAY_OPENING_OVER;
}

/* FALSE: nothing more now. */
static gboolean
take_replay (HeadwayOpening *self, HeadwayTake *take, guint *looks)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (take->subscription);
  HeadwayNotice notice;
  HeadwayEvent *event = NULL;
  HeadwayReplayStep step;

  step = headway_replay_peek (&self->replay, headway_bus_get_ring (priv->bus), priv->filter, looks, &event, &notice);
  if (step == HEADWAY_REPLAY_LOOKED)
    return FALSE;
  if (step == HEADWAY_REPLAY_DONE)
    {
      self->phase = HEADWAY_OPENING_COMPLETE;
      return TRUE;
    }
  if (step == HEADWAY_REPLAY_EVENT ? !headway_take_fits (take, event) : !headway_take_fits_notice (take))
    return FALSE;
  if (step == HEADWAY_REPLAY_EVENT)
    headway_take_add (take, event, headway_event_get_id (event), TRUE);
  else
    headway_take_add_notice (take, &notice);
  headway_replay_advance (&self->replay, step, event, &notice);
  return TRUE;
}

static gboolean
take_complete (HeadwayOpening *self, HeadwayTake *take)
{
  HeadwaySubscriptionPrivate *priv = headway_subscription_get_private (take->subscription);
  gboolean is_filtered = !headway_filter_is_empty (priv->filter) || priv->scope.kind != HEADWAY_SCOPE_ALL;
  HeadwayNotice notice;

  if (!headway_take_fits_notice (take))
    return FALSE;
  headway_replay_complete (&self->replay, is_filtered, &notice);
  headway_take_add_notice (take, &notice);
  self->phase = phase_behind_replay (self);
  return TRUE;
}

static gboolean
take_snapshot (HeadwayOpening *self, HeadwayTake *take)
{
  if (take->n > 0 && (take->n == take->max_events ||
                      take->bytes + headway_event_get_size (self->snapshot) > take->max_bytes))
    return FALSE;
  if (!headway_take_fits_first (take, headway_event_get_size (self->snapshot)))
    return FALSE;
  headway_take_add_synthetic (take, g_steal_pointer (&self->snapshot));
  self->phase = HEADWAY_OPENING_OVER;
  return TRUE;
}

gboolean
headway_opening_take (HeadwayOpening *self, HeadwayTake *take)
{
  guint looks = HEADWAY_DISPATCH_EVENTS;
  gboolean may_go_on = TRUE;

  while (may_go_on && self->phase != HEADWAY_OPENING_OVER)
    switch (self->phase)
      {
      case HEADWAY_OPENING_REPLAY:
        may_go_on = take_replay (self, take, &looks);
        break;
      case HEADWAY_OPENING_COMPLETE:
        may_go_on = take_complete (self, take);
        break;
      case HEADWAY_OPENING_SNAPSHOT:
        may_go_on = take_snapshot (self, take);
        break;
      case HEADWAY_OPENING_OVER:
      default:
        g_assert_not_reached ();
      }
  return self->phase == HEADWAY_OPENING_OVER;
}
