/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-printer.h"

#include "cli/headway-cli-text.h"

#include <glib/gi18n.h>
#include <string.h>

/* A number of the data of @event, as text. */
#define NUMBER(event, name) HEADWAY_CLI_NUMBER (headway_cli_event_get_data_uint64 (event, name))

static void
append_member (GString *out,
               const char *name,
               const char *text)
{
  g_string_append_printf (out, ",\"%s\":", name);
  headway_cli_json_append_string (out, text, strlen (text));
}

static void
append_envelope (GString *out,
                 const HeadwayCliEvent *event)
{
  g_string_append_c (out, '{');
  if (event->id != 0 && event->resume_id != 0)
    g_string_append_printf (out, "\"id\":%" G_GUINT64_FORMAT ",", event->resume_id);
  if (event->id != 0 && event->has_seq)
    g_string_append_printf (out, "\"seq\":%" G_GUINT64_FORMAT ",", event->id);
  g_string_append (out, "\"v\":1");
  append_member (out, "type", event->type);
  g_string_append (out, ",\"data\":");
  g_string_append (out, event->data);
  if (*event->topic != '\0' && !g_str_equal (event->topic, event->type))
    append_member (out, "topic", event->topic);
  if (*event->principal != '\0')
    append_member (out, "principal", event->principal);
  if (event->client != NULL)
    append_member (out, "originatorClientId", event->client);
  if (event->meta != NULL)
    g_string_append_printf (out, ",\"_meta\":%s}", event->meta);
  else
    g_string_append_printf (out, ",\"_meta\":{\"serverTimestamp\":%" G_GINT64_FORMAT "}}", event->timestamp_us / 1000);
}

/**
 * headway_cli_printer_append_json:
 * @out: text to append to
 * @event: an event
 *
 * Appends the envelope of http-api.md and a line end. As there, `id` is where to go on behind
 * @event, and `seq` its own id in mode `routed`. Data and `_meta` go through byte for
 * byte, except that a line end between tokens becomes a blank, so that it is one line.
 */
void
headway_cli_printer_append_json (GString *out,
                                 const HeadwayCliEvent *event)
{
  gsize start = out->len;

  if (event->envelope.text != NULL)
    g_string_append_len (out, event->envelope.text, (gssize) event->envelope.length);
  else
    append_envelope (out, event);
  for (gsize i = start; i < out->len; i++)
    {
      if (out->str[i] == '\n' || out->str[i] == '\r')
        out->str[i] = ' ';
    }
  g_string_append_c (out, '\n');
}

static void
append_coloured (GString *out,
                 const char *text,
                 const char *colour)
{
  if (colour != NULL)
    g_string_append_printf (out, "\033[%sm", colour);
  headway_cli_text_append_neutralised (out, text, -1);
  if (colour != NULL)
    g_string_append (out, "\033[0m");
}

static void
append_time (GString *out,
             gint64 timestamp_us)
{
  g_autoptr (GDateTime) utc = g_date_time_new_from_unix_utc (timestamp_us / G_USEC_PER_SEC);
  g_autoptr (GDateTime) local = utc != NULL ? g_date_time_to_local (utc) : NULL;
  g_autofree char *text = local != NULL ? g_date_time_format (local, "%H:%M:%S") : NULL;
  gint64 milliseconds = timestamp_us / 1000 % 1000;

  g_string_append_printf (out, "%s.%03d  ", text != NULL ? text : "--:--:--", (int) ABS (milliseconds));
}

/**
 * headway_cli_printer_append_readable:
 * @out: text to append to
 * @event: an event
 * @colour: whether to colour it for a terminal
 *
 * Appends one line: id, time, topic, type in brackets where it says more than the topic,
 * principal, data. Nothing in it can control the terminal.
 */
void
headway_cli_printer_append_readable (GString *out,
                                     const HeadwayCliEvent *event,
                                     gboolean colour)
{
  const char *topic = *event->topic != '\0' ? event->topic : event->type;

  if (colour)
    g_string_append (out, "\033[2m");
  g_string_append_printf (out, "%" G_GUINT64_FORMAT "  ", event->id);
  append_time (out, event->timestamp_us);
  if (colour)
    g_string_append (out, "\033[0m");
  append_coloured (out, topic, colour ? "1;36" : NULL);
  g_string_append (out, "  ");
  if (!g_str_equal (event->type, "message") && !g_str_equal (event->type, topic))
    {
      g_string_append_c (out, '[');
      append_coloured (out, event->type, colour ? "33" : NULL);
      g_string_append (out, "]  ");
    }
  append_coloured (out, *event->principal != '\0' ? event->principal : "system", colour ? "32" : NULL);
  g_string_append (out, "  ");
  headway_cli_text_append_neutralised (out, event->data, -1);
  g_string_append_c (out, '\n');
}

