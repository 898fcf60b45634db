/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-bus.h"

#include <string.h>

/* What a reader got, as text. Reads the data of notices member by member in the order of
 * sse-contract.md 1.5, so that a wrong name or place fails here. */

#define RUN_MIN 4

typedef struct
{
  HeadwayJsonIter iter;
  HeadwayJson name;
  HeadwayJson value;
  gboolean has_next;
} Members;

static void
members_next (Members *self)
{
  self->has_next = headway_json_iter_next (&self->iter, &self->name, &self->value);
}

static void
members_init (Members *self, HeadwayEvent *event)
{
  HeadwayJson json;
  gsize length;
  const char *data = headway_event_get_data (event, &length);

  g_assert_true (headway_json_validate (data, length, HEADWAY_JSON_DEPTH_MAX, &json, NULL));
  g_assert_cmpint (json.type, ==, HEADWAY_JSON_OBJECT);
  headway_json_iter_init (&self->iter, &json);
  members_next (self);
}

static gboolean
members_is_at (const Members *self, const char *name)
{
  return self->has_next && headway_json_string_equals (&self->name, name);
}

/* The value of the member @name, which comes next; a string without its quotes. */
static char *
members_take (Members *self, const char *name)
{
  g_autofree char *found = self->has_next ? g_strndup (self->name.text + 1, self->name.length - 2) : NULL;
  gboolean is_string = self->has_next && self->value.type == HEADWAY_JSON_STRING;
  char *value;

  g_assert_cmpstr (found, ==, name);
  value = is_string ? g_strndup (self->value.text + 1, self->value.length - 2)
                    : g_strndup (self->value.text, self->value.length);
  members_next (self);
  return value;
}

static void
append_members (GString *text, Members *members, const char *const *names)
{
  for (guint i = 0; names[i] != NULL; i++)
    {
      g_autofree char *value = members_take (members, names[i]);
      g_string_append_printf (text, "%s%s", i > 0 ? "," : "", value);
    }
}

static void
append_resync (GString *text, Members *members)
{
  static const char *const ids[] = { "lastDeliveredId", "earliestAvailableId", NULL };
  g_autofree char *reason = members_take (members, "reason");
  g_autofree char *detail = members_is_at (members, "detail") ? members_take (members, "detail") : NULL;

  g_string_append_printf (text, "resync(%s,", reason);
  append_members (text, members, ids);
  g_string_append_printf (text, "%s%s)", detail != NULL ? "," : "", detail != NULL ? detail : "");
}

static void
append_replay_complete (GString *text, Members *members)
{
  g_autofree char *last = NULL;
  g_autofree char *alias = NULL;
  g_autofree char *count = NULL;
  g_autofree char *filtered = NULL;

  if (members_is_at (members, "lastReplayedEventId"))
    {
      last = members_take (members, "lastReplayedEventId");
      alias = members_take (members, "lastEventId");
      g_assert_cmpstr (alias, ==, last);
    }
  count = members_take (members, "replayedCount");
  g_assert_cmpint (strcmp (count, "0") == 0, ==, last == NULL);
  if (members_is_at (members, "filtered"))
    {
      filtered = members_take (members, "filtered");
      g_assert_cmpstr (filtered, ==, "true");
    }
  g_string_append_printf (text, "rc(%s%s%s%s)", count, last != NULL ? "," : "", last != NULL ? last : "",
                          filtered != NULL ? ",filtered" : "");
}

static void
append_warning (GString *text, Members *members)
{
  static const char *const names[] = {
    "queueSize", "maxQueued", "lastEventId", "queuedBytes", "maxQueuedBytes", "threshold", NULL
  };

  g_string_append (text, "warn(");
  append_members (text, members, names);
  g_string_append_c (text, ')');
}

