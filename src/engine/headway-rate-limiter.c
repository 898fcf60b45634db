/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include "engine/headway-rate-limiter.h"

#include "engine/headway-batch-private.h"
#include "engine/headway-error.h"
#include "engine/headway-gcra.h"
#include "engine/headway-quota-table.h"

/* A charge is judged first, against every quota it would touch, and only then made: so all or none
 * needs no undoing. Keys that are not there yet are judged as unused, and made with the charge. */

/* What each charge looks at for the keys it may make (routing.md 3.6, case 16). */
#define RECLAIM_PER_CHARGE 2

#define NS_PER_US G_GUINT64_CONSTANT (1000)
#define NS_PER_MS G_GUINT64_CONSTANT (1000000)

struct _HeadwayRateLimiter
{
  HeadwayQuotaTable *principals; /* owned: by bus and principal */
  HeadwayQuotaTable *uids;       /* owned: by uid */
  guint64 now_ns;                /* the latest time it was told */

  /* Scratch: each call clears what it uses. */
  GArray *charges;    /* HeadwayCharge, one for each principal of a batch */
  GHashTable *places; /* HeadwayPrincipal (borrowed) → index in `charges` + 1 */
  GPtrArray *quotas;  /* HeadwayQuota (borrowed), NULL: to be made; parallel to the charges */
};

/* The rates of one level, 0: no limit. */
typedef struct
{
  guint64 bytes_rate;
  guint64 events_rate;
  const char *bytes_setting;
  const char *events_setting;
} Level;

/* What is to be charged. */
typedef struct
{
  Level principal_level;
  Level uid_level;
  gconstpointer bus;
  guint32 uid;
  const HeadwayCharge *charges; /* of different principals */
  guint n_charges;
  guint64 bytes; /* of all */
  guint64 events;
  HeadwayQuota *uid_quota; /* (nullable): to be made, or not limited */
} Request;

/* What stands most in the way. */
typedef struct
{
  guint64 wait_ns; /* 0: nothing does */
  guint64 amount;
  guint64 rate;
  const char *unit;
  const char *setting;
  HeadwayPrincipal *principal; /* NULL: the uid */
} Obstacle;

HeadwayRateLimiter *
headway_rate_limiter_new (void)
{
  HeadwayRateLimiter *self = g_new0 (HeadwayRateLimiter, 1);

  self->principals = headway_quota_table_new (HEADWAY_RATE_KEYS_MAX);
  self->uids = headway_quota_table_new (HEADWAY_RATE_KEYS_MAX);
  self->charges = g_array_new (FALSE, FALSE, sizeof (HeadwayCharge));
  self->places = g_hash_table_new (NULL, NULL);
  self->quotas = g_ptr_array_new ();
  return self;
}

void
headway_rate_limiter_free (HeadwayRateLimiter *self)
{
  headway_quota_table_free (self->principals);
  headway_quota_table_free (self->uids);
  g_array_unref (self->charges);
  g_hash_table_unref (self->places);
  g_ptr_array_unref (self->quotas);
  g_free (self);
}

/* Time as the limiter sees it: never backwards (case 18), never over what 64 bits hold. */
static void
advance (HeadwayRateLimiter *self, HeadwayInstant now)
{
  gint64 us = CLAMP (now.monotonic_us, 0, G_MAXINT64 / (gint64) NS_PER_US);

  self->now_ns = MAX (self->now_ns, (guint64) us * NS_PER_US);
}

static gboolean
level_is_limited (const Level *level)
{
  return level->bytes_rate > 0 || level->events_rate > 0;
}

static void
request_init (Request *request, const HeadwayLimits *limits, gconstpointer bus, guint32 uid, const HeadwayCharge *charges, guint n_charges)
{
  *request = (Request){
    .principal_level = { limits->principal_bytes_per_second, limits->principal_events_per_second,
                         "principal-bytes-per-second", "principal-events-per-second" },
    .uid_level = { limits->uid_bytes_per_second, limits->uid_events_per_second,
                   "uid-bytes-per-second", "uid-events-per-second" },
    .bus = bus,
    .uid = uid,
    .charges = charges,
    .n_charges = n_charges,
  };
  for (guint i = 0; i < n_charges; i++)
    {
      request->bytes += charges[i].bytes;
      request->events += charges[i].events;
    }
}

