/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Publishes one event over D-Bus or over HTTP; the caller sees no difference. Over HTTP many events
 * go as one JSON array: all or nothing, so that a refusal leaves no doubt about what is published
 * and what is not. Over D-Bus many go another way, see headway-cli-line-stream.c.
 */
#include "config.h"

#include "cli/headway-cli-publisher.h"

#include "cli/headway-cli-connection.h"
#include "cli/headway-cli-error.h"
#include "cli/headway-cli-http.h"
#include "cli/headway-cli-json.h"
#include "cli/headway-cli-text.h"

#include <glib/gi18n.h>

struct _HeadwayCliPublisher
{
  GObject parent_instance;

  const HeadwayCliDraft *defaults; /* borrowed, outlives self */
  GDBusConnection *connection;     /* owned, NULL over HTTP */
  char *bus_path;                  /* owned, NULL over HTTP */
  HeadwayCliHttp *http;            /* owned, NULL over D-Bus */
  char *route;                     /* owned, NULL over D-Bus */
};

G_DEFINE_FINAL_TYPE (HeadwayCliPublisher, headway_cli_publisher, G_TYPE_OBJECT)

static void
headway_cli_publisher_finalize (GObject *object)
{
  HeadwayCliPublisher *self = HEADWAY_CLI_PUBLISHER (object);

  g_clear_object (&self->connection);
  g_clear_object (&self->http);
  g_clear_pointer (&self->bus_path, g_free);
  g_clear_pointer (&self->route, g_free);

  G_OBJECT_CLASS (headway_cli_publisher_parent_class)->finalize (object);
}

static void
headway_cli_publisher_class_init (HeadwayCliPublisherClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = headway_cli_publisher_finalize;
}

static void
headway_cli_publisher_init (HeadwayCliPublisher *self)
{
}

/**
 * headway_cli_publisher_new:
 * @cli: the global options
 * @bus_name: name of a bus; the daemon creates it where its settings allow that
 * @defaults: what holds for every event that does not say it; outlives the publisher
 * @error: return location
 *
 * Returns: (transfer full): a publisher, or NULL with an error of HEADWAY_CLI_ERROR
 */
HeadwayCliPublisher *
headway_cli_publisher_new (HeadwayCli *cli,
                           const char *bus_name,
                           const HeadwayCliDraft *defaults,
                           GError **error)
{
  g_autoptr (HeadwayCliPublisher) self = g_object_new (HEADWAY_TYPE_CLI_PUBLISHER, NULL);

  self->defaults = defaults;
  if (cli->http_url != NULL)
    {
      self->http = headway_cli_http_new (cli->http_url, cli->token_file, error);
      self->route = headway_cli_http_get_bus_path (bus_name, "/events");
      return self->http != NULL ? g_steal_pointer (&self) : NULL;
    }
  self->connection = headway_cli_connection_open (cli, error);
  if (self->connection == NULL)
    return NULL;
  self->bus_path = headway_cli_connection_get_bus (self->connection, bus_name, error);
  return self->bus_path != NULL ? g_steal_pointer (&self) : NULL;
}

static GBytes *
bytes_of_json (HeadwayCliPublisher *self,
               HeadwayCliDraft *const *drafts,
               guint n_drafts)
{
  GString *json = g_string_new ("[");

  for (guint i = 0; i < n_drafts; i++)
    {
      if (i > 0)
        g_string_append_c (json, ',');
      headway_cli_draft_append_json (drafts[i], self->defaults, json);
    }
  g_string_append_c (json, ']');
  return g_string_free_to_bytes (json);
}

static gboolean
read_id (GBytes *answer,
         const char *name,
         guint64 *id,
         GError **error)
{
  HeadwayCliSlice object;
  HeadwayCliSlice value;

  object.text = g_bytes_get_data (answer, &object.length);
  if (headway_cli_json_get_member (object, name, &value) && headway_cli_json_get_uint64 (value, id))
    return TRUE;
  g_set_error (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_FAILED, _ ("the answer has no \"%s\": is this a headwayd?"), name);
  return FALSE;
}

/* Says where in the data the JSON breaks off, not where in what we made around it. */
static void
move_position (GError **error,
               gint64 position)
{
  if (position < HEADWAY_CLI_DRAFT_DATA_OFFSET || !g_error_matches (*error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_DATA))
    return;
  g_clear_error (error);
  g_set_error (error, HEADWAY_CLI_ERROR, HEADWAY_CLI_ERROR_DATA,
               _ ("InvalidData: no JSON at byte %s"), HEADWAY_CLI_NUMBER ((guint64) (position - HEADWAY_CLI_DRAFT_DATA_OFFSET)));
}

