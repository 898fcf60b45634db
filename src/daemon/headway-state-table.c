/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "daemon/headway-state-table.h"

#include "engine/headway-topic.h"
#include "engine/headway-types.h"

#include <string.h>

/* A file is a line `headway-state 1`, one line a record, and a line `end <records>`. Each but the
 * first starts with a checksum of what follows it. Names hold no blanks, so that blanks separate. */
#define FIRST_LINE      "headway-state 1"
#define CHECKSUM_LENGTH 16
#define MARKS_MAX       4096

typedef struct
{
  char *name; /* owned */
  guint64 mark;
} HeadwayStateMark;

static void
mark_free (HeadwayStateMark *self)
{
  g_free (self->name);
  g_free (self);
}

HeadwayStateRecord *
headway_state_record_new (const char *name,
                          const char *epoch,
                          guint32 creator,
                          guint64 mark,
                          const HeadwayBusOptions *options)
{
  HeadwayStateRecord *self = g_new0 (HeadwayStateRecord, 1);

  self->name = g_strdup (name);
  self->epoch = g_strdup (epoch);
  self->creator = creator;
  self->mark = mark;
  self->options = *options;
  return self;
}

void
headway_state_record_free (HeadwayStateRecord *self)
{
  g_free (self->name);
  g_free (self->epoch);
  g_free (self);
}

HeadwayStateTable *
headway_state_table_new (void)
{
  HeadwayStateTable *self = g_new0 (HeadwayStateTable, 1);

  self->buses = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, (GDestroyNotify) headway_state_record_free);
  self->marks = g_hash_table_new (g_str_hash, g_str_equal);
  g_queue_init (&self->order);
  return self;
}

void
headway_state_table_free (HeadwayStateTable *self)
{
  g_hash_table_unref (self->buses);
  g_hash_table_unref (self->marks);
  g_queue_clear_full (&self->order, (GDestroyNotify) mark_free);
  g_free (self);
}

static void
drop_mark (HeadwayStateTable *self, GList *link)
{
  HeadwayStateMark *mark = link->data;

  g_hash_table_remove (self->marks, mark->name);
  g_queue_delete_link (&self->order, link);
  mark_free (mark);
}

void
headway_state_table_put (HeadwayStateTable *self, HeadwayStateRecord *record)
{
  GList *link = g_hash_table_lookup (self->marks, record->name);

  if (link != NULL)
    drop_mark (self, link);
  g_hash_table_replace (self->buses, record->name, record);
}

HeadwayStateRecord *
headway_state_table_lookup (HeadwayStateTable *self, const char *name)
{
  return g_hash_table_lookup (self->buses, name);
}

static void
add_mark (HeadwayStateTable *self, const char *name, guint64 value)
{
  HeadwayStateMark *mark = g_new (HeadwayStateMark, 1);

  mark->name = g_strdup (name);
  mark->mark = value;
  g_queue_push_tail (&self->order, mark);
  g_hash_table_insert (self->marks, mark->name, self->order.tail);
}

void
headway_state_table_close (HeadwayStateTable *self, const char *name, guint64 mark)
{
  GList *link = g_hash_table_lookup (self->marks, name);

  if (link != NULL)
    drop_mark (self, link);
  add_mark (self, name, mark);
  g_hash_table_remove (self->buses, name);
  if (self->order.length <= MARKS_MAX)
    return;
  self->floor = MAX (self->floor, ((HeadwayStateMark *) self->order.head->data)->mark);
  drop_mark (self, self->order.head);
}

guint64
headway_state_table_get_mark (HeadwayStateTable *self, const char *name)
{
  HeadwayStateRecord *record = g_hash_table_lookup (self->buses, name);
  GList *link;

  if (record != NULL)
    return record->mark;
  link = g_hash_table_lookup (self->marks, name);
  return link != NULL ? ((HeadwayStateMark *) link->data)->mark : self->floor;
}

/* --- Writing -------------------------------------------------------------------------------- */

static void
append_line (GString *text, const char *line)
{
  g_autofree char *checksum = g_compute_checksum_for_string (G_CHECKSUM_SHA256, line, -1);

  g_string_append_len (text, checksum, CHECKSUM_LENGTH);
  g_string_append_printf (text, " %s\n", line);
}

static void
append_record (GString *text, const HeadwayStateRecord *record)
{
  g_autoptr (GString) line = g_string_new (NULL);

  g_string_printf (line, "bus %s %s %u %" G_GUINT64_FORMAT, record->name, record->epoch, record->creator, record->mark);
  for (const HeadwayBusOptionSpec *spec = headway_bus_option_specs (); spec->key != NULL; spec++)
    g_string_append_printf (line, " %s=%" G_GUINT64_FORMAT, spec->key, headway_bus_options_get (&record->options, spec));
  append_line (text, line->str);
}

GBytes *
headway_state_table_to_bytes (HeadwayStateTable *self)
{
  GString *text = g_string_new (FIRST_LINE "\n");
  guint n_records = g_hash_table_size (self->buses) + self->order.length + 1;
  g_autofree char *floor = g_strdup_printf ("floor %" G_GUINT64_FORMAT, self->floor);
  g_autofree char *end = g_strdup_printf ("end %u", n_records);
  GHashTableIter iter;
  gpointer value;

  append_line (text, floor);
  for (GList *at = self->order.head; at != NULL; at = at->next)
    {
      HeadwayStateMark *mark = at->data;
      g_autofree char *line = g_strdup_printf ("closed %s %" G_GUINT64_FORMAT, mark->name, mark->mark);

      append_line (text, line);
    }
  g_hash_table_iter_init (&iter, self->buses);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    append_record (text, value);
  append_line (text, end);
  return g_string_free_to_bytes (text);
}