/* --- Judging -------------------------------------------------------------------------------- */

static void
keep_worst (Obstacle *worst, guint64 wait_ns, guint64 amount, guint64 rate, const char *unit, const char *setting, HeadwayPrincipal *principal)
{
  if (wait_ns > worst->wait_ns)
    *worst = (Obstacle){ wait_ns, amount, rate, unit, setting, principal };
}

/* @quota: (nullable): nothing charged yet. */
static void
judge (const Level *level,
       const HeadwayQuota *quota,
       guint64 now_ns,
       guint64 bytes,
       guint64 events,
       HeadwayPrincipal *principal,
       Obstacle *worst)
{
  static const HeadwayQuota unused;

  if (quota == NULL)
    quota = &unused;
  if (level->bytes_rate > 0)
    keep_worst (worst, headway_gcra_wait_ns (&quota->bytes, now_ns, bytes, level->bytes_rate, level->bytes_rate),
                bytes, level->bytes_rate, "bytes", level->bytes_setting, principal);
  if (level->events_rate > 0)
    keep_worst (worst, headway_gcra_wait_ns (&quota->events, now_ns, events, level->events_rate, level->events_rate),
                events, level->events_rate, "events", level->events_setting, principal);
}

static void
judge_principals (HeadwayRateLimiter *self, const Request *request, Obstacle *worst)
{
  const Level *level = &request->principal_level;
  guint room = headway_quota_table_room (self->principals);
  HeadwayCharge common = { 0 };
  guint64 common_events = 0;

  g_ptr_array_set_size (self->quotas, (int) request->n_charges);
  for (guint i = 0; i < request->n_charges; i++)
    {
      const HeadwayCharge *charge = &request->charges[i];
      HeadwayQuota *quota = headway_quota_table_lookup (self->principals, request->bus, charge->principal);

      g_ptr_array_index (self->quotas, i) = quota;
      judge (level, quota, self->now_ns, charge->bytes, charge->events, charge->principal, worst);
      if (quota != NULL)
        continue;
      if (room > 0)
        {
          room--;
          continue;
        }
      common.principal = charge->principal;
      common.bytes += charge->bytes;
      common_events += charge->events;
    }
  /* Several newcomers of one batch on the common quota: each of them fits alone, so that together
   * they are never refused for good. */
  if (common.principal != NULL)
    judge (level, headway_quota_table_get_common (self->principals), self->now_ns,
           level->bytes_rate > 0 ? MIN (common.bytes, level->bytes_rate) : 0,
           level->events_rate > 0 ? MIN (common_events, level->events_rate) : 0, common.principal, worst);
}

static Obstacle
judge_request (HeadwayRateLimiter *self, Request *request)
{
  Obstacle worst = { 0 };

  if (level_is_limited (&request->principal_level))
    judge_principals (self, request, &worst);
  if (level_is_limited (&request->uid_level))
    {
      request->uid_quota = headway_quota_table_lookup (self->uids, NULL, GUINT_TO_POINTER (request->uid));
      judge (&request->uid_level, request->uid_quota, self->now_ns, request->bytes, request->events, NULL, &worst);
    }
  return worst;
}

/* --- Charging ------------------------------------------------------------------------------- */

static void
charge_quota (HeadwayQuotaTable *table, HeadwayQuota *quota, const Level *level, guint64 now_ns, guint64 bytes, guint64 events)
{
  if (level->bytes_rate > 0)
    headway_gcra_charge (&quota->bytes, now_ns, bytes, level->bytes_rate);
  if (level->events_rate > 0)
    headway_gcra_charge (&quota->events, now_ns, events, level->events_rate);
  headway_quota_table_touch (table, quota);
}

static void
charge_principals (HeadwayRateLimiter *self, const Request *request)
{
  for (guint i = 0; i < request->n_charges; i++)
    {
      const HeadwayCharge *charge = &request->charges[i];
      HeadwayQuota *quota = g_ptr_array_index (self->quotas, i);

      if (quota == NULL)
        quota = headway_quota_table_add (self->principals, request->bus, charge->principal, charge->principal);
      charge_quota (self->principals, quota, &request->principal_level, self->now_ns, charge->bytes, charge->events);
    }
}

