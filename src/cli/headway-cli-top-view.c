/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What `headway top` shows: four tables, one below the other, worst rows first. Where the screen
 * is low, each table gets as many rows as the others, and what one does not need goes to them.
 */
#include "config.h"

#include "cli/headway-cli-top-view.h"

#include "cli/headway-cli-table.h"
#include "cli/headway-cli-text.h"

#include <glib/gi18n.h>
#include <string.h>

#define N_TABLES  4
#define BUS_CELLS 20 /* of the name of a subscription's bus */

static char *
format_short (double value,
              double step,
              const char *unit)
{
  const char *const prefixes[] = { "", "K", "M", "G", "T", "P" };
  char number[32];
  gsize i = 0;

  while (value >= (i == 0 ? 10000 : 999.95) && i + 1 < G_N_ELEMENTS (prefixes))
    {
      value /= step;
      i++;
    }
  return g_strconcat (g_ascii_formatd (number, sizeof number, i == 0 ? "%.0f" : "%.1f", value), prefixes[i], unit, NULL);
}

static char *
format_count (double value)
{
  return format_short (value, 1000, "");
}

static char *
format_bytes (double value)
{
  return format_short (value, 1024, "");
}

static char *
format_rate (double rate)
{
  char number[32];

  if (rate < 0)
    return g_strdup ("-");
  if (rate > 0 && rate < 100)
    return g_strdup (g_ascii_formatd (number, sizeof number, "%.1f", rate));
  return format_count (rate);
}

static HeadwayCliTable *
create_buses (const HeadwayCliSample *sample)
{
  static HeadwayCliTableColumn columns[] = { { NULL, FALSE }, { NULL, TRUE }, { NULL, TRUE }, { NULL, TRUE }, { NULL, TRUE } };
  HeadwayCliTable *table = headway_cli_table_new (columns, G_N_ELEMENTS (columns));

  columns[0].heading = _ ("BUS");
  columns[1].heading = _ ("EVENTS/S");
  columns[2].heading = _ ("LAST ID");
  columns[3].heading = _ ("BYTES");
  columns[4].heading = _ ("READERS");
  for (guint i = 0; i < sample->buses->len; i++)
    {
      const HeadwayCliSampleBus *bus = g_ptr_array_index (sample->buses, i);
      g_autofree char *rate = format_rate (bus->events_per_second);
      g_autofree char *bytes = format_bytes ((double) bus->info.ring_bytes);
      const char *cells[] = {
        bus->info.name != NULL ? bus->info.name : "", rate, HEADWAY_CLI_NUMBER (bus->info.last_event_id), bytes,
        HEADWAY_CLI_NUMBER (bus->info.subscribers)
      };

      headway_cli_table_add_row (table, FALSE, cells);
    }
  return table;
}

static const char *
describe_subscription (const HeadwayCliSampleSubscription *subscription)
{
  if (subscription->dropped_per_second > 0)
    return _ ("loses");
  return subscription->is_slow ? _ ("slow") : "";
}

/* The number and the owner tell subscriptions apart, so it is the name of the bus that gives way. */
static char *
name_subscription (const HeadwayCliSampleSubscription *subscription)
{
  gboolean is_long = strlen (subscription->bus) > BUS_CELLS;

  return g_strdup_printf ("%.*s%s/%u %s", is_long ? BUS_CELLS - 1 : BUS_CELLS, subscription->bus, is_long ? "~" : "",
                          subscription->number, subscription->owner);
}

