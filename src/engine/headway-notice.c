/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-notice.h"

#include "engine/headway-error.h"

#include <string.h>

static const char *const resync_reasons[] = {
  [HEADWAY_RESYNC_RING_EVICTED] = "ring_evicted",
  [HEADWAY_RESYNC_EPOCH_RESET] = "epoch_reset",
  [HEADWAY_RESYNC_SEEDED_REPLAY_NOT_IN_RING] = "seeded_replay_not_in_ring",
  [HEADWAY_RESYNC_REPLAY_BUDGET_EXCEEDED] = "replay_budget_exceeded",
};

static void
append_levels (GString *data, const HeadwayQueueLevels *levels)
{
  g_string_append_printf (data,
                          "\"queueSize\":%u,\"maxQueued\":%u,\"queuedBytes\":%" G_GUINT64_FORMAT
                          ",\"maxQueuedBytes\":%" G_GUINT64_FORMAT,
                          levels->queued, levels->max_queued, levels->queued_bytes, levels->max_queued_bytes);
}

static void
append_resync (GString *data, const HeadwayNotice *self)
{
  g_string_append_printf (data, "{\"reason\":\"%s\",%s\"lastDeliveredId\":%" G_GUINT64_FORMAT ",\"earliestAvailableId\":%" G_GUINT64_FORMAT "}",
                          resync_reasons[self->resync.reason],
                          self->resync.is_epoch_mismatch ? "\"detail\":\"epoch_mismatch\"," : "",
                          self->resync.last_delivered_id,
                          self->resync.earliest_available_id);
}

static void
append_replay_complete (GString *data, const HeadwayNotice *self)
{
  g_string_append_c (data, '{');
  if (self->replay_complete.last_replayed_id > 0)
    g_string_append_printf (data,
                            "\"lastReplayedEventId\":%" G_GUINT64_FORMAT ",\"lastEventId\":%" G_GUINT64_FORMAT ",",
                            self->replay_complete.last_replayed_id,
                            self->replay_complete.last_replayed_id);
  g_string_append_printf (data, "\"replayedCount\":%" G_GUINT64_FORMAT "%s}",
                          self->replay_complete.replayed_count,
                          self->replay_complete.is_filtered ? ",\"filtered\":true" : "");
}

static void
append_warning (GString *data, const HeadwayNotice *self)
{
  const HeadwayQueueLevels *levels = &self->warning.levels;
  const char *threshold = "frames";

  if (self->warning.is_over_bytes)
    threshold = self->warning.is_over_frames ? "frames_and_bytes" : "bytes";
  g_string_append_printf (data,
                          "{\"queueSize\":%u,\"maxQueued\":%u,\"lastEventId\":%" G_GUINT64_FORMAT
                          ",\"queuedBytes\":%" G_GUINT64_FORMAT ",\"maxQueuedBytes\":%" G_GUINT64_FORMAT
                          ",\"threshold\":\"%s\"}",
                          levels->queued, levels->max_queued, self->warning.last_event_id,
                          levels->queued_bytes, levels->max_queued_bytes, threshold);
}

static void
append_overflow (GString *data, const HeadwayNotice *self)
{
  g_string_append_printf (data, "{\"reason\":\"%s\",\"droppedAfter\":%" G_GUINT64_FORMAT ",",
                          self->overflow.is_over_bytes ? "queue_bytes_overflow" : "queue_overflow",
                          self->overflow.dropped_id);
  append_levels (data, &self->overflow.levels);
  if (self->overflow.is_over_bytes)
    g_string_append_printf (data, ",\"eventBytes\":%" G_GSIZE_FORMAT, self->overflow.event_bytes);
}

static void
append_idle_writer (GString *data, const HeadwayNotice *self)
{
  g_string_append_printf (data,
                          "{\"reason\":\"writer_idle_timeout\",\"errorKind\":\"writer_idle_timeout\","
                          "\"idleForMs\":%" G_GINT64_FORMAT ",\"timeoutMs\":%" G_GINT64_FORMAT,
                          self->idle_writer.idle_ms, self->idle_writer.timeout_ms);
}

static void
append_last_delivered (GString *data, guint64 last_delivered_id)
{
  g_string_append_printf (data, ",\"lastDeliveredId\":%" G_GUINT64_FORMAT "}", last_delivered_id);
}

