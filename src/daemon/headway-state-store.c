/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "daemon/headway-state-store.h"

#include "daemon/headway-state-table.h"
#include "wire/headway-clock.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define TABLE_FILE "buses"
#define NEW_FILE   "buses.new"
#define LOCK_FILE  "lock"
#define ID_BLOCK   10000

/* A write that failed is tried again: a publish waits up to 5 s for its ids (decisions.md 4). */
#define RETRY_MS 500

/* A bus that waits for a mark to be on the disk. */
typedef struct
{
  HeadwayBus *bus; /* owned */
  guint64 up_to;
} Request;

struct _HeadwayStateStore
{
  GObject parent_instance;

  char *folder;
  int folder_fd;
  int lock_fd;
  HeadwayStateTable *state; /* owned; what the next write holds */
  HeadwayBusTable *table;   /* weak */
  GArray *requests;         /* Request: of the next write */
  GArray *writing;          /* Request: of the write that is under way */
  gboolean is_writing;
  guint retry_id;
  gboolean is_dirty;
  gboolean is_closed;
  gboolean has_failed; /* so that a full disk is logged once */
};

static void headway_state_store_bus_store_init (HeadwayBusStoreInterface *iface);
static void start_write (HeadwayStateStore *self);

G_DEFINE_FINAL_TYPE_WITH_CODE (HeadwayStateStore, headway_state_store, G_TYPE_OBJECT, G_IMPLEMENT_INTERFACE (HEADWAY_TYPE_BUS_STORE, headway_state_store_bus_store_init))

static void
request_clear (gpointer data)
{
  g_clear_object (&((Request *) data)->bus);
}

static GArray *
requests_new (void)
{
  GArray *requests = g_array_new (FALSE, FALSE, sizeof (Request));

  g_array_set_clear_func (requests, request_clear);
  return requests;
}

static void
close_fd (int *fd)
{
  if (*fd >= 0)
    g_close (*fd, NULL);
  *fd = -1;
}

static void
headway_state_store_finalize (GObject *object)
{
  HeadwayStateStore *self = HEADWAY_STATE_STORE (object);

  g_clear_handle_id (&self->retry_id, g_source_remove);
  g_clear_weak_pointer (&self->table);
  g_clear_pointer (&self->state, headway_state_table_free);
  g_array_unref (self->requests);
  g_array_unref (self->writing);
  close_fd (&self->folder_fd);
  close_fd (&self->lock_fd);
  g_free (self->folder);
  G_OBJECT_CLASS (headway_state_store_parent_class)->finalize (object);
}

static void
headway_state_store_class_init (HeadwayStateStoreClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = headway_state_store_finalize;
}

static void
headway_state_store_init (HeadwayStateStore *self)
{
  self->folder_fd = -1;
  self->lock_fd = -1;
  self->requests = requests_new ();
  self->writing = requests_new ();
}

/* --- Files ---------------------------------------------------------------------------------- */

static gboolean
set_io_error (GError **error, const char *what, const char *folder, const char *file)
{
  int code = errno;

  g_set_error (error, G_IO_ERROR, g_io_error_from_errno (code),
               "%s %s/%s: %s", what, folder, file, g_strerror (code));
  return FALSE;
}

static gboolean
write_all (int fd, const char *data, gsize length)
{
  while (length > 0)
    {
      gssize n = write (fd, data, length);

      if (n < 0 && errno == EINTR)
        continue;
      if (n < 0)
        return FALSE;
      data += n;
      length -= n;
    }
  return TRUE;
}

/* Runs in a worker thread too: touches nothing but its arguments. The new file is on the disk before
 * it takes the old one's place, and the place is on the disk before this returns. */
