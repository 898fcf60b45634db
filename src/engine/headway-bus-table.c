/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-bus-table.h"

#include "engine/headway-bus-private.h"
#include "engine/headway-bus-table-private.h"
#include "engine/headway-dispatcher-private.h"
#include "engine/headway-error.h"
#include "engine/headway-topic.h"

#include <string.h>

/* A publish or a CreateBus waits so long for ids (decisions.md 4). */
#define IDS_WAIT_US (5 * G_USEC_PER_SEC)

/* Idle keys of the rate limiter that one tick looks at. */
#define RECLAIM_PER_TICK 4096

typedef struct
{
  HeadwayBusReady ready;
  gpointer user_data;
  gboolean must_be_new; /* CreateBus, not GetBus */
} Waiter;

typedef enum
{
  ENTRY_OPENING, /* its first ids are being reserved; nobody sees it */
  ENTRY_OPEN,
  ENTRY_DRAINING,
} EntryState;

typedef struct
{
  HeadwayBusTable *table; /* borrowed: owns the entry */
  HeadwayBus *bus;        /* owned */
  EntryState state;
  gint64 since_us; /* of the state */
  GArray *waiters; /* Waiter, nullable */
  gboolean has_work;
} Entry;

struct _HeadwayBusTable
{
  GObject parent_instance;

  HeadwayBusStore *store; /* owned, nullable */
  HeadwayLimits limits;
  HeadwayPrincipalTable *principals; /* owned */
  HeadwayRateLimiter *limiter;       /* owned */
  HeadwayMetrics *metrics;           /* owned */
  HeadwayDispatcher *dispatcher;     /* owned */
  HeadwaySecurityLog *security;      /* owned, nullable: until dispose */
  GHashTable *entries;               /* name (owned by the bus) → Entry (owned) */
  GQueue work;                       /* HeadwayBus (owned): wants headway_bus_run() */
  guint last_number;
  gint64 now_us;
  char *ids_trouble; /* owned, nullable */
  gboolean is_shut_down;
};

G_DEFINE_FINAL_TYPE (HeadwayBusTable, headway_bus_table, G_TYPE_OBJECT)

enum
{
  SIGNAL_BUS_ADDED,
  SIGNAL_BUS_REMOVED,
  SIGNAL_WORK_PENDING,
  SIGNAL_COLLECT_METRICS,
  SIGNAL_SECURITY_REPORT,
  N_SIGNALS
};

static guint signals[N_SIGNALS];

static void
entry_free (Entry *self)
{
  headway_bus_set_hooks (self->bus, NULL);
  g_clear_pointer (&self->waiters, g_array_unref);
  g_object_unref (self->bus);
  g_free (self);
}

static void
forget_handlers (HeadwayBusTable *self)
{
  HeadwayInstant now = { .monotonic_us = self->now_us };
  g_autoptr (GList) entries = g_hash_table_get_values (self->entries);

  for (GList *at = entries; at != NULL; at = at->next)
    headway_dispatcher_forget_bus (self->dispatcher, ((Entry *) at->data)->bus, now);
}

static void
headway_bus_table_dispose (GObject *object)
{
  HeadwayBusTable *self = HEADWAY_BUS_TABLE (object);

  headway_bus_table_shut_down (self);
  forget_handlers (self);
  g_queue_clear_full (&self->work, g_object_unref);
  g_hash_table_remove_all (self->entries);
  g_clear_object (&self->store);
  g_clear_pointer (&self->security, headway_security_log_free);
  G_OBJECT_CLASS (headway_bus_table_parent_class)->dispose (object);
}

static void
headway_bus_table_finalize (GObject *object)
{
  HeadwayBusTable *self = HEADWAY_BUS_TABLE (object);

  g_hash_table_unref (self->entries);
  g_free (self->ids_trouble);
  g_object_unref (self->dispatcher);
  headway_rate_limiter_free (self->limiter);
  headway_metrics_free (self->metrics);
  headway_principal_table_unref (self->principals);
  G_OBJECT_CLASS (headway_bus_table_parent_class)->finalize (object);
}

