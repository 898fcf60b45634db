/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include <libsoup/soup.h>
#include <stdlib.h>

/* bare-http: a SoupServer that reads a request and answers it, and does nothing else: what publishing
 * by POST is measured against. Prints its port. */

static void
answer (SoupServer *server, SoupServerMessage *message, const char *path, GHashTable *query, gpointer user_data)
{
  static const char text[] = "{\"id\":1}";

  soup_server_message_set_status (message, SOUP_STATUS_OK, NULL);
  soup_server_message_set_response (message, "application/json", SOUP_MEMORY_STATIC, text, sizeof text - 1);
}

int
main (void)
{
  g_autoptr (GMainLoop) loop = g_main_loop_new (NULL, FALSE);
  g_autoptr (SoupServer) server = soup_server_new (NULL, NULL);
  g_autoptr (GError) error = NULL;
  GSList *uris;

  soup_server_add_handler (server, NULL, answer, NULL, NULL);
  if (!soup_server_listen_local (server, 0, SOUP_SERVER_LISTEN_IPV4_ONLY, &error))
    {
      g_printerr ("bare-http: %s\n", error->message);
      return EXIT_FAILURE;
    }
  uris = soup_server_get_uris (server);
  g_print ("%d\n", g_uri_get_port (uris->data));
  g_slist_free_full (uris, (GDestroyNotify) g_uri_unref);
  g_main_loop_run (loop);
  return EXIT_SUCCESS;
}
