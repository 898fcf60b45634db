/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-decision.h"

#include "engine/headway-batch-private.h"
#include "engine/headway-bus-private.h"
#include "engine/headway-dispatcher-private.h"
#include "engine/headway-error.h"
#include "engine/headway-intrusive.h"

#include <string.h>

typedef struct _Entry Entry;

/* What waits of one principal, in order. */
typedef struct
{
  HeadwayPrincipal *principal; /* owned */
  gconstpointer origin;        /* nullable: the line of a connection that has a `pre` call in flight */
  HeadwayHandlerSet *set;      /* borrowed: holds the line */
  GQueue entries;              /* Entry (borrowed), by link */
  Entry *current;              /* borrowed, nullable: the first that is not decided */
  guint64 bytes;
} Line;

/* The events of one publish in one line. */
struct _Entry
{
  HeadwayDecision *decision; /* borrowed: owns the entry */
  Line *line;                /* borrowed, nullable */
  GList link;                /* in `line` */
  GArray *indexes;           /* owned: of its events in the batch, guint */
  guint at;                  /* the one of `indexes` whose turn it is */
  guint64 bytes;
  HeadwayWork *work; /* borrowed, nullable: decides it */
};

typedef enum
{
  DECIDING,
  PUBLISHING, /* in HeadwayDispatcher.published */
  FAILED,     /* in HeadwayDispatcher.settled */
} State;

struct _HeadwayDecision
{
  HeadwayHandlerSet *set; /* borrowed: outlives the wait */
  HeadwayBatch *batch;    /* owned */
  guint32 uid;
  gconstpointer skip; /* nullable: the origin whose handlers it passes */
  State state;
  GPtrArray *entries; /* owned, of owned Entry */
  guint64 number;     /* of the set, from 1 */
  GPtrArray *late;    /* owned, NULL for one event; of owned HeadwayHandler: have missed a deadline */
  guint n_undecided;  /* entries */
  guint n_behind;     /* entries that are not the first of their line */
  GList link;         /* in `published` or `settled` */
  GList set_link;     /* in HeadwayHandlerSet.undecided */
  GError *error;      /* owned, nullable */
};

/* What waits of one user. */
typedef struct
{
  guint n;
  guint64 bytes;
} Account;

static void line_run (Line *self, HeadwayInstant now);

/* --- Lines ---------------------------------------------------------------------------------- */

static guint
line_hash (gconstpointer data)
{
  const Line *line = data;

  return g_direct_hash (line->principal) * 31 + g_direct_hash (line->origin);
}

static gboolean
line_equal (gconstpointer a, gconstpointer b)
{
  const Line *first = a;
  const Line *second = b;

  return first->principal == second->principal && first->origin == second->origin;
}

static void
line_free (gpointer data)
{
  Line *self = data;

  headway_principal_unref (self->principal);
  g_free (self);
}

GHashTable *
headway_decision_lines_new (void)
{
  return g_hash_table_new_full (line_hash, line_equal, line_free, NULL);
}

GHashTable *
headway_decision_accounts_new (void)
{
  return g_hash_table_new_full (NULL, NULL, NULL, g_free);
}

static Line *
find_line (HeadwayHandlerSet *set, HeadwayPrincipal *principal, gconstpointer origin)
{
  Line key = { .principal = principal, .origin = origin };

  return g_hash_table_lookup (set->lines, &key);
}

/* Where a publish of @principal by @origin has to stand, if it waits; made if @is_wanted and it is not there. A connection
 * stays in the line of its own until that is empty. (nullable) */
static Line *
choose_line (HeadwayHandlerSet *set, HeadwayPrincipal *principal, gconstpointer origin, gboolean is_apart, gboolean is_wanted)
{
  Line *line = origin != NULL ? find_line (set, principal, origin) : NULL;

  if (line != NULL)
    return line;
  if (!is_apart)
    line = find_line (set, principal, NULL);
  if (line == NULL && is_wanted)
    {
      line = g_new0 (Line, 1);
      line->principal = headway_principal_ref (principal);
      line->origin = is_apart ? origin : NULL;
      line->set = set;
      g_hash_table_add (set->lines, line);
    }
  return line;
}