static void
headway_bus_table_class_init (HeadwayBusTableClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->dispose = headway_bus_table_dispose;
  object_class->finalize = headway_bus_table_finalize;
  signals[SIGNAL_BUS_ADDED] = g_signal_new ("bus-added", G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST,
                                            0, NULL, NULL, NULL, G_TYPE_NONE, 1, HEADWAY_TYPE_BUS);
  signals[SIGNAL_BUS_REMOVED] = g_signal_new ("bus-removed", G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST,
                                              0, NULL, NULL, NULL, G_TYPE_NONE, 1, HEADWAY_TYPE_BUS);
  signals[SIGNAL_WORK_PENDING] = g_signal_new ("work-pending", G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST,
                                               0, NULL, NULL, NULL, G_TYPE_NONE, 0);
  signals[SIGNAL_COLLECT_METRICS] = g_signal_new ("collect-metrics", G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST,
                                                  0, NULL, NULL, NULL, G_TYPE_NONE, 0);
  signals[SIGNAL_SECURITY_REPORT] = g_signal_new ("security-report", G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST,
                                                  0, NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_POINTER);
}

static void
on_security_report (const HeadwaySecurityReport *report, gpointer user_data)
{
  g_signal_emit (user_data, signals[SIGNAL_SECURITY_REPORT], 0, report);
}

static void
headway_bus_table_init (HeadwayBusTable *self)
{
  headway_limits_init (&self->limits);
  self->principals = headway_principal_table_new ();
  self->limiter = headway_rate_limiter_new ();
  self->metrics = headway_metrics_new ();
  self->dispatcher = headway_dispatcher_new (self);
  self->security = headway_security_log_new (on_security_report, self);
  self->entries = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, (GDestroyNotify) entry_free);
  g_queue_init (&self->work);
}

HeadwayBusTable *
headway_bus_table_new (HeadwayBusStore *store)
{
  HeadwayBusTable *self = g_object_new (HEADWAY_TYPE_BUS_TABLE, NULL);

  g_set_object (&self->store, store);
  return self;
}

HeadwayLimits *
headway_bus_table_get_limits (HeadwayBusTable *self)
{
  return &self->limits;
}

HeadwayPrincipalTable *
headway_bus_table_get_principals (HeadwayBusTable *self)
{
  return self->principals;
}

HeadwayMetrics *
headway_bus_table_get_metrics (HeadwayBusTable *self)
{
  return self->metrics;
}

HeadwayDispatcher *
headway_bus_table_get_dispatcher (HeadwayBusTable *self)
{
  return self->dispatcher;
}

HeadwayRateLimiter *
headway_bus_table_get_limiter (HeadwayBusTable *self)
{
  return self->limiter;
}

HeadwaySecurityLog *
headway_bus_table_get_security_log (HeadwayBusTable *self)
{
  return self->security;
}

/* --- Hooks of a bus ------------------------------------------------------------------------- */

static void
on_bus_work (HeadwayBus *bus, gpointer data)
{
  Entry *entry = data;

  if (entry->has_work)
    return;
  entry->has_work = TRUE;
  g_queue_push_tail (&entry->table->work, g_object_ref (bus));
  if (entry->table->work.length == 1)
    g_signal_emit (entry->table, signals[SIGNAL_WORK_PENDING], 0);
}

static void
on_bus_closed (HeadwayBus *bus, gpointer data)
{
  Entry *entry = data;
  HeadwayBusTable *self = entry->table;

  entry->state = ENTRY_DRAINING;
  entry->since_us = self->now_us;
  if (self->store != NULL && !self->is_shut_down)
    headway_bus_store_forget (self->store, bus);
  headway_dispatcher_close_bus (self->dispatcher, bus, (HeadwayInstant){ .monotonic_us = self->now_us });
  /* Without readers its name is free with the next turn of the loop. */
  on_bus_work (bus, entry);
}

static guint
on_next_number (gpointer data)
{
  return ++((Entry *) data)->table->last_number;
}

static void
on_lost (HeadwayBus *bus, guint32 uid, HeadwayPrincipal *principal, HeadwayInstant now, gpointer data)
{
  headway_bus_table_add_security (((Entry *) data)->table, HEADWAY_SECURITY_EVENTS_LOST, headway_bus_get_name (bus), uid,
                                  principal != NULL ? headway_principal_get_name (principal) : NULL, now);
}

static Entry *
add_entry (HeadwayBusTable *self, HeadwayBus *bus, EntryState state)
{
  Entry *entry = g_new0 (Entry, 1);
  HeadwayBusHooks hooks = { on_bus_work, on_bus_closed, on_next_number, on_lost, entry, self->metrics };

  entry->table = self;
  entry->bus = bus;
  entry->state = state;
  entry->since_us = self->now_us;
  headway_bus_set_hooks (bus, &hooks);
  g_hash_table_insert (self->entries, (gpointer) headway_bus_get_name (bus), entry);
  return entry;
}

/* --- Finding and creating ------------------------------------------------------------------- */

