/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-dispatch.h"

#include "engine/headway-error.h"
#include "engine/headway-json.h"

#include <string.h>

static void
on_ready (HeadwayBus *bus, const GError *error, gpointer user_data)
{
  TestDispatch *f = user_data;

  g_assert_no_error (error);
  f->bus = g_object_ref (bus);
}

static void
handler_free (gpointer data)
{
  TestHandler *self = data;

  for (guint i = 0; i < self->calls->len; i++)
    headway_handler_call_fail (g_ptr_array_index (self->calls, i), NULL, self->f->now);
  g_ptr_array_unref (self->calls);
  g_clear_object (&self->handler);
  g_free (self->name);
  g_free (self);
}

void
test_dispatch_set_up (TestDispatch *f)
{
  HeadwayLimits *limits;

  *f = (TestDispatch){ .now = { .monotonic_us = 1000000, .real_us = 1700000000000000 } };
  f->table = headway_bus_table_new (NULL);
  f->log = g_string_new (NULL);
  f->handlers = g_ptr_array_new_with_free_func (handler_free);
  f->dispatcher = headway_bus_table_get_dispatcher (f->table);
  limits = headway_bus_table_get_limits (f->table);
  limits->principal_events_per_second = limits->uid_events_per_second = 0;
  limits->principal_bytes_per_second = limits->uid_bytes_per_second = 0;
  headway_bus_table_create (f->table, "test", NULL, 1000, f->now, on_ready, f);
}

void
test_dispatch_clear (TestDispatch *f)
{
  g_clear_object (&f->bus);
  g_clear_object (&f->table);
  g_ptr_array_unref (f->handlers);
  g_string_free (f->log, TRUE);
}

/* --- Transport ------------------------------------------------------------------------------ */

static void
write_word (TestDispatch *f, const char *format, ...) G_GNUC_PRINTF (2, 3);

static void
write_word (TestDispatch *f, const char *format, ...)
{
  va_list args;

  if (f->log->len > 0)
    g_string_append_c (f->log, ' ');
  va_start (args, format);
  g_string_append_vprintf (f->log, format, args);
  va_end (args);
}

static const char *
principal_of (HeadwayEvent *event)
{
  const char *name = headway_principal_get_name (headway_event_get_principal (event));

  return *name != '\0' ? name : "-";
}

static char *
data_of (HeadwayEvent *event)
{
  gsize length;
  const char *data = headway_event_get_data (event, &length);

  return g_strndup (data, MIN (length, 12));
}

static guint64
count_lost (HeadwayEvent *gap)
{
  gsize length;
  const char *data = headway_event_get_data (gap, &length);
  HeadwayJson json = { data, length, HEADWAY_JSON_OBJECT };
  HeadwayJsonIter iter;
  HeadwayJson name, value;
  guint64 count = 0;

  headway_json_iter_init (&iter, &json);
  while (headway_json_iter_next (&iter, &name, &value))
    if (headway_json_string_equals (&name, "count"))
      g_assert_true (headway_json_get_uint (&value, G_MAXUINT32, &count));
  return count;
}

static void
transport_call (HeadwayHandler *handler, HeadwayHandlerCall *call, gpointer user_data)
{
  TestHandler *self = user_data;
  HeadwayEvent *event = headway_handler_call_get_event (call);
  g_autofree char *data = data_of (event);
  HeadwayEvent *lost = headway_handler_call_get_lost (call);

  g_assert_true (headway_handler_call_get_deadline_us (call) > self->f->now.monotonic_us);
  g_assert_true ((headway_event_get_id (event) == 0) == (headway_handler_get_phase (handler) == HEADWAY_PHASE_PRE));
  self->n_calls++;
  if (!self->is_quiet)
    write_word (self->f, "%s.%s.%s", self->name, principal_of (event), data);
  if (!self->is_quiet && lost != NULL)
    g_string_append_printf (self->f->log, "!%" G_GUINT64_FORMAT, count_lost (lost));
  if (self->on_call != NULL)
    self->on_call (self, call);
  else
    g_ptr_array_add (self->calls, call);
}

static void
transport_abandon (HeadwayHandler *handler, HeadwayHandlerCall *call, gpointer user_data)
{
  TestHandler *self = user_data;
  g_autofree char *data = data_of (headway_handler_call_get_event (call));

  g_assert_true (headway_handler_call_is_abandoned (call));
  if (!self->is_quiet)
    write_word (self->f, "~%s.%s.%s", self->name, principal_of (headway_handler_call_get_event (call)), data);
}