static HeadwayCliTable *
create_subscriptions (const HeadwayCliSample *sample)
{
  static HeadwayCliTableColumn columns[] = {
    { NULL, FALSE }, { NULL, FALSE }, { NULL, FALSE }, { NULL, TRUE }, { NULL, TRUE }, { NULL, TRUE }, { NULL, TRUE }, { NULL, TRUE }, { "", FALSE }
  };
  HeadwayCliTable *table = headway_cli_table_new (columns, G_N_ELEMENTS (columns));

  columns[0].heading = _ ("SUBSCRIPTION");
  columns[1].heading = _ ("MODE");
  columns[2].heading = _ ("SINK");
  columns[3].heading = _ ("QUEUED");
  columns[4].heading = _ ("BYTES");
  columns[5].heading = _ ("LAG");
  columns[6].heading = _ ("LOST");
  columns[7].heading = _ ("LOST/S");
  for (guint i = 0; i < sample->subscriptions->len; i++)
    {
      const HeadwayCliSampleSubscription *subscription = g_ptr_array_index (sample->subscriptions, i);
      g_autofree char *name = name_subscription (subscription);
      g_autofree char *queued = format_count (subscription->queued);
      g_autofree char *bytes = format_bytes ((double) subscription->queued_bytes);
      g_autofree char *lag = format_count ((double) subscription->lag);
      g_autofree char *dropped = format_count ((double) subscription->dropped);
      g_autofree char *rate = format_rate (subscription->dropped_per_second);
      const char *state = describe_subscription (subscription);
      const char *cells[] = { name, subscription->mode, subscription->sink, queued, bytes, lag, dropped, rate, state };

      headway_cli_table_add_row (table, *state != '\0', cells);
    }
  return table;
}

static HeadwayCliTable *
create_principals (const HeadwayCliSample *sample)
{
  static HeadwayCliTableColumn columns[] = {
    { NULL, FALSE }, { NULL, TRUE }, { NULL, TRUE }, { NULL, TRUE }, { NULL, TRUE }, { NULL, TRUE }, { "", FALSE }
  };
  HeadwayCliTable *table = headway_cli_table_new (columns, G_N_ELEMENTS (columns));

  columns[0].heading = _ ("PRINCIPAL");
  columns[1].heading = _ ("WAITS IN");
  columns[2].heading = _ ("QUEUED");
  columns[3].heading = _ ("BYTES");
  columns[4].heading = _ ("SHARE");
  columns[5].heading = _ ("NEWLY LOST");
  for (guint i = 0; i < sample->principals->len; i++)
    {
      const HeadwayCliSamplePrincipal *principal = g_ptr_array_index (sample->principals, i);
      g_autofree char *queued = format_count ((double) principal->queued);
      g_autofree char *bytes = format_bytes ((double) principal->queued_bytes);
      g_autofree char *share = g_strdup_printf ("%.0f%%", principal->share * 100);
      g_autofree char *untold = format_count ((double) principal->untold);
      const char *cells[] = {
        *principal->name != '\0' ? principal->name : "system", HEADWAY_CLI_NUMBER (principal->n_subscriptions), queued, bytes, share,
        untold, principal->is_flooding ? _ ("floods") : ""
      };

      headway_cli_table_add_row (table, principal->is_flooding, cells);
    }
  return table;
}

static const char *
describe_family (const char *family)
{
  if (g_str_equal (family, "headway_route_drops_total"))
    return _ ("events of a routed reader");
  if (g_str_equal (family, "headway_receiver_lagged_total"))
    return _ ("events of a broadcast reader that lagged");
  if (g_str_equal (family, "headway_stream_evictions_total"))
    return _ ("stream readers cut off");
  if (g_str_equal (family, "headway_dispatch_drops_total"))
    return _ ("calls of a handler");
  return _ ("publishes refused");
}

static HeadwayCliTable *
create_losses (const HeadwayCliSample *sample)
{
  static HeadwayCliTableColumn columns[] = { { NULL, FALSE }, { NULL, FALSE }, { NULL, FALSE }, { NULL, TRUE }, { NULL, TRUE } };
  HeadwayCliTable *table = headway_cli_table_new (columns, G_N_ELEMENTS (columns));

  columns[0].heading = _ ("LOST SO FAR");
  columns[1].heading = _ ("WHY");
  columns[2].heading = _ ("WHOSE");
  columns[3].heading = _ ("TOTAL");
  columns[4].heading = _ ("LOST/S");
  for (guint i = 0; i < sample->losses->len; i++)
    {
      const HeadwayCliSampleLoss *loss = g_ptr_array_index (sample->losses, i);
      g_autofree char *total = format_count (loss->total);
      g_autofree char *rate = format_rate (loss->per_second);
      const char *cells[] = { describe_family (loss->family), loss->reason, loss->whom, total, rate };

      headway_cli_table_add_row (table, loss->per_second > 0, cells);
    }
  return table;
}

