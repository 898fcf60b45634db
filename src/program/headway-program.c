/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "program/headway-program.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n.h>
#include <locale.h>
#include <unistd.h>

static void
open_standard_files (void)
{
  /* The wrong way round for the first two. */
  static const int modes[] = { O_WRONLY, O_RDONLY, O_WRONLY };

  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    {
      if (fcntl (fd, F_GETFD) >= 0 || errno != EBADF)
        continue;
      /* The lowest free descriptor is this one. */
      if (open ("/dev/null", modes[fd]) != fd)
        return;
    }
}

void
headway_program_begin (const char *name)
{
  open_standard_files ();
  setlocale (LC_ALL, "");
  bindtextdomain (GETTEXT_PACKAGE, LOCALEDIR);
  bind_textdomain_codeset (GETTEXT_PACKAGE, "UTF-8");
  textdomain (GETTEXT_PACKAGE);
  g_set_prgname (name);
}