static void
transport_ended (HeadwayHandler *handler, gpointer user_data)
{
  TestHandler *self = user_data;

  g_assert_cmpuint (headway_handler_get_pending (handler), ==, 0);
  g_assert_cmpuint (headway_handler_get_in_flight (handler), ==, 0);
  g_assert_true (headway_handler_has_ended (handler));
  self->n_ended++;
  write_word (self->f, "/%s", self->name);
}

static const HeadwayHandlerTransport transport = { transport_call, transport_abandon, transport_ended };

TestHandler *
test_handler (TestDispatch *f, const char *name, HeadwayHandlerOptions options)
{
  g_autoptr (GError) error = NULL;
  TestHandler *self = g_new0 (TestHandler, 1);
  HeadwayHandlerOptions defaults;

  headway_handler_options_init (&defaults);
  options.name = name;
  options.priority = options.priority != 0 ? options.priority : defaults.priority;
  options.timeout_ms = options.timeout_ms != 0 ? options.timeout_ms : defaults.timeout_ms;
  options.uid = 1000;
  self->f = f;
  self->name = g_strdup (name);
  self->verdict = "continue";
  self->calls = g_ptr_array_new ();
  self->handler = headway_dispatcher_register (f->dispatcher, f->bus, &options, &transport, self, f->now, &error);
  g_assert_no_error (error);
  g_ptr_array_add (f->handlers, self);
  return self;
}

/* --- Answers -------------------------------------------------------------------------------- */

void
test_answer_at_once (TestHandler *self, HeadwayHandlerCall *call)
{
  headway_handler_call_finish (call, self->verdict, "", 0, self->f->now);
}

static HeadwayHandlerCall *
steal_call (TestHandler *self, guint index)
{
  g_assert_cmpuint (self->calls->len, >, index);
  return g_ptr_array_steal_index (self->calls, index);
}

void
test_answer_call (TestHandler *self, const char *verdict, const char *data)
{
  headway_handler_call_finish (steal_call (self, 0), verdict, data != NULL ? data : "", data != NULL ? strlen (data) : 0,
                               self->f->now);
}

void
test_continue (TestHandler *self)
{
  test_answer_call (self, "continue", NULL);
}

void
test_fail (TestHandler *self)
{
  headway_handler_call_fail (steal_call (self, 0), "org.example.Failed", self->f->now);
}

void
test_skip (TestHandler *self)
{
  headway_handler_call_skip (steal_call (self, 0), self->f->now);
}

void
test_retry (TestHandler *self)
{
  headway_handler_call_retry (steal_call (self, 0), self->f->now);
}

void
test_continue_for (TestHandler *self, const char *principal)
{
  for (guint i = 0; i < self->calls->len; i++)
    {
      HeadwayHandlerCall *call = g_ptr_array_index (self->calls, i);

      if (!g_str_equal (principal_of (headway_handler_call_get_event (call)), principal))
        continue;
      headway_handler_call_finish (steal_call (self, i), "continue", "", 0, self->f->now);
      return;
    }
  g_assert_not_reached ();
}

/* --- Publishing ----------------------------------------------------------------------------- */

typedef struct
{
  TestDispatch *f;
  char *data;
} Publish;

static void
on_done (HeadwayBatch *batch, const GError *error, gpointer user_data)
{
  Publish *publish = user_data;

  if (error != NULL)
    write_word (publish->f, "-%s:%s", publish->data, error->message);
  else if (publish->f->observer != 0)
    write_word (publish->f, "+%s", publish->data);
  g_free (publish->data);
  g_free (publish);
}

static HeadwayBatch *
batch_new (TestDispatch *f, const char *data)
{
  Publish *publish = g_new0 (Publish, 1);

  publish->f = f;
  publish->data = g_strdup (data);
  return headway_batch_new (1, on_done, publish);
}

