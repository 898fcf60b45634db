/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "cli/headway-cli-event.h"

#include <string.h>

/**
 * headway_cli_event_is_type:
 * @event: an event
 * @type: a type
 *
 * Returns: whether @event has it
 */
gboolean
headway_cli_event_is_type (const HeadwayCliEvent *event,
                           const char *type)
{
  return g_str_equal (event->type, type);
}

/**
 * headway_cli_event_get_data_uint64:
 * @event: an event
 * @name: a member of its data
 *
 * Returns: the number, 0 if there is none
 */
guint64
headway_cli_event_get_data_uint64 (const HeadwayCliEvent *event,
                                   const char *name)
{
  HeadwayCliSlice value;
  guint64 number;

  if (headway_cli_json_get_member ((HeadwayCliSlice){ event->data, strlen (event->data) }, name, &value) &&
      headway_cli_json_get_uint64 (value, &number))
    return number;
  return 0;
}

/**
 * headway_cli_event_is_data_true:
 * @event: an event
 * @name: a member of its data
 *
 * Returns: whether it is there and true
 */
gboolean
headway_cli_event_is_data_true (const HeadwayCliEvent *event,
                                const char *name)
{
  HeadwayCliSlice value;

  return headway_cli_json_get_member ((HeadwayCliSlice){ event->data, strlen (event->data) }, name, &value) &&
         value.length == 4 && memcmp (value.text, "true", 4) == 0;
}

/**
 * headway_cli_event_dup_data_string:
 * @event: an event
 * @name: a member of its data
 *
 * Returns: (transfer full): the text, "?" if there is none
 */
char *
headway_cli_event_dup_data_string (const HeadwayCliEvent *event,
                                   const char *name)
{
  HeadwayCliSlice value;
  char *text = NULL;

  if (headway_cli_json_get_member ((HeadwayCliSlice){ event->data, strlen (event->data) }, name, &value))
    text = headway_cli_json_dup_string (value);
  return text != NULL ? text : g_strdup ("?");
}
