/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* What this version can, in the words of http-api.md: the features of GET /capabilities and the
 * Manager's property alike. `writer_idle_timeout` is among them only while that timeout is on.
 * Returns: (transfer full). */
char **headway_capabilities_list (gboolean has_writer_idle_timeout);

G_END_DECLS
