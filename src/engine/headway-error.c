/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-error.h"

/* Indexed by code; the D-Bus names are made of it, so an entry never changes. */
static const char *const error_names[] = {
  [HEADWAY_ERROR_INVALID_NAME] = "InvalidName",
  [HEADWAY_ERROR_INVALID_TOPIC] = "InvalidTopic",
  [HEADWAY_ERROR_INVALID_PATTERN] = "InvalidPattern",
  [HEADWAY_ERROR_INVALID_TYPE] = "InvalidType",
  [HEADWAY_ERROR_INVALID_DATA] = "InvalidData",
  [HEADWAY_ERROR_INVALID_OPTION] = "InvalidOption",
  [HEADWAY_ERROR_INVALID_PRINCIPAL] = "InvalidPrincipal",
  [HEADWAY_ERROR_TOO_LARGE] = "TooLarge",
  [HEADWAY_ERROR_RATE_LIMITED] = "RateLimited",
  [HEADWAY_ERROR_QUOTA_EXCEEDED] = "QuotaExceeded",
  [HEADWAY_ERROR_SUBSCRIBER_LIMIT] = "SubscriberLimit",
  [HEADWAY_ERROR_BUS_EXISTS] = "BusExists",
  [HEADWAY_ERROR_NO_SUCH_BUS] = "NoSuchBus",
  [HEADWAY_ERROR_CLOSED] = "Closed",
  [HEADWAY_ERROR_NOT_OWNER] = "NotOwner",
  [HEADWAY_ERROR_NOT_AUTHORIZED] = "NotAuthorized",
  [HEADWAY_ERROR_NOT_SUPPORTED] = "NotSupported",
  [HEADWAY_ERROR_UNAVAILABLE] = "Unavailable",
  [HEADWAY_ERROR_DENIED] = "Denied",
  [HEADWAY_ERROR_BUSY] = "Busy",
};

G_STATIC_ASSERT (G_N_ELEMENTS (error_names) == HEADWAY_N_ERRORS);

/* GLib keeps the private part of an extended error in front of the GError, padded as a type
 * instance is. G_DEFINE_EXTENDED_ERROR repeats that sum too, but it would name the domain after
 * the C type, and the D-Bus side finds ours by "headway-error-quark". */
static HeadwayErrorDetails *
get_private (const GError *error)
{
  const gsize alignment = 2 * sizeof (gsize);
  const gsize size = (sizeof (HeadwayErrorDetails) + alignment - 1) & ~(alignment - 1);

  return (HeadwayErrorDetails *) (gpointer) ((guint8 *) error - size);
}

static void
details_init (GError *error)
{
  *get_private (error) = (HeadwayErrorDetails){
    .position = -1,
    .limit = -1,
    .index = -1,
    .retry_after_ms = -1,
    .reason_length = -1,
  };
}

static void
details_copy (const GError *from, GError *to)
{
  *get_private (to) = *get_private (from);
}

static void
details_clear (GError *error)
{
}

GQuark
headway_error_quark (void)
{
  static gsize quark = 0;

  if (g_once_init_enter (&quark))
    {
      GQuark registered = g_error_domain_register_static ("headway-error-quark",
                                                          sizeof (HeadwayErrorDetails),
                                                          details_init,
                                                          details_copy,
                                                          details_clear);
      g_once_init_leave (&quark, registered);
    }

  return (GQuark) quark;
}

const char *
headway_error_get_name (HeadwayError code)
{
  g_return_val_if_fail ((guint) code < HEADWAY_N_ERRORS, "Failed");

  return error_names[code];
}

HeadwayErrorDetails *
headway_error_get_details (const GError *error)
{
  if (error == NULL || error->domain != HEADWAY_ERROR)
    return NULL;

  return get_private (error);
}

GError *
headway_error_new_stopping (void)
{
  return g_error_new_literal (HEADWAY_ERROR, HEADWAY_ERROR_UNAVAILABLE, "headwayd is stopping, this was not published");
}

void
headway_set_error_with_limit (GError **error,
                              HeadwayError code,
                              gint64 limit,
                              const char *format,
                              ...)
{
  va_list args;

  if (error == NULL)
    return;

  g_return_if_fail (*error == NULL);

  va_start (args, format);
  *error = g_error_new_valist (HEADWAY_ERROR, (int) code, format, args);
  va_end (args);
  get_private (*error)->limit = limit;
}
