/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-envelope.h"

#include "engine/headway-notice.h"

#include <string.h>

/* The exact JSON of every notice: names and order of sse-contract.md 1.5, `lastDeliveredId` at
 * the end of `client_evicted`, `filtered` at the end of `replay_complete` (docs/http-api.md). */

typedef struct
{
  const char *path;
  HeadwayNotice notice;
  const char *type;
  const char *data;
} Case;

static const Case cases[] = {
  { "/notice/resync/ring-evicted",
    { .kind = HEADWAY_NOTICE_RESYNC, .resync = { HEADWAY_RESYNC_RING_EVICTED, FALSE, 0, 3 } },
    "state_resync_required",
    "{\"reason\":\"ring_evicted\",\"lastDeliveredId\":0,\"earliestAvailableId\":3}" },
  { "/notice/resync/epoch-reset",
    { .kind = HEADWAY_NOTICE_RESYNC, .resync = { HEADWAY_RESYNC_EPOCH_RESET, FALSE, HEADWAY_ID_MAX, 1 } },
    "state_resync_required",
    "{\"reason\":\"epoch_reset\",\"lastDeliveredId\":9007199254740991,\"earliestAvailableId\":1}" },
  { "/notice/resync/epoch-mismatch",
    { .kind = HEADWAY_NOTICE_RESYNC, .resync = { HEADWAY_RESYNC_EPOCH_RESET, TRUE, 2, 1 } },
    "state_resync_required",
    "{\"reason\":\"epoch_reset\",\"detail\":\"epoch_mismatch\",\"lastDeliveredId\":2,\"earliestAvailableId\":1}" },
  { "/notice/resync/seeded",
    { .kind = HEADWAY_NOTICE_RESYNC, .resync = { HEADWAY_RESYNC_SEEDED_REPLAY_NOT_IN_RING, FALSE, 0, 3 } },
    "state_resync_required",
    "{\"reason\":\"seeded_replay_not_in_ring\",\"lastDeliveredId\":0,\"earliestAvailableId\":3}" },
  { "/notice/resync/budget",
    { .kind = HEADWAY_NOTICE_RESYNC, .resync = { HEADWAY_RESYNC_REPLAY_BUDGET_EXCEEDED, FALSE, 209, 210 } },
    "state_resync_required",
    "{\"reason\":\"replay_budget_exceeded\",\"lastDeliveredId\":209,\"earliestAvailableId\":210}" },
  { "/notice/replay-complete/some",
    { .kind = HEADWAY_NOTICE_REPLAY_COMPLETE, .replay_complete = { 3, 5, FALSE } },
    "replay_complete",
    "{\"lastReplayedEventId\":5,\"lastEventId\":5,\"replayedCount\":3}" },
  { "/notice/replay-complete/none",
    { .kind = HEADWAY_NOTICE_REPLAY_COMPLETE, .replay_complete = { 0, 0, FALSE } },
    "replay_complete",
    "{\"replayedCount\":0}" },
  { "/notice/replay-complete/filtered",
    { .kind = HEADWAY_NOTICE_REPLAY_COMPLETE, .replay_complete = { 1, 9, TRUE } },
    "replay_complete",
    "{\"lastReplayedEventId\":9,\"lastEventId\":9,\"replayedCount\":1,\"filtered\":true}" },
  { "/notice/replay-complete/none-filtered",
    { .kind = HEADWAY_NOTICE_REPLAY_COMPLETE, .replay_complete = { 0, 0, TRUE } },
    "replay_complete",
    "{\"replayedCount\":0,\"filtered\":true}" },
  { "/notice/warning/frames",
    { .kind = HEADWAY_NOTICE_SLOW_CLIENT_WARNING, .warning = { { 6, 8, 396, 2097152 }, 6, TRUE, FALSE } },
    "slow_client_warning",
    "{\"queueSize\":6,\"maxQueued\":8,\"lastEventId\":6,\"queuedBytes\":396,\"maxQueuedBytes\":2097152,"
    "\"threshold\":\"frames\"}" },
  { "/notice/warning/bytes",
    { .kind = HEADWAY_NOTICE_SLOW_CLIENT_WARNING, .warning = { { 1, 100, 1067, 1200 }, 1, FALSE, TRUE } },
    "slow_client_warning",
    "{\"queueSize\":1,\"maxQueued\":100,\"lastEventId\":1,\"queuedBytes\":1067,\"maxQueuedBytes\":1200,"
    "\"threshold\":\"bytes\"}" },
  { "/notice/warning/frames-and-bytes",
    { .kind = HEADWAY_NOTICE_SLOW_CLIENT_WARNING, .warning = { { 3, 4, 1101, 1200 }, 3, TRUE, TRUE } },
    "slow_client_warning",
    "{\"queueSize\":3,\"maxQueued\":4,\"lastEventId\":3,\"queuedBytes\":1101,\"maxQueuedBytes\":1200,"
    "\"threshold\":\"frames_and_bytes\"}" },
  { "/notice/evicted/frames",
    { .kind = HEADWAY_NOTICE_EVICTED_OVERFLOW, .overflow = { { 2, 2, 132, 2097152 }, 3, FALSE, 66 } },
    "client_evicted",
    "{\"reason\":\"queue_overflow\",\"droppedAfter\":3,\"queueSize\":2,\"maxQueued\":2,\"queuedBytes\":132,"
    "\"maxQueuedBytes\":2097152,\"lastDeliveredId\":77}" },
  { "/notice/evicted/bytes",
    { .kind = HEADWAY_NOTICE_EVICTED_OVERFLOW, .overflow = { { 1, 100, 1091, 256 }, 2, TRUE, 71 } },
    "client_evicted",
    "{\"reason\":\"queue_bytes_overflow\",\"droppedAfter\":2,\"queueSize\":1,\"maxQueued\":100,\"queuedBytes\":1091,"
    "\"maxQueuedBytes\":256,\"eventBytes\":71,\"lastDeliveredId\":77}" },
  { "/notice/evicted/stuck-writer",
    { .kind = HEADWAY_NOTICE_EVICTED_IDLE_WRITER, .idle_writer = { 1000, 900 } },
    "client_evicted",
    "{\"reason\":\"writer_idle_timeout\",\"errorKind\":\"writer_idle_timeout\",\"idleForMs\":1000,\"timeoutMs\":900,"
    "\"lastDeliveredId\":77}" },
};