static gboolean
write_table (int folder_fd, const char *folder, GBytes *bytes, GError **error)
{
  int fd = openat (folder_fd, NEW_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  gsize length;
  const char *data = g_bytes_get_data (bytes, &length);

  if (fd < 0)
    return set_io_error (error, "cannot write", folder, NEW_FILE);
  if (!write_all (fd, data, length) || fsync (fd) < 0)
    {
      set_io_error (error, "cannot write", folder, NEW_FILE);
      close_fd (&fd);
      unlinkat (folder_fd, NEW_FILE, 0);
      return FALSE;
    }
  close_fd (&fd);
  if (renameat (folder_fd, NEW_FILE, folder_fd, TABLE_FILE) < 0 || fsync (folder_fd) < 0)
    return set_io_error (error, "cannot replace", folder, TABLE_FILE);
  return TRUE;
}

/* Sets @is_used: whether an earlier life has left its lock file. */
static gboolean
take_lock (HeadwayStateStore *self, gint64 wait_us, gboolean *is_used, GError **error)
{
  gint64 until_us = g_get_monotonic_time () + wait_us;

  *is_used = faccessat (self->folder_fd, LOCK_FILE, F_OK, 0) == 0;
  self->lock_fd = openat (self->folder_fd, LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (self->lock_fd < 0)
    return set_io_error (error, "cannot open", self->folder, LOCK_FILE);
  while (flock (self->lock_fd, LOCK_EX | LOCK_NB) < 0)
    {
      if (errno != EWOULDBLOCK)
        return set_io_error (error, "cannot lock", self->folder, LOCK_FILE);
      if (g_get_monotonic_time () >= until_us)
        {
          g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY,
                       "another headwayd uses the state directory %s", self->folder);
          return FALSE;
        }
      g_usleep (20 * 1000);
    }
  return TRUE;
}

static gboolean
read_table (HeadwayStateStore *self, gboolean is_used, GError **error)
{
  g_autofree char *path = g_build_filename (self->folder, TABLE_FILE, NULL);
  g_autofree char *text = NULL;
  g_autofree char *damage = NULL;
  g_autoptr (GError) read_error = NULL;
  g_autoptr (GBytes) bytes = NULL;
  gsize length;

  if (g_file_get_contents (path, &text, &length, &read_error))
    bytes = g_bytes_new_take (g_steal_pointer (&text), length);
  else if (!g_error_matches (read_error, G_FILE_ERROR, G_FILE_ERROR_NOENT))
    {
      g_propagate_error (error, g_steal_pointer (&read_error));
      return FALSE;
    }
  if (bytes == NULL && !is_used)
    {
      self->state = headway_state_table_new ();
      return TRUE;
    }
  self->state = headway_state_table_load (bytes, g_get_real_time (), &damage);
  if (damage != NULL)
    g_warning ("%s: %s. Ids of what is missing go on above %" G_GUINT64_FORMAT ", so that none comes twice",
               path, damage, self->state->floor);
  return TRUE;
}

HeadwayStateStore *
headway_state_store_open (const char *folder, gint64 wait_us, GError **error)
{
  g_autoptr (HeadwayStateStore) self = g_object_new (HEADWAY_TYPE_STATE_STORE, NULL);
  gboolean is_used = FALSE;

  self->folder = g_strdup (folder);
  if (g_mkdir_with_parents (folder, 0700) < 0 ||
      (self->folder_fd = open (folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
    {
      g_set_error (error, G_IO_ERROR, g_io_error_from_errno (errno),
                   "cannot use the state directory %s: %s", folder, g_strerror (errno));
      return NULL;
    }
  if (!take_lock (self, wait_us, &is_used, error) || !read_table (self, is_used, error))
    return NULL;
  return g_steal_pointer (&self);
}

/* --- Writing off the main loop -------------------------------------------------------------- */

typedef struct
{
  int folder_fd;
  char *folder;
  GBytes *bytes;
} WriteJob;

static void
write_job_free (WriteJob *job)
{
  close_fd (&job->folder_fd);
  g_free (job->folder);
  g_bytes_unref (job->bytes);
  g_free (job);
}

static void
run_write (GTask *task, gpointer source, gpointer task_data, GCancellable *cancellable)
{
  WriteJob *job = task_data;
  GError *error = NULL;

  if (write_table (job->folder_fd, job->folder, job->bytes, &error))
    g_task_return_boolean (task, TRUE);
  else
    g_task_return_error (task, error);
}

static void
log_outcome (HeadwayStateStore *self, const GError *error)
{
  if (error != NULL && !self->has_failed)
    g_warning ("no event ids can be reserved: %s", error->message);
  if (error == NULL && self->has_failed)
    g_message ("event ids can be reserved again in %s", self->folder);
  self->has_failed = error != NULL;
}

/* Those that were refused after 5 s need nothing any more. */
static void
drop_refused_requests (HeadwayStateStore *self)
{
  for (guint i = self->requests->len; i > 0; i--)
    if (!headway_bus_is_reserving_ids (g_array_index (self->requests, Request, i - 1).bus))
      g_array_remove_index (self->requests, i - 1);
}

static gboolean
on_retry (gpointer user_data)
{
  HeadwayStateStore *self = user_data;

  self->retry_id = 0;
  drop_refused_requests (self);
  start_write (self);
  return G_SOURCE_REMOVE;
}

static void
add_request (HeadwayStateStore *self, HeadwayBus *bus, guint64 up_to)
{
  Request request;

  for (guint i = 0; i < self->requests->len; i++)
    {
      Request *known = &g_array_index (self->requests, Request, i);

      if (known->bus != bus)
        continue;
      known->up_to = MAX (known->up_to, up_to);
      return;
    }
  request = (Request){ g_object_ref (bus), up_to };
  g_array_append_val (self->requests, request);
}

static void
on_written (GObject *source, GAsyncResult *result, gpointer user_data)
{
  HeadwayStateStore *self = HEADWAY_STATE_STORE (source);
  g_autoptr (GArray) served = g_steal_pointer (&self->writing);
  g_autoptr (GError) error = NULL;

  self->writing = requests_new ();
  self->is_writing = FALSE;
  g_task_propagate_boolean (G_TASK (result), &error);
  if (self->is_closed)
    return;
  log_outcome (self, error);
  if (self->table != NULL)
    headway_bus_table_set_ids_trouble (self->table, error != NULL ? error->message : NULL);
  for (guint i = 0; i < served->len && self->table != NULL; i++)
    {
      Request *request = &g_array_index (served, Request, i);

      if (error != NULL)
        add_request (self, request->bus, request->up_to);
      else
        headway_bus_table_ids_granted (self->table, request->bus, request->up_to, headway_clock_now ());
    }
  if (error != NULL && self->retry_id == 0)
    self->retry_id = g_timeout_add (RETRY_MS, on_retry, self);
  else if (error == NULL && self->is_dirty)
    start_write (self);
}

static void
start_write (HeadwayStateStore *self)
{
  g_autoptr (GTask) task = NULL;
  WriteJob *job;

  self->is_dirty = TRUE;
  if (self->is_writing || self->is_closed)
    return;
  g_clear_handle_id (&self->retry_id, g_source_remove);
  self->is_dirty = FALSE;
  self->is_writing = TRUE;
  g_array_unref (self->writing);
  self->writing = self->requests;
  self->requests = requests_new ();

  job = g_new (WriteJob, 1);
  job->folder_fd = fcntl (self->folder_fd, F_DUPFD_CLOEXEC, 3);
  job->folder = g_strdup (self->folder);
  job->bytes = headway_state_table_to_bytes (self->state);
  task = g_task_new (self, NULL, on_written, NULL);
  g_task_set_source_tag (task, start_write);
  g_task_set_task_data (task, job, (GDestroyNotify) write_job_free);
  g_task_run_in_thread (task, run_write);
}

/* --- HeadwayBusStore ------------------------------------------------------------------------ */

static void
put_record (HeadwayStateStore *self, HeadwayBus *bus, guint64 mark)
{
  headway_state_table_put (self->state,
                           headway_state_record_new (headway_bus_get_name (bus), headway_bus_get_epoch (bus),
                                                     headway_bus_get_creator (bus), mark,
                                                     headway_bus_get_options (bus)));
}

static guint64
state_store_get_mark (HeadwayBusStore *store, const char *name)
{
  return headway_state_table_get_mark (HEADWAY_STATE_STORE (store)->state, name);
}

static void
state_store_reserve (HeadwayBusStore *store, HeadwayBus *bus, guint64 up_to)
{
  HeadwayStateStore *self = HEADWAY_STATE_STORE (store);

  /* A write that fails leaves a mark that is too high in memory, never one that is too low. */
  put_record (self, bus, up_to);
  add_request (self, bus, up_to);
  start_write (self);
}

static void
state_store_forget (HeadwayBusStore *store, HeadwayBus *bus)
{
  HeadwayStateStore *self = HEADWAY_STATE_STORE (store);

  headway_state_table_close (self->state, headway_bus_get_name (bus), headway_bus_get_last_id (bus));
  start_write (self);
}

static void
headway_state_store_bus_store_init (HeadwayBusStoreInterface *iface)
{
  iface->get_mark = state_store_get_mark;
  iface->reserve = state_store_reserve;
  iface->forget = state_store_forget;
}

/* --- Start and end -------------------------------------------------------------------------- */

void
headway_state_store_restore (HeadwayStateStore *self, HeadwayBusTable *table)
{
  g_autoptr (GList) records = g_hash_table_get_values (self->state->buses);
  g_autoptr (GArray) marks = g_array_new (FALSE, FALSE, sizeof (guint64));
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (GError) error = NULL;
  guint i = 0;

  g_set_weak_pointer (&self->table, table);
  for (GList *at = records; at != NULL; at = at->next)
    {
      HeadwayStateRecord *record = at->data;

      g_array_append_val (marks, record->mark);
      record->mark = MIN (record->mark + ID_BLOCK, HEADWAY_ID_MAX);
    }
  /* Written even when there is no bus: a damaged file must not be found again. */
  bytes = headway_state_table_to_bytes (self->state);
  write_table (self->folder_fd, self->folder, bytes, &error);
  log_outcome (self, error);

  for (GList *at = records; at != NULL; at = at->next)
    {
      HeadwayStateRecord *record = at->data;
      guint64 mark = g_array_index (marks, guint64, i++);
      HeadwayBus *bus = headway_bus_table_restore (table, record->name, mark, error == NULL ? record->mark : mark,
                                                   &record->options, record->creator, headway_clock_now ());

      g_free (record->epoch);
      record->epoch = g_strdup (headway_bus_get_epoch (bus));
    }
}

gboolean
headway_state_store_close (HeadwayStateStore *self, GError **error)
{
  g_autoptr (GPtrArray) buses = NULL;
  g_autoptr (GBytes) bytes = NULL;

  if (self->is_closed || self->table == NULL)
    return TRUE;
  buses = headway_bus_table_list_all (self->table);
  /* A write that is under way would put back what is older: it must not come second. */
  while (self->is_writing)
    g_main_context_iteration (NULL, TRUE);
  self->is_closed = TRUE;
  g_clear_handle_id (&self->retry_id, g_source_remove);
  for (guint i = 0; i < buses->len; i++)
    {
      HeadwayBus *bus = g_ptr_array_index (buses, i);

      if (headway_state_table_lookup (self->state, headway_bus_get_name (bus)) != NULL)
        put_record (self, bus, headway_bus_get_last_id (bus));
    }
  bytes = headway_state_table_to_bytes (self->state);
  return write_table (self->folder_fd, self->folder, bytes, error);
}