HeadwayBus *
headway_bus_table_lookup (HeadwayBusTable *self, const char *name, GError **error)
{
  Entry *entry;

  if (!headway_bus_name_check (name, strlen (name), error))
    return NULL;
  entry = g_hash_table_lookup (self->entries, name);
  if (entry == NULL || entry->state == ENTRY_OPENING)
    {
      g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_NO_SUCH_BUS, "there is no bus \"%s\"", name);
      return NULL;
    }
  if (entry->state == ENTRY_DRAINING || headway_bus_is_closing (entry->bus))
    {
      g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_CLOSED, "bus \"%s\" is closed", name);
      return NULL;
    }
  return entry->bus;
}

static void
answer (const Waiter *waiter, HeadwayBus *bus, const GError *error)
{
  if (waiter->ready != NULL)
    waiter->ready (error == NULL ? bus : NULL, error, waiter->user_data);
}

static gboolean
check_create (HeadwayBusTable *self, const char *name, GError **error)
{
  if (!headway_bus_name_check (name, strlen (name), error))
    return FALSE;
  if (self->is_shut_down)
    {
      g_set_error_literal (error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE, "headwayd is stopping");
      return FALSE;
    }
  if (g_hash_table_size (self->entries) >= self->limits.max_buses)
    {
      headway_set_error_with_limit (error, HEADWAY_ERROR_QUOTA_EXCEEDED, self->limits.max_buses,
                                    "there are %u buses, at most %u are allowed",
                                    g_hash_table_size (self->entries), self->limits.max_buses);
      return FALSE;
    }
  return TRUE;
}

static void
on_bus_granted (Entry *entry)
{
  g_autoptr (GArray) waiters = g_steal_pointer (&entry->waiters);
  HeadwayBus *bus = entry->bus;
  g_autoptr (GError) exists = g_error_new (HEADWAY_ERROR, HEADWAY_ERROR_BUS_EXISTS,
                                           "bus \"%s\" exists already", headway_bus_get_name (bus));

  entry->state = ENTRY_OPEN;
  g_signal_emit (entry->table, signals[SIGNAL_BUS_ADDED], 0, bus);
  for (guint i = 0; i < waiters->len; i++)
    {
      Waiter *waiter = &g_array_index (waiters, Waiter, i);
      answer (waiter, bus, i > 0 && waiter->must_be_new ? exists : NULL);
    }
}

static void
on_bus_refused (Entry *entry, const char *reason)
{
  g_autoptr (GArray) waiters = g_steal_pointer (&entry->waiters);
  g_autoptr (GError) error = g_error_new (HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE,
                                          "bus \"%s\" cannot be created: %s",
                                          headway_bus_get_name (entry->bus), reason);

  if (entry->table->store != NULL)
    headway_bus_store_forget (entry->table->store, entry->bus);
  g_hash_table_remove (entry->table->entries, headway_bus_get_name (entry->bus));
  for (guint i = 0; i < waiters->len; i++)
    answer (&g_array_index (waiters, Waiter, i), NULL, error);
}

static void
create (HeadwayBusTable *self, const char *name, const HeadwayBusOptions *options, guint32 uid, HeadwayInstant now, const Waiter *waiter)
{
  g_autofree char *epoch = g_uuid_string_random ();
  guint64 mark = self->store != NULL ? headway_bus_store_get_mark (self->store, name) : 0;
  HeadwayBus *bus = headway_bus_new (name, epoch, mark, options != NULL ? options : &self->limits.bus, self->principals);
  Entry *entry;

  self->now_us = now.monotonic_us;
  headway_bus_set_creator (bus, uid);
  headway_bus_touch (bus, now);
  entry = add_entry (self, bus, ENTRY_OPENING);
  entry->waiters = g_array_new (FALSE, FALSE, sizeof (Waiter));
  g_array_append_val (entry->waiters, *waiter);
  if (self->store == NULL)
    {
      on_bus_granted (entry);
      return;
    }
  headway_bus_set_store (bus, self->store, mark);
  headway_bus_request_ids (bus, now);
}

void
headway_bus_table_create (HeadwayBusTable *self,
                          const char *name,
                          const HeadwayBusOptions *options,
                          guint32 uid,
                          HeadwayInstant now,
                          HeadwayBusReady ready,
                          gpointer user_data)
{
  Waiter waiter = { ready, user_data, TRUE };
  Entry *entry = g_hash_table_lookup (self->entries, name);
  g_autoptr (GError) error = NULL;

  if (entry != NULL && entry->state == ENTRY_OPENING)
    {
      g_array_append_val (entry->waiters, waiter);
      return;
    }
  if (entry != NULL)
    {
      if (headway_bus_table_lookup (self, name, &error) != NULL)
        g_set_error (&error, HEADWAY_ERROR, HEADWAY_ERROR_BUS_EXISTS, "bus \"%s\" exists already", name);
      answer (&waiter, NULL, error);
      return;
    }
  if (!check_create (self, name, &error))
    {
      answer (&waiter, NULL, error);
      return;
    }
  create (self, name, options, uid, now, &waiter);
}

