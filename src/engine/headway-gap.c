/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-gap.h"

/* Indexed by reason; readers and dashboards compare them, so an entry never changes. */
static const char *const reason_names[] = {
  [HEADWAY_GAP_BUDGET] = "budget",
  [HEADWAY_GAP_COUNT_CAP] = "count_cap",
  [HEADWAY_GAP_OVERSIZE] = "oversize",
  [HEADWAY_GAP_LAGGED] = "lagged",
  [HEADWAY_GAP_FULL] = "full",
};

G_STATIC_ASSERT (G_N_ELEMENTS (reason_names) == HEADWAY_N_GAP_REASONS);

const char *
headway_gap_reason_get_name (HeadwayGapReason reason)
{
  g_return_val_if_fail ((guint) reason < HEADWAY_N_GAP_REASONS, "");

  return reason_names[reason];
}

HeadwayGap *
headway_gap_new (HeadwayGapReason reason, const HeadwayEvent *event, guint64 opened_at)
{
  HeadwayGap *self = g_new0 (HeadwayGap, 1);

  self->place.id = self->last_id = headway_event_get_id (event);
  self->count = 1;
  self->bytes = headway_event_get_cost (event);
  self->opened_at = opened_at;
  self->reason = reason;
  self->principal = headway_principal_ref (headway_event_get_principal (event));
  return self;
}

void
headway_gap_free (HeadwayGap *self)
{
  g_clear_pointer (&self->principal, headway_principal_unref);
  g_free (self);
}

void
headway_gap_add (HeadwayGap *self, const HeadwayEvent *event)
{
  self->count++;
  self->bytes += headway_event_get_cost (event);
  self->last_id = MAX (self->last_id, headway_event_get_id (event));
  if (self->principal != headway_event_get_principal (event))
    g_clear_pointer (&self->principal, headway_principal_unref);
}

void
headway_gap_absorb (HeadwayGap *self, const HeadwayGap *other)
{
  self->count += other->count;
  self->bytes += other->bytes;
  self->last_id = MAX (self->last_id, other->last_id);
  if (self->principal != other->principal)
    g_clear_pointer (&self->principal, headway_principal_unref);
  if (other->opened_at >= self->opened_at)
    return;
  self->opened_at = other->opened_at;
  self->reason = other->reason;
}

HeadwayEvent *
headway_gap_to_event (const HeadwayGap *self, HeadwayPrincipal *system, HeadwayInstant now)
{
  g_autoptr (GString) data = g_string_sized_new (256);

  g_string_append_printf (data, "{\"reason\":\"%s\"", headway_gap_reason_get_name (self->reason));
  /* No character that a principal may have is escaped in JSON. */
  if (self->principal != NULL && !headway_principal_is_system (self->principal))
    g_string_append_printf (data, ",\"principal\":\"%s\"", headway_principal_get_name (self->principal));
  g_string_append_printf (data,
                          ",\"count\":%" G_GUINT64_FORMAT ",\"bytes\":%" G_GUINT64_FORMAT
                          ",\"firstId\":%" G_GUINT64_FORMAT ",\"lastId\":%" G_GUINT64_FORMAT "%s}",
                          self->count, self->bytes, self->place.id, self->last_id,
                          self->is_filtered ? ",\"filtered\":true" : "");
  return headway_event_new_synthetic ("gap", data->str, data->len, system, now);
}