static void
charge_uid (HeadwayRateLimiter *self, const Request *request)
{
  HeadwayQuota *quota = request->uid_quota;

  if (quota == NULL)
    quota = headway_quota_table_add (self->uids, NULL, GUINT_TO_POINTER (request->uid), NULL);
  charge_quota (self->uids, quota, &request->uid_level, self->now_ns, request->bytes, request->events);
}

static char *
describe_who (const Request *request, const Obstacle *obstacle)
{
  if (obstacle->principal == NULL && request->uid == G_MAXUINT32)
    return g_strdup ("clients without a user, over TCP, may together publish");
  if (obstacle->principal == NULL)
    return g_strdup_printf ("user %u may publish", request->uid);
  if (headway_principal_is_system (obstacle->principal))
    return g_strdup ("the system principal may publish on this bus");
  return g_strdup_printf ("principal \"%s\" may publish on this bus", headway_principal_get_name (obstacle->principal));
}

static void
set_refusal (const Request *request, const Obstacle *obstacle, GError **error)
{
  guint64 retry_ms = obstacle->wait_ns / NS_PER_MS + (obstacle->wait_ns % NS_PER_MS != 0 ? 1 : 0);
  gint64 limit = (gint64) MIN (obstacle->rate, (guint64) G_MAXINT64);
  g_autofree char *who = NULL;

  if (error == NULL)
    return;
  who = describe_who (request, obstacle);
  if (obstacle->wait_ns == HEADWAY_GCRA_NEVER)
    {
      headway_set_error_with_limit (error, HEADWAY_ERROR_QUOTA_EXCEEDED, limit,
                                    "%s %" G_GUINT64_FORMAT " %s a second (%s), %" G_GUINT64_FORMAT " at once never fit",
                                    who, obstacle->rate, obstacle->unit, obstacle->setting, obstacle->amount);
      return;
    }
  headway_set_error_with_limit (error, HEADWAY_ERROR_RATE_LIMITED, limit,
                                "%s %" G_GUINT64_FORMAT " %s a second (%s), too little of it is left for %" G_GUINT64_FORMAT
                                ", retry-after-ms=%" G_GUINT64_FORMAT,
                                who, obstacle->rate, obstacle->unit, obstacle->setting, obstacle->amount, retry_ms);
  headway_error_get_details (*error)->retry_after_ms = (gint64) retry_ms;
}

static gboolean
charge_request (HeadwayRateLimiter *self, Request *request, HeadwayInstant now, GError **error)
{
  Obstacle obstacle;

  advance (self, now);
  headway_quota_table_reclaim_others (self->principals, RECLAIM_PER_CHARGE, self->now_ns);
  headway_quota_table_reclaim_others (self->uids, RECLAIM_PER_CHARGE, self->now_ns);
  obstacle = judge_request (self, request);
  if (obstacle.wait_ns > 0)
    {
      set_refusal (request, &obstacle, error);
      return FALSE;
    }
  if (level_is_limited (&request->principal_level))
    charge_principals (self, request);
  if (level_is_limited (&request->uid_level))
    charge_uid (self, request);
  return TRUE;
}

static gint64
wait_for_request (HeadwayRateLimiter *self, Request *request, HeadwayInstant now)
{
  Obstacle obstacle;

  advance (self, now);
  obstacle = judge_request (self, request);
  if (obstacle.wait_ns == HEADWAY_GCRA_NEVER)
    return HEADWAY_RATE_NEVER;
  return (gint64) (obstacle.wait_ns / NS_PER_US) + (obstacle.wait_ns % NS_PER_US != 0 ? 1 : 0);
}

/* --- One principal -------------------------------------------------------------------------- */

/* Several events cannot all be within the ceiling if they are over it on average. */
static gboolean
check_ceiling (guint64 bytes, guint events, GError **error)
{
  guint64 average = events > 1 ? bytes / events : bytes;

  if (average <= HEADWAY_EVENT_CEILING)
    return TRUE;
  headway_set_error_with_limit (error, HEADWAY_ERROR_TOO_LARGE, HEADWAY_EVENT_CEILING,
                                "the event costs %" G_GUINT64_FORMAT " bytes, at most %d are allowed whatever the settings say",
                                average, HEADWAY_EVENT_CEILING);
  return FALSE;
}

