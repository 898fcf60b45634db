/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ids that were printed although older ones still wait: what a routed stream will send once
 * more after a resume at its low-water mark.
 *
 * A sorted array. Ids come nearly in order, so that most are appended; those that the low-water
 * mark has passed go from the front, many at a time.
 */
#include "config.h"

#include "cli/headway-cli-seen.h"

struct _HeadwayCliSeen
{
  GArray *ids; /* guint64 (owned), rising */
  guint start; /* ids before it are forgotten */
  guint limit;
};

/**
 * headway_cli_seen_new:
 * @limit: most ids to remember, from 1
 *
 * Returns: (transfer full): a set of no ids
 */
HeadwayCliSeen *
headway_cli_seen_new (guint limit)
{
  HeadwayCliSeen *self = g_new0 (HeadwayCliSeen, 1);

  self->ids = g_array_new (FALSE, FALSE, sizeof (guint64));
  self->limit = limit;
  return self;
}

/**
 * headway_cli_seen_free:
 * @self: a set
 *
 * Frees it.
 */
void
headway_cli_seen_free (HeadwayCliSeen *self)
{
  g_array_unref (self->ids);
  g_free (self);
}

/**
 * headway_cli_seen_clear:
 * @self: a set
 *
 * Forgets all.
 */
void
headway_cli_seen_clear (HeadwayCliSeen *self)
{
  g_array_set_size (self->ids, 0);
  self->start = 0;
}

/* Returns where the first id is that is not below @id. */
static guint
find (HeadwayCliSeen *self,
      guint64 id)
{
  guint low = self->start;
  guint high = self->ids->len;

  if (low == high || g_array_index (self->ids, guint64, high - 1) < id)
    return high;
  while (low < high)
    {
      guint middle = low + (high - low) / 2;

      if (g_array_index (self->ids, guint64, middle) < id)
        low = middle + 1;
      else
        high = middle;
    }
  return low;
}

/**
 * headway_cli_seen_contains:
 * @self: a set
 * @id: an id
 *
 * Returns: whether it was added and not forgotten
 */
gboolean
headway_cli_seen_contains (HeadwayCliSeen *self,
                           guint64 id)
{
  guint place = find (self, id);

  return place < self->ids->len && g_array_index (self->ids, guint64, place) == id;
}

static void
drop_forgotten (HeadwayCliSeen *self)
{
  if (self->start == 0 || self->start < self->ids->len / 2)
    return;
  g_array_remove_range (self->ids, 0, self->start);
  self->start = 0;
}

/**
 * headway_cli_seen_add:
 * @self: a set
 * @id: an id
 *
 * Remembers @id. Beyond the limit the smallest one is forgotten: it may then be printed again
 * after a resume, but nothing is lost.
 */
void
headway_cli_seen_add (HeadwayCliSeen *self,
                      guint64 id)
{
  guint place = find (self, id);

  if (place < self->ids->len && g_array_index (self->ids, guint64, place) == id)
    return;
  g_array_insert_val (self->ids, place, id);
  if (self->ids->len - self->start > self->limit)
    self->start++;
  drop_forgotten (self);
}

/**
 * headway_cli_seen_forget_up_to:
 * @self: a set
 * @id: an id
 *
 * Forgets @id and all below it.
 */
void
headway_cli_seen_forget_up_to (HeadwayCliSeen *self,
                               guint64 id)
{
  self->start = id < G_MAXUINT64 ? find (self, id + 1) : self->ids->len;
  drop_forgotten (self);
}

/**
 * headway_cli_seen_get_n_ids:
 * @self: a set
 *
 * Returns: how many ids it remembers
 */
guint
headway_cli_seen_get_n_ids (HeadwayCliSeen *self)
{
  return self->ids->len - self->start;
}