void
headway_bus_table_ensure (HeadwayBusTable *self,
                          const char *name,
                          guint32 uid,
                          HeadwayInstant now,
                          HeadwayBusReady ready,
                          gpointer user_data)
{
  Waiter waiter = { ready, user_data, FALSE };
  Entry *entry = g_hash_table_lookup (self->entries, name);
  g_autoptr (GError) error = NULL;

  if (entry != NULL && entry->state == ENTRY_OPENING)
    {
      g_array_append_val (entry->waiters, waiter);
      return;
    }
  if (entry != NULL || !self->limits.auto_create_buses)
    {
      HeadwayBus *bus = headway_bus_table_lookup (self, name, &error);
      answer (&waiter, bus, error);
      return;
    }
  if (!check_create (self, name, &error))
    {
      answer (&waiter, NULL, error);
      return;
    }
  create (self, name, NULL, uid, now, &waiter);
}

HeadwayBus *
headway_bus_table_restore (HeadwayBusTable *self,
                           const char *name,
                           guint64 last_id,
                           guint64 granted_id,
                           const HeadwayBusOptions *options,
                           guint32 creator,
                           HeadwayInstant now)
{
  g_autofree char *epoch = g_uuid_string_random ();
  HeadwayBus *bus = headway_bus_new (name, epoch, last_id, options, self->principals);

  self->now_us = now.monotonic_us;
  headway_bus_set_creator (bus, creator);
  headway_bus_touch (bus, now);
  add_entry (self, bus, ENTRY_OPEN);
  if (self->store != NULL)
    headway_bus_set_store (bus, self->store, granted_id);
  g_signal_emit (self, signals[SIGNAL_BUS_ADDED], 0, bus);
  return bus;
}

void
headway_bus_table_ids_granted (HeadwayBusTable *self, HeadwayBus *bus, guint64 up_to, HeadwayInstant now)
{
  Entry *entry = g_hash_table_lookup (self->entries, headway_bus_get_name (bus));

  self->now_us = now.monotonic_us;
  headway_bus_grant_ids (bus, up_to, now);
  if (entry != NULL && entry->bus == bus && entry->state == ENTRY_OPENING)
    on_bus_granted (entry);
}

void
headway_bus_table_set_ids_trouble (HeadwayBusTable *self, const char *reason)
{
  g_free (self->ids_trouble);
  self->ids_trouble = g_strdup (reason);
}

void
headway_bus_table_ids_refused (HeadwayBusTable *self, HeadwayBus *bus, const char *reason)
{
  Entry *entry = g_hash_table_lookup (self->entries, headway_bus_get_name (bus));

  headway_bus_refuse_ids (bus, reason);
  if (entry != NULL && entry->bus == bus && entry->state == ENTRY_OPENING)
    on_bus_refused (entry, reason);
}

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (headway_bus_get_name (*(HeadwayBus *const *) a), headway_bus_get_name (*(HeadwayBus *const *) b));
}

static GPtrArray *
list_buses (HeadwayBusTable *self, gboolean only_open)
{
  GPtrArray *list = g_ptr_array_new ();
  GHashTableIter iter;
  gpointer value;

  g_hash_table_iter_init (&iter, self->entries);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    {
      Entry *entry = value;
      gboolean is_open = entry->state == ENTRY_OPEN && !headway_bus_is_closing (entry->bus);

      if (is_open || !only_open)
        g_ptr_array_add (list, entry->bus);
    }
  g_ptr_array_sort (list, compare_names);
  return list;
}

GPtrArray *
headway_bus_table_list (HeadwayBusTable *self)
{
  return list_buses (self, TRUE);
}

GPtrArray *
headway_bus_table_list_all (HeadwayBusTable *self)
{
  return list_buses (self, FALSE);
}

guint
headway_bus_table_size (HeadwayBusTable *self)
{
  return g_hash_table_size (self->entries);
}

/* --- Running -------------------------------------------------------------------------------- */

/* Neither reader nor handler has anything left to do. */
static gboolean
is_drained (HeadwayBusTable *self, HeadwayBus *bus)
{
  return headway_bus_is_drained (bus) && headway_dispatcher_count_handlers (self->dispatcher, bus) == 0;
}

