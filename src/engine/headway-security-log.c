/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-security-log.h"

#define INTERVAL_US G_USEC_PER_SEC

const char *const headway_security_kind_names[HEADWAY_N_SECURITY_KINDS] = {
  [HEADWAY_SECURITY_AUTHENTICATION_FAILED] = "authentication_failed",
  [HEADWAY_SECURITY_HOST_REFUSED] = "host_refused",
  [HEADWAY_SECURITY_ORIGIN_REFUSED] = "origin_refused",
  [HEADWAY_SECURITY_NOT_AUTHORIZED] = "not_authorized",
  [HEADWAY_SECURITY_NOT_OWNER] = "not_owner",
  [HEADWAY_SECURITY_MALFORMED] = "malformed",
  [HEADWAY_SECURITY_TOO_LARGE] = "too_large",
  [HEADWAY_SECURITY_RATE_LIMITED] = "rate_limited",
  [HEADWAY_SECURITY_QUOTA_EXCEEDED] = "quota_exceeded",
  [HEADWAY_SECURITY_CONNECTION_LIMIT] = "connection_limit",
  [HEADWAY_SECURITY_EVENTS_LOST] = "events_lost",
  [HEADWAY_SECURITY_HANDLER_FAILED] = "handler_failed",
};

/* The events of one kind. */
typedef struct
{
  guint64 total;
  gboolean is_open; /* it was told less than a second ago, or something waits */
  gint64 told_us;   /* when the last report was; of an open one */
  guint64 waiting;  /* not told yet */
  guint32 uid;      /* of the first one that waits */
  char *principal;  /* owned, nullable: likewise */
  char *bus;        /* owned, nullable: likewise */
} Kind;

struct _HeadwaySecurityLog
{
  HeadwaySecurityFunc func;
  gpointer user_data; /* borrowed, outlives self */
  gint64 now_us;
  Kind kinds[HEADWAY_N_SECURITY_KINDS];
};

const char *
headway_security_kind_get_name (HeadwaySecurityKind kind)
{
  g_return_val_if_fail ((guint) kind < HEADWAY_N_SECURITY_KINDS, "unknown");

  return headway_security_kind_names[kind];
}

HeadwaySecurityLog *
headway_security_log_new (HeadwaySecurityFunc func, gpointer user_data)
{
  HeadwaySecurityLog *self = g_new0 (HeadwaySecurityLog, 1);

  g_assert (func != NULL);
  self->func = func;
  self->user_data = user_data;
  return self;
}

void
headway_security_log_free (HeadwaySecurityLog *self)
{
  const HeadwayInstant now = { .monotonic_us = self->now_us };

  headway_security_log_flush (self, now);
  g_free (self);
}

static void
tell_waiting (HeadwaySecurityLog *self, Kind *kind)
{
  const HeadwaySecurityReport report = {
    .kind = (HeadwaySecurityKind) (kind - self->kinds),
    .count = kind->waiting,
    .is_summary = TRUE,
    .interval_us = self->now_us - kind->told_us,
    .uid = kind->uid,
    .principal = kind->principal,
    .bus = kind->bus,
  };

  kind->told_us = self->now_us;
  kind->waiting = 0;
  self->func (&report, self->user_data);
  g_clear_pointer (&kind->principal, g_free);
  g_clear_pointer (&kind->bus, g_free);
}

/* What is due at the present. */
static void
settle (HeadwaySecurityLog *self, Kind *kind)
{
  if (!kind->is_open || self->now_us - kind->told_us < INTERVAL_US)
    return;
  if (kind->waiting > 0)
    tell_waiting (self, kind);
  else
    kind->is_open = FALSE;
}

void
headway_security_log_add (HeadwaySecurityLog *self,
                          HeadwaySecurityKind kind_id,
                          guint32 uid,
                          const char *principal,
                          const char *bus,
                          HeadwayInstant now)
{
  Kind *kind;

  g_return_if_fail ((guint) kind_id < HEADWAY_N_SECURITY_KINDS);

  kind = &self->kinds[kind_id];
  self->now_us = MAX (self->now_us, now.monotonic_us);
  kind->total++;
  settle (self, kind);
  if (!kind->is_open)
    {
      const HeadwaySecurityReport report = { kind_id, 1, FALSE, 0, uid, principal, bus };

      kind->is_open = TRUE;
      kind->told_us = self->now_us;
      self->func (&report, self->user_data);
      return;
    }
  /* One copy of names a second, however many events. */
  if (kind->waiting++ > 0)
    return;
  kind->uid = uid;
  kind->principal = g_strdup (principal);
  kind->bus = g_strdup (bus);
}

gint64
headway_security_log_tick (HeadwaySecurityLog *self, HeadwayInstant now)
{
  gint64 next_us = -1;

  self->now_us = MAX (self->now_us, now.monotonic_us);
  for (guint i = 0; i < HEADWAY_N_SECURITY_KINDS; i++)
    {
      Kind *kind = &self->kinds[i];

      settle (self, kind);
      if (kind->waiting > 0 && (next_us < 0 || kind->told_us + INTERVAL_US < next_us))
        next_us = kind->told_us + INTERVAL_US;
    }
  return next_us;
}

void
headway_security_log_flush (HeadwaySecurityLog *self, HeadwayInstant now)
{
  self->now_us = MAX (self->now_us, now.monotonic_us);
  for (guint i = 0; i < HEADWAY_N_SECURITY_KINDS; i++)
    {
      if (self->kinds[i].waiting > 0)
        tell_waiting (self, &self->kinds[i]);
    }
}

guint64
headway_security_log_get_count (const HeadwaySecurityLog *self, HeadwaySecurityKind kind)
{
  g_return_val_if_fail ((guint) kind < HEADWAY_N_SECURITY_KINDS, 0);

  return self->kinds[kind].total;
}