static void
append_eviction (GString *text, Members *members)
{
  static const char *const idle[] = { "errorKind", "idleForMs", "timeoutMs", NULL };
  static const char *const levels[] = {
    "droppedAfter", "queueSize", "maxQueued", "queuedBytes", "maxQueuedBytes", NULL
  };
  g_autofree char *reason = members_take (members, "reason");
  g_autofree char *last_delivered = NULL;

  g_string_append_printf (text, "evict(%s,", reason);
  append_members (text, members, strcmp (reason, "writer_idle_timeout") == 0 ? idle : levels);
  if (strcmp (reason, "queue_bytes_overflow") == 0)
    {
      g_autofree char *event_bytes = members_take (members, "eventBytes");
      g_string_append_printf (text, ",%s", event_bytes);
    }
  last_delivered = members_take (members, "lastDeliveredId");
  g_assert_cmpuint (g_ascii_strtoull (last_delivered, NULL, 10), <=, HEADWAY_ID_MAX);
  g_string_append_c (text, ')');
}

static void
append_synthetic (GString *text, HeadwayEvent *event)
{
  static const struct
  {
    const char *type;
    void (*append) (GString *text, Members *members);
  } notices[] = {
    { "state_resync_required", append_resync },
    { "replay_complete", append_replay_complete },
    { "slow_client_warning", append_warning },
    { "client_evicted", append_eviction },
  };
  const char *type = headway_event_get_type (event);
  Members members;
  gsize length;
  const char *data = headway_event_get_data (event, &length);

  for (guint i = 0; i < G_N_ELEMENTS (notices); i++)
    if (strcmp (type, notices[i].type) == 0)
      {
        members_init (&members, event);
        notices[i].append (text, &members);
        g_assert_false (members.has_next);
        return;
      }
  g_assert_cmpstr (type, ==, "session_snapshot");
  g_string_append_printf (text, "snapshot(%.*s)", (int) length, data);
}

static void
flush_run (TestScript *self)
{
  guint64 n = self->run_last > 0 ? self->run_last - self->run_first + 1 : 0;
  const char *blank = self->text->len > 0 ? " " : "";

  if (n >= RUN_MIN)
    g_string_append_printf (self->text, "%s#%" G_GUINT64_FORMAT "..#%" G_GUINT64_FORMAT,
                            blank, self->run_first, self->run_last);
  else
    for (guint64 i = 0; i < n; i++)
      g_string_append_printf (self->text, "%s#%" G_GUINT64_FORMAT,
                              self->text->len > 0 ? " " : "", self->run_first + i);
  self->run_first = self->run_last = 0;
}

void
test_script_init (TestScript *self)
{
  *self = (TestScript){ .text = g_string_new (NULL) };
}

/* Every reader sends these bytes: they must say what the event says. */
static void
check_envelope (HeadwayEvent *event)
{
  g_autofree char *head = NULL;
  gsize length;
  g_autofree char *envelope = test_dup_envelope (event, &length);

  if (headway_event_is_synthetic (event))
    head = g_strdup_printf ("{\"v\":1,\"type\":\"%s\",\"data\":{", headway_event_get_type (event));
  else
    head = g_strdup_printf ("{\"id\":%" G_GUINT64_FORMAT ",\"v\":1,\"type\":\"%s\",\"data\":",
                            headway_event_get_id (event), headway_event_get_type (event));
  g_assert_cmpmem (envelope, MIN (length, strlen (head)), head, strlen (head));
  g_assert_cmpuint (length, ==, headway_event_get_size (event));
  g_assert_cmpint (headway_event_get_id (event) == 0, ==, headway_event_is_synthetic (event));
}

void
test_script_add (TestScript *self, HeadwayEvent *event)
{
  guint64 id = headway_event_get_id (event);
  gboolean is_closing = strcmp (headway_event_get_type (event), "session_closed") == 0;

  check_envelope (event);
  if (id > 0 && !is_closing)
    {
      if (self->run_last > 0 && id != self->run_last + 1)
        flush_run (self);
      self->run_first = self->run_first > 0 ? self->run_first : id;
      self->run_last = id;
      return;
    }
  flush_run (self);
  if (self->text->len > 0)
    g_string_append_c (self->text, ' ');
  if (is_closing)
    g_string_append (self->text, "closed");
  else
    append_synthetic (self->text, event);
}

