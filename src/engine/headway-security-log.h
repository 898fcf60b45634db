/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-types.h"

G_BEGIN_DECLS

/* What is worth the eye of whoever guards a machine. A closed set: these words are in logs and in
 * headway_security_events_total. */
typedef enum
{
  HEADWAY_SECURITY_AUTHENTICATION_FAILED, /* no token, or a wrong one */
  HEADWAY_SECURITY_HOST_REFUSED,          /* DNS rebinding, maybe */
  HEADWAY_SECURITY_ORIGIN_REFUSED,        /* a web page that may not */
  HEADWAY_SECURITY_NOT_AUTHORIZED,        /* a principal named, a bus closed, without the right to */
  HEADWAY_SECURITY_NOT_OWNER,             /* somebody else's subscription */
  HEADWAY_SECURITY_MALFORMED,             /* a publish that does not even parse */
  HEADWAY_SECURITY_TOO_LARGE,
  HEADWAY_SECURITY_RATE_LIMITED,
  HEADWAY_SECURITY_QUOTA_EXCEEDED, /* more of anything than one may have */
  HEADWAY_SECURITY_CONNECTION_LIMIT,
  HEADWAY_SECURITY_EVENTS_LOST, /* a reader was too slow: routing.md 1.4, 1.7 */
  HEADWAY_SECURITY_HANDLER_FAILED,
  HEADWAY_N_SECURITY_KINDS
} HeadwaySecurityKind;

/* Such as "authentication_failed"; never NULL. */
const char *headway_security_kind_get_name (HeadwaySecurityKind kind);
/* All of them, for HeadwayMetrics. */
extern const char *const headway_security_kind_names[HEADWAY_N_SECURITY_KINDS];

/**
 * HeadwaySecurityReport:
 * @count: how many events it stands for
 * @is_summary: FALSE: the first of its kind, told at once; TRUE: those that followed
 * @interval_us: of a summary: the time since the last report of this kind
 * @uid: who, G_MAXUINT32 where that is not known; of a summary, the first one's
 * @principal: (nullable): likewise
 * @bus: (nullable): likewise
 *
 * One line of the log. The daemon writes it to the journal as structured fields. Names have passed
 * their checks; nothing else a peer has said is in it.
 */
typedef struct
{
  HeadwaySecurityKind kind;
  guint64 count;
  gboolean is_summary;
  gint64 interval_us;
  guint32 uid;
  const char *principal;
  const char *bus;
} HeadwaySecurityReport;

typedef void (*HeadwaySecurityFunc) (const HeadwaySecurityReport *report, gpointer user_data);

/**
 * HeadwaySecurityLog:
 *
 * Security events, so that a flood of them is no flood of the log (routing.md 3.8, issue 4 point 8):
 * the first of a kind is told at once, those that follow in one summary a second. A kind that has
 * been quiet for a second starts over. Every event is in exactly one report.
 */
typedef struct _HeadwaySecurityLog HeadwaySecurityLog;

/* @func: called from within the functions below; it must not call them. */
HeadwaySecurityLog *headway_security_log_new (HeadwaySecurityFunc func, gpointer user_data);
/* Tells what is left. */
void headway_security_log_free (HeadwaySecurityLog *self);

/* @principal, @bus: (nullable): only names that have passed their checks. */
void headway_security_log_add (HeadwaySecurityLog *self,
                               HeadwaySecurityKind kind,
                               guint32 uid,
                               const char *principal,
                               const char *bus,
                               HeadwayInstant now);

/* Once a second or so: tells the summaries that are due. Returns: monotonic microseconds at which
 * the next one will be, -1 if nothing waits. */
gint64 headway_security_log_tick (HeadwaySecurityLog *self, HeadwayInstant now);
/* Tells everything that waits, due or not. */
void headway_security_log_flush (HeadwaySecurityLog *self, HeadwayInstant now);

/* Events of @kind so far, told or not. */
guint64 headway_security_log_get_count (const HeadwaySecurityLog *self, HeadwaySecurityKind kind);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwaySecurityLog, headway_security_log_free)

G_END_DECLS