static void
test_json (gconstpointer data)
{
  const Case *c = data;
  g_autoptr (HeadwayPrincipalTable) table = headway_principal_table_new ();
  g_autoptr (HeadwayEvent) event = NULL;
  g_autofree char *envelope = NULL;
  g_autofree char *expected = NULL;

  event = headway_notice_to_event (&c->notice, 77, headway_principal_table_get_system (table),
                                   (HeadwayInstant){ 1, 1700000000000999 });
  envelope = test_dup_envelope (event, NULL);
  expected = g_strdup_printf ("{\"v\":1,\"type\":\"%s\",\"data\":%s,\"_meta\":{\"serverTimestamp\":1700000000000}}",
                              c->type, c->data);
  g_assert_cmpstr (envelope, ==, expected);
  g_assert_true (headway_event_is_synthetic (event));
}

/* Whoever reserves room for a notice reserves enough. */
static void
test_longest (void)
{
  const HeadwayQueueLevels most = { G_MAXUINT, G_MAXUINT, G_MAXUINT64, G_MAXUINT64 };
  const HeadwayNotice longest[] = {
    { .kind = HEADWAY_NOTICE_RESYNC, .resync = { HEADWAY_RESYNC_EPOCH_RESET, TRUE, HEADWAY_ID_MAX, HEADWAY_ID_MAX } },
    { .kind = HEADWAY_NOTICE_REPLAY_COMPLETE, .replay_complete = { HEADWAY_ID_MAX, HEADWAY_ID_MAX, TRUE } },
    { .kind = HEADWAY_NOTICE_SLOW_CLIENT_WARNING, .warning = { most, HEADWAY_ID_MAX, TRUE, TRUE } },
    { .kind = HEADWAY_NOTICE_EVICTED_OVERFLOW, .overflow = { most, HEADWAY_ID_MAX, TRUE, G_MAXSIZE } },
    { .kind = HEADWAY_NOTICE_EVICTED_IDLE_WRITER, .idle_writer = { G_MAXINT64, G_MAXINT64 } },
  };
  g_autoptr (HeadwayPrincipalTable) table = headway_principal_table_new ();

  for (guint i = 0; i < G_N_ELEMENTS (longest); i++)
    {
      g_autoptr (HeadwayEvent) event = NULL;
      event = headway_notice_to_event (&longest[i], HEADWAY_ID_MAX, headway_principal_table_get_system (table),
                                       (HeadwayInstant){ G_MAXINT64, G_MAXINT64 });
      g_assert_cmpuint (headway_event_get_size (event), <=, HEADWAY_NOTICE_SIZE_MAX);
    }
}

static void
assert_snapshot (const char *object, const char *expected)
{
  g_autoptr (HeadwayPrincipalTable) table = headway_principal_table_new ();
  g_autoptr (HeadwayEvent) event = NULL;
  HeadwayJson json;
  const char *data;
  gsize length;
  g_autofree char *got = NULL;

  if (object != NULL)
    g_assert_true (headway_json_validate (object, strlen (object), HEADWAY_JSON_DEPTH_MAX, &json, NULL));
  event = headway_notice_snapshot ("s-1", object != NULL ? &json : NULL, headway_principal_table_get_system (table),
                                   (HeadwayInstant){ 1, 1 });
  data = headway_event_get_data (event, &length);
  got = g_strndup (data, length);
  g_assert_cmpstr (got, ==, expected);
  g_assert_cmpstr (headway_event_get_type (event), ==, "session_snapshot");
  g_assert_true (headway_event_is_synthetic (event));
}

static void
test_snapshot (void)
{
  assert_snapshot (NULL, "{\"sessionId\":\"s-1\",\"currentModelId\":null,\"currentApprovalMode\":null}");
  assert_snapshot ("{}", "{\"sessionId\":\"s-1\",\"currentModelId\":null,\"currentApprovalMode\":null}");
  assert_snapshot ("{\"currentModelId\":\"m\"}",
                   "{\"sessionId\":\"s-1\",\"currentModelId\":\"m\",\"currentApprovalMode\":null}");
  assert_snapshot ("{ \"x\" : [1] , \"current\\u004dodelId\":1}",
                   "{\"sessionId\":\"s-1\",\"currentModelId\":1,\"currentApprovalMode\":null,\"x\":[1]}");
  assert_snapshot ("{\"currentApprovalMode\":2,\"sessionId\":\"other\",\"currentModelId\":0,\"currentModelId\":1}",
                   "{\"sessionId\":\"other\",\"currentModelId\":1,\"currentApprovalMode\":2}");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    g_test_add_data_func (cases[i].path, &cases[i], test_json);
  g_test_add_func ("/notice/longest-fits", test_longest);
  g_test_add_func ("/notice/snapshot", test_snapshot);
  return g_test_run ();
}
