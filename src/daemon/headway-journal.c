/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "daemon/headway-journal.h"

#define FIELDS_MAX 8

typedef struct
{
  GLogField fields[FIELDS_MAX];
  gsize n;
} Fields;

static void
add_field (Fields *self, const char *key, const char *value)
{
  if (value != NULL && self->n < FIELDS_MAX)
    self->fields[self->n++] = (GLogField){ key, value, -1 };
}

static char *
build_message (const HeadwaySecurityReport *report)
{
  GString *message = g_string_new ("security: ");
  const char *kind = headway_security_kind_get_name (report->kind);

  if (report->is_summary)
    g_string_append_printf (message, "%s %" G_GUINT64_FORMAT " times more within %" G_GINT64_FORMAT " ms, the first", kind,
                            report->count, report->interval_us / 1000);
  else
    g_string_append (message, kind);
  if (report->uid != G_MAXUINT32)
    g_string_append_printf (message, " by user %u", report->uid);
  if (report->principal != NULL && report->principal[0] != '\0')
    g_string_append_printf (message, " for principal \"%s\"", report->principal);
  if (report->bus != NULL)
    g_string_append_printf (message, " on bus \"%s\"", report->bus);
  return g_string_free (message, FALSE);
}

void
headway_journal_write_security (const HeadwaySecurityReport *report)
{
  g_autofree char *count = g_strdup_printf ("%" G_GUINT64_FORMAT, report->count);
  g_autofree char *uid = report->uid != G_MAXUINT32 ? g_strdup_printf ("%u", report->uid) : NULL;
  g_autofree char *message = build_message (report);
  Fields fields = { .n = 0 };

  add_field (&fields, "MESSAGE", message);
  add_field (&fields, "PRIORITY", "5");
  add_field (&fields, "GLIB_DOMAIN", G_LOG_DOMAIN);
  add_field (&fields, "HEADWAY_SECURITY", headway_security_kind_get_name (report->kind));
  add_field (&fields, "HEADWAY_COUNT", count);
  add_field (&fields, "HEADWAY_UID", uid);
  add_field (&fields, "HEADWAY_PRINCIPAL", report->principal);
  add_field (&fields, "HEADWAY_BUS", report->bus);
  g_log_structured_array (G_LOG_LEVEL_MESSAGE, fields.fields, fields.n);
}

static char *
build_storm_message (const HeadwayStormReport *report)
{
  GString *message = g_string_new (NULL);

  g_string_append_printf (message, "storm: %" G_GUINT64_FORMAT " events in %" G_GINT64_FORMAT " s, most of them on",
                          report->events, report->window_us / G_USEC_PER_SEC);
  for (guint i = 0; i < report->n_topics; i++)
    g_string_append_printf (message, "%s %s (%" G_GUINT64_FORMAT ")", i > 0 ? "," : "", report->topics[i].topic,
                            report->topics[i].count);
  return g_string_free (message, FALSE);
}

void
headway_journal_write_storm (const HeadwayStormReport *report, gboolean goes_on)
{
  g_autofree char *events = g_strdup_printf ("%" G_GUINT64_FORMAT, report->events);
  g_autofree char *window = g_strdup_printf ("%" G_GINT64_FORMAT, report->window_us / 1000);
  g_autofree char *message = build_storm_message (report);
  Fields fields = { .n = 0 };

  add_field (&fields, "MESSAGE", message);
  add_field (&fields, "PRIORITY", goes_on ? "6" : "4");
  add_field (&fields, "GLIB_DOMAIN", G_LOG_DOMAIN);
  add_field (&fields, "HEADWAY_STORM_EVENTS", events);
  add_field (&fields, "HEADWAY_STORM_WINDOW_MS", window);
  g_log_structured_array (goes_on ? G_LOG_LEVEL_INFO : G_LOG_LEVEL_MESSAGE, fields.fields, fields.n);
}