/* Deals @n_lines out among the tables, one at a time, to those that want more. */
static void
share_lines (guint n_lines,
             const guint *wanted,
             guint *given)
{
  gboolean was_given = TRUE;

  while (n_lines > 0 && was_given)
    {
      was_given = FALSE;
      for (guint i = 0; i < N_TABLES && n_lines > 0; i++)
        {
          if (given[i] == wanted[i])
            continue;
          given[i]++;
          n_lines--;
          was_given = TRUE;
        }
    }
}

static char *
create_title (const HeadwayCliSample *sample,
              guint width)
{
  g_autofree char *events = format_rate (sample->published_per_second);
  g_autofree char *bytes = sample->bytes_per_second < 0 ? g_strdup ("-") : format_bytes (sample->bytes_per_second);
  g_autofree char *title = NULL;
  GString *line = g_string_new (NULL);

  title = g_strdup_printf (_ ("Headway: %s events/s and %s bytes/s published; buses: %s, subscriptions: %s"), events, bytes,
                           HEADWAY_CLI_NUMBER (sample->buses->len), HEADWAY_CLI_NUMBER (sample->subscriptions->len));
  headway_cli_table_append_fitted (line, title, width, FALSE);
  return g_strchomp (g_string_free (line, FALSE));
}

static void
append_note (GPtrArray *lines,
             const char *note,
             guint width)
{
  GString *line = g_string_new (NULL);

  headway_cli_table_append_fitted (line, note, width, FALSE);
  g_ptr_array_add (lines, g_strchomp (g_string_free (line, FALSE)));
}

static void
append_hidden (GPtrArray *lines, guint count, guint width)
{
  g_autofree char *text = g_strdup_printf (ngettext ("… %u more", "… %u more", count), count);

  append_note (lines, text, width);
}

/**
 * headway_cli_top_view_create_lines:
 * @sample: what to show
 * @width: columns; no line is longer
 * @height: most lines; 0 for as many as there are
 * @colour: whether to use bold and red
 *
 * Returns: (transfer full) (element-type utf8): the lines, which hold no control characters but
 *   those of colours
 */
GPtrArray *
headway_cli_top_view_create_lines (const HeadwayCliSample *sample,
                                   guint width,
                                   guint height,
                                   gboolean colour)
{
  GPtrArray *lines = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (HeadwayCliTable) buses = create_buses (sample);
  g_autoptr (HeadwayCliTable) subscriptions = create_subscriptions (sample);
  g_autoptr (HeadwayCliTable) principals = create_principals (sample);
  g_autoptr (HeadwayCliTable) losses = create_losses (sample);
  HeadwayCliTable *tables[N_TABLES] = { buses, subscriptions, principals, losses };
  guint wanted[N_TABLES];
  guint given[N_TABLES] = { 0 };
  guint n_fixed = 1 + 2 * N_TABLES + sample->is_refused; /* title; a blank line and headings for each; note */

  for (guint i = 0; i < N_TABLES; i++)
    wanted[i] = headway_cli_table_get_n_rows (tables[i]);
  if (height == 0)
    share_lines (G_MAXUINT, wanted, given);
  else if (height > n_fixed)
    share_lines (height - n_fixed, wanted, given);
  g_ptr_array_add (lines, create_title (sample, width));
  for (guint i = 0; i < N_TABLES; i++)
    {
      /* The last line of a table that does not fit says so. */
      gboolean is_cut = given[i] > 0 && given[i] < wanted[i];
      guint n_shown = given[i] - (is_cut ? 1 : 0);

      g_ptr_array_add (lines, g_strdup (""));
      headway_cli_table_append_lines (tables[i], lines, width, n_shown, colour);
      if (is_cut)
        append_hidden (lines, wanted[i] - n_shown, width);
    }
  if (sample->is_refused)
    append_note (lines, _ ("Subscriptions of some buses are only for their owner and administrators."), width);
  if (height > 0 && lines->len > height)
    g_ptr_array_set_size (lines, (int) height);
  return lines;
}
