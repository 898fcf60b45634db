/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* What systemd wants to know and hands over; does nothing where it is not there. */

/* "READY=1", "STOPPING=1", … */
void headway_service_manager_notify (const char *state);

/* Sockets that systemd passes under the name `http` (cli.md). Returns: (element-type int) (transfer
 * full): descriptors, CLOEXEC, none if there are none. */
GArray *headway_service_manager_take_sockets (void);

G_END_DECLS