static char *
describe_resync (const HeadwayCliEvent *event)
{
  g_autofree char *reason = headway_cli_event_dup_data_string (event, "reason");

  return g_strdup_printf (_ ("events may be missing between %s and %s (%s)"),
                          NUMBER (event, "lastDeliveredId"), NUMBER (event, "earliestAvailableId"), reason);
}

/* @reason, and what it means where we know it. */
static char *
describe_reason (const char *reason)
{
  const struct
  {
    const char *reason;
    const char *meaning; /* marked for translation */
  } meanings[] = {
    { "budget", N_ ("too many bytes waited") },
    { "count_cap", N_ ("too many events waited") },
    { "oversize", N_ ("larger than this reader takes") },
    { "lagged", N_ ("this reader was too slow") },
    { "full", N_ ("the queue was full") },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (meanings); i++)
    {
      if (g_str_equal (meanings[i].reason, reason))
        return g_strdup_printf ("%s: %s", reason, _ (meanings[i].meaning));
    }
  return g_strdup (reason);
}

static char *
describe_gap (const HeadwayCliEvent *event)
{
  g_autofree char *word = headway_cli_event_dup_data_string (event, "reason");
  g_autofree char *reason = describe_reason (word);
  g_autofree char *principal = headway_cli_event_dup_data_string (event, "principal");
  guint64 n_lost = headway_cli_event_get_data_uint64 (event, "count");
  gulong number = (gulong) MIN (n_lost, G_MAXULONG);

  /* A filtered reader that lagged knows no more than this (decisions.md 33). */
  if (headway_cli_event_is_data_true (event, "filtered"))
    return g_strdup_printf (g_dngettext (GETTEXT_PACKAGE, "at most %s event lost between %s and %s (%s)", "at most %s events lost between %s and %s (%s)", number),
                            HEADWAY_CLI_NUMBER (n_lost), NUMBER (event, "firstId"), NUMBER (event, "lastId"), reason);
  if (!g_str_equal (principal, "?"))
    return g_strdup_printf (g_dngettext (GETTEXT_PACKAGE, "%s event of %s lost between %s and %s (%s)", "%s events of %s lost between %s and %s (%s)", number),
                            HEADWAY_CLI_NUMBER (n_lost), principal, NUMBER (event, "firstId"), NUMBER (event, "lastId"), reason);
  return g_strdup_printf (g_dngettext (GETTEXT_PACKAGE, "%s event lost between %s and %s (%s)", "%s events lost between %s and %s (%s)", number),
                          HEADWAY_CLI_NUMBER (n_lost), NUMBER (event, "firstId"), NUMBER (event, "lastId"), reason);
}

static char *
describe_eviction (const HeadwayCliEvent *event)
{
  g_autofree char *reason = headway_cli_event_dup_data_string (event, "reason");

  return g_strdup_printf (_ ("this reader was too slow (%s)"), reason);
}

static char *
describe_stream_error (const HeadwayCliEvent *event)
{
  g_autofree char *text = headway_cli_event_dup_data_string (event, "error");

  return g_strdup_printf (_ ("the stream broke: %s"), text);
}

/**
 * headway_cli_printer_describe_notice:
 * @event: a synthetic event
 *
 * Returns: (transfer full): what it means, in one sentence that may hold anything the daemon
 *   sent
 */
char *
headway_cli_printer_describe_notice (const HeadwayCliEvent *event)
{
  if (headway_cli_event_is_type (event, "state_resync_required"))
    return describe_resync (event);
  if (headway_cli_event_is_type (event, "gap"))
    return describe_gap (event);
  if (headway_cli_event_is_type (event, "client_evicted"))
    return describe_eviction (event);
  if (headway_cli_event_is_type (event, "stream_error"))
    return describe_stream_error (event);
  if (headway_cli_event_is_type (event, "replay_complete"))
    return g_strdup_printf (_ ("%s older events replayed, live from here"), NUMBER (event, "replayedCount"));
  if (headway_cli_event_is_type (event, "slow_client_warning"))
    return g_strdup_printf (_ ("this reader is slow: %s of at most %s events wait"),
                            NUMBER (event, "queueSize"), NUMBER (event, "maxQueued"));
  return g_strdup_printf ("%s: %s", event->type, event->data);
}
