/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "dbus/headway-dbus-error.h"

#include "dbus/headway-dbus-names.h"

#include <string.h>

/* A message shows what somebody else wrote; it need not be long. */
#define MESSAGE_MAX 2048

#define ENTRY(code, name)                                \
  {                                                      \
    HEADWAY_ERROR_##code, HEADWAY_DBUS_ERROR_PREFIX name \
  }

static const GDBusErrorEntry entries[] = {
  ENTRY (INVALID_NAME, "InvalidName"),
  ENTRY (INVALID_TOPIC, "InvalidTopic"),
  ENTRY (INVALID_PATTERN, "InvalidPattern"),
  ENTRY (INVALID_TYPE, "InvalidType"),
  ENTRY (INVALID_DATA, "InvalidData"),
  ENTRY (INVALID_OPTION, "InvalidOption"),
  ENTRY (INVALID_PRINCIPAL, "InvalidPrincipal"),
  ENTRY (TOO_LARGE, "TooLarge"),
  ENTRY (RATE_LIMITED, "RateLimited"),
  ENTRY (QUOTA_EXCEEDED, "QuotaExceeded"),
  ENTRY (SUBSCRIBER_LIMIT, "SubscriberLimit"),
  ENTRY (BUS_EXISTS, "BusExists"),
  ENTRY (NO_SUCH_BUS, "NoSuchBus"),
  ENTRY (CLOSED, "Closed"),
  ENTRY (NOT_OWNER, "NotOwner"),
  ENTRY (NOT_AUTHORIZED, "NotAuthorized"),
  ENTRY (NOT_SUPPORTED, "NotSupported"),
  ENTRY (UNAVAILABLE, "Unavailable"),
  ENTRY (DENIED, "Denied"),
  ENTRY (BUSY, "Busy"),
};

G_STATIC_ASSERT (G_N_ELEMENTS (entries) == HEADWAY_N_ERRORS);

void
headway_dbus_error_register (void)
{
  static gsize domain = 0;

  /* GDBus finds the domain by this name; headway_error_quark() first, so that it is the engine's
   * extended one. */
  headway_error_quark ();
  g_dbus_error_register_error_domain ("headway-error-quark", &domain, entries, G_N_ELEMENTS (entries));
}

static char *
message_of (const GError *error)
{
  HeadwayErrorDetails *details = headway_error_get_details (error);
  gsize length = strlen (error->message);
  g_autofree char *cut = g_strndup (error->message, MIN (length, MESSAGE_MAX));
  /* GDBus aborts over a message that is no UTF-8. */
  g_autofree char *valid = g_utf8_make_valid (cut, -1);

  if (details == NULL || details->retry_after_ms < 0 || strstr (valid, "retry-after-ms=") != NULL)
    return g_steal_pointer (&valid);
  return g_strdup_printf ("%s, retry-after-ms=%" G_GINT64_FORMAT, valid, details->retry_after_ms);
}

void
headway_dbus_error_answer (GDBusMethodInvocation *invocation, GError *error)
{
  g_autoptr (GError) owned = error;
  g_autofree char *message = message_of (owned);

  g_dbus_method_invocation_return_error_literal (invocation, owned->domain, owned->code, message);
}

void
headway_dbus_error_refuse (GDBusMethodInvocation *invocation, HeadwayError code, const char *format, ...)
{
  va_list args;
  GError *error;

  va_start (args, format);
  error = g_error_new_valist (HEADWAY_ERROR, (int) code, format, args);
  va_end (args);
  headway_dbus_error_answer (invocation, error);
}
