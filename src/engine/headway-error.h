/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-types.h"

G_BEGIN_DECLS

#define HEADWAY_ERROR (headway_error_quark ())

/**
 * HeadwayError:
 *
 * The errors a caller may act on, in the order of dbus-api.md. The D-Bus name of each is
 * `org.headway.Headway1.Error.` and headway_error_get_name().
 */
typedef enum
{
  HEADWAY_ERROR_INVALID_NAME,
  HEADWAY_ERROR_INVALID_TOPIC,
  HEADWAY_ERROR_INVALID_PATTERN,
  HEADWAY_ERROR_INVALID_TYPE,
  HEADWAY_ERROR_INVALID_DATA,
  HEADWAY_ERROR_INVALID_OPTION,
  HEADWAY_ERROR_INVALID_PRINCIPAL,
  HEADWAY_ERROR_TOO_LARGE,
  HEADWAY_ERROR_RATE_LIMITED,
  HEADWAY_ERROR_QUOTA_EXCEEDED,
  HEADWAY_ERROR_SUBSCRIBER_LIMIT,
  HEADWAY_ERROR_BUS_EXISTS,
  HEADWAY_ERROR_NO_SUCH_BUS,
  HEADWAY_ERROR_CLOSED,
  HEADWAY_ERROR_NOT_OWNER,
  HEADWAY_ERROR_NOT_AUTHORIZED,
  HEADWAY_ERROR_NOT_SUPPORTED,
  HEADWAY_ERROR_UNAVAILABLE,
  HEADWAY_ERROR_DENIED,
  HEADWAY_ERROR_BUSY,
  HEADWAY_N_ERRORS
} HeadwayError;

GQuark headway_error_quark (void);

/* The word after `org.headway.Headway1.Error.`, such as "InvalidTopic"; never NULL. */
const char *headway_error_get_name (HeadwayError code);

/* Facts beside the message. Each is -1 where it does not apply. */
typedef struct
{
  gint64 position;       /* InvalidData: byte offset of the JSON error */
  gint64 limit;          /* TooLarge, QuotaExceeded, SubscriberLimit: the limit */
  gint64 index;          /* which event of a batch, from 0 */
  gint64 retry_after_ms; /* RateLimited: when to try again */
  gint64 reason_length;  /* Denied: of the handler's words, which end the message, where something stands before them */
} HeadwayErrorDetails;

/* The details of @error: writable, so that a caller who knows more can add it. NULL if @error
 * is not of HEADWAY_ERROR. */
HeadwayErrorDetails *headway_error_get_details (const GError *error);

/* What a publish fails with because headwayd stops: UNAVAILABLE, for the bus will be there again. (transfer full) */
GError *headway_error_new_stopping (void);

/* Sets @error with @limit among its details. */
void headway_set_error_with_limit (GError **error,
                                   HeadwayError code,
                                   gint64 limit,
                                   const char *format,
                                   ...) G_GNUC_PRINTF (4, 5);

G_END_DECLS
