/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-topic-index.h"

#include "engine/headway-limits.h"

#include <string.h>

/* A trie over segments. A pattern `a.b` stands in the exact list of node a→b, `a.b.*` in the
 * subtree list of the same node; any other star goes to the star child. So each pattern lies on at
 * most one way that a topic can take, and no match needs a mark against doubles.
 *
 * Children are not kept at their node: one open-addressed table holds every literal child of every
 * node, by the hash of its whole path. A step down is then one cache line of the table and one of
 * the node, where a table per node would cost one more, and nodes stay small.
 *
 * Segments come from outside, so the hash is keyed: nobody can choose segments that collide. */

#define TABLE_MIN 16

typedef struct _Node Node;

typedef struct
{
  gpointer *values; /* owned array of borrowed values */
  guint length;
  guint capacity;
} ValueList;

struct _Node
{
  Node *parent;     /* borrowed, NULL for the root */
  Node *star;       /* owned */
  guint64 hash;     /* of the path from the root */
  guint n_children; /* literal ones */
  guint length;
  ValueList exact;
  ValueList subtree;
  char segment[]; /* not ended by NUL */
};

typedef struct
{
  guint64 hash;
  Node *node; /* owned; NULL: the slot is free */
} Slot;

struct _HeadwayTopicIndex
{
  Node *root;  /* owned */
  Slot *slots; /* owned, mask + 1 of them, at most half in use */
  guint mask;
  guint n_literals;
  guint n_nodes;
  guint n_values;
  guint64 key;
};

typedef struct
{
  const char *text;
  guint length;
  guint64 hash;
} Segment;

/* Both halves of the product of all 128 bits. */
static inline guint64
mix (guint64 a, guint64 b)
{
#ifdef __SIZEOF_INT128__
  __uint128_t product = (__uint128_t) a * b;

  return (guint64) product ^ (guint64) (product >> 64);
#else
  guint64 low = (a & G_MAXUINT32) * (b & G_MAXUINT32);
  guint64 middle = (a >> 32) * (b & G_MAXUINT32) + (low >> 32);
  guint64 other = (a & G_MAXUINT32) * (b >> 32) + (middle & G_MAXUINT32);

  return (a * b) ^ ((a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32));
#endif
}

static inline guint64
load (const char *text, gsize size)
{
  guint64 word = 0;

  memcpy (&word, text, size);

  return word;
}

/* Words of constant size that overlap, since a copy of varying size is a call. */
static inline guint64
hash_segment (guint64 key, const char *text, gsize length)
{
  const guint64 odd = G_GUINT64_CONSTANT (0x9e3779b97f4a7c15);
  guint64 hash = key ^ (length * odd);

  if (length >= 8)
    {
      for (gsize i = 0; i + 8 < length; i += 8)
        hash = mix (hash ^ load (text + i, 8), odd ^ key);
      return mix (hash ^ load (text + length - 8, 8), odd);
    }
  if (length >= 4)
    return mix (hash ^ (load (text, 4) << 32 | load (text + length - 4, 4)), odd);
  if (length > 0)
    return mix (hash ^ (load (text, 1) << 16 |
                        load (text + length / 2, 1) << 8 |
                        load (text + length - 1, 1)),
                odd);

  return mix (hash, odd);
}

static inline guint64
hash_path (const Node *parent, guint64 segment_hash)
{
  return mix (parent->hash ^ segment_hash, G_GUINT64_CONSTANT (0xd6e8feb86659fd93));
}

static inline Segment
take_segment (guint64 key, const char *text)
{
  const char *end = text;

  while (*end != '\0' && *end != '.')
    end++;

  return (Segment){ text, (guint) (end - text), hash_segment (key, text, (gsize) (end - text)) };
}

static inline gboolean
is_star (const Segment *segment)
{
  return segment->length == 1 && segment->text[0] == '*';
}

/* The slot of that child, or the free one where it would go. */
static inline guint
find_slot (HeadwayTopicIndex *self, const Node *parent, const Segment *segment, guint64 hash)
{
  guint i = (guint) hash & self->mask;

  for (; self->slots[i].node != NULL; i = (i + 1) & self->mask)
    {
      const Node *node = self->slots[i].node;

      if (self->slots[i].hash == hash &&
          node->parent == parent &&
          node->length == segment->length &&
          memcmp (node->segment, segment->text, segment->length) == 0)
        break;
    }

  return i;
}

static inline Node *
find_child (HeadwayTopicIndex *self, const Node *parent, const Segment *segment)
{
  if (parent->n_children == 0)
    return NULL;

  return self->slots[find_slot (self, parent, segment, hash_path (parent, segment->hash))].node;
}

