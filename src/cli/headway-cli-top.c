/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-connection.h"
#include "cli/headway-cli-error.h"
#include "cli/headway-cli-output.h"
#include "cli/headway-cli-sampler.h"
#include "cli/headway-cli-table.h"
#include "cli/headway-cli-terminal.h"
#include "cli/headway-cli-text.h"
#include "cli/headway-cli-top-view.h"

#include <errno.h>
#include <glib-unix.h>
#include <glib/gi18n.h>
#include <signal.h>
#include <unistd.h>

#define PERIOD_MS 1000

typedef struct
{
  GMainLoop *loop;             /* owned */
  HeadwayCliSampler *sampler;  /* owned */
  HeadwayCliSample *sample;    /* owned, nullable: what is shown */
  HeadwayCliOutput *output;    /* owned */
  HeadwayCliTerminal terminal; /* open while live */
  GError *trouble;             /* owned, nullable: why there is no sample now */
  gboolean is_live;
  gboolean colour;
  gboolean is_sampling;
  gboolean is_drawing;
  gboolean draw_again;
  guint n_samples;
  guint period_source;
  guint key_source;
  guint signal_sources[4];
  int status;
} Top;

static void draw (Top *self);

static void
quit (Top *self,
      int status)
{
  self->status = status;
  g_main_loop_quit (self->loop);
}

static void
on_drawn (int error_number,
          gpointer user_data)
{
  Top *self = user_data;

  self->is_drawing = FALSE;
  if (error_number != 0)
    quit (self, error_number == EPIPE || error_number == EIO ? HEADWAY_CLI_EXIT_OK : HEADWAY_CLI_EXIT_FAILED);
  else if (self->draw_again)
    draw (self);
}

static GPtrArray *
create_trouble_lines (Top *self,
                      guint width)
{
  GPtrArray *lines = g_ptr_array_new_with_free_func (g_free);
  g_autofree char *text = g_strdup_printf (_ ("%s; waiting to go on"), self->trouble->message);
  g_autofree char *shown = headway_cli_text_neutralise (text, -1);
  GString *line = g_string_new (NULL);

  headway_cli_table_append_fitted (line, shown, width, FALSE);
  g_ptr_array_add (lines, g_strchomp (g_string_free (line, FALSE)));
  return lines;
}

/* Writes the screen anew, without clearing it first, so that it does not flicker. The rest of a
 * line is cleared before it is written: behind a full one the last character would go. */
static void
draw (Top *self)
{
  GString *buffer = headway_cli_output_get_buffer (self->output);
  g_autoptr (GPtrArray) lines = NULL;
  guint width;
  guint height;

  if (self->is_drawing)
    {
      self->draw_again = TRUE;
      return;
    }
  headway_cli_terminal_get_size (STDOUT_FILENO, &width, &height);
  if (self->trouble != NULL)
    lines = create_trouble_lines (self, width);
  else
    lines = headway_cli_top_view_create_lines (self->sample, width, height, self->colour);
  g_string_append (buffer, "\033[H");
  for (guint i = 0; i < lines->len; i++)
    g_string_append_printf (buffer, "%s\033[%c%s", i > 0 ? "\r\n" : "", i + 1 < lines->len ? 'K' : 'J', (const char *) g_ptr_array_index (lines, i));
  self->draw_again = FALSE;
  self->is_drawing = TRUE;
  headway_cli_output_flush (self->output, on_drawn, self);
}

static gboolean
on_period (gpointer user_data)
{
  Top *self = user_data;

  if (!self->is_sampling)
    {
      self->is_sampling = TRUE;
      headway_cli_sampler_start (self->sampler);
    }
  return G_SOURCE_CONTINUE;
}

static gboolean
on_end (gpointer user_data)
{
  quit (user_data, HEADWAY_CLI_EXIT_OK);
  return G_SOURCE_CONTINUE;
}

static gboolean
on_resize (gpointer user_data)
{
  draw (user_data);
  return G_SOURCE_CONTINUE;
}

static gboolean
on_key (int fd,
        GIOCondition condition,
        gpointer user_data)
{
  Top *self = user_data;
  char keys[64];
  ssize_t n = read (fd, keys, sizeof keys);

  if (n < 0 && (errno == EINTR || errno == EAGAIN))
    return G_SOURCE_CONTINUE;
  for (ssize_t i = 0; i < n; i++)
    {
      if (keys[i] == 'q' || keys[i] == 'Q')
        quit (self, HEADWAY_CLI_EXIT_OK);
    }
  if (n > 0)
    return G_SOURCE_CONTINUE;
  self->key_source = 0;
  quit (self, HEADWAY_CLI_EXIT_OK); /* the terminal is gone */
  return G_SOURCE_REMOVE;
}