gboolean
headway_rate_limiter_charge (HeadwayRateLimiter *self,
                             const HeadwayLimits *limits,
                             gconstpointer bus,
                             HeadwayPrincipal *principal,
                             guint32 uid,
                             guint64 bytes,
                             guint events,
                             HeadwayInstant now,
                             GError **error)
{
  HeadwayCharge charge = { principal, bytes, events };
  Request request;

  g_return_val_if_fail (principal != NULL, FALSE);

  if (!check_ceiling (bytes, events, error))
    return FALSE;
  request_init (&request, limits, bus, uid, &charge, 1);
  return charge_request (self, &request, now, error);
}

gint64
headway_rate_limiter_wait_us (HeadwayRateLimiter *self,
                              const HeadwayLimits *limits,
                              gconstpointer bus,
                              HeadwayPrincipal *principal,
                              guint32 uid,
                              guint64 bytes,
                              guint events,
                              HeadwayInstant now)
{
  HeadwayCharge charge = { principal, bytes, events };
  Request request;

  g_return_val_if_fail (principal != NULL, HEADWAY_RATE_NEVER);

  if (!check_ceiling (bytes, events, NULL))
    return HEADWAY_RATE_NEVER;
  request_init (&request, limits, bus, uid, &charge, 1);
  return wait_for_request (self, &request, now);
}

/* --- A batch -------------------------------------------------------------------------------- */

static HeadwayCharge *
get_charge (HeadwayRateLimiter *self, HeadwayPrincipal *principal)
{
  const HeadwayCharge charge = { .principal = principal };
  guint place;

  /* Nearly always there is but one: no hash. */
  if (self->charges->len > 0 && g_array_index (self->charges, HeadwayCharge, 0).principal == principal)
    return &g_array_index (self->charges, HeadwayCharge, 0);
  place = GPOINTER_TO_UINT (g_hash_table_lookup (self->places, principal));
  if (place == 0)
    {
      g_array_append_val (self->charges, charge);
      place = self->charges->len;
      g_hash_table_insert (self->places, principal, GUINT_TO_POINTER (place));
    }
  return &g_array_index (self->charges, HeadwayCharge, place - 1);
}

/* That each event is within the ceiling is part of its making. */
static void
collect_charges (HeadwayRateLimiter *self, const HeadwayBatch *batch)
{
  g_array_set_size (self->charges, 0);
  g_hash_table_remove_all (self->places);
  for (guint i = 0; i < batch->events->len; i++)
    {
      const HeadwayEvent *event = g_ptr_array_index (batch->events, i);
      HeadwayCharge *charge = get_charge (self, headway_event_get_principal (event));

      charge->bytes += headway_event_get_cost (event);
      charge->events++;
    }
}

gboolean
headway_rate_limiter_charge_batch (HeadwayRateLimiter *self,
                                   const HeadwayLimits *limits,
                                   gconstpointer bus,
                                   const HeadwayBatch *batch,
                                   guint32 uid,
                                   HeadwayInstant now,
                                   GError **error)
{
  Request request;

  collect_charges (self, batch);
  request_init (&request, limits, bus, uid, (const HeadwayCharge *) (gpointer) self->charges->data, self->charges->len);
  return charge_request (self, &request, now, error);
}

gint64
headway_rate_limiter_batch_wait_us (HeadwayRateLimiter *self,
                                    const HeadwayLimits *limits,
                                    gconstpointer bus,
                                    const HeadwayBatch *batch,
                                    guint32 uid,
                                    HeadwayInstant now)
{
  Request request;

  collect_charges (self, batch);
  request_init (&request, limits, bus, uid, (const HeadwayCharge *) (gpointer) self->charges->data, self->charges->len);
  return wait_for_request (self, &request, now);
}

/* --- Its keys ------------------------------------------------------------------------------- */

void
headway_rate_limiter_reclaim (HeadwayRateLimiter *self, guint n, HeadwayInstant now)
{
  advance (self, now);
  headway_quota_table_reclaim (self->principals, n, self->now_ns);
  headway_quota_table_reclaim (self->uids, n, self->now_ns);
}

void
headway_rate_limiter_forget_bus (HeadwayRateLimiter *self, gconstpointer bus)
{
  headway_quota_table_forget (self->principals, bus);
}

guint
headway_rate_limiter_size (const HeadwayRateLimiter *self)
{
  return headway_quota_table_size (self->principals);
}

guint
headway_rate_limiter_n_uids (const HeadwayRateLimiter *self)
{
  return headway_quota_table_size (self->uids);
}