static void
place (HeadwayTopicIndex *self, Slot slot)
{
  guint i = (guint) slot.hash & self->mask;

  while (self->slots[i].node != NULL)
    i = (i + 1) & self->mask;
  self->slots[i] = slot;
}

static void
resize (HeadwayTopicIndex *self, guint n_slots)
{
  g_autofree Slot *old = g_steal_pointer (&self->slots);
  guint old_mask = self->mask;

  self->slots = g_new0 (Slot, n_slots);
  self->mask = n_slots - 1;
  for (guint i = 0; old != NULL && i <= old_mask; i++)
    {
      if (old[i].node != NULL)
        place (self, old[i]);
    }
}

static Node *
node_new (HeadwayTopicIndex *self, Node *parent, const Segment *segment)
{
  Node *node = g_malloc0 (sizeof (Node) + segment->length);

  node->parent = parent;
  node->length = segment->length;
  if (segment->length > 0)
    memcpy (node->segment, segment->text, segment->length);
  if (parent != NULL)
    {
      node->hash = hash_path (parent, segment->hash);
      self->n_nodes++;
    }

  return node;
}

static void
node_free (Node *node)
{
  g_free (node->exact.values);
  g_free (node->subtree.values);
  g_free (node);
}

static Node *
ensure_child (HeadwayTopicIndex *self, Node *parent, const Segment *segment)
{
  Node *child;

  if (is_star (segment))
    {
      if (parent->star == NULL)
        parent->star = node_new (self, parent, segment);
      return parent->star;
    }

  child = find_child (self, parent, segment);
  if (child != NULL)
    return child;

  if ((self->n_literals + 1) * 2 > self->mask + 1)
    resize (self, (self->mask + 1) * 2);

  child = node_new (self, parent, segment);
  place (self, (Slot){ child->hash, child });
  self->n_literals++;
  parent->n_children++;

  return child;
}

/* Takes a literal child out of the table, and closes the gap that a probe would stop at. */
static void
unplace (HeadwayTopicIndex *self, Node *node)
{
  guint gap = (guint) node->hash & self->mask;

  while (self->slots[gap].node != node)
    gap = (gap + 1) & self->mask;

  for (guint i = (gap + 1) & self->mask; self->slots[i].node != NULL; i = (i + 1) & self->mask)
    {
      guint home = (guint) self->slots[i].hash & self->mask;

      if (((i - home) & self->mask) < ((i - gap) & self->mask))
        continue;
      self->slots[gap] = self->slots[i];
      gap = i;
    }
  self->slots[gap].node = NULL;

  self->n_literals--;
  node->parent->n_children--;
  if (self->mask + 1 > TABLE_MIN && self->n_literals * 8 < self->mask + 1)
    resize (self, (self->mask + 1) / 2);
}

static gboolean
node_is_empty (const Node *node)
{
  return node->star == NULL &&
         node->n_children == 0 &&
         node->exact.length == 0 &&
         node->subtree.length == 0;
}

static void
prune (HeadwayTopicIndex *self, Node *node)
{
  while (node->parent != NULL && node_is_empty (node))
    {
      Node *parent = node->parent;

      if (parent->star == node)
        parent->star = NULL;
      else
        unplace (self, node);
      node_free (node);
      self->n_nodes--;
      node = parent;
    }
}

static void
value_list_add (ValueList *self, gpointer value)
{
  if (self->length == self->capacity)
    {
      self->capacity = MAX (self->capacity * 2, 1);
      self->values = g_renew (gpointer, self->values, self->capacity);
    }
  self->values[self->length++] = value;
}

static gboolean
value_list_remove (ValueList *self, gpointer value)
{
  /* What came last tends to go first. */
  for (guint i = self->length; i-- > 0;)
    {
      if (self->values[i] != value)
        continue;

      self->values[i] = self->values[--self->length];
      if (self->length == 0)
        {
          g_clear_pointer (&self->values, g_free);
          self->capacity = 0;
        }
      return TRUE;
    }

  return FALSE;
}

static inline void
value_list_append_to (const ValueList *self, GPtrArray *matches)
{
  guint old = matches->len;

  if (self->length == 1)
    {
      g_ptr_array_add (matches, self->values[0]);
    }
  else if (self->length > 1)
    {
      g_ptr_array_set_size (matches, (int) (old + self->length));
      memcpy (matches->pdata + old, self->values, self->length * sizeof (gpointer));
    }
}