/* --- Reading -------------------------------------------------------------------------------- */

static gboolean
read_number (const char *text, guint64 maximum, guint64 *number)
{
  return text != NULL && g_ascii_string_to_unsigned (text, 10, 0, maximum, number, NULL);
}

static gboolean
read_options (char **words, HeadwayBusOptions *options)
{
  HeadwayLimits limits;

  headway_limits_init (&limits);
  *options = limits.bus;
  for (; *words != NULL; words++)
    {
      const HeadwayBusOptionSpec *spec = headway_bus_option_specs ();
      char *value = strchr (*words, '=');
      guint64 number;

      if (value == NULL)
        return FALSE;
      *value++ = '\0';
      while (spec->key != NULL && strcmp (spec->key, *words) != 0)
        spec++;
      /* An option of a later version: not ours to judge. */
      if (spec->key == NULL)
        continue;
      if (!read_number (value, G_MAXUINT64, &number) || !headway_bus_options_set (options, spec, number, NULL))
        return FALSE;
    }
  return TRUE;
}

static gboolean
read_bus (HeadwayStateTable *self, char **words)
{
  HeadwayBusOptions options;
  guint64 creator, mark;

  if (g_strv_length (words) < 4 || !headway_bus_name_check (words[0], strlen (words[0]), NULL) ||
      !read_number (words[2], G_MAXUINT32, &creator) || !read_number (words[3], HEADWAY_ID_MAX, &mark) ||
      !read_options (words + 4, &options))
    return FALSE;
  headway_state_table_put (self, headway_state_record_new (words[0], words[1], creator, mark, &options));
  return TRUE;
}

/* @line begins with its checksum. Returns FALSE if it is damaged. */
static gboolean
read_line (HeadwayStateTable *self, const char *line, guint64 *n_expected)
{
  g_autofree char *checksum = NULL;
  g_auto (GStrv) words = NULL;
  guint64 number;

  if (strlen (line) < CHECKSUM_LENGTH + 2 || line[CHECKSUM_LENGTH] != ' ')
    return FALSE;
  checksum = g_compute_checksum_for_string (G_CHECKSUM_SHA256, line + CHECKSUM_LENGTH + 1, -1);
  if (strncmp (checksum, line, CHECKSUM_LENGTH) != 0)
    return FALSE;

  words = g_strsplit (line + CHECKSUM_LENGTH + 1, " ", -1);
  if (strcmp (words[0], "bus") == 0)
    return read_bus (self, words + 1);
  if (strcmp (words[0], "end") == 0)
    return read_number (words[1], G_MAXUINT32, n_expected);
  if (strcmp (words[0], "floor") == 0)
    {
      if (!read_number (words[1], HEADWAY_ID_MAX, &number))
        return FALSE;
      self->floor = MAX (self->floor, number);
      return TRUE;
    }
  if (strcmp (words[0], "closed") != 0 || words[1] == NULL || !read_number (words[2], HEADWAY_ID_MAX, &number))
    return FALSE;
  headway_state_table_close (self, words[1], number);
  return TRUE;
}

static guint64
highest_mark (HeadwayStateTable *self)
{
  guint64 highest = self->floor;
  GHashTableIter iter;
  gpointer value;

  g_hash_table_iter_init (&iter, self->buses);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    highest = MAX (highest, ((HeadwayStateRecord *) value)->mark);
  for (GList *at = self->order.head; at != NULL; at = at->next)
    highest = MAX (highest, ((HeadwayStateMark *) at->data)->mark);
  return highest;
}

HeadwayStateTable *
headway_state_table_load (GBytes *bytes, gint64 real_us, char **damage)
{
  HeadwayStateTable *self = headway_state_table_new ();
  g_autofree char *text = NULL;
  g_auto (GStrv) lines = NULL;
  guint64 n_expected = G_MAXUINT64;
  guint n_read = 0, n_damaged = 0;

  *damage = NULL;
  if (bytes != NULL)
    {
      /* A NUL inside ends its line early, which the checksum then finds. */
      text = g_strndup (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes));
      lines = g_strsplit (text, "\n", -1);
    }
  for (guint i = 1; lines != NULL && lines[0] != NULL && lines[i] != NULL; i++)
    {
      if (*lines[i] == '\0')
        continue;
      if (read_line (self, lines[i], &n_expected))
        n_read++;
      else
        n_damaged++;
    }

  if (bytes == NULL)
    *damage = g_strdup ("it is missing");
  else if (lines[0] == NULL || strcmp (lines[0], FIRST_LINE) != 0)
    *damage = g_strdup_printf ("its first line is not \"%s\"; %u records could be read", FIRST_LINE, n_read);
  else if (n_damaged > 0)
    *damage = g_strdup_printf ("%u of its records are damaged, %u could be read", n_damaged, n_read);
  else if (n_expected == G_MAXUINT64 || n_read != n_expected + 1)
    *damage = g_strdup_printf ("it is cut short: %u records could be read", n_read);
  if (*damage != NULL)
    self->floor = MIN (MAX (highest_mark (self), (guint64) MAX (real_us, 0)), HEADWAY_ID_MAX);
  return self;
}