char *
test_script_end (TestScript *self)
{
  char *text;

  flush_run (self);
  text = g_strdup (self->text->str);
  g_string_truncate (self->text, 0);
  return text;
}

static guint
take_some (TestBus *self, HeadwaySubscription *subscription, guint n, TestScript *script)
{
  g_autofree HeadwayDelivery *deliveries = g_new (HeadwayDelivery, n);
  guint taken = headway_subscription_take (subscription, self->now, n, G_MAXSIZE, deliveries);

  g_assert_cmpuint (taken, <=, n);
  for (guint i = 0; i < taken; i++)
    {
      g_assert_cmpuint (deliveries[i].resume_id, ==, headway_event_get_id (deliveries[i].event));
      test_script_add (script, deliveries[i].event);
      headway_event_unref (deliveries[i].event);
    }
  return taken;
}

char *
test_take (TestBus *self, HeadwaySubscription *subscription, guint n)
{
  TestScript script;
  char *text;

  test_script_init (&script);
  take_some (self, subscription, n, &script);
  text = test_script_end (&script);
  g_string_free (script.text, TRUE);
  return text;
}

char *
test_take_all (TestBus *self, HeadwaySubscription *subscription)
{
  TestScript script;
  char *text;

  test_script_init (&script);
  while (headway_subscription_is_ready (subscription))
    take_some (self, subscription, 7, &script);
  flush_run (&script);
  g_string_append_printf (script.text, "%s%s", script.text->len > 0 ? " " : "",
                          headway_subscription_is_finished (subscription) ? "end" : "open");
  text = test_script_end (&script);
  g_string_free (script.text, TRUE);
  assert_books (subscription);
  return text;
}

char *
test_read_from (TestBus *self, guint64 cursor, const char *epoch)
{
  g_autoptr (HeadwaySubscription) subscription = test_from_epoch (self, cursor, epoch);

  return test_take_all (self, subscription);
}

char *
test_member (const char *object, gsize length, const char *name)
{
  HeadwayJsonIter iter;
  HeadwayJson json, key, value;

  g_assert_true (headway_json_validate (object, length, HEADWAY_JSON_DEPTH_MAX, &json, NULL));
  headway_json_iter_init (&iter, &json);
  while (headway_json_iter_next (&iter, &key, &value))
    if (headway_json_string_equals (&key, name))
      return g_strndup (value.text, value.length);
  g_test_message ("no member %s in %.*s", name, (int) length, object);
  g_assert_not_reached ();
}

/* --- A sink --------------------------------------------------------------------------------- */

static gboolean
test_sink_put (HeadwaySink *sink, HeadwayEvent *event, guint64 resume_id)
{
  TestSink *self = (TestSink *) sink;

  if (self->room == 0)
    return FALSE;
  g_assert_cmpuint (resume_id, ==, headway_event_get_id (event));
  if (self->room != G_MAXUINT)
    self->room--;
  self->n_puts++;
  test_script_add (&self->script, event);
  return TRUE;
}

static void
test_sink_wake (HeadwaySink *sink)
{
  ((TestSink *) sink)->n_wakes++;
}

void
test_sink_init (TestSink *self, guint room)
{
  static const HeadwaySinkClass klass = { .put = test_sink_put, .wake = test_sink_wake };

  *self = (TestSink){ .base.klass = &klass, .room = room };
  test_script_init (&self->script);
}

void
test_sink_clear (TestSink *self)
{
  g_string_free (self->script.text, TRUE);
}

char *
test_sink_end (TestSink *self)
{
  return test_script_end (&self->script);
}