gboolean
headway_decision_may_wait (const HeadwayHandlerSet *set)
{
  return set->groups[HEADWAY_PHASE_PRE].n > 0 || g_hash_table_size (set->lines) > 0;
}

/* --- Decisions ------------------------------------------------------------------------------ */

static void
entry_free (gpointer data)
{
  Entry *self = data;

  g_array_unref (self->indexes);
  g_free (self);
}

static Account *
get_account (HeadwayDispatcher *dispatcher, guint32 uid)
{
  Account *account = g_hash_table_lookup (dispatcher->accounts, GUINT_TO_POINTER (uid));

  if (account == NULL)
    {
      account = g_new0 (Account, 1);
      g_hash_table_insert (dispatcher->accounts, GUINT_TO_POINTER (uid), account);
    }
  return account;
}

static guint64
entries_bytes (const HeadwayDecision *self)
{
  guint64 bytes = 0;

  for (guint i = 0; i < self->entries->len; i++)
    bytes += ((Entry *) g_ptr_array_index (self->entries, i))->bytes;
  return bytes;
}

static Entry *
get_entry (HeadwayDecision *self, Line *line)
{
  Entry *entry = line->entries.tail != NULL ? line->entries.tail->data : NULL;

  if (entry != NULL && entry->decision == self)
    return entry;
  entry = g_new0 (Entry, 1);
  entry->decision = self;
  entry->line = line;
  entry->link.data = entry;
  entry->indexes = g_array_new (FALSE, FALSE, sizeof (guint));
  headway_queue_push (&line->entries, &entry->link);
  if (line->current == NULL)
    line->current = entry;
  self->n_undecided++;
  self->n_behind += line->entries.head == &entry->link ? 0 : 1;
  g_ptr_array_add (self->entries, entry);
  return entry;
}

static HeadwayDecision *
decision_new (HeadwayHandlerSet *set, guint32 uid, HeadwayBatch *batch, gboolean is_apart)
{
  HeadwayDecision *self = g_new0 (HeadwayDecision, 1);
  Account *account = get_account (set->dispatcher, uid);

  self->set = set;
  self->batch = batch;
  self->uid = uid;
  self->skip = is_apart ? batch->origin : NULL;
  self->number = ++set->last_decision;
  self->link.data = self->set_link.data = self;
  headway_queue_push (&set->undecided, &self->set_link);
  self->entries = g_ptr_array_new_with_free_func (entry_free);
  if (batch->events->len > 1)
    self->late = g_ptr_array_new_with_free_func (g_object_unref);
  for (guint i = 0; i < batch->events->len; i++)
    {
      HeadwayEvent *event = g_ptr_array_index (batch->events, i);
      Line *line = choose_line (set, headway_event_get_principal (event), batch->origin, is_apart, TRUE);
      Entry *entry = get_entry (self, line);

      g_array_append_val (entry->indexes, i);
      entry->bytes += headway_event_get_cost (event);
      line->bytes += headway_event_get_cost (event);
    }
  set->dispatcher->undecided++;
  account->n++;
  account->bytes += entries_bytes (self);
  return self;
}

static void
decision_free (HeadwayDecision *self)
{
  g_ptr_array_unref (self->entries);
  g_clear_pointer (&self->late, g_ptr_array_unref);
  g_clear_error (&self->error);
  g_free (self);
}

/* All of it is decided, or it has failed: no handler is looked up for it any more, and those that drain may have waited for that. */
static void
leave_undecided (HeadwayDecision *self)
{
  HeadwayHandlerSet *set = self->set;

  headway_queue_unlink (&set->undecided, &self->set_link);
  for (guint i = 0; set->n_draining > 0 && i < set->all->len; i++)
    headway_dispatcher_end_if_drained (set->dispatcher, g_ptr_array_index (set->all, i));
}

static void
publish_if_first (HeadwayDecision *self)
{
  if (self->state != DECIDING || self->n_undecided > 0 || self->n_behind > 0)
    return;
  self->state = PUBLISHING;
  headway_queue_push (&self->set->dispatcher->published, &self->link);
}

