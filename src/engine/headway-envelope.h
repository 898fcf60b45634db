/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "engine/headway-event.h"

G_BEGIN_DECLS

/* Bytes of `{"id":` and the largest id. */
#define HEADWAY_ENVELOPE_HEAD_MAX 22

/* Where the parts of an envelope stand, as offsets from the comma behind the id. */
typedef struct
{
  gsize length;
  gsize data_offset;
  gsize data_length;
  gsize meta_offset;
  gsize meta_length;
} HeadwayEnvelopeLayout;

/* Bytes that headway_envelope_write() needs at most for @publication. */
gsize headway_envelope_size_max (const HeadwayPublication *publication);

/**
 * headway_envelope_write:
 * @to: headway_envelope_size_max() bytes
 * @publication: checked, topic and type set
 * @timestamp_us: serverTimestamp, where the publisher gave no finite number
 *
 * Writes the envelope of sse-contract.md 1.4 from `,"v":1` (or, with @is_synthetic, `{"v":1`) to the
 * closing brace.
 */
void headway_envelope_write (char *to,
                             const HeadwayPublication *publication,
                             gboolean is_synthetic,
                             gint64 timestamp_us,
                             HeadwayEnvelopeLayout *layout);

/* Bytes of `{"id":<id>`. */
gsize headway_envelope_head_length (guint64 id);
/* Writes `{"id":<id>` so that it ends just before @end; returns its length. */
gsize headway_envelope_write_head (char *end, guint64 id);

G_END_DECLS