static void
add (TestDispatch *f, HeadwayBatch *batch, const char *principal, const char *topic, const char *data)
{
  HeadwayPrincipalTable *principals = headway_bus_table_get_principals (f->table);
  g_autoptr (GError) error = NULL;
  g_autoptr (HeadwayPrincipal) named = NULL;
  HeadwayPublication publication = { .topic = topic, .data = data, .data_length = strlen (data) };
  HeadwayEvent *event;

  if (!g_str_equal (principal, "-"))
    named = headway_principal_table_intern (principals, principal, &error);
  publication.principal = named != NULL ? named : headway_principal_table_get_system (principals);
  event = headway_event_new (&publication, HEADWAY_EVENT_CEILING, f->now, &error);
  g_assert_no_error (error);
  headway_batch_add (batch, event);
}

void
test_dispatch_pub_from (TestDispatch *f, gconstpointer origin, const char *principal, const char *topic, const char *data)
{
  HeadwayBatch *batch = batch_new (f, data);

  headway_batch_set_origin (batch, origin);
  add (f, batch, principal, topic, data);
  headway_bus_table_publish (f->table, f->bus, 1000, batch, f->now);
}

void
test_dispatch_pub (TestDispatch *f, const char *principal, const char *topic, const char *data)
{
  test_dispatch_pub_from (f, NULL, principal, topic, data);
}

gint64
test_dispatch_wait_us (TestDispatch *f, gconstpointer origin, const char *principal, const char *topic, const char *data)
{
  HeadwayBatch *batch = headway_batch_new (1, NULL, NULL);
  gint64 wait_us;

  headway_batch_set_origin (batch, origin);
  add (f, batch, principal, topic, data);
  wait_us = headway_bus_table_get_wait_us (f->table, f->bus, 1000, batch, f->now);
  headway_batch_free (batch);
  return wait_us;
}

void
test_dispatch_pub_number (TestDispatch *f, const char *principal, const char *topic, guint n)
{
  g_autofree char *data = g_strdup_printf ("%u", n);

  test_dispatch_pub (f, principal, topic, data);
}

void
test_dispatch_pub_many (TestDispatch *f, const char *words)
{
  g_auto (GStrv) list = g_strsplit (words, " ", -1);
  HeadwayBatch *batch = batch_new (f, "many");

  for (guint i = 0; list[i] != NULL; i++)
    {
      g_auto (GStrv) parts = g_strsplit (list[i], "/", 3);

      add (f, batch, parts[0], parts[1], parts[2]);
    }
  headway_bus_table_publish (f->table, f->bus, 1000, batch, f->now);
  while (headway_bus_table_run (f->table, f->now))
    continue;
}

static void
on_event (HeadwayBus *bus, HeadwayEvent *event, HeadwayInstant now, gpointer user_data)
{
  g_autofree char *data = data_of (event);

  write_word (user_data, "=%s", data);
}

void
test_show_events (TestDispatch *f)
{
  f->observer = headway_bus_add_observer (f->bus, on_event, f, NULL);
}

/* --- Looking -------------------------------------------------------------------------------- */

void
test_dispatch_pass (TestDispatch *f, gint64 ms)
{
  f->now.monotonic_us += ms * 1000;
  f->now.real_us += ms * 1000;
  headway_dispatcher_run (f->dispatcher, f->now);
}

gint64
test_dispatch_metric (TestDispatch *f, guint series)
{
  headway_bus_table_collect (f->table);
  return headway_metrics_get (headway_bus_table_get_metrics (f->table), series);
}

void
test_dispatch_check (TestDispatch *f)
{
  guint in_flight = 0;

  for (guint i = 0; i < f->handlers->len; i++)
    {
      TestHandler *self = g_ptr_array_index (f->handlers, i);
      HeadwayHandler *handler = self->handler;

      g_assert_cmpuint (headway_handler_get_admitted (handler), ==,
                        headway_handler_get_handled (handler) + headway_handler_get_dropped (handler) +
                          headway_handler_get_pending (handler) + headway_handler_get_in_flight (handler));
      g_assert_cmpuint (headway_handler_get_in_flight (handler), <=, headway_handler_get_active_principals (handler));
      in_flight += headway_handler_get_in_flight (handler);
    }
  g_assert_cmpuint (headway_dispatcher_get_in_flight (f->dispatcher), ==, in_flight);
  g_assert_cmpuint (in_flight, <=, HEADWAY_CALLS_MAX);
}

char *
test_dispatch_take_log (TestDispatch *f)
{
  char *text = g_strdup (f->log->str);

  g_string_truncate (f->log, 0);
  return text;
}