/* The node of @pattern and which of its lists; NULL if there is none and @create is not set. */
static Node *
find_node (HeadwayTopicIndex *self, const char *pattern, gboolean create, gboolean *is_subtree)
{
  Node *node = self->root;

  *is_subtree = FALSE;
  for (const char *at = pattern; node != NULL;)
    {
      Segment segment = take_segment (self->key, at);
      gboolean is_last = at[segment.length] == '\0';

      if (is_last && at > pattern && is_star (&segment))
        {
          *is_subtree = TRUE;
          return node;
        }

      if (create)
        node = ensure_child (self, node, &segment);
      else
        node = is_star (&segment) ? node->star : find_child (self, node, &segment);

      if (is_last)
        return node;
      at += segment.length + 1;
    }

  return NULL;
}

HeadwayTopicIndex *
headway_topic_index_new (void)
{
  HeadwayTopicIndex *self = g_new0 (HeadwayTopicIndex, 1);
  const Segment none = { "", 0, 0 };

  self->key = (guint64) g_random_int () << 32 | g_random_int ();
  self->root = node_new (self, NULL, &none);
  self->root->hash = self->key;
  resize (self, TABLE_MIN);

  return self;
}

/* Frees a chain of star nodes. Literal nodes below them are in the table and free themselves. */
static void
free_stars (Node *node)
{
  while (node != NULL)
    {
      Node *star = node->star;

      node_free (node);
      node = star;
    }
}

void
headway_topic_index_free (HeadwayTopicIndex *self)
{
  g_return_if_fail (self != NULL);

  for (guint i = 0; i <= self->mask; i++)
    free_stars (self->slots[i].node);
  free_stars (self->root);
  g_free (self->slots);
  g_free (self);
}

void
headway_topic_index_add (HeadwayTopicIndex *self, const char *pattern, gpointer value)
{
  gboolean is_subtree;
  Node *node;

  g_return_if_fail (self != NULL && pattern != NULL && value != NULL);

  node = find_node (self, pattern, TRUE, &is_subtree);
  value_list_add (is_subtree ? &node->subtree : &node->exact, value);
  self->n_values++;
}

gboolean
headway_topic_index_remove (HeadwayTopicIndex *self, const char *pattern, gpointer value)
{
  gboolean is_subtree;
  Node *node;

  g_return_val_if_fail (self != NULL && pattern != NULL && value != NULL, FALSE);

  node = find_node (self, pattern, FALSE, &is_subtree);
  if (node == NULL || !value_list_remove (is_subtree ? &node->subtree : &node->exact, value))
    return FALSE;

  self->n_values--;
  prune (self, node);

  return TRUE;
}

/* Splits @topic; 0 if it is deeper than any topic may be, and so matches nothing. */
static inline guint
split_topic (guint64 key, const char *topic, Segment segments[HEADWAY_TOPIC_SEGMENTS_MAX])
{
  for (guint n = 0; n < HEADWAY_TOPIC_SEGMENTS_MAX; n++)
    {
      segments[n] = take_segment (key, topic);
      topic += segments[n].length;
      if (*topic++ == '\0')
        return n + 1;
    }

  return 0;
}

void
headway_topic_index_match (HeadwayTopicIndex *self, const char *topic, GPtrArray *matches)
{
  Segment segments[HEADWAY_TOPIC_SEGMENTS_MAX];
  guint n_segments;
  /* The frontier, deepest last: a step takes one node and leaves at most two, one segment on, so
   * that it never holds more than one node for each segment and one more. */
  struct
  {
    const Node *node;
    guint depth;
  } frontier[HEADWAY_TOPIC_SEGMENTS_MAX + 1];
  guint length = 0;

  g_return_if_fail (self != NULL && topic != NULL && matches != NULL);

  /* A bus whose readers want everything has no patterns. */
  if (self->n_values == 0)
    return;
  n_segments = split_topic (self->key, topic, segments);
  if (n_segments == 0)
    return;

  frontier[length].node = self->root;
  frontier[length++].depth = 0;
  while (length > 0)
    {
      const Node *node = frontier[--length].node;
      guint depth = frontier[length].depth;
      const Node *child;

      if (depth == n_segments)
        {
          value_list_append_to (&node->exact, matches);
          continue;
        }

      value_list_append_to (&node->subtree, matches);
      child = find_child (self, node, &segments[depth]);
      if (node->star != NULL)
        {
          frontier[length].node = node->star;
          frontier[length++].depth = depth + 1;
        }
      if (child != NULL)
        {
          frontier[length].node = child;
          frontier[length++].depth = depth + 1;
        }
    }
}

guint
headway_topic_index_size (HeadwayTopicIndex *self)
{
  g_return_val_if_fail (self != NULL, 0);

  return self->n_values;
}

guint
headway_topic_index_nodes (HeadwayTopicIndex *self)
{
  g_return_val_if_fail (self != NULL, 0);

  return self->n_nodes;
}