/* Takes the screen only when there is something to show, so that a refusal is said as everywhere. */
static void
open_terminal (Top *self)
{
  if (!headway_cli_terminal_open (&self->terminal, STDIN_FILENO, STDOUT_FILENO))
    {
      self->is_live = FALSE;
      return;
    }
  self->key_source = g_unix_fd_add (STDIN_FILENO, G_IO_IN | G_IO_HUP | G_IO_ERR, on_key, self);
  self->signal_sources[3] = g_unix_signal_add (SIGWINCH, on_resize, self);
}

static void
print_once (Top *self)
{
  g_autoptr (GPtrArray) lines = NULL;
  g_autoptr (GString) text = g_string_new (NULL);
  guint width;
  guint height;

  headway_cli_terminal_get_size (STDOUT_FILENO, &width, &height);
  lines = headway_cli_top_view_create_lines (self->sample, width, 0, self->colour);
  for (guint i = 0; i < lines->len; i++)
    g_string_append_printf (text, "%s%s", i > 0 ? "\n" : "", (const char *) g_ptr_array_index (lines, i));
  quit (self, headway_cli_print_line (text->str));
}

static void
on_sampled (HeadwayCliSample *sample,
            const GError *error,
            gpointer user_data)
{
  Top *self = user_data;

  self->is_sampling = FALSE;
  g_clear_error (&self->trouble);
  if (sample == NULL && self->terminal.is_open)
    {
      self->trouble = g_error_copy (error);
      draw (self);
      return;
    }
  if (sample == NULL)
    {
      quit (self, headway_cli_fail (error));
      return;
    }
  headway_cli_sample_finish (sample, self->sample);
  g_clear_pointer (&self->sample, headway_cli_sample_free);
  self->sample = sample;
  self->n_samples++;
  if (self->is_live && !self->terminal.is_open)
    open_terminal (self);
  if (self->is_live)
    draw (self);
  else if (self->n_samples == 2) /* the first one knows no rates */
    print_once (self);
}

static int
run (HeadwayCli *cli,
     gboolean once)
{
  const char *no_colour = g_getenv ("NO_COLOR");
  g_autoptr (GError) error = NULL;
  g_autoptr (GDBusConnection) connection = headway_cli_connection_open (cli, &error);
  Top self = { 0 };

  if (connection == NULL)
    return headway_cli_fail (error);
  self.loop = g_main_loop_new (NULL, FALSE);
  self.sampler = headway_cli_sampler_new (connection, on_sampled, &self);
  self.output = headway_cli_output_new (STDOUT_FILENO);
  self.is_live = !once && headway_cli_terminal_is_usable (STDIN_FILENO, STDOUT_FILENO);
  self.colour = isatty (STDOUT_FILENO) && (no_colour == NULL || *no_colour == '\0');
  self.signal_sources[0] = g_unix_signal_add (SIGINT, on_end, &self);
  self.signal_sources[1] = g_unix_signal_add (SIGTERM, on_end, &self);
  self.signal_sources[2] = g_unix_signal_add (SIGHUP, on_end, &self);
  self.period_source = g_timeout_add (PERIOD_MS, on_period, &self);
  on_period (&self);
  g_main_loop_run (self.loop);

  g_clear_pointer (&self.output, headway_cli_output_free);
  headway_cli_terminal_close (&self.terminal);
  g_clear_handle_id (&self.period_source, g_source_remove);
  g_clear_handle_id (&self.key_source, g_source_remove);
  for (gsize i = 0; i < G_N_ELEMENTS (self.signal_sources); i++)
    g_clear_handle_id (&self.signal_sources[i], g_source_remove);
  g_clear_pointer (&self.sampler, headway_cli_sampler_free);
  g_clear_pointer (&self.sample, headway_cli_sample_free);
  g_clear_error (&self.trouble);
  g_clear_pointer (&self.loop, g_main_loop_unref);
  return self.status;
}

/**
 * headway_cli_top:
 * @cli: the global options
 * @argv: arguments
 *
 * `headway top`: shows who is slow, who floods, and what was lost and why.
 *
 * Returns: the exit status
 */
int
headway_cli_top (HeadwayCli *cli,
                 char **argv)
{
  const HeadwayCliSyntax syntax = {
    "top", "", _ ("Show the buses, their readers, who floods, and what was lost and why, each second anew."),
    _ ("q or Ctrl-C ends it. Where the output is no terminal, it prints the tables once."), 0, 0
  };
  gboolean once = FALSE;
  g_auto (GStrv) words = NULL;
  const GOptionEntry entries[] = {
    { "once", 0, 0, G_OPTION_ARG_NONE, &once, N_ ("Measure for one second and print the tables once"), NULL },
    { NULL }
  };

  if (!headway_cli_parse (cli, &syntax, entries, argv, &words))
    return HEADWAY_CLI_EXIT_USAGE;
  if (cli->http_url != NULL)
    {
      headway_cli_say (_ ("top asks over D-Bus, not over --http"));
      return HEADWAY_CLI_EXIT_USAGE;
    }
  return run (cli, once);
}