HeadwayEvent *
headway_notice_to_event (const HeadwayNotice *self,
                         guint64 last_delivered_id,
                         HeadwayPrincipal *system,
                         HeadwayInstant now)
{
  g_autoptr (GString) data = g_string_sized_new (HEADWAY_NOTICE_SIZE_MAX);
  const char *type = NULL;

  switch (self->kind)
    {
    case HEADWAY_NOTICE_RESYNC:
      type = "state_resync_required";
      append_resync (data, self);
      break;
    case HEADWAY_NOTICE_REPLAY_COMPLETE:
      type = "replay_complete";
      append_replay_complete (data, self);
      break;
    case HEADWAY_NOTICE_SLOW_CLIENT_WARNING:
      type = "slow_client_warning";
      append_warning (data, self);
      break;
    case HEADWAY_NOTICE_EVICTED_OVERFLOW:
      type = "client_evicted";
      append_overflow (data, self);
      append_last_delivered (data, last_delivered_id);
      break;
    case HEADWAY_NOTICE_EVICTED_IDLE_WRITER:
      type = "client_evicted";
      append_idle_writer (data, self);
      append_last_delivered (data, last_delivered_id);
      break;
    default:
      g_assert_not_reached ();
    }
  return headway_event_new_synthetic (type, data->str, data->len, system, now);
}

static const char *const snapshot_members[] = { "sessionId", "currentModelId", "currentApprovalMode" };

/* The last member of that name, as readers of duplicate names see it. */
static gboolean
find_member (const HeadwayJson *object, const char *member, HeadwayJson *found)
{
  HeadwayJsonIter iter;
  HeadwayJson name, value;
  gboolean is_found = FALSE;

  headway_json_iter_init (&iter, object);
  while (headway_json_iter_next (&iter, &name, &value))
    if (headway_json_string_equals (&name, member))
      {
        *found = value;
        is_found = TRUE;
      }
  return is_found;
}

static gboolean
is_snapshot_member (const HeadwayJson *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (snapshot_members); i++)
    if (headway_json_string_equals (name, snapshot_members[i]))
      return TRUE;
  return FALSE;
}

HeadwayEvent *
headway_notice_snapshot (const char *bus_name,
                         const HeadwayJson *object,
                         HeadwayPrincipal *system,
                         HeadwayInstant now)
{
  g_autoptr (GString) data = g_string_new ("{");
  HeadwayJsonIter iter;
  HeadwayJson name, value;

  for (guint i = 0; i < G_N_ELEMENTS (snapshot_members); i++)
    {
      g_string_append_printf (data, "%s\"%s\":", i > 0 ? "," : "", snapshot_members[i]);
      if (object != NULL && find_member (object, snapshot_members[i], &value))
        g_string_append_len (data, value.text, (gssize) value.length);
      else if (i == 0)
        g_string_append_printf (data, "\"%s\"", bus_name);
      else
        g_string_append (data, "null");
    }
  if (object != NULL)
    {
      headway_json_iter_init (&iter, object);
      while (headway_json_iter_next (&iter, &name, &value))
        if (!is_snapshot_member (&name))
          g_string_append_printf (data, ",%.*s:%.*s", (int) name.length, name.text, (int) value.length, value.text);
    }
  g_string_append_c (data, '}');
  return headway_event_new_synthetic ("session_snapshot", data->str, data->len, system, now);
}

char *
headway_notice_copy_snapshot (const char *text, gsize length, guint64 max_bytes, HeadwayJson *json, GError **error)
{
  HeadwayJson checked;
  char *copy;

  if (length > max_bytes)
    {
      headway_set_error_with_limit (error, HEADWAY_ERROR_TOO_LARGE, (gint64) max_bytes,
                                    "the snapshot has %" G_GSIZE_FORMAT " bytes, at most %" G_GUINT64_FORMAT " are allowed",
                                    length, max_bytes);
      return NULL;
    }
  if (!headway_json_validate (text, length, HEADWAY_JSON_DEPTH_MAX, &checked, error))
    return NULL;
  if (checked.type != HEADWAY_JSON_OBJECT)
    {
      g_set_error_literal (error, HEADWAY_ERROR, HEADWAY_ERROR_INVALID_DATA, "the snapshot is no JSON object");
      return NULL;
    }
  copy = g_malloc (checked.length);
  headway_json_copy_line (copy, checked.text, checked.length);
  *json = (HeadwayJson){ copy, checked.length, HEADWAY_JSON_OBJECT };
  return copy;
}
