/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "cli/headway-cli-event.h"
#include "cli/headway-cli-output.h"
#include "cli/headway-cli.h"

G_BEGIN_DECLS

/* What `headway sub` was asked for. */
typedef struct
{
  char **words; /* owned: the bus, then the patterns */
  char **types; /* owned, nullable: each may be a list with commas */
  char *mode;   /* owned, nullable, as are the texts below */
  char *via;
  char *scope;
  char *eviction;
  char *epoch;
  char *after_text;
  char *count_text;
  char *max_queued_text;
  char *budget_text;
  guint64 after;      /* where after_text is there */
  guint64 count;      /* 0: no end */
  guint64 max_queued; /* 0: not given */
  guint64 budget;     /* 0: not given */
  double timeout_s;   /* 0: none */
  gboolean json;
} HeadwayCliSubOptions;

typedef struct _HeadwayCliReader HeadwayCliReader;

typedef void (*HeadwayCliReaderFunc) (gpointer user_data);

HeadwayCliReader *headway_cli_reader_new (const HeadwayCliSubOptions *options);
void headway_cli_reader_free (HeadwayCliReader *self);
int headway_cli_reader_run (HeadwayCliReader *self);
void headway_cli_reader_quit (HeadwayCliReader *self,
                              int status);
void headway_cli_reader_fail (HeadwayCliReader *self,
                              const GError *error);
void headway_cli_reader_opened (HeadwayCliReader *self,
                                const char *epoch,
                                guint64 last_id,
                                gboolean has_last_id);
void headway_cli_reader_take (HeadwayCliReader *self,
                              const HeadwayCliEvent *event);
void headway_cli_reader_flush (HeadwayCliReader *self,
                               HeadwayCliReaderFunc func,
                               gpointer user_data);
gboolean headway_cli_reader_end (HeadwayCliReader *self);
gboolean headway_cli_reader_may_wait (HeadwayCliReader *self,
                                      const GError *error);
gboolean headway_cli_reader_was_evicted (HeadwayCliReader *self);
gboolean headway_cli_reader_is_over (HeadwayCliReader *self);
gboolean headway_cli_reader_get_cursor (HeadwayCliReader *self,
                                        guint64 *cursor);
const char *headway_cli_reader_get_epoch (HeadwayCliReader *self);
guint headway_cli_reader_get_wanted (HeadwayCliReader *self,
                                     guint maximum);
guint headway_cli_reader_next_delay_ms (HeadwayCliReader *self,
                                        guint maximum_ms);
void headway_cli_reader_waiting (HeadwayCliReader *self,
                                 const GError *reason);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (HeadwayCliReader, headway_cli_reader_free)

G_END_DECLS
