/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "headway-test-store.h"

struct _TestStore
{
  GObject parent_instance;

  GHashTable *marks;    /* name (owned) → guint64 (owned) */
  HeadwayBus *last_bus; /* owned, nullable */
  guint64 last_request;
  guint n_requests;
  guint n_forgotten;
};

static void test_store_iface_init (HeadwayBusStoreInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (TestStore,
                               test_store,
                               G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (HEADWAY_TYPE_BUS_STORE, test_store_iface_init))

static guint64
iface_get_mark (HeadwayBusStore *store, const char *name)
{
  return test_store_get_mark (TEST_STORE (store), name);
}

static void
iface_reserve (HeadwayBusStore *store, HeadwayBus *bus, guint64 up_to)
{
  TestStore *self = TEST_STORE (store);

  g_set_object (&self->last_bus, bus);
  self->last_request = up_to;
  self->n_requests++;
}

static void
iface_forget (HeadwayBusStore *store, HeadwayBus *bus)
{
  TestStore *self = TEST_STORE (store);

  self->n_forgotten++;
  test_store_set_mark (self, headway_bus_get_name (bus), headway_bus_get_last_id (bus));
}

static void
test_store_iface_init (HeadwayBusStoreInterface *iface)
{
  iface->get_mark = iface_get_mark;
  iface->reserve = iface_reserve;
  iface->forget = iface_forget;
}

static void
test_store_finalize (GObject *object)
{
  TestStore *self = TEST_STORE (object);

  g_clear_object (&self->last_bus);
  g_hash_table_unref (self->marks);
  G_OBJECT_CLASS (test_store_parent_class)->finalize (object);
}

static void
test_store_class_init (TestStoreClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = test_store_finalize;
}

static void
test_store_init (TestStore *self)
{
  self->marks = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
}

TestStore *
test_store_new (void)
{
  return g_object_new (TEST_TYPE_STORE, NULL);
}

void
test_store_set_mark (TestStore *self, const char *name, guint64 mark)
{
  g_hash_table_replace (self->marks, g_strdup (name), g_memdup2 (&mark, sizeof mark));
}

guint64
test_store_get_mark (TestStore *self, const char *name)
{
  guint64 *mark = g_hash_table_lookup (self->marks, name);

  return mark != NULL ? *mark : 0;
}

guint
test_store_get_n_requests (TestStore *self)
{
  return self->n_requests;
}

guint64
test_store_get_last_request (TestStore *self)
{
  return self->last_request;
}

HeadwayBus *
test_store_get_last_bus (TestStore *self)
{
  return self->last_bus;
}

guint
test_store_get_n_forgotten (TestStore *self)
{
  return self->n_forgotten;
}