/* Returns: (nullable): the line, if something is left in it that may be decided now. */
static Line *
leave_line (Entry *self)
{
  Line *line = g_steal_pointer (&self->line);
  gboolean is_head = line->entries.head == &self->link;
  gboolean is_current = line->current == self;

  line->bytes -= self->bytes;
  if (is_current)
    line->current = self->link.next != NULL ? self->link.next->data : NULL;
  headway_queue_unlink (&line->entries, &self->link);
  if (line->entries.head == NULL)
    {
      g_hash_table_remove (line->set->lines, line);
      return NULL;
    }
  if (is_head)
    {
      HeadwayDecision *next = ((Entry *) line->entries.head->data)->decision;

      next->n_behind--;
      publish_if_first (next);
    }
  return is_current ? line : NULL;
}

static void
leave_lines (HeadwayDecision *self, HeadwayInstant now)
{
  HeadwayDispatcher *dispatcher = self->set->dispatcher;
  Account *account = get_account (dispatcher, self->uid);

  dispatcher->undecided--;
  account->n--;
  account->bytes -= entries_bytes (self);
  if (account->n == 0)
    g_hash_table_remove (dispatcher->accounts, GUINT_TO_POINTER (self->uid));
  for (guint i = 0; i < self->entries->len; i++)
    {
      Entry *entry = g_ptr_array_index (self->entries, i);
      Line *line;

      if (entry->work != NULL)
        headway_work_detach (g_steal_pointer (&entry->work), now);
      line = leave_line (entry);
      if (line != NULL)
        line_run (line, now);
    }
}

/* @error: (transfer full). The publisher is told when the present step has ended. */
static void
fail (HeadwayDecision *self, GError *error, HeadwayInstant now)
{
  HeadwayDispatcher *dispatcher = self->set->dispatcher;

  if (self->state == PUBLISHING)
    headway_queue_unlink (&dispatcher->published, &self->link);
  self->state = FAILED;
  self->error = error;
  leave_lines (self, now);
  if (self->n_undecided > 0)
    leave_undecided (self);
  headway_queue_push (&dispatcher->settled, &self->link);
}

/* --- Deciding ------------------------------------------------------------------------------- */

/* For what became of the event at @index. @error: (transfer full). */
static void
fail_for (HeadwayDecision *self, guint index, GError *error, HeadwayInstant now)
{
  if (self->batch->events->len > 1)
    {
      headway_error_get_details (error)->index = index;
      headway_error_get_details (error)->reason_length = (gint64) strlen (error->message);
      g_prefix_error (&error, "event %u: ", index);
    }
  fail (self, error, now);
}

/* FALSE: the publish has failed. It was within its bounds, and what handlers make of it must be, too. */
static gboolean
take_new_data (Entry *self, guint index, HeadwayEvent *event, HeadwayInstant now)
{
  HeadwayDecision *decision = self->decision;
  guint64 before = headway_batch_get_cost (decision->batch);
  GError *error = NULL;
  guint64 added;

  headway_batch_replace (decision->batch, index, event);
  /* It may have become smaller, modulo 2^64. */
  added = headway_batch_get_cost (decision->batch) - before;
  self->bytes += added;
  self->line->bytes += added;
  get_account (decision->set->dispatcher, decision->uid)->bytes += added;
  if (decision->batch->events->len == 1 || headway_batch_get_cost (decision->batch) <= MAX (before, HEADWAY_BATCH_BYTES_MAX))
    return TRUE;
  headway_set_error_with_limit (&error, HEADWAY_ERROR_TOO_LARGE, HEADWAY_BATCH_BYTES_MAX,
                                "with what handlers made of it the publish has %" G_GUINT64_FORMAT " bytes, at most %d are allowed",
                                headway_batch_get_cost (decision->batch), HEADWAY_BATCH_BYTES_MAX);
  fail_for (decision, index, error, now);
  return FALSE;
}

static void
on_decided (HeadwayEvent *event, const char *reason, HeadwayInstant now, gpointer data)
{
  Entry *entry = data;
  HeadwayDecision *self = entry->decision;
  guint index = g_array_index (entry->indexes, guint, entry->at);

  entry->work = NULL;
  if (reason != NULL)
    {
      fail_for (self, index, g_error_new_literal (HEADWAY_ERROR, HEADWAY_ERROR_DENIED, reason), now);
      return;
    }
  if (event != NULL && !take_new_data (entry, index, event, now))
    return;
  entry->at++;
  line_run (entry->line, now);
}

