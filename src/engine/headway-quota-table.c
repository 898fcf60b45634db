/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-quota-table.h"

/* The keys of one scope: there while it has any. */
typedef struct
{
  gconstpointer scope;
  GQueue keys; /* Key (borrowed) */
} Scope;

typedef struct
{
  HeadwayQuota quota; /* first: a quota leads back to its key */
  gconstpointer scope;
  gconstpointer who;
  HeadwayPrincipal *principal; /* owned, nullable */
  GList link;                  /* in `keys` */
  Scope *siblings;             /* borrowed: has this key */
  GList sibling_link;          /* in the keys of `siblings` */
} Key;

struct _HeadwayQuotaTable
{
  guint max_keys;
  GHashTable *index;   /* Key (scope and who) → the same Key (owned) */
  GQueue keys;         /* Key (borrowed), the one charged last in front */
  GHashTable *scopes;  /* scope → Scope (owned) */
  HeadwayQuota common; /* of the keys that find the table full */
};

static guint
key_hash (gconstpointer data)
{
  const Key *key = data;
  guint64 mixed = (guint64) (guintptr) key->scope * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15) ^
                  (guint64) (guintptr) key->who * G_GUINT64_CONSTANT (0xc2b2ae3d27d4eb4f);

  return (guint) (mixed >> 32) ^ (guint) mixed;
}

static gboolean
key_equal (gconstpointer a, gconstpointer b)
{
  const Key *left = a;
  const Key *right = b;

  return left->scope == right->scope && left->who == right->who;
}

static void
key_free (gpointer data)
{
  Key *key = data;

  g_clear_pointer (&key->principal, headway_principal_unref);
  g_free (key);
}

HeadwayQuotaTable *
headway_quota_table_new (guint max_keys)
{
  HeadwayQuotaTable *self = g_new0 (HeadwayQuotaTable, 1);

  g_assert (max_keys > 0);
  self->max_keys = max_keys;
  self->index = g_hash_table_new_full (key_hash, key_equal, NULL, key_free);
  g_queue_init (&self->keys);
  self->scopes = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  return self;
}

void
headway_quota_table_free (HeadwayQuotaTable *self)
{
  g_hash_table_unref (self->index);
  g_hash_table_unref (self->scopes);
  g_free (self);
}

HeadwayQuota *
headway_quota_table_lookup (HeadwayQuotaTable *self, gconstpointer scope, gconstpointer who)
{
  const Key wanted = { .scope = scope, .who = who };

  return g_hash_table_lookup (self->index, &wanted);
}

static void
join_scope (HeadwayQuotaTable *self, Key *key)
{
  Scope *siblings = g_hash_table_lookup (self->scopes, key->scope);

  if (siblings == NULL)
    {
      siblings = g_new0 (Scope, 1);
      siblings->scope = key->scope;
      g_queue_init (&siblings->keys);
      g_hash_table_insert (self->scopes, (gpointer) key->scope, siblings);
    }
  key->siblings = siblings;
  key->sibling_link.data = key;
  g_queue_push_tail_link (&siblings->keys, &key->sibling_link);
}

HeadwayQuota *
headway_quota_table_add (HeadwayQuotaTable *self,
                         gconstpointer scope,
                         gconstpointer who,
                         HeadwayPrincipal *principal)
{
  Key *key;

  if (self->keys.length >= self->max_keys)
    return &self->common;
  key = g_new0 (Key, 1);
  key->scope = scope;
  key->who = who;
  key->principal = principal != NULL ? headway_principal_ref (principal) : NULL;
  key->link.data = key;
  g_queue_push_head_link (&self->keys, &key->link);
  g_hash_table_add (self->index, key);
  join_scope (self, key);
  return &key->quota;
}

void
headway_quota_table_touch (HeadwayQuotaTable *self, HeadwayQuota *quota)
{
  Key *key = (Key *) quota;

  if (quota == &self->common || self->keys.head == &key->link)
    return;
  g_queue_unlink (&self->keys, &key->link);
  g_queue_push_head_link (&self->keys, &key->link);
}

static void
remove_key (HeadwayQuotaTable *self, Key *key)
{
  Scope *siblings = key->siblings;

  g_queue_unlink (&siblings->keys, &key->sibling_link);
  if (g_queue_is_empty (&siblings->keys))
    g_hash_table_remove (self->scopes, siblings->scope);
  g_queue_unlink (&self->keys, &key->link);
  g_hash_table_remove (self->index, key);
}

static void
reclaim_behind (HeadwayQuotaTable *self, const GList *first, guint n, guint64 now_ns)
{
  GList *at = self->keys.tail;

  for (; n > 0 && at != first; n--)
    {
      Key *key = at->data;

      at = at->prev;
      if (headway_gcra_is_idle (&key->quota.bytes, now_ns) && headway_gcra_is_idle (&key->quota.events, now_ns))
        remove_key (self, key);
    }
}

void
headway_quota_table_reclaim (HeadwayQuotaTable *self, guint n, guint64 now_ns)
{
  reclaim_behind (self, NULL, n, now_ns);
}

void
headway_quota_table_reclaim_others (HeadwayQuotaTable *self, guint n, guint64 now_ns)
{
  reclaim_behind (self, self->keys.head, n, now_ns);
}

void
headway_quota_table_forget (HeadwayQuotaTable *self, gconstpointer scope)
{
  Scope *siblings = g_hash_table_lookup (self->scopes, scope);
  guint n = siblings != NULL ? siblings->keys.length : 0;

  /* The last one takes its scope along. */
  for (; n > 0; n--)
    remove_key (self, g_queue_peek_head (&siblings->keys));
}

guint
headway_quota_table_size (const HeadwayQuotaTable *self)
{
  return self->keys.length;
}

guint
headway_quota_table_room (const HeadwayQuotaTable *self)
{
  return self->max_keys - self->keys.length;
}

HeadwayQuota *
headway_quota_table_get_common (HeadwayQuotaTable *self)
{
  return &self->common;
}