/* Readers or handlers are there. */
static gboolean
is_in_use (HeadwayBusTable *self, HeadwayBus *bus)
{
  return headway_bus_get_subscriber_count (bus) > 0 || headway_dispatcher_count_handlers (self->dispatcher, bus) > 0;
}

static void
remove_if_drained (HeadwayBusTable *self, Entry *entry, gboolean is_window_over)
{
  g_autoptr (HeadwayBus) bus = g_object_ref (entry->bus);

  /* At the end the store still asks for the marks of all. */
  if (self->is_shut_down || (!is_window_over && !is_drained (self, bus)))
    return;
  headway_dispatcher_forget_bus (self->dispatcher, bus, (HeadwayInstant){ .monotonic_us = self->now_us });
  g_hash_table_remove (self->entries, headway_bus_get_name (bus));
  headway_rate_limiter_forget_bus (self->limiter, bus);
  g_signal_emit (self, signals[SIGNAL_BUS_REMOVED], 0, bus);
}

gboolean
headway_bus_table_run (HeadwayBusTable *self, HeadwayInstant now)
{
  guint n = self->work.length;

  self->now_us = now.monotonic_us;
  for (; n > 0 && self->work.length > 0; n--)
    {
      g_autoptr (HeadwayBus) bus = g_queue_pop_head (&self->work);
      Entry *entry = g_hash_table_lookup (self->entries, headway_bus_get_name (bus));

      if (entry == NULL || entry->bus != bus)
        continue;
      entry->has_work = FALSE;
      if (entry->state == ENTRY_DRAINING)
        remove_if_drained (self, entry, FALSE);
      else if (headway_bus_run (bus, now))
        {
          entry->has_work = TRUE;
          g_queue_push_tail (&self->work, g_object_ref (bus));
        }
    }
  return self->work.length > 0;
}

static gboolean
is_forgotten (HeadwayBusTable *self, HeadwayBus *bus, HeadwayInstant now)
{
  gint64 expire_us = self->limits.bus_expire_seconds * (gint64) G_USEC_PER_SEC;

  return expire_us > 0 && !is_in_use (self, bus) &&
         now.monotonic_us - headway_bus_get_last_used_us (bus) >= expire_us;
}

static void
tick_entry (HeadwayBusTable *self, Entry *entry, HeadwayInstant now, gint64 drain_window_us)
{
  gint64 waiting_us = headway_bus_get_waiting_since_us (entry->bus);
  gint64 since_us = entry->state == ENTRY_OPENING ? entry->since_us : waiting_us;

  if (entry->state == ENTRY_DRAINING)
    {
      remove_if_drained (self, entry, now.monotonic_us - entry->since_us >= drain_window_us);
      return;
    }
  if (since_us > 0 && now.monotonic_us - since_us >= IDS_WAIT_US)
    {
      g_autofree char *reason = g_strdup_printf ("no event ids could be reserved within 5 seconds%s%s",
                                                 self->ids_trouble != NULL ? ": " : "",
                                                 self->ids_trouble != NULL ? self->ids_trouble : "");

      headway_bus_table_ids_refused (self, entry->bus, reason);
      return;
    }
  if (is_in_use (self, entry->bus))
    headway_bus_touch (entry->bus, now);
  if (entry->state == ENTRY_OPEN && is_forgotten (self, entry->bus, now))
    headway_bus_close (entry->bus);
}

void
headway_bus_table_tick (HeadwayBusTable *self, HeadwayInstant now, gint64 drain_window_us)
{
  g_autoptr (GList) entries = g_hash_table_get_values (self->entries);

  self->now_us = now.monotonic_us;
  for (GList *at = entries; at != NULL; at = at->next)
    tick_entry (self, at->data, now, drain_window_us);
  headway_dispatcher_tick (self->dispatcher, now);
  headway_rate_limiter_reclaim (self->limiter, RECLAIM_PER_TICK, now);
  headway_security_log_tick (self->security, now);
}

void
headway_bus_table_shut_down (HeadwayBusTable *self)
{
  g_autoptr (GList) entries = g_hash_table_get_values (self->entries);

  self->is_shut_down = TRUE;
  for (GList *at = entries; at != NULL; at = at->next)
    {
      Entry *entry = at->data;
      if (entry->state == ENTRY_OPENING)
        on_bus_refused (entry, "headwayd is stopping");
      else
        headway_bus_stop (entry->bus);
    }
}

gboolean
headway_bus_table_is_drained (HeadwayBusTable *self)
{
  GHashTableIter iter;
  gpointer value;

  g_hash_table_iter_init (&iter, self->entries);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    if (!is_drained (self, ((Entry *) value)->bus))
      return FALSE;
  return TRUE;
}
