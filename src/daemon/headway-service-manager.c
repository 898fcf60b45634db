/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "daemon/headway-service-manager.h"

#include <string.h>

#if HAVE_SYSTEMD
#include <fcntl.h>
#include <stdlib.h>
#include <systemd/sd-daemon.h>
#endif

void
headway_service_manager_notify (const char *state)
{
#if HAVE_SYSTEMD
  sd_notify (0, state);
#endif
}

GArray *
headway_service_manager_take_sockets (void)
{
  GArray *sockets = g_array_new (FALSE, FALSE, sizeof (int));
#if HAVE_SYSTEMD
  char **names = NULL;
  int n = sd_listen_fds_with_names (1, &names);

  for (int i = 0; i < n; i++)
    {
      int fd = SD_LISTEN_FDS_START + i;

      fcntl (fd, F_SETFD, FD_CLOEXEC);
      if (strcmp (names[i], "http") == 0)
        g_array_append_val (sockets, fd);
      else
        g_warning ("systemd passed a socket named \"%s\", only \"http\" is known", names[i]);
      free (names[i]);
    }
  free (names);
#endif
  return sockets;
}
