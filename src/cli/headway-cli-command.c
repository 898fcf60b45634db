/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-command.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define READ_BYTES (64 * 1024)
#define REASON_MAX 1000

struct _HeadwayCliCommand
{
  guint ref_count; /* of what is under way */
  GSubprocess *process;
  GCancellable *cancellable; /* of the input */
  GBytes *input;
  GSource *output_source; /* owned, nullable: as long as there is something to read */
  GSource *error_source;  /* owned, nullable */
  GString *output;        /* owned */
  GString *reason;        /* owned */
  gboolean has_reason;
  guint timeout;
  gboolean is_late;
  HeadwayCliCommandDone done;
  gpointer user_data;
};

static void
clear_source (GSource **source)
{
  if (*source != NULL)
    g_source_destroy (*source);
  g_clear_pointer (source, g_source_unref);
}

static void
command_unref (HeadwayCliCommand *self)
{
  if (--self->ref_count > 0)
    return;
  g_object_unref (self->process);
  g_object_unref (self->cancellable);
  g_bytes_unref (self->input);
  g_string_free (self->output, TRUE);
  g_string_free (self->reason, TRUE);
  g_free (self);
}

/* --- What it writes ------------------------------------------------------------------------- */

static void
take_output (HeadwayCliCommand *self,
             const char *bytes,
             gsize length)
{
  gsize room = HEADWAY_CLI_OUTPUT_MAX + 1 - self->output->len;

  g_string_append_len (self->output, bytes, (gssize) MIN (length, room));
}

static void
take_errors (HeadwayCliCommand *self,
             const char *bytes,
             gsize length)
{
  const char *end = memchr (bytes, '\n', length);
  gsize line = end != NULL ? (gsize) (end - bytes) : length;

  fwrite (bytes, 1, length, stderr);
  if (self->has_reason)
    return;
  g_string_append_len (self->reason, bytes, (gssize) MIN (line, REASON_MAX - self->reason->len));
  self->has_reason = end != NULL;
}

/* Takes what is there. FALSE: there will be no more. */
static gboolean
read_pipe (HeadwayCliCommand *self,
           GObject *stream,
           void (*take) (HeadwayCliCommand *self, const char *bytes, gsize length))
{
  g_autofree char *buffer = g_malloc (READ_BYTES);
  g_autoptr (GError) error = NULL;
  gssize n;

  while ((n = g_pollable_input_stream_read_nonblocking (G_POLLABLE_INPUT_STREAM (stream), buffer, READ_BYTES, NULL, &error)) > 0)
    take (self, buffer, (gsize) n);
  return n < 0 && g_error_matches (error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK);
}

static gboolean
on_output (GObject *stream,
           gpointer user_data)
{
  return read_pipe (user_data, stream, take_output);
}

static gboolean
on_errors (GObject *stream,
           gpointer user_data)
{
  return read_pipe (user_data, stream, take_errors);
}

static GSource *
watch_pipe (HeadwayCliCommand *self,
            GInputStream *stream,
            GPollableSourceFunc func)
{
  GSource *source = g_pollable_input_stream_create_source (G_POLLABLE_INPUT_STREAM (stream), NULL);

  g_source_set_callback (source, G_SOURCE_FUNC (func), self, NULL);
  g_source_attach (source, NULL);
  return source;
}

/* --- Its life ------------------------------------------------------------------------------- */

/* Its group, so that what a shell has started goes with it. */
void
headway_cli_command_kill (HeadwayCliCommand *self)
{
  const char *id = g_subprocess_get_identifier (self->process);

  if (id != NULL)
    kill (-(pid_t) atoi (id), SIGKILL);
}

static gboolean
on_timeout (gpointer user_data)
{
  HeadwayCliCommand *self = user_data;

  self->timeout = 0;
  self->is_late = TRUE;
  headway_cli_command_kill (self);
  return G_SOURCE_REMOVE;
}