static gboolean
publish_http (HeadwayCliPublisher *self,
              const HeadwayCliDraft *draft,
              guint64 *id,
              GError **error)
{
  GString *json = g_string_new (NULL);
  g_autoptr (GBytes) body = NULL;
  g_autoptr (GBytes) answer = NULL;
  g_autoptr (SoupMessage) message = NULL;
  g_autoptr (GError) local_error = NULL;
  gint64 position;

  headway_cli_draft_append_json (draft, self->defaults, json);
  body = g_string_free_to_bytes (json);
  message = headway_cli_http_create_message (self->http, "POST", self->route, body, error);
  if (message == NULL)
    return FALSE;
  answer = soup_session_send_and_read (headway_cli_http_get_session (self->http), message, NULL, &local_error);
  if (answer == NULL)
    {
      g_propagate_error (error, headway_cli_http_convert_error (local_error));
      return FALSE;
    }
  if (!headway_cli_http_check_answer (message, answer, &position, &local_error))
    {
      move_position (&local_error, position);
      g_propagate_error (error, g_steal_pointer (&local_error));
      return FALSE;
    }
  return read_id (answer, "id", id, error);
}

static gboolean
publish_dbus (HeadwayCliPublisher *self,
              const HeadwayCliDraft *draft,
              guint64 *id,
              GError **error)
{
  g_autoptr (GVariant) reply = NULL;
  g_autoptr (GError) local_error = NULL;

  reply = g_dbus_connection_call_sync (self->connection, HEADWAY_CLI_DBUS_NAME, self->bus_path, HEADWAY_CLI_BUS_INTERFACE, "Publish",
                                       headway_cli_draft_to_variant (draft, self->defaults), G_VARIANT_TYPE ("(ta{sv})"),
                                       G_DBUS_CALL_FLAGS_NONE, HEADWAY_CLI_CALL_TIMEOUT_MS, NULL, &local_error);
  if (reply == NULL)
    {
      g_propagate_error (error, headway_cli_error_from_dbus (local_error, NULL));
      return FALSE;
    }
  g_variant_get_child (reply, 0, "t", id);
  return TRUE;
}

/**
 * headway_cli_publisher_publish:
 * @self: a publisher
 * @draft: an event with a topic or a type
 * @id: (out): its id
 * @error: return location
 *
 * Publishes one event and waits.
 *
 * Returns: FALSE with an error of HEADWAY_CLI_ERROR
 */
gboolean
headway_cli_publisher_publish (HeadwayCliPublisher *self,
                               const HeadwayCliDraft *draft,
                               guint64 *id,
                               GError **error)
{
  if (self->http != NULL)
    return publish_http (self, draft, id, error);
  return publish_dbus (self, draft, id, error);
}

static void
return_id (GTask *task,
           guint64 first_id)
{
  guint64 *result = g_new (guint64, 1);

  *result = first_id;
  g_task_return_pointer (task, result, g_free);
}

static void
on_answered (GObject *source,
             GAsyncResult *result,
             gpointer user_data)
{
  g_autoptr (GTask) task = user_data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) answer = soup_session_send_and_read_finish (SOUP_SESSION (source), result, &error);
  guint64 first_id;

  if (answer == NULL)
    g_task_return_error (task, headway_cli_http_convert_error (error));
  else if (!headway_cli_http_check_answer (g_task_get_task_data (task), answer, NULL, &error) || !read_id (answer, "firstId", &first_id, &error))
    g_task_return_error (task, g_steal_pointer (&error));
  else
    return_id (task, first_id);
}

/**
 * headway_cli_publisher_publish_many_async:
 * @self: a publisher over HTTP
 * @drafts: (array length=n_drafts): events, which are needed only during the call
 * @n_drafts: how many, 1 … 4096
 * @callback: called when the daemon has answered
 * @user_data: passed to it
 *
 * Publishes all of them, or none.
 */
void
headway_cli_publisher_publish_many_async (HeadwayCliPublisher *self,
                                          HeadwayCliDraft *const *drafts,
                                          guint n_drafts,
                                          GAsyncReadyCallback callback,
                                          gpointer user_data)
{
  g_autoptr (GTask) task = g_task_new (self, NULL, callback, user_data);
  g_autoptr (GBytes) body = NULL;
  g_autoptr (GError) error = NULL;
  SoupMessage *message;

  g_return_if_fail (self->http != NULL);

  g_task_set_source_tag (task, headway_cli_publisher_publish_many_async);
  body = bytes_of_json (self, drafts, n_drafts);
  message = headway_cli_http_create_message (self->http, "POST", self->route, body, &error);
  if (message == NULL)
    {
      g_task_return_error (task, g_steal_pointer (&error));
      return;
    }
  g_task_set_task_data (task, message, g_object_unref);
  soup_session_send_and_read_async (headway_cli_http_get_session (self->http), message, G_PRIORITY_DEFAULT, NULL, on_answered, g_steal_pointer (&task));
}

/**
 * headway_cli_publisher_publish_many_finish:
 * @self: a publisher
 * @result: what the callback was given
 * @first_id: (out): id of the first event; those of the others follow it
 * @error: return location
 *
 * Returns: FALSE with an error of HEADWAY_CLI_ERROR, if none of them is published
 */
gboolean
headway_cli_publisher_publish_many_finish (HeadwayCliPublisher *self,
                                           GAsyncResult *result,
                                           guint64 *first_id,
                                           GError **error)
{
  g_autofree guint64 *id = g_task_propagate_pointer (G_TASK (result), error);

  if (id == NULL)
    return FALSE;
  *first_id = *id;
  return TRUE;
}