static void
leave_out_late (const HeadwayDecision *self, GPtrArray *matches)
{
  for (guint i = 0; self->late != NULL && i < self->late->len; i++)
    {
      HeadwayHandler *handler = g_ptr_array_index (self->late, i);

      if (g_ptr_array_find (matches, handler, NULL))
        {
          g_ptr_array_remove (matches, handler);
          headway_work_skip_late (self->set->dispatcher, handler);
        }
    }
}

/* FALSE: the entry waits for a handler. */
static gboolean
decide (Entry *self, HeadwayInstant now)
{
  HeadwayDecision *decision = self->decision;
  HeadwayHandlerSet *set = decision->set;

  for (; self->at < self->indexes->len; self->at++)
    {
      HeadwayEvent *event = g_ptr_array_index (decision->batch->events, g_array_index (self->indexes, guint, self->at));
      GPtrArray *matches = headway_handler_set_match (set, HEADWAY_PHASE_PRE, event, decision->skip, decision->number);

      leave_out_late (decision, matches);
      if (matches->len == 0)
        continue;
      self->work = headway_work_pre (set->dispatcher, (HeadwayHandler *const *) matches->pdata, matches->len, event, now,
                                     decision->late, on_decided, self);
      return FALSE;
    }
  return TRUE;
}

static void
line_run (Line *self, HeadwayInstant now)
{
  while (self->current != NULL && self->current->work == NULL && decide (self->current, now))
    {
      Entry *entry = self->current;

      self->current = entry->link.next != NULL ? entry->link.next->data : NULL;
      if (--entry->decision->n_undecided == 0)
        leave_undecided (entry->decision);
      publish_if_first (entry->decision);
    }
}

/* --- Coming in ------------------------------------------------------------------------------ */

static gboolean
must_wait (HeadwayHandlerSet *set, const HeadwayBatch *batch, gboolean is_apart)
{
  gboolean has_lines = g_hash_table_size (set->lines) > 0;

  for (guint i = 0; i < batch->events->len; i++)
    {
      HeadwayEvent *event = g_ptr_array_index (batch->events, i);

      if (has_lines && choose_line (set, headway_event_get_principal (event), batch->origin, is_apart, FALSE) != NULL)
        return TRUE;
      if (headway_handler_set_match (set, HEADWAY_PHASE_PRE, event, is_apart ? batch->origin : NULL, G_MAXUINT64)->len > 0)
        return TRUE;
    }
  return FALSE;
}

static gboolean
check_room (HeadwayDecision *self, GError **error)
{
  const Account *account = get_account (self->set->dispatcher, self->uid);

  for (guint i = 0; i < self->entries->len; i++)
    {
      Line *line = ((Entry *) g_ptr_array_index (self->entries, i))->line;

      if (line->entries.length <= HEADWAY_DECISIONS_MAX &&
          (line->entries.length == 1 || line->bytes <= HEADWAY_DECISIONS_BYTES_MAX))
        continue;
      g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE,
                   "%u publishes of principal \"%s\" wait for handlers already, at most %d and %d bytes may",
                   line->entries.length - 1, headway_principal_get_name (line->principal), HEADWAY_DECISIONS_MAX,
                   HEADWAY_DECISIONS_BYTES_MAX);
      return FALSE;
    }
  if (account->n <= HEADWAY_UID_DECISIONS_MAX && account->bytes <= HEADWAY_UID_DECISIONS_BYTES_MAX)
    return TRUE;
  g_set_error (error, HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE,
               "%u publishes of user %u wait for handlers already, at most %d and %d bytes may",
               account->n - 1, self->uid, HEADWAY_UID_DECISIONS_MAX, HEADWAY_UID_DECISIONS_BYTES_MAX);
  return FALSE;
}

/* Whether a line of @n publishes that cost @bytes has room for one that costs @more. */
static gboolean
fits_line (guint n, guint64 bytes, guint64 more)
{
  return n == 0 || (n < HEADWAY_DECISIONS_MAX && bytes + more <= HEADWAY_DECISIONS_BYTES_MAX);
}