/* What it has written is in the pipes; what it has left running may keep them open. */
static void
on_ended (GObject *source,
          GAsyncResult *result,
          gpointer user_data)
{
  HeadwayCliCommand *self = user_data;
  gboolean has_exited = g_subprocess_wait_finish (self->process, result, NULL) && g_subprocess_get_if_exited (self->process);
  g_autofree char *reason = NULL;

  g_clear_handle_id (&self->timeout, g_source_remove);
  if (self->output_source != NULL)
    read_pipe (self, G_OBJECT (g_subprocess_get_stdout_pipe (self->process)), take_output);
  read_pipe (self, G_OBJECT (g_subprocess_get_stderr_pipe (self->process)), take_errors);
  clear_source (&self->output_source);
  clear_source (&self->error_source);
  g_cancellable_cancel (self->cancellable);
  reason = g_utf8_make_valid (self->reason->str, (gssize) self->reason->len);
  const HeadwayCliCommandResult end = {
    .status = has_exited ? g_subprocess_get_exit_status (self->process) : -1,
    .signal = !has_exited && g_subprocess_get_if_signaled (self->process) ? g_subprocess_get_term_sig (self->process) : 0,
    .is_late = self->is_late,
    .reason = reason,
    .output = self->output->str,
    .output_length = self->output->len,
  };
  self->done (self, &end, self->user_data);
  command_unref (self);
}

/* That it reads nothing is its own affair. */
static void
on_written (GObject *source,
            GAsyncResult *result,
            gpointer user_data)
{
  g_output_stream_write_all_finish (G_OUTPUT_STREAM (source), result, NULL, NULL);
  g_output_stream_close (G_OUTPUT_STREAM (source), NULL, NULL);
  command_unref (user_data);
}

/* A group of its own: what ends us on a terminal lets it finish. What kills us kills it, if not what it has started. */
static void
set_up_child (gpointer user_data)
{
  const pid_t *parent = user_data;

  setpgid (0, 0);
  prctl (PR_SET_PDEATHSIG, SIGKILL);
  /* We were killed before it asked for that. */
  if (getppid () != *parent)
    _exit (1);
}

static GSubprocess *
spawn (const HeadwayCliCommandOptions *options,
       GError **error)
{
  GSubprocessFlags flags = G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE;
  g_autoptr (GSubprocessLauncher) launcher = NULL;
  pid_t parent = getpid ();

  if (options->takes_output)
    flags |= G_SUBPROCESS_FLAGS_STDOUT_PIPE;
  launcher = g_subprocess_launcher_new (flags);
  g_subprocess_launcher_set_environ (launcher, options->environment);
  g_subprocess_launcher_set_child_setup (launcher, set_up_child, &parent, NULL);
  return g_subprocess_launcher_spawnv (launcher, (const char *const *) options->argv, error);
}

/**
 * headway_cli_command_start:
 * @options: what to run
 * @done: called once, when the command has ended; then it is gone
 * @user_data: for @done
 * @error: return location
 *
 * Runs a command with @options->input on its standard input. What it writes to standard error goes to
 * ours. At the timeout it is killed with all it has started.
 *
 * Returns: (transfer none): the command, or NULL with an error of the system
 */
HeadwayCliCommand *
headway_cli_command_start (const HeadwayCliCommandOptions *options,
                           HeadwayCliCommandDone done,
                           gpointer user_data,
                           GError **error)
{
  GSubprocess *process = spawn (options, error);
  HeadwayCliCommand *self;

  if (process == NULL)
    return NULL;
  self = g_new0 (HeadwayCliCommand, 1);
  self->ref_count = 2;
  self->process = process;
  self->cancellable = g_cancellable_new ();
  self->input = g_bytes_new (options->input, strlen (options->input));
  self->output = g_string_new (NULL);
  self->reason = g_string_new (NULL);
  self->done = done;
  self->user_data = user_data;
  if (options->takes_output)
    self->output_source = watch_pipe (self, g_subprocess_get_stdout_pipe (process), on_output);
  self->error_source = watch_pipe (self, g_subprocess_get_stderr_pipe (process), on_errors);
  self->timeout = g_timeout_add (options->timeout_ms, on_timeout, self);
  g_subprocess_wait_async (process, NULL, on_ended, self);
  g_output_stream_write_all_async (g_subprocess_get_stdin_pipe (process), g_bytes_get_data (self->input, NULL),
                                   g_bytes_get_size (self->input), G_PRIORITY_DEFAULT, self->cancellable, on_written, self);
  return self;
}