gboolean
headway_decision_has_room (HeadwayHandlerSet *set, guint32 uid, const HeadwayBatch *batch)
{
  gboolean is_apart = headway_dispatcher_has_origin (set->dispatcher, batch->origin);
  const Account *account = g_hash_table_lookup (set->dispatcher->accounts, GUINT_TO_POINTER (uid));

  if (batch->is_seed || account == NULL)
    return TRUE;
  for (guint i = 0; i < batch->events->len; i++)
    {
      HeadwayEvent *event = g_ptr_array_index (batch->events, i);
      const Line *line = choose_line (set, headway_event_get_principal (event), batch->origin, is_apart, FALSE);

      if (line != NULL && !fits_line (line->entries.length, line->bytes, headway_batch_get_cost (batch)))
        return FALSE;
    }
  return (account->n < HEADWAY_UID_DECISIONS_MAX && account->bytes + headway_batch_get_cost (batch) <= HEADWAY_UID_DECISIONS_BYTES_MAX) ||
         !must_wait (set, batch, is_apart);
}

void
headway_decision_submit (HeadwayHandlerSet *set, guint32 uid, HeadwayBatch *batch, HeadwayInstant now)
{
  gboolean is_apart = headway_dispatcher_has_origin (set->dispatcher, batch->origin);
  GError *error = NULL;
  HeadwayDecision *self;

  /* What only ever was is not decided any more (decisions.md 38). */
  if (batch->is_seed || !must_wait (set, batch, is_apart))
    {
      headway_bus_publish (set->bus, batch, now);
      return;
    }
  headway_bus_touch (set->bus, now);
  self = decision_new (set, uid, batch, is_apart);
  if (check_room (self, &error))
    for (guint i = 0; i < self->entries->len; i++)
      line_run (((Entry *) g_ptr_array_index (self->entries, i))->line, now);
  else
    fail (self, error, now);
  headway_dispatcher_settle (set->dispatcher, now);
}

/* --- Handlers that drain -------------------------------------------------------------------- */

gboolean
headway_decision_keep (HeadwayHandlerSet *set, HeadwayHandler *handler)
{
  if (handler->phase != HEADWAY_PHASE_PRE || set->undecided.head == NULL)
    return FALSE;
  handler->last_decision = set->last_decision;
  set->n_draining++;
  return TRUE;
}

gboolean
headway_decision_may_want (HeadwayHandler *handler)
{
  HeadwayHandlerSet *set = headway_bus_get_handlers (handler->bus);

  return handler->is_matching && handler->last_decision > 0 && set->undecided.head != NULL &&
         ((HeadwayDecision *) set->undecided.head->data)->number <= handler->last_decision;
}

/* --- Going out ------------------------------------------------------------------------------ */

void
headway_decision_tell_settled (HeadwayDispatcher *dispatcher, HeadwayInstant now)
{
  while (dispatcher->settled.head != NULL)
    {
      HeadwayDecision *self = dispatcher->settled.head->data;
      HeadwayBatch *batch = g_steal_pointer (&self->batch);
      g_autoptr (GError) error = g_steal_pointer (&self->error);

      headway_queue_unlink (&dispatcher->settled, &self->link);
      decision_free (self);
      headway_batch_finish (batch, error);
    }
}

void
headway_decision_publish (HeadwayDispatcher *dispatcher, guint *budget, HeadwayInstant now)
{
  while (dispatcher->published.head != NULL && *budget > 0)
    {
      HeadwayDecision *self = dispatcher->published.head->data;
      g_autoptr (HeadwayBus) bus = g_object_ref (self->set->bus);
      HeadwayBatch *batch = g_steal_pointer (&self->batch);

      headway_queue_unlink (&dispatcher->published, &self->link);
      leave_lines (self, now);
      decision_free (self);
      *budget -= MIN (*budget, headway_batch_get_count (batch));
      headway_bus_publish (bus, batch, now);
    }
}

void
headway_decision_close_bus (HeadwayHandlerSet *set, HeadwayInstant now)
{
  while (g_hash_table_size (set->lines) > 0)
    {
      GHashTableIter iter;
      gpointer line;

      g_hash_table_iter_init (&iter, set->lines);
      if (g_hash_table_iter_next (&iter, &line, NULL))
        fail (((Entry *) ((Line *) line)->entries.head->data)->decision,
              headway_bus_new_closed_error (set->bus, ": closed while the publish waited for handlers"), now);
    }
}
